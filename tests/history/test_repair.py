"""What `repair` guarantees to a provider."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.repair import INTERRUPTED, NO_OUTPUT, UNKNOWN_TOOL, is_json_object, repair
from crush_kernel.messages import (
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
)

USER = Message("user", (Text("list the files"),))
CALL = Message("assistant", (ToolCall("c1", "ls", "{}"),))
ANSWER = Message("tool", (ToolResult("c1", "a.py"),))
SYNTHETIC = Message("tool", (ToolResult("c1", INTERRUPTED, is_error=True),))


def reply(*parts: Part) -> Message:
    return Message("assistant", parts)


def results(*parts: Part) -> Message:
    return Message("tool", parts)


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
            (USER, CALL, USER, ANSWER), (USER, CALL, ANSWER, USER), id="a late answer moves up"
        ),
        pytest.param(
            (USER, CALL, ANSWER, ANSWER), (USER, CALL, ANSWER), id="a second answer is dropped"
        ),
        pytest.param(
            (USER, reply(ToolCall("a", "ls", "{}"), ToolCall("b", "ls", "{}")),
             results(ToolResult("b", "2"), ToolResult("a", "1"))),
            (USER, reply(ToolCall("a", "ls", "{}"), ToolCall("b", "ls", "{}")),
             results(ToolResult("a", "1"), ToolResult("b", "2"))),
            id="answers stand in the order of the calls",
        ),
        pytest.param(
            (CALL, ANSWER, CALL, ANSWER),
            (CALL, ANSWER, reply(ToolCall("c1_2", "ls", "{}")),
             results(ToolResult("c1_2", "a.py"))),
            id="a repeated id is renamed with its answer",
        ),
        pytest.param(
            (reply(ToolCall("call:1|x", "ls", "{}")), results(ToolResult("call:1|x", "a"))),
            (reply(ToolCall("call_1_x", "ls", "{}")), results(ToolResult("call_1_x", "a"))),
            id="an id outside the alphabet is mapped with its answer",
        ),
        pytest.param(
            (reply(ToolCall("c1", "write", "")), USER),
            (reply(ToolCall("c1", "write", "{}")), SYNTHETIC, USER),
            id="empty arguments become an object",
        ),
        pytest.param(
            (reply(ToolCall("c1", "a b", "{}")), ANSWER),
            (reply(ToolCall("c1", UNKNOWN_TOOL, "{}")), ANSWER),
            id="an impossible tool name is replaced",
        ),
        pytest.param((USER, reply(Text(" \n"))), (USER,), id="blank text is dropped"),
        pytest.param((USER, reply()), (USER,), id="an empty message is dropped"),
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
    ],
)  # fmt: skip
def test_repair_mends(history: tuple[Message, ...], expected: tuple[Message, ...]) -> None:
    assert repair(history) == expected


def test_a_command_of_the_users_is_told_in_words() -> None:
    (message,) = repair((Message("user", (ShellCommand("make", "boom", 2),)),))
    assert text_of(message).startswith("I ran `make` myself; exit code 2.")
    assert "boom" in text_of(message)


@pytest.mark.parametrize(
    ("text", "is_object"),
    [
        pytest.param('{"a": 1}', True, id="object"),
        pytest.param("[]", False, id="array"),
        pytest.param("{", False, id="cut off"),
        pytest.param("", False, id="empty"),
        pytest.param('{"a": NaN}', False, id="a constant that JSON does not have"),
        pytest.param("[" * 200_000, False, id="nested beyond reason"),
    ],
)
def test_arguments_are_an_object_or_not(text: str, *, is_object: bool) -> None:
    assert is_json_object(text) is is_object


texts = st.text(st.characters(), max_size=5)
ids = st.sampled_from(["a", "b", "a_2", "a:b", "", "x" * 60])
parts = st.one_of(
    st.builds(Text, texts),
    st.builds(Reasoning, texts),
    st.builds(ToolCall, ids, st.sampled_from(["ls", "a b", ""]), st.sampled_from(["{}", "", "{"])),
    st.builds(ToolResult, ids, texts),
)
histories = st.lists(
    st.builds(
        Message,
        st.sampled_from(["user", "assistant", "tool"]),
        st.lists(parts, max_size=4).map(tuple),
    ),
    max_size=8,
).map(tuple)


@given(histories)
def test_repair_is_idempotent(history: tuple[Message, ...]) -> None:
    once = repair(history)
    assert repair(once) == once


@given(histories)
def test_every_call_is_answered_once_and_at_once_in_order(history: tuple[Message, ...]) -> None:
    repaired = repair(history)
    for before, message in zip((None, *repaired), repaired, strict=False):
        answers = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
        asked = (
            [part.id for part in before.parts if isinstance(part, ToolCall)]
            if before is not None and before.role == "assistant"
            else []
        )
        assert answers == asked
    last = repaired[-1] if repaired else USER
    assert not any(isinstance(part, ToolCall) for part in last.parts)


@given(histories)
def test_what_is_sent_is_unique_valid_and_encodable(history: tuple[Message, ...]) -> None:
    sent = [
        part for message in repair(history) for part in message.parts if isinstance(part, ToolCall)
    ]
    assert len({call.id for call in sent}) == len(sent)
    for call in sent:
        assert len(call.id) <= 40
        assert isinstance(json.loads(call.input), dict)
    for message in repair(history):
        assert message.parts
        text_of(message).encode("utf-8")


@given(histories)
def test_no_text_is_lost(history: tuple[Message, ...]) -> None:
    said = [p.text for m in history for p in m.parts if isinstance(p, Text) and p.text.strip()]
    kept = [p.text for m in repair(history) for p in m.parts if isinstance(p, Text)]
    users = [m for m in history if m.role != "tool"]
    assert len(kept) <= len(said)
    if len(users) == len(history):
        assert len(kept) == len(said)
