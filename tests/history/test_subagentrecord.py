"""The record of a sub-agent: what is kept of it, and what is made of one from anywhere."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.subagentrecord import (
    KEY,
    MAX_NAME_CHARS,
    NestedCall,
    SubagentRecord,
    nested_calls,
    subagent_of,
    write_subagent,
)
from crush_kernel.messages import (
    Message,
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
