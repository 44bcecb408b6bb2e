"""What a sub-agent did, kept with the result of the call that started it.

Pure. The record is for people: the model reads the result's text only. What is read may come
from anybody's notebook, so that it is measured first and never raises.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast, get_args

from pydantic import JsonValue

from crush_kernel.history.messagejson import read_messages, read_usage, write_value
from crush_kernel.history.plainjson import Budget, Unreasonable, is_plain, plain
from crush_kernel.messages import (
    JsonObject,
    Message,
    ToolCall,
    ToolResult,
    Usage,
    well_formed,
)

KEY: Final = "subagent"
"""Where the record stands in the metadata of a result."""

SubagentEnd = Literal["end_turn", "interrupted", "error"]

MAX_NAME_CHARS: Final = 200
MAX_MODELS: Final = 50
"""How many models of a record's usage are read."""

MAX_MESSAGES: Final = 1_000
"""Of one record, the last ones, are read."""

_BUDGET: Final = 100_000
"""JSON values of one record that are looked at."""


@dataclass(frozen=True, slots=True)
class SubagentRecord:
    """One sub-agent from its prompt to its end."""

    name: str
    """Of the agent: `task`, or a custom one."""
    model: str
    """`provider/model`, as far as one was asked."""
    end: SubagentEnd = "end_turn"
    usage: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    """What it has used, by `provider/model`."""
    messages: tuple[Message, ...] = ()
    """Oldest first, the prompt included."""


@dataclass(frozen=True, slots=True)
class NestedCall:
    """A tool call of a sub-agent."""

    call: ToolCall
    result: ToolResult | None
    """`None` if it never had one."""


def write_subagent(record: SubagentRecord) -> JsonObject:
    """Return `record` as JSON."""
    usage: dict[str, JsonValue] = {label: write_value(used) for label, used in record.usage.items()}
    return {
        "name": well_formed(record.name),
        "model": well_formed(record.model),
        "end": record.end,
        "usage": usage,
        "messages": [plain(write_value(each)) for each in record.messages],
    }


def subagent_of(result: ToolResult) -> SubagentRecord | None:
    """Return what `result` tells of a sub-agent; `None` if it is of no sub-agent's call."""
    value = result.metadata.get(KEY)
    if not isinstance(value, dict):
        return None
    budget = Budget(values=_BUDGET, faults=MAX_MESSAGES)
    raw = value.get("messages")
    messages: tuple[Message, ...] = ()
    try:
        if is_plain(value, budget) and isinstance(raw, list):
            messages = read_messages(raw[-MAX_MESSAGES:], budget).messages
    except Unreasonable:
        pass
    end = value.get("end")
    return SubagentRecord(
        name=_name(value.get("name")),
        model=_name(value.get("model")),
        end=cast("SubagentEnd", end) if end in get_args(SubagentEnd) else "interrupted",
        usage=_usage(value.get("usage")),
        messages=messages,
    )


def nested_calls(record: SubagentRecord) -> Iterator[NestedCall]:
    """Yield the calls that the sub-agent made, in its order."""
    parts = [part for message in record.messages for part in message.parts]
    results: dict[str, ToolResult] = {}
    for part in parts:
        if isinstance(part, ToolResult):
            results.setdefault(part.call_id, part)
    for part in parts:
        if isinstance(part, ToolCall):
            yield NestedCall(part, results.get(part.id))


def _name(value: JsonValue) -> str:
    return well_formed(value[:MAX_NAME_CHARS]) if isinstance(value, str) else ""


def _usage(value: JsonValue) -> dict[str, Usage]:
    if not isinstance(value, dict):
        return {}
    read = ((_name(label), read_usage(raw)) for label, raw in list(value.items())[:MAX_MODELS])
    return {label: usage for label, usage in read if usage is not None}
