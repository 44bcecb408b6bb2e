"""A turn whose kernel was killed is what was said, and what was about to be said."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.journal.entries import (
    Answered,
    Began,
    Drafted,
    Dropped,
    Entry,
    Published,
    Said,
    Unsaid,
)
from crush_kernel.history.journal.replay import CUT_SHORT, fold
from crush_kernel.history.outputs import WIDGET_VIEW
from crush_kernel.history.record import read_turn, write_turn
from crush_kernel.history.repair import repair
from crush_kernel.history.turn import Turn, digest_of
from crush_kernel.messages import (
    Message,
    Reasoning,
    ShellCommand,
    Text,
    ToolCall,
    ToolResult,
    calls_of,
)
from tests.history.journal.entry_strategies import entries, later_entries

TURN = Turn("cell", run=2, fingerprint="f", source="s", is_start=True)
PROMPT = Message("user", (Text("Go"),))
CALLS = Message(
    "assistant", (ToolCall("a", "view", "{}"), ToolCall("b", "ls", "{}")), "p", "m", "tool_use"
)
DONE = Message("assistant", (Text("Done"),), "p", "m", "end_turn")
A, B = ToolResult("a", "1"), ToolResult("b", "2")
BOTH = Message("tool", (A, B))


def draft(text: str, step: int = 1, attempt: int = 1) -> Drafted:
    return Drafted(step, attempt, "text", text)


def thought(text: str, step: int = 1, attempt: int = 1) -> Drafted:
    return Drafted(step, attempt, "reasoning", text)


def partial(*parts: Text | Reasoning, after: Message | None = None) -> Message:
    names = (after.provider, after.model) if after else ("", "")
    return Message("assistant", parts, *names, stop="interrupted")


def folded(*entries: Entry) -> tuple[Message, ...]:
    return fold("cell.2", [Began(TURN), *entries]).turn.messages


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        pytest.param([], (), id="nothing"),
        pytest.param([Said(PROMPT)], (PROMPT,), id="a prompt"),
        pytest.param(
            [Said(PROMPT), Said(CALLS), Said(BOTH), Said(DONE)],
            (PROMPT, CALLS, BOTH, DONE),
            id="all that was said",
        ),
        pytest.param([Said(PROMPT), Said(DONE), Unsaid()], (PROMPT,), id="taken back"),
        pytest.param([Unsaid(), Said(PROMPT)], (PROMPT,), id="nothing to take back"),
        pytest.param(
            [Said(PROMPT), draft("Do"), draft("ne")],
            (PROMPT, partial(Text("Done"))),
            id="an unfinished reply",
        ),
        pytest.param(
            [Said(PROMPT), thought("Hm"), thought("m"), draft("Do"), thought("?"), draft("")],
            (PROMPT, partial(Reasoning("Hmm"), Text("Do"), Reasoning("?"))),
            id="...its parts in order",
        ),
        pytest.param([Said(PROMPT), draft("")], (PROMPT,), id="...of which nothing has come"),
        pytest.param(
            [Said(PROMPT), draft("Do"), Said(DONE)], (PROMPT, DONE), id="a draft that was finished"
        ),
        pytest.param(
            [Said(PROMPT), Said(DONE), draft("Do")], (PROMPT, DONE), id="...and came too late"
        ),
        pytest.param(
            [Said(PROMPT), Said(DONE), Unsaid(), draft("Do"), draft("New", step=2)],
            (PROMPT, partial(Text("New"))),
            id="...of a reply that was taken back",
        ),
        pytest.param(
            [Said(PROMPT), Said(CALLS), Said(BOTH), draft("Do", step=2)],
            (PROMPT, CALLS, BOTH, partial(Text("Do"), after=CALLS)),
            id="an unfinished reply of a later step",
        ),
        pytest.param(
            [Said(PROMPT), draft("Dx"), Dropped(1, 1)], (PROMPT,), id="a draft that is void"
        ),
        pytest.param(
            [Said(PROMPT), draft("Dx"), Dropped(1, 1), draft("Do", attempt=2)],
            (PROMPT, partial(Text("Do"))),
            id="...and what came instead",
        ),
        pytest.param(
            [Said(PROMPT), draft("Dx"), draft("Do", attempt=2), draft("!"), Dropped(1, 1)],
            (PROMPT, partial(Text("Do"))),
            id="...of which more came too late",
        ),
        pytest.param(
            [Said(CALLS), Answered(B)], (CALLS, Message("tool", (B,))), id="one result of two"
        ),
        pytest.param(
            [Said(CALLS), Answered(B), Answered(A)], (CALLS, BOTH), id="results in order of calls"
        ),
        pytest.param(
            [Said(CALLS), Answered(A), Answered(replace(A, content="other"))],
            (CALLS, Message("tool", (A,))),
            id="the first result of a call",
        ),
        pytest.param(
            [Said(CALLS), Answered(B), Answered(A), Said(BOTH), Answered(A)],
            (CALLS, BOTH),
            id="results that were said",
        ),
        pytest.param(
            [Said(CALLS), Answered(A), Said(PROMPT)],
            (CALLS, PROMPT, Message("tool", (A,))),
            id="a prompt that slipped in",
        ),
        pytest.param(
            [Said(CALLS), Answered(A), Said(DONE)],
            (CALLS, Message("tool", (A,)), DONE),
            id="results whose message is missing",
        ),
        pytest.param(
            [Said(CALLS), Said(BOTH), Said(CALLS), Answered(A)],
            (CALLS, BOTH, CALLS, Message("tool", (A,))),
            id="the same ids again",
        ),
        pytest.param(
            [Said(PROMPT), Said(DONE), Began(TURN), Said(CALLS)], (CALLS,), id="begun again"
        ),
    ],
)
def test_what_was_noted_adds_up(noted: list[Entry], expected: tuple[Message, ...]) -> None:
    assert folded(*noted) == expected


def test_the_turn_is_the_one_that_began_and_is_interrupted() -> None:
    turn = fold("cell.2", [Began(TURN), Said(PROMPT), draft("Do")]).turn
    assert turn == replace(
        TURN,
        messages=(PROMPT, partial(Text("Do"))),
        end="interrupted",
        revision=3,
        digest=digest_of(turn.messages),
    )


@pytest.mark.parametrize(
    ("turn_id", "cell_id", "run"),
    [
        pytest.param("c1.2", "c1", 2, id="a cell and a run"),
        pytest.param("a.b.13", "a.b", 13, id="a cell with a dot"),
        pytest.param("c1", "c1", 1, id="no run"),
        pytest.param("c1.", "c1.", 1, id="an empty run"),
        pytest.param("c1.²", "c1.²", 1, id="no number"),
        pytest.param(f"c1.{'9' * 5000}", f"c1.{'9' * 5000}", 1, id="no number of runs"),
    ],
)
def test_a_turn_whose_beginning_is_lost_is_named_by_its_id(
    turn_id: str, cell_id: str, run: int
) -> None:
    turn = fold(turn_id, [Said(PROMPT)]).turn
    assert (turn.cell_id, turn.run, turn.messages) == (cell_id, run, (PROMPT,))


def test_widgets_go_with_their_kernel() -> None:
    bundle = {"text/plain": "Allow?", WIDGET_VIEW: {"model_id": "x"}}
    content = {"data": bundle, "metadata": {"crush": {"pending": True}}}
    outputs = fold("cell.2", [Began(TURN), Published("display_data", content)]).outputs
    shown = {"output_type": "display_data", "data": {"text/plain": "Allow?"}, "metadata": {}}
    assert outputs == [shown]


def shell(output: str) -> Message:
    return Message("user", (ShellCommand("make", output, 130),))


def printed(text: str) -> Published:
    content = {"data": {"text/plain": text, "text/markdown": f"```\n{text}\n```"}, "metadata": {}}
    return Published("display_data", content)


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        pytest.param([Said(shell(CUT_SHORT))], CUT_SHORT, id="nothing yet"),
        pytest.param(
            [Said(shell(CUT_SHORT)), printed("one\ntwo")], f"one\ntwo\n{CUT_SHORT}", id="some"
        ),
        pytest.param(
            [Said(shell(CUT_SHORT)), printed("one"), Unsaid(), Said(shell("one\ntwo"))],
            "one\ntwo",
            id="all of it",
        ),
    ],
)
def test_a_command_has_printed_what_its_cell_shows(noted: list[Entry], expected: str) -> None:
    assert folded(*noted) == (shell(expected),)


@given(st.lists(entries, max_size=14))
def test_whatever_was_noted_adds_up_to_a_turn_that_can_be_stored(noted: list[Entry]) -> None:
    turn = fold("cell.1", noted).turn
    assert turn.end == "interrupted"
    stored = read_turn(dict(write_turn(turn)), cell_id="cell")
    assert stored.messages == turn.messages
    assert stored.age == turn.age


@given(st.lists(entries, max_size=14))
def test_a_later_request_has_every_call_answered_at_once(noted: list[Entry]) -> None:
    messages = repair((*fold("cell.1", noted).turn.messages, PROMPT))
    for message, following in pairwise(messages):
        answers = [part.call_id for part in following.parts if isinstance(part, ToolResult)]
        assert answers == [call.id for call in calls_of(message)]


kept_entries = later_entries.filter(lambda entry: not isinstance(entry, Unsaid))


@given(st.lists(kept_entries, max_size=14))
def test_what_was_said_stays_in_its_order(noted: list[Entry]) -> None:
    remaining = iter(fold("cell.1", noted).turn.messages)
    said = [entry.message for entry in noted if isinstance(entry, Said)]
    assert all(message in remaining for message in said)


@given(st.lists(later_entries, max_size=14))
def test_a_turn_that_is_older_is_never_taken_for_newer(noted: list[Entry]) -> None:
    revisions = [
        fold("cell.1", [Began(TURN), *noted[:count]]).turn.revision
        for count in range(len(noted) + 1)
    ]
    said = sum(isinstance(entry, Said | Unsaid) for entry in noted)
    assert revisions[-1] > said
    assert all(revision > 0 for revision in revisions)


@given(st.lists(later_entries, max_size=14))
def test_folding_what_was_folded_changes_nothing_more_that_is_said(noted: list[Entry]) -> None:
    once = fold("cell.1", [Began(TURN), *noted]).turn
    again = fold("cell.1", [Began(replace(once, end="running"))]).turn
    assert again.messages == once.messages
    assert again.digest == once.digest
