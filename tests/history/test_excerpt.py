"""Histories that are made shorter to be summarized."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.estimate import tokens_of
from crush_kernel.history.excerpt import (
    BRIEF,
    KEPT_CHARS,
    Detail,
    elided,
    in_few_pieces,
    outline,
    pieces,
    transcript,
)
from crush_kernel.history.repair import repair
from crush_kernel.messages import (
    Media,
    Message,
    Text,
    ToolCall,
    ToolResult,
    object_in,
    text_of,
)
from tests.fakes.histories import damaged_histories


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def ran(number: int, size: int) -> tuple[Message, ...]:
    call = ToolCall(f"c{number}", "bash", f'{{"command": "run {number}"}}')
    result = ToolResult(call.id, f"begin {number} " + "x" * size + f" end {number}")
    return Message("assistant", (call,)), Message("tool", (result,))


def size_of(messages: tuple[Message, ...]) -> int:
    return sum(map(tokens_of, messages))


HISTORY = (user("go"), *ran(1, 40_000), *ran(2, 40_000), *ran(3, 40_000))


def content(message: Message) -> str:
    return "".join(part.content for part in message.parts if isinstance(part, ToolResult))


def test_old_outputs_go_first_and_no_more_than_must() -> None:
    short = elided(HISTORY, 12_000)
    assert short is not None
    assert [len(content(m)) <= KEPT_CHARS for m in short if m.role == "tool"] == [True, True, False]
    assert size_of(short) <= size_of(HISTORY) - 12_000
    assert content(short[2]).startswith("begin 1")
    assert content(short[2]).endswith("end 1")


def test_then_what_calls_have_written_goes_and_stays_an_object() -> None:
    call = ToolCall(
        "c", "write", '{"path": "a.py", "lines": [1, 2], "text": "' + "y" * 9_000 + '"}'
    )
    short = elided((Message("assistant", (call,)),), 2_000)
    assert short is not None
    (part,) = short[0].parts
    assert isinstance(part, ToolCall)
    arguments = object_in(part.input) or {}
    assert (arguments["path"], arguments["lines"]) == ("a.py", [1, 2])
    assert len(part.input) < 1_000


def test_pictures_are_named_instead() -> None:
    short = elided((Message("user", (Text("look"), Media("image/png", "AA", "a.png"))),), 1_000)
    assert short is not None
    assert "a.png is left out" in text_of(short[0])


def test_what_cannot_be_made_that_short_is_not_cut_in_vain() -> None:
    assert elided((user("go"),) * 1_000, 5_000) is None


@given(damaged_histories(), st.lists(st.integers(0, 5_000), max_size=4), st.integers(0, 3_000))
def test_a_shorter_history_can_still_be_sent(
    history: tuple[Message, ...], sizes: list[int], excess: int
) -> None:
    more = tuple(m for number, size in enumerate(sizes) for m in ran(number, size))
    whole = repair(history + more)
    short = elided(whole, excess)
    if short is not None:
        assert size_of(short) <= size_of(whole) - excess or excess <= 0
        assert repair(short) == short
        assert [m.role for m in short] == [m.role for m in whole]


def test_a_transcript_tells_who_said_and_did_what() -> None:
    told = "\n".join(
        transcript((user("go"), *ran(1, 10), Message("assistant", (Text("ok"),))), Detail())
    )
    assert told.split("\n") == [
        "User: go",
        'You called bash: {"command": "run 1"}',
        "It gave: begin 1 xxxxxxxxxx end 1",
        "You: ok",
    ]


@given(st.lists(st.text(max_size=60), max_size=12), st.integers(1, 50))
def test_pieces_are_never_longer_than_they_may_be_and_lose_nothing(
    paragraphs: list[str], most: int
) -> None:
    found = pieces(paragraphs, most)
    assert all(0 < len(piece) <= most for piece in found)
    whole = "".join(found).replace("\n", "")
    assert whole == "".join(paragraphs).replace("\n", "")


@given(damaged_histories(), st.integers(50, 500), st.integers(1, 5))
def test_any_history_fits_in_few_pieces(
    messages: tuple[Message, ...], max_chars: int, most: int
) -> None:
    found = in_few_pieces(messages, max_chars, most)
    assert len(found) <= most
    assert all(len(piece) <= max_chars for piece in found)


def test_what_is_too_long_for_few_pieces_loses_its_middle_at_last() -> None:
    history = tuple(user(f"{number:04}" + "x" * 90) for number in range(1_000))
    found = in_few_pieces(history, 1_000, 4)
    assert "0000" in found[0]
    assert "0999" in found[-1]
    assert len(found) == 4


@pytest.mark.parametrize("most", [100, 1_000])
def test_an_outline_needs_no_model(most: int) -> None:
    text = outline(HISTORY, most)
    assert text.startswith("User: go")
    assert len(text) <= most


def test_a_brief_transcript_is_shorter() -> None:
    long, short = ("\n".join(transcript(HISTORY, detail)) for detail in (Detail(), BRIEF))
    assert len(short) < len(long) / 2
