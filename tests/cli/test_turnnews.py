"""A growing record of a turn: each thing that happened is told once, in order."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.cli.runevents import (
    PermissionDenied,
    RunEvent,
    SubagentCalled,
    Text,
    ToolAnswered,
    ToolCalled,
)
from crush_kernel.cli.turnnews import MAX_TEXT_CHARS, TurnNews, cut, line
from crush_kernel.history.subagentrecord import KEY, SubagentRecord, write_subagent
from crush_kernel.history.turn import Turn, TurnState
from crush_kernel.kernel.plaintext import visible
from crush_kernel.messages import Message, Reasoning, ToolCall, ToolResult, Usage
from crush_kernel.messages import Text as Said

DENIAL = "Permission denied: nobody can be asked here. Do not try to get the same result."


def prompt(*more: str) -> Message:
    return Message("user", (Said("go"), *map(Said, more)))


def reply(text: str, *calls: str, **more: Any) -> Message:  # noqa: ANN401 - fields of a message
    parts = (Reasoning("hm"), Said(text), *(ToolCall(each, "bash", "{}") for each in calls))
    fields: dict[str, Any] = {"provider": "offline", "model": "offline", "stop": "end_turn"}
    return Message("assistant", parts, **fields | more)


def result(call: str, content: str = "", *, summary: str = "", fails: bool = False) -> ToolResult:
    metadata = {"summary": summary} if summary else {}
    return ToolResult(call, content, is_error=fails, metadata=metadata)


def answers(*results: ToolResult) -> Message:
    return Message("tool", results)


def told(*messages: Message, end: TurnState = "end_turn") -> list[RunEvent]:
    return list(TurnNews("c").feed(Turn("c", messages=messages, end=end)))


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([prompt()], [], id="a prompt"),
        pytest.param([prompt(), reply("Hi")], [Text("c", "Hi")], id="a reply"),
        pytest.param([prompt(), reply(" \n")], [], id="a reply without words"),
        pytest.param(
            [
                prompt(),
                reply("I look.", "1"),
                answers(result("1", summary="3 lines")),
                reply("Done."),
            ],
            [
                Text("c", "I look."),
                ToolCalled("c", "1", "bash", "{}"),
                ToolAnswered("c", "1", "bash", "ok", "3 lines"),
                Text("c", "Done."),
            ],
            id="a call",
        ),
        pytest.param(
            [prompt(), reply("", "1"), answers(result("1", "no\nsuch file", fails=True))],
            [
                ToolCalled("c", "1", "bash", "{}"),
                ToolAnswered("c", "1", "bash", "error", "no such file"),
            ],
            id="a failed call",
        ),
        pytest.param(
            [prompt(), reply("", "1"), answers(result("1", DENIAL, summary="denied", fails=True))],
            [
                ToolCalled("c", "1", "bash", "{}"),
                ToolAnswered("c", "1", "bash", "denied", "denied"),
                PermissionDenied("c", "bash", DENIAL),
            ],
            id="a denied call",
        ),
        pytest.param(
            [prompt(), reply("", "1"), answers(result("1", "denied", summary="denied"))],
            [
                ToolCalled("c", "1", "bash", "{}"),
                ToolAnswered("c", "1", "bash", "ok", "denied"),
            ],
            id="a call that only says so",
        ),
        pytest.param(
            [
                prompt(),
                *(reply("", "same"), answers(result("same", summary="one"))),
                *(reply("", "same"), answers(result("same", summary="two"))),
            ],
            [
                ToolCalled("c", "same", "bash", "{}"),
                ToolAnswered("c", "same", "bash", "ok", "one"),
                ToolCalled("c", "same", "bash", "{}"),
                ToolAnswered("c", "same", "bash", "ok", "two"),
            ],
            id="ids that a provider uses again",
        ),
        pytest.param(
            [
                prompt(
                    "[@/etc/passwd could not be attached: Permission denied: nobody can be asked]"
                )
            ],
            [
                PermissionDenied(
                    "c",
                    "attach",
                    "@/etc/passwd could not be attached: Permission denied: nobody can be asked",
                )
            ],
            id="a denied attachment",
        ),
        pytest.param(
            [prompt("[@x could not be attached: it is a binary file]")], [], id="a bad attachment"
        ),
        pytest.param(
            [Message("user", (Said("a could not be attached: Permission denied"),))],
            [],
            id="a prompt that says so itself",
        ),
    ],
)
def test_what_a_turn_tells(messages: list[Message], expected: list[RunEvent]) -> None:
    assert told(*messages) == expected


def test_denials_usage_and_the_model_are_summed_up() -> None:
    usage = Usage(input_tokens=3, output_tokens=2)
    denied = result("1", DENIAL, summary="denied", fails=True)
    news = TurnNews("c")
    messages = (prompt(), reply("", "1", usage=usage), answers(denied), reply("Ok.", usage=usage))

    list(news.feed(Turn("c", messages=messages, end="end_turn")))

    assert news.has_turn
    assert news.denied == 1
    assert news.model == "offline/offline"
    assert news.usage is not None
    assert (news.usage["input_tokens"], news.usage["output_tokens"]) == (6, 4)


@pytest.mark.parametrize(
    ("last", "end", "expected"),
    [
        pytest.param(reply("Half", stop=None), "running", [], id="still coming"),
        pytest.param(reply("Whole"), "running", [Text("c", "Whole")], id="complete"),
        pytest.param(
            reply("Half", stop=None), "interrupted", [Text("c", "Half")], id="cut short for good"
        ),
    ],
)
def test_a_reply_is_told_when_nothing_can_be_added(
    last: Message, end: TurnState, expected: list[RunEvent]
) -> None:
    assert told(prompt(), last, end=end) == expected


def test_a_reply_that_was_taken_back_is_told_anew() -> None:
    news = TurnNews("c")

    first = list(news.feed(Turn("c", messages=(prompt(), reply("One")))))
    back = list(news.feed(Turn("c", messages=(prompt(),))))
    second = list(news.feed(Turn("c", messages=(prompt(), reply("Two")))))

    assert (first, back, second) == ([Text("c", "One")], [], [Text("c", "Two")])


def test_a_reply_that_was_taken_back_while_it_grew_is_told_anew() -> None:
    news = TurnNews("c")

    grown = [
        list(news.grow(0, [prompt()])),
        list(news.grow(1, [reply("One")])),
        list(news.grow(1, [])),
        list(news.grow(1, [reply("Two")])),
    ]

    assert grown == [[], [Text("c", "One")], [], [Text("c", "Two")]]


steps = st.lists(st.integers(min_value=0, max_value=3), max_size=5)


@given(steps=steps, cuts=st.lists(st.integers(min_value=0, max_value=12), max_size=6))
def test_it_does_not_matter_how_often_a_turn_is_told(steps: list[int], cuts: list[int]) -> None:
    messages: list[Message] = [prompt()]
    for number, calls in enumerate(steps):
        ids = [f"{number}.{call}" for call in range(calls)]
        messages += [reply(f"Step {number}", *ids), answers(*map(result, ids))]
    news = TurnNews("c")
    events: list[RunEvent] = []

    for length in [*sorted(cuts), len(messages)]:
        events += news.feed(Turn("c", messages=tuple(messages[:length])))

    assert events == told(*messages)


@given(steps=steps, cuts=st.lists(st.integers(min_value=0, max_value=12), max_size=6))
def test_a_turn_can_grow_from_any_message_on(steps: list[int], cuts: list[int]) -> None:
    messages: list[Message] = [prompt()]
    for number, calls in enumerate(steps):
        ids = [f"{number}.{call}" for call in range(calls)]
        messages += [reply(f"Step {number}", *ids), answers(*map(result, ids))]
    news = TurnNews("c")
    events: list[RunEvent] = []

    told_up_to = 0
    for length in sorted({min(each, len(messages)) for each in cuts}):
        events += news.grow(told_up_to, messages[told_up_to:length])
        told_up_to = length
    events += news.feed(Turn("c", messages=tuple(messages), end="end_turn"))

    assert events == told(*messages)


def test_results_are_told_as_they_come() -> None:
    news = TurnNews("c")
    one, two = result("1", summary="one"), result("2", summary="two")

    def feed(results: Sequence[ToolResult]) -> list[str]:
        turn = Turn("c", messages=(prompt(), reply("", "1", "2"), answers(*results)))
        return [event.summary for event in news.feed(turn) if isinstance(event, ToolAnswered)]

    assert [feed([]), feed([one]), feed([one, two])] == [[], ["one"], ["two"]]


def test_what_a_sub_agent_did_is_told_before_its_call_is_answered() -> None:
    inside = (
        reply("", "n1", "n2", "n3"),
        answers(result("n1", summary="exit 0"), result("n2", DENIAL, summary="denied", fails=True)),
    )
    record = write_subagent(SubagentRecord("tester", "", messages=inside))
    done = ToolResult("1", "Fine.", metadata={"summary": "3 calls", KEY: dict(record)})
    news = TurnNews("c")
    events = list(news.feed(Turn("c", messages=(reply("", "1"), answers(done)), end="end_turn")))
    assert events[1:] == [
        SubagentCalled("c", "1", "tester", "bash", "{}", "ok", "exit 0"),
        SubagentCalled("c", "1", "tester", "bash", "{}", "denied", "denied"),
        PermissionDenied("c", "bash", DENIAL),
        SubagentCalled("c", "1", "tester", "bash", "{}", "interrupted", ""),
        ToolAnswered("c", "1", "bash", "ok", "3 calls"),
    ]
    assert news.denied == 1


def test_long_texts_are_cut_with_a_note() -> None:
    text = "x" * (MAX_TEXT_CHARS + 7)

    assert cut(text).endswith("x\n[… 7 more characters …]")
    assert cut(text[:MAX_TEXT_CHARS]) == text[:MAX_TEXT_CHARS]


@given(st.text(max_size=60), st.integers(min_value=1, max_value=20))
def test_a_line_is_short_and_cannot_steer_a_terminal(text: str, limit: int) -> None:
    shown = line(text, limit)

    assert len(shown) <= limit
    assert shown == visible(shown)
    assert "\n" not in shown
