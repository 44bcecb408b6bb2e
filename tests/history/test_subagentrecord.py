"""The record of a sub-agent: what is kept of it, and what is made of one from anywhere."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.subagentrecord import (
    KEY,
    MAX_NAME_CHARS,
    MAX_RECORD_CHARS,
    MAX_TEXT_CHARS,
    NestedCall,
    SubagentRecord,
    nested_calls,
    shortened,
    subagent_of,
    write_subagent,
)
from crush_kernel.messages import (
    Media,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)

CALL = ToolCall("c1", "grep", '{"pattern": "price"}')
RESULT = ToolResult("c1", "price.py:3", metadata={"summary": "1 match"})
RECORD = SubagentRecord(
    name="task",
    model="acme/big",
    usage={"acme/big": Usage(input_tokens=10, output_tokens=2)},
    messages=(
        Message("user", (Text("Find it."),)),
        Message("assistant", (CALL,), provider="acme", model="big", stop="tool_use"),
        Message("tool", (RESULT,)),
        Message("assistant", (Text("In price.py."),), provider="acme", model="big"),
    ),
)


def read(value: JsonValue) -> SubagentRecord | None:
    return subagent_of(ToolResult("c", "answer", metadata={KEY: value}))


def written(record: SubagentRecord) -> JsonValue:
    return json.loads(json.dumps(dict(write_subagent(record))))


def results_of(record: SubagentRecord) -> list[ToolResult]:
    return [each.result for each in nested_calls(record) if each.result is not None]


def test_a_record_comes_back_as_it_was_written() -> None:
    assert read(written(RECORD)) == RECORD
    assert list(nested_calls(RECORD)) == [NestedCall(CALL, RESULT)]


def test_a_result_without_a_record_is_of_no_sub_agent() -> None:
    assert subagent_of(ToolResult("c", "text")) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("task", None, id="no object"),
        pytest.param(None, None, id="null"),
        pytest.param({}, SubagentRecord("", "", "interrupted"), id="nothing in it"),
        pytest.param(
            {"name": 3, "model": ["x"], "end": "won", "usage": [], "messages": "hello"},
            SubagentRecord("", "", "interrupted"),
            id="nothing of the right kind",
        ),
        pytest.param(
            {"name": "n" * 9_000, "end": "error", "usage": {"a/b": {"input_tokens": -1}}},
            SubagentRecord("n" * MAX_NAME_CHARS, "", "error"),
            id="endless name, impossible usage",
        ),
        pytest.param(
            {"end": "end_turn", "messages": [1, {"role": "user", "parts": [{"kind": "text"}]}]},
            None,
            id="broken messages",
        ),
    ],
)
def test_what_makes_no_sense_is_left_out(value: JsonValue, expected: SubagentRecord | None) -> None:
    found = read(value)
    if expected is not None or not isinstance(value, dict):
        assert found == expected
    else:
        assert found is not None
        assert list(nested_calls(found)) == []


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([None] * 200_000, id="very many"),
        pytest.param(json.loads("[" * 90 + "]" * 90), id="very deep"),
    ],
)
def test_a_record_beyond_all_measure_has_no_steps(messages: list[JsonValue]) -> None:
    found = read({"name": "task", "end": "end_turn", "messages": messages})
    assert found == SubagentRecord("task", "")


def test_of_two_results_of_a_call_the_first_counts_and_a_call_may_have_none() -> None:
    other = ToolCall("c2", "view", "{}")
    second = ToolResult("c1", "forged")
    messages = (Message("assistant", (CALL, other)), Message("tool", (RESULT, second)))
    record = SubagentRecord("task", "", messages=messages)
    assert list(nested_calls(record)) == [NestedCall(CALL, RESULT), NestedCall(other, None)]


def test_a_record_is_short_whatever_the_sub_agent_has_read() -> None:
    calls = tuple(ToolCall(f"c{n}", "view", '{"content": "' + "x" * 50_000) for n in range(200))
    results = tuple(
        ToolResult(
            call.id,
            "y" * 50_000,
            media=(Media("image/png", "A" * 50_000, name="a.png"),),
            metadata={"summary": "9 lines", KEY: written(RECORD), "diff": "+" * 50_000},
        )
        for call in calls
    )
    thought = Reasoning("z" * 50_000, provider_data={"signature": "s" * 50_000})
    messages = (Message("assistant", (thought, *calls)), Message("tool", results))
    record = SubagentRecord("task", "acme/big", messages=messages)
    assert len(json.dumps(written(record))) < 2 * MAX_RECORD_CHARS
    found = read(written(record))
    assert found is not None
    kept = results_of(found)
    assert len(kept) == 200
    assert kept[0].metadata["summary"] == "9 lines"
    assert KEY not in kept[0].metadata
    assert [media.name for media in kept[0].media] == ["a.png"]


@given(st.lists(st.text(max_size=3 * MAX_TEXT_CHARS), max_size=6))
def test_what_is_short_stays_as_it_is(texts: list[str]) -> None:
    messages = tuple(Message("assistant", (Text(text),)) for text in texts)
    short = shortened(messages)
    assert all(
        len(part.text) <= MAX_TEXT_CHARS
        for m in short
        for part in m.parts
        if isinstance(part, Text)
    )
    assert shortened(short) == short


_NAMES = st.sampled_from(
    ("name", "model", "end", "usage", "messages", "role", "parts", "kind", "text", "tool_call")
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | _NAMES,
    lambda inner: st.lists(inner) | st.dictionaries(_NAMES, inner),
)


@given(_VALUES)
def test_anything_can_be_read(value: JsonValue) -> None:
    found = read(value)
    assert (found is None) == (not isinstance(value, dict))
