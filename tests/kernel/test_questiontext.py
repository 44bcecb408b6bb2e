"""Questions on a keyboard: what is shown, and what a typed line means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.kernel import questiontext
from crush_kernel.tools.question import Choice, Given, Question, QuestionForm, QuestionType

CHOICES = tuple(Choice(name, name.upper(), "why") for name in "abc")


def question(kind: QuestionType) -> Question:
    return Question(kind, "Which?", "It\nmatters.", choices=CHOICES if "choice" in kind else ())


@pytest.mark.parametrize(
    ("kind", "line", "expected"),
    [
        ("yes_no", "y", Given(yes=True)),
        ("yes_no", " No, too dear ", Given(yes=False, text="too dear")),
        ("yes_no", "YES", Given(yes=True)),
        ("yes_no", "yesterday", Given(text="yesterday")),
        ("yes_no", "", Given()),
        ("single_choice", "2", Given(chosen=("b",))),
        ("single_choice", "1 2", Given(text="1 2")),
        ("single_choice", "4", Given(text="4")),
        ("single_choice", "0", Given(text="0")),
        ("single_choice", "²", Given(text="²")),
        ("single_choice", "", Given()),
        ("multi_choice", "3, 1", Given(chosen=("a", "c"))),
        ("multi_choice", "1 1", Given(chosen=("a",))),
        ("multi_choice", "1, or d", Given(text="1, or d")),
        ("multi_choice", "9" * 5000, Given(text="9" * 5000)),
        ("free_text", " 1 ", Given(text="1")),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_line_is_an_answer(kind: QuestionType, line: str, expected: Given) -> None:
    assert questiontext.answer_in(question(kind), line) == expected


@given(st.sampled_from(["yes_no", "single_choice", "multi_choice", "free_text"]), st.text())
def test_no_word_is_lost(kind: QuestionType, line: str) -> None:
    answer = questiontext.answer_in(question(kind), line)
    assert answer.chosen or answer.yes is not None or answer.text == line.strip()
    assert set(answer.chosen) <= {"a", "b", "c"}


def test_a_question_stands_with_its_choices() -> None:
    lines = list(questiontext.question_lines(question("single_choice"), 2, 3))
    assert lines == [
        "(2 of 3) Which?",
        "  It",
        "  matters.",
        "  [1] A – why",
        "  [2] B – why",
        "  [3] C – why",
    ]


def test_what_is_hidden_in_a_question_is_shown() -> None:
    hostile = Question("free_text", "a\x1b[2Jb", "\u202ec", choices=())
    text = "\n".join(questiontext.question_lines(hostile, 1, 1))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_saved_file_says_that_an_answer_is_waited_for() -> None:
    shown = questiontext.waiting(QuestionForm("c1", (Question("free_text", "<b>Why</b>?"),)))
    assert "waiting for an answer" in shown.markdown
    assert "<b>Why</b>" not in shown.markdown
