"""What a sub-agent did, kept with the result of the call that started it.

Pure. The record is for people: the model reads the result's text only. It is written in short,
since a sub-agent may read a whole project in order to answer in a line, and what is read of it
may come from anybody's notebook, so that it is measured first and never raises.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, cast, get_args

from pydantic import JsonValue

from crush_kernel.history.messagejson import read_messages, read_usage, write_value
from crush_kernel.history.plainjson import Budget, Unreasonable, is_plain, plain
from crush_kernel.messages import (
    JsonObject,
    Message,
    Part,
    Reasoning,
    Text,
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

MAX_RECORD_CHARS: Final = 200_000
"""Of all texts of a record: from there on the middle of the longest is left out."""

MAX_TEXT_CHARS: Final = 4_000
LEAST_TEXT_CHARS: Final = 200
"""Of one text of a record, and what is left of each where there are very many."""

MAX_MESSAGES: Final = 1_000
"""The last messages of a sub-agent are kept; steps are few, as a rule."""

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
    """Return `record` as JSON, its texts in short and without what only providers can read."""
    usage: dict[str, JsonValue] = {label: write_value(used) for label, used in record.usage.items()}
    return {
        "name": well_formed(record.name),
        "model": well_formed(record.model),
        "end": record.end,
        "usage": usage,
        "messages": [plain(write_value(each)) for each in shortened(record.messages)],
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


def shortened(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return `messages` as a record keeps them: the last ones, and no text of any length.

    Files are left out but for their names. Idempotent as long as no more is added.
    """
    kept = messages[-MAX_MESSAGES:]
    texts = sum(len(message.parts) for message in kept)
    limit = min(MAX_TEXT_CHARS, max(LEAST_TEXT_CHARS, MAX_RECORD_CHARS // max(texts, 1)))
    return tuple(
        replace(message, parts=tuple(_short(part, limit) for part in message.parts))
        for message in kept
    )


def _short(part: Part, limit: int) -> Part:
    match part:
        case Text(text=text):
            return Text(_ends(text, limit))
        case Reasoning(text=text):
            return Reasoning(_ends(text, limit))
        case ToolCall(input=arguments) if len(arguments) > limit:
            # Half of some JSON is none, and as it is not sent to anybody it need not be.
            return replace(part, input=_ends(arguments, limit))
        case ToolResult(content=content, media=media, metadata=metadata):
            return replace(
                part,
                content=_ends(content, limit),
                media=tuple(replace(each, data="", blob="") for each in media),
                metadata=_facts(metadata, limit),
                blob="",
            )
        case _:
            return part


def _facts(metadata: JsonObject, limit: int) -> dict[str, JsonValue]:
    """Return what is told of a result, without what nests: a record in a record, a list."""
    return {
        name: _ends(value, limit) if isinstance(value, str) else value
        for name, value in metadata.items()
        if name == "volatile" or not isinstance(value, dict | list)
    }


def _ends(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    # The note has to fit as well, so that what is short stays as it is.
    half = (limit - len(_LEFT_OUT)) // 2
    return f"{text[:half]}{_LEFT_OUT}{text[-half:]}"


_LEFT_OUT: Final = "\n[… not kept …]\n"


def _name(value: JsonValue) -> str:
    return well_formed(value[:MAX_NAME_CHARS]) if isinstance(value, str) else ""


def _usage(value: JsonValue) -> dict[str, Usage]:
    if not isinstance(value, dict):
        return {}
    read = ((_name(label), read_usage(raw)) for label, raw in list(value.items())[:MAX_MODELS])
    return {label: usage for label, usage in read if usage is not None}
