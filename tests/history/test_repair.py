"""What `repair` guarantees to a provider."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.repair import (
    BAD_ARGUMENTS,
    INTERRUPTED,
    NO_OUTPUT,
    UNFINISHED,
    UNKNOWN_TOOL,
    repair,
)
from crush_kernel.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    ShellCommand,
    SummaryMark,
    Text,
    ToolCall,
    ToolResult,
    text_of,
    well_formed,
)
from tests.fakes.histories import SOME, History, damaged_histories, sound_histories, thinking

USER = Message("user", (Text("list the files"),))
CALL = Message("assistant", (ToolCall("c1", "ls", "{}"),))
ANSWER = Message("tool", (ToolResult("c1", "a.py"),))
SYNTHETIC = Message("tool", (ToolResult("c1", INTERRUPTED, is_error=True),))
DONE = Message("assistant", (Text("done"),))


def reply(*parts: Part) -> Message:
    return Message("assistant", parts)


def results(*parts: Part) -> Message:
    return Message("tool", parts)


def failed(content: str) -> Message:
    return results(ToolResult("c1", content, is_error=True))


A, B = ToolCall("a", "ls", "{}"), ToolCall("b", "ls", "{}")


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param((USER, CALL, ANSWER), (USER, CALL, ANSWER), id="a paired history stays"),
        pytest.param((USER, CALL), (USER, CALL, SYNTHETIC), id="a cut-off call is answered"),
        pytest.param(
            (USER, CALL, USER), (USER, CALL, SYNTHETIC, USER), id="...before the next prompt"
        ),
        pytest.param((USER, ANSWER), (USER,), id="an answer nobody asked for is dropped"),
        pytest.param(
            (Message("user", (Text("summary"), ToolResult("gone", "42"))), DONE, USER),
            (Message("user", (Text("summary"),)), DONE, USER),
            id="...also when a cut left it in a prompt",
        ),
        pytest.param((ANSWER, CALL), (CALL, SYNTHETIC), id="...and when its call comes later"),
        pytest.param(
            (USER, CALL, USER, ANSWER), (USER, CALL, ANSWER, USER), id="a late answer moves up"
        ),
        pytest.param(
            (USER, CALL, USER, DONE, ANSWER),
            (USER, CALL, ANSWER, USER, DONE),
            id="...also from behind another reply",
        ),
        pytest.param(
            (reply(A, B), results(ToolResult("a", "1")), DONE, results(ToolResult("b", "2"))),
            (reply(A, B), results(ToolResult("a", "1"), ToolResult("b", "2")), DONE),
            id="...where others are already",
        ),
        pytest.param(
            (CALL, USER, CALL, ANSWER),
            (CALL, SYNTHETIC, USER, reply(ToolCall("c1_2", "ls", "{}")),
             results(ToolResult("c1_2", "a.py"))),
            id="...but not from a call of its own",
        ),
        pytest.param(
            (reply(A, B), USER, results(ToolResult("a", "1"), ToolResult("b", "2"))),
            (reply(A, B), results(ToolResult("a", "1"), ToolResult("b", "2")), USER),
            id="what was said between calls and results goes after them",
        ),
        pytest.param(
            (USER, CALL, ANSWER, ANSWER), (USER, CALL, ANSWER), id="a second answer is dropped"
        ),
        pytest.param(
            (USER, CALL, SYNTHETIC, ANSWER),
            (USER, CALL, ANSWER),
            id="an answer counts more than an interruption",
        ),
        pytest.param(
            (USER, reply(A, B), results(ToolResult("b", "2"), ToolResult("a", "1"))),
            (USER, reply(A, B), results(ToolResult("a", "1"), ToolResult("b", "2"))),
            id="answers stand in the order of the calls",
        ),
        pytest.param(
            (USER, reply(A, B), results(ToolResult("a", "1")), results(ToolResult("b", "2"))),
            (USER, reply(A, B), results(ToolResult("a", "1"), ToolResult("b", "2"))),
            id="...and in one message",
        ),
        pytest.param(
            (Message("assistant", (*CALL.parts, *ANSWER.parts)), DONE),
            (CALL, ANSWER, DONE),
            id="an answer leaves the reply that it was merged into",
        ),
        pytest.param(
            (CALL, results(ToolResult("c1", "a.py"), Text("stop"))),
            (CALL, ANSWER, Message("user", (Text("stop"),))),
            id="...and words leave the answers",
        ),
        pytest.param(
            (CALL, ANSWER, CALL, ANSWER),
            (CALL, ANSWER, reply(ToolCall("c1_2", "ls", "{}")),
             results(ToolResult("c1_2", "a.py"))),
            id="a repeated id is renamed with its answer",
        ),
        pytest.param(
            (reply(ToolCall("c1_2", "ls", "{}")), CALL, CALL, USER),
            (reply(ToolCall("c1_2", "ls", "{}")),
             results(ToolResult("c1_2", INTERRUPTED, is_error=True)), CALL, SYNTHETIC, USER),
            id="...but not a replay's",
        ),
        pytest.param(
            (reply(ToolCall("c1_2", "ls", "{}")), CALL, USER, CALL),
            (reply(ToolCall("c1_2", "ls", "{}")),
             results(ToolResult("c1_2", INTERRUPTED, is_error=True)), CALL, SYNTHETIC, USER,
             reply(ToolCall("c1_3", "ls", "{}")),
             results(ToolResult("c1_3", INTERRUPTED, is_error=True))),
            id="...to one that nobody has",
        ),
        pytest.param(
            (reply(ToolCall("d", "write", '{"a":1}'), ToolCall("d", "write", '{"a":2}')),
             results(ToolResult("d", "ok 1"), ToolResult("d", "ok 2"))),
            (reply(ToolCall("d", "write", '{"a":1}'), ToolCall("d_2", "write", '{"a":2}')),
             results(ToolResult("d", "ok 1"), ToolResult("d_2", "ok 2"))),
            id="...pair by pair within a reply",
        ),
        pytest.param(
            (reply(A, Text("and"), A), results(ToolResult("a", "1"), ToolResult("a", "1"))),
            (reply(A, Text("and")), results(ToolResult("a", "1"))),
            id="a call that was replayed is made once",
        ),
        pytest.param((CALL, CALL, ANSWER), (CALL, ANSWER), id="...and so is a whole reply"),
        pytest.param(
            (DONE, DONE, USER, USER), (DONE, DONE, USER, USER), id="words may be said twice"
        ),
        pytest.param(
            (reply(ToolCall("call:1|x", "ls", "{}")), results(ToolResult("call:1|x", "a"))),
            (reply(ToolCall("call_1_x", "ls", "{}")), results(ToolResult("call_1_x", "a"))),
            id="an id outside the alphabet is mapped with its answer",
        ),
        pytest.param(
            (reply(ToolCall("c1", "a b", "{}")), ANSWER),
            (reply(ToolCall("c1", UNKNOWN_TOOL, "{}")), ANSWER),
            id="an impossible tool name is replaced",
        ),
        pytest.param((USER, reply(Text(" \n"))), (USER,), id="blank text is dropped"),
        pytest.param((USER, reply()), (USER,), id="an empty message is dropped"),
        pytest.param(
            (reply(Text("x \n"), Text("1. a\n2. b \n")),),
            (reply(Text("x \n"), Text("1. a\n2. b")),),
            id="blanks at the end of a last reply are dropped",
        ),
        pytest.param(
            (reply(Text("x \n")), USER), (reply(Text("x \n")), USER), id="...and only there"
        ),
        pytest.param(
            (reply(thinking("hm"), Text("x"), thinking("h")), USER),
            (reply(thinking("hm"), Text("x")), USER),
            id="thinking that led nowhere is dropped",
        ),
        pytest.param((USER, reply(thinking("hm"))), (USER,), id="...and with it its reply"),
        pytest.param(
            (reply(thinking("p1"), A, thinking("p2"), Text("and"), B),
             results(ToolResult("a", "1"), ToolResult("b", "2"))),
            (reply(thinking("p1"), A, thinking("p2"), Text("and"), B),
             results(ToolResult("a", "1"), ToolResult("b", "2"))),
            id="the order within a reply stays",
        ),
        pytest.param(
            (CALL, results(ToolResult("c1", " "))),
            (CALL, results(ToolResult("c1", NO_OUTPUT))),
            id="a blank result says so",
        ),
        pytest.param(
            (Message("user", (Text("a\ud800b"),)),),
            (Message("user", (Text("a\ufffdb"),)),),
            id="lone surrogates are replaced",
        ),
        pytest.param(
            (Message("user", (Opaque({"kind": "new"}), SummaryMark("x"), Text("hi"))),),
            (Message("user", (Text("hi"),)),),
            id="parts that no provider knows are left out",
        ),
        pytest.param(
            (Message("user", (A, thinking("hm"), Text("hi"))), reply(Media("image/png", "aGk="))),
            (Message("user", (Text("hi"),)),),
            id="...and those that the role cannot say",
        ),
    ],
)  # fmt: skip
def test_repair_mends(history: tuple[Message, ...], expected: tuple[Message, ...]) -> None:
    assert repair(history) == expected


@pytest.mark.parametrize(
    ("raw", "answer", "reads"),
    [
        pytest.param("", None, UNFINISHED, id="empty, killed while written"),
        pytest.param('{"path": "sr', None, UNFINISHED, id="cut off, killed while written"),
        pytest.param('{"path": "sr', SYNTHETIC, UNFINISHED, id="cut off, stopped while written"),
        pytest.param("{}", None, INTERRUPTED, id="complete, killed while run"),
        pytest.param('{"path"', failed("no"), f"{BAD_ARGUMENTS} no", id="cut off, then refused"),
        pytest.param("[1]", failed("no"), f"{BAD_ARGUMENTS} no", id="a list, then refused"),
        pytest.param("{", failed("not valid JSON"), "not valid JSON", id="refused for this"),
        pytest.param("", failed("text: Field required"), "text: Field required", id="empty"),
        pytest.param("{", ANSWER, "a.py", id="cut off, and carried out all the same"),
    ],
)
def test_a_call_without_an_object_is_made_with_none_and_its_answer_says_so(
    raw: str, answer: Message | None, reads: str
) -> None:
    history = (reply(ToolCall("c1", "ls", raw)), *([answer] if answer else []))
    assert repair(history) == (CALL, results(ToolResult("c1", reads, is_error=reads != "a.py")))


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        pytest.param('{"b": 1e3, "a": -0, "b": 2}', None, id="by the letter"),
        pytest.param(' {"a": 1}\n', None, id="with blanks around"),
        pytest.param('{"a": "b\n\tc"}', '{"a": "b\\n\\tc"}', id="raw line breaks"),
        pytest.param('{"a": "\\ud83d."}', '{"a": "\ufffd."}', id="half an emoji, escaped"),
        pytest.param('{"a": "\ud83d."}', '{"a": "\ufffd."}', id="half an emoji"),
    ],
)
def test_arguments_that_are_an_object_are_sent_as_they_were_written(
    raw: str, sent: str | None
) -> None:
    call = ToolCall("c1", "ls", raw)
    (said, _) = repair((reply(call), ANSWER))
    assert said.parts == (ToolCall("c1", "ls", raw if sent is None else sent),)


def test_many_calls_with_one_id_are_told_apart_in_no_time() -> None:
    history = (CALL, ANSWER) * 5_000
    calls = [part for m in repair(history) for part in m.parts if isinstance(part, ToolCall)]
    assert len({call.id for call in calls}) == 5_000
    assert max(len(call.id) for call in calls) <= 40


def test_what_needs_no_repair_is_the_same_object() -> None:
    history = (USER, CALL, ANSWER, DONE, USER)
    assert all(map(lambda one, other: one is other, repair(history), history))


def test_a_command_of_the_users_is_told_in_words() -> None:
    (message,) = repair((Message("user", (ShellCommand("make", "boom", 2),)),))
    assert text_of(message).startswith("I ran `make` myself; exit code 2.")
    assert "boom" in text_of(message)


@SOME
@given(sound_histories())
def test_what_is_sound_stays_as_it_is(history: History) -> None:
    assert repair(history) == history


@SOME
@given(damaged_histories())
def test_repair_is_idempotent(history: History) -> None:
    once = repair(history)
    assert repair(once) == once


@SOME
@given(damaged_histories(), st.integers(0, 30))
def test_every_call_is_answered_once_and_at_once_in_order(history: History, cut: int) -> None:
    repaired = repair(history[:cut])
    for before, message in zip((None, *repaired), (*repaired, None), strict=True):
        parts = message.parts if message is not None else ()
        answers = [part.call_id for part in parts if isinstance(part, ToolResult)]
        assert answers == ([call.id for call in calls_in(before)] if before else [])
        if answers:
            assert len(answers) == len(parts)


@SOME
@given(damaged_histories())
def test_what_is_sent_is_unique_valid_and_encodable(history: History) -> None:
    repaired = repair(history)
    calls = [call for message in repaired for call in calls_in(message)]
    assert len({call.id for call in calls}) == len(calls)
    for call in calls:
        assert 0 < len(call.id) <= 40
        assert isinstance(json.loads(call.input), dict)
    for message in repaired:
        assert message.parts
        assert all(part.text.strip() for part in message.parts if isinstance(part, Text))
        assert message.role != "assistant" or not isinstance(message.parts[-1], Reasoning)
        text_of(message).encode("utf-8")


@SOME
@given(damaged_histories())
def test_every_text_is_kept_in_order(history: History) -> None:
    said = dict.fromkeys(text.strip() for text in texts_in(history) if text.strip())
    kept = dict.fromkeys(text.strip() for text in texts_in(repair(history)))
    assert [text for text in kept if not text.startswith("I ran `")] == list(said)


@SOME
@given(damaged_histories())
def test_every_answer_to_a_call_before_it_is_kept(history: History) -> None:
    asked = [(i, call.id) for i, m in enumerate(history) for call in calls_in(m)]
    given = [
        (i, part.call_id, well_formed(part.content))
        for i, message in enumerate(history)
        for part in message.parts
        if isinstance(part, ToolResult) and part.content != INTERRUPTED
    ]
    answers = [
        part.content for m in repair(history) for part in m.parts if isinstance(part, ToolResult)
    ]
    for place, call_id in asked:
        found = [(i, content) for i, answered, content in given if answered == call_id]
        if len(found) == 1 and found[0][0] >= place and asked_once(asked, call_id):
            assert found[0][1] in answers


def asked_once(asked: list[tuple[int, str]], call_id: str) -> bool:
    return [known for _, known in asked].count(call_id) == 1


def calls_in(message: Message) -> list[ToolCall]:
    if message.role != "assistant":
        return []
    return [part for part in message.parts if isinstance(part, ToolCall)]


def texts_in(history: History) -> list[str]:
    parts = [part for message in history for part in message.parts]
    return [well_formed(part.text) for part in parts if isinstance(part, Text)]
