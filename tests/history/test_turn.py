"""What makes two turns say the same."""

import json
import re
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.turn import digest_of, source_digest
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
    Usage,
)
from tests.history.values import WILD, WRITTEN, histories_of


def user(*parts: Part) -> tuple[Message, ...]:
    return (Message("user", parts),)


def reasoning(data: dict[str, JsonValue]) -> tuple[Message, ...]:
    return (Message("assistant", (Reasoning("Hm.", data),)),)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            (Message("assistant", (Text("Hi."),), usage=Usage(1, 2, 3, 4), stop="end_turn"),),
            (Message("assistant", (Text("Hi."),)),),
            id="usage and the reason of the end",
        ),
        pytest.param(
            (Message("tool", (ToolResult("c", "x", metadata={"diff": "+a"}),)),),
            (Message("tool", (ToolResult("c", "x"),)),),
            id="what is for people",
        ),
        pytest.param(
            reasoning({"a": 1, "b": [2, {"c": None}]}),
            reasoning({"b": [2, {"c": None}], "a": 1}),
            id="the order of keys",
        ),
        pytest.param(
            reasoning({"a": 1.0}), reasoning({"a": 1}), id="a whole number, as a browser writes it"
        ),
        pytest.param(
            reasoning({"a": float("nan")}), reasoning({"a": None}), id="no number, as it is stored"
        ),
        pytest.param(
            user(Text("\ud83d!")), user(Text("\ufffd!")), id="half a character, as it is stored"
        ),
    ],
)
def test_what_no_model_reads_does_not_count(
    one: tuple[Message, ...], other: tuple[Message, ...]
) -> None:
    assert digest_of(one) == digest_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(user(Text("ab")), user(Text("ac")), id="another letter"),
        pytest.param(user(Text("a"), Text("b")), user(Text("ab")), id="a text cut in two"),
        pytest.param(user(Text("a"), Text("")), user(Text("a")), id="an empty part"),
        pytest.param(user(Text("a")), (*user(Text("a")), *user()), id="an empty message"),
        pytest.param(
            (*user(Text("a")), *user(Text("b"))),
            user(Text("a"), Text("b")),
            id="a message cut in two",
        ),
        pytest.param(
            user(Text("a")), (Message("assistant", (Text("a"),)),), id="somebody else says it"
        ),
        pytest.param(
            (Message("assistant", (Text("a"),), provider="p"),),
            (Message("assistant", (Text("a"),), model="p"),),
            id="another model says it",
        ),
        pytest.param(user(Text("a")), user(SummaryMark("a")), id="another kind of part"),
        pytest.param(
            user(ToolCall("a", "bc", "{}")),
            user(ToolCall("ab", "c", "{}")),
            id="an id cut elsewhere",
        ),
        pytest.param(
            user(ToolResult("c", "a", is_error=True)), user(ToolResult("c", "a")), id="an error"
        ),
        pytest.param(
            user(ToolResult("c", "a", media=(Media("image/png", "x"),))),
            user(ToolResult("c", "a"), Media("image/png", "x")),
            id="an image in a result or beside it",
        ),
        pytest.param(
            user(ShellCommand("a", "", 0)), user(ShellCommand("a", "", 1)), id="another exit code"
        ),
        pytest.param(reasoning({"a": True}), reasoning({"a": "True"}), id="a word and its text"),
        pytest.param(reasoning({"a": 1}), reasoning({"a": "1"}), id="a number and its text"),
        pytest.param(reasoning({"a": [[], 1]}), reasoning({"a": [[1]]}), id="other nesting"),
        pytest.param(
            user(Opaque({"kind": "x", "a": {}})), user(Opaque({"kind": "x", "a": []})), id="opaque"
        ),
    ],
)
def test_what_a_model_reads_counts(one: tuple[Message, ...], other: tuple[Message, ...]) -> None:
    assert digest_of(one) != digest_of(other)


def said_in(history: tuple[Message, ...]) -> str:
    """Return what a model reads of `history` as JSON that is the same for the same words."""
    said = [
        {
            "role": message.role,
            "provider": message.provider,
            "model": message.model,
            "parts": [
                asdict(replace(part, metadata={}) if isinstance(part, ToolResult) else part)
                for part in message.parts
            ],
        }
        for message in history
    ]
    return json.dumps(json.loads(json.dumps(said), parse_float=whole), sort_keys=True)


def whole(text: str) -> float:
    """Read a number as a browser does, to which `1.0` is `1`."""
    number = float(text)
    return int(number) if number.is_integer() else number


@given(histories_of(WRITTEN), histories_of(WRITTEN))
def test_two_histories_have_one_digest_if_and_only_if_they_say_the_same(
    one: tuple[Message, ...], other: tuple[Message, ...]
) -> None:
    assert (digest_of(one) == digest_of(other)) is (said_in(one) == said_in(other))


@given(histories_of(WRITTEN), st.data())
def test_each_message_and_each_part_counts(
    history: tuple[Message, ...], data: st.DataObject
) -> None:
    changed = list(history)
    place = data.draw(st.integers(0, len(history)))
    changed.insert(place, Message("user", (Text("one more"),)))
    assert digest_of(changed) != digest_of(history)
    if place < len(history):
        parts = history[place].parts
        changed[place : place + 2] = [replace(history[place], parts=(*parts, Text("")))]
        assert digest_of(changed) != digest_of(history)


@given(histories_of(WILD, is_plain=False))
def test_every_history_has_a_digest(history: tuple[Message, ...]) -> None:
    assert re.fullmatch("[0-9a-f]{32}", digest_of(history))


def test_a_long_history_counts_to_its_last_letter() -> None:
    long = [Message("user", (Text(f"{number} " * 20_000),)) for number in range(10)]
    for place in range(len(long)):
        changed = list(long)
        changed[place] = Message("user", (Text(f"{place} " * 19_999 + f"{place}."),))
        assert digest_of(changed) != digest_of(long)


def test_what_nests_deep_has_a_digest() -> None:
    data: dict[str, JsonValue] = {}
    for _ in range(5_000):
        data = {"a": [data]}
    assert digest_of(reasoning(data)) != digest_of(reasoning({"a": [data]}))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param("hello", "hello", True, id="the same text"),
        pytest.param("hello\n", "  hello", True, id="white space at the ends"),
        pytest.param("hello", "hello.", False, id="an edit"),
        pytest.param("a b", "a  b", False, id="white space inside"),
        pytest.param("", " \n", True, id="nothing"),
        pytest.param("\ud83d", "\udd25", False, id="halves of a character"),
    ],
)
def test_an_edited_cell_is_told_from_an_unedited_one(
    one: str, other: str, *, is_same: bool
) -> None:
    assert (source_digest(one) == source_digest(other)) is is_same
