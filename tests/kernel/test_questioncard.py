"""The form for questions, on real ipywidgets models."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# ipywidgets carries no types.

import asyncio
from collections.abc import Iterator

import anyio
import pytest

from crush_kernel.kernel.debounce import Debounce
from crush_kernel.kernel.questioncard import QuestionCard
from crush_kernel.tools.question import (
    DISMISSED,
    Answered,
    Choice,
    Given,
    Question,
    QuestionForm,
    QuestionType,
    Unanswered,
)
from tests.kernel.widget_models import open_models, send, texts, with_class

pytestmark = pytest.mark.anyio

CHOICES = (Choice("a", "Same"), Choice("b", "Same", "but other"), Choice("c", "Third"))


@pytest.fixture(autouse=True)
def no_model_stays_open() -> Iterator[None]:
    before = open_models()
    yield
    assert open_models() == before


def form(*kinds: QuestionType) -> QuestionForm:
    questions = (
        Question(kind, f"Question {n}?", "About it.", choices=CHOICES if "choice" in kind else ())
        for n, kind in enumerate(kinds, start=1)
    )
    return QuestionForm("c1", tuple(questions), "Some questions")


def card_for(*kinds: QuestionType) -> QuestionCard:
    return QuestionCard(form(*kinds), Debounce(lambda: 0.0))


async def answered(card: QuestionCard) -> Answered | Unanswered:
    with anyio.fail_after(5):
        answer = await card.answer()
    card.close()
    return answer


@pytest.mark.parametrize(
    ("css_class", "expected"),
    [
        ("crush-yes", Answered((Given(yes=True),))),
        ("crush-no", Answered((Given(yes=False),))),
        ("crush-dismiss", DISMISSED),
    ],
)
async def test_a_proposal_is_answered_by_one_click(
    css_class: str, expected: Answered | Unanswered
) -> None:
    card = card_for("yes_no")
    send(with_class(css_class)[0], {"event": "click"})
    assert await answered(card) == expected


async def test_a_whole_form_is_sent_at_once() -> None:
    card = card_for("yes_no", "single_choice", "multi_choice", "free_text", "yes_no")
    proposal, single, _ = with_class("crush-choices")
    proposal.index, single.index = 1, 1
    first, _, third = with_class("crush-choice")
    first.value = third.value = True
    words = with_class("crush-words")
    words[2].value, words[3].value = " and d ", "two\nlines"
    with_class("crush-answer")[0].click()
    assert await answered(card) == Answered((
        Given(yes=False),
        Given(chosen=("b",)),
        Given(chosen=("a", "c"), text="and d"),
        Given(text="two\nlines"),
        Given(),
    ))  # fmt: skip


async def test_letters_that_arrive_just_after_the_click_still_count() -> None:
    card = card_for("free_text")
    waiting = asyncio.ensure_future(card.answer())
    with_class("crush-answer")[0].click()
    await anyio.lowlevel.checkpoint()
    with_class("crush-words")[0].value = "late"
    with anyio.fail_after(5):
        assert await waiting == Answered((Given(text="late"),))
    card.close()


async def test_enter_sends_the_only_answer_once_there_is_one() -> None:
    card = card_for("single_choice")
    words = with_class("crush-words")[0]
    send(words, {"event": "submit"})
    assert not with_class("crush-answer")[0].disabled
    words.value = "neither"
    send(words, {"event": "submit"})
    assert await answered(card) == Answered((Given(text="neither"),))


async def test_a_second_click_changes_nothing() -> None:
    card = card_for("yes_no")
    yes, no = with_class("crush-yes")[0], with_class("crush-no")[0]
    yes.click()
    no.click()
    assert no.disabled
    assert await answered(card) == Answered((Given(yes=True),))
    no.click()


async def test_a_withdrawn_form_cannot_be_answered() -> None:
    card = card_for("yes_no")
    yes = with_class("crush-yes")[0]
    waiting = asyncio.ensure_future(card.answer())
    await anyio.lowlevel.checkpoint()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    yes.click()
    card.close()
    card.close()


async def test_what_the_model_wrote_is_text_and_never_html() -> None:
    hostile = "<img src=x onerror=alert(1)>\u202e"
    question = Question(
        "multi_choice", hostile, hostile, hostile, (Choice("a", hostile), Choice("b", "B"))
    )
    hostile_form = QuestionForm("c1", (question, question), hostile, hostile)
    card = QuestionCard(hostile_form, Debounce(lambda: 0.0))
    shown = "\n".join(texts(each) for each in with_class("crush-text"))
    assert "<img" not in shown
    assert "&lt;img" in shown
    assert "\u202e" not in texts(card.box)
    assert not any(check.description_allow_html for check in with_class("crush-choice"))
    card.close()


async def test_every_field_says_what_it_is_for() -> None:
    card = card_for("single_choice", "free_text")
    for field in (*with_class("crush-words"), *with_class("crush-choices")):
        assert field.tooltip.startswith("Question ")
    card.close()
