"""Messages as a record holds them: compact when written, lenient when read.

Read at once where all is well; else one by one, so that what is damaged, or comes from a
later version, costs no more than itself.

Source: design §5 "unreadable records are skipped and reported, never fatal".
"""

from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Final, cast, get_args

from pydantic import JsonValue, ValidationError

from crush_kernel.history.plainjson import Budget
from crush_kernel.messages import (
    MESSAGES,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    ToolCall,
    ToolResult,
    Usage,
)

_ROLES: Final[tuple[JsonValue, ...]] = get_args(Role)


@dataclass(frozen=True, slots=True)
class ReadMessages:
    """The messages that could be read, oldest first."""

    messages: tuple[Message, ...] = ()
    skipped: int = 0
    """How many could not."""
    damaged: int = 0
    """How many could only in part."""


def read_messages(values: list[JsonValue], budget: Budget) -> ReadMessages:
    """Return what is to be made of `values`, which are plain JSON.

    Raises:
        Unreasonable: too much of it has to be looked at one by one.
    """
    if (all_well := _validated(values)) is not None:
        return ReadMessages(all_well)
    messages: list[Message] = []
    damaged = 0
    for value in values:
        if _has_known_role(value) and (well := _validated([value])):
            messages += well
        elif mended := _mended(value, budget):
            messages.append(mended)
            damaged += 1
    return ReadMessages(tuple(messages), len(values) - len(messages), damaged)


def read_usage(value: JsonValue) -> Usage | None:
    """Return what `value` says was used; `None` if it says nothing that can be read."""
    return _field("usage", value).usage


def write_value(value: object) -> JsonValue:
    """Return a message, a part or usage as JSON, without the fields that say nothing.

    Keys come in the order of the fields, `kind` first.
    """
    if isinstance(value, Opaque):
        return cast("JsonValue", dict(value.data))
    if is_dataclass(value):
        return {
            name: write_value(field)
            for name, default in _fields_of(type(value))
            if (field := getattr(value, name)) != default or name == "kind"
        }
    if isinstance(value, tuple):
        return [write_value(item) for item in cast("tuple[object, ...]", value)]
    return cast("JsonValue", value)


@cache
def _fields_of(kind: type[Any]) -> tuple[tuple[str, object], ...]:
    """Return the names of the fields of a dataclass with their defaults, `kind` first."""
    found = [
        (each.name, each.default if each.default_factory is MISSING else each.default_factory())
        for each in fields(kind)
    ]
    return tuple(sorted(found, key=lambda each: each[0] != "kind"))


def _validated(values: list[JsonValue]) -> tuple[Message, ...] | None:
    try:
        return MESSAGES.validate_python(values)
    except ValidationError:
        return None


def _mended(value: JsonValue, budget: Budget) -> Message | None:
    """Return what can be told of a message that is none of ours; `None` if nothing."""
    budget.take_faults(1)
    if not isinstance(value, dict) or not isinstance(raw := value.get("parts"), list):
        return None
    budget.take_faults(len(raw))
    parts = tuple(part for each in raw for part in _read_part(each))
    if not parts:
        return None
    return Message(
        role=_field("role", value["role"]).role if _has_known_role(value) else _role_of(parts),
        parts=parts,
        provider=_field("provider", value.get("provider")).provider,
        model=_field("model", value.get("model")).model,
        stop=_field("stop", value.get("stop")).stop,
        usage=_field("usage", value.get("usage")).usage,
    )


def _has_known_role(value: JsonValue) -> bool:
    return isinstance(value, dict) and value.get("role") in _ROLES


def _field(name: str, value: JsonValue) -> Message:
    """Return a message of which only one field was read, or left as it is by default."""
    read = _validated([{"role": "user", "parts": [], name: value}])
    return read[0] if read else Message("user", ())


def _read_part(value: JsonValue) -> tuple[Part, ...]:
    """Return a part; one that is not what it says stays as it came, and is sent to nobody."""
    parts = _field("parts", [value]).parts
    if not parts and isinstance(value, dict):
        return (Opaque(value),)
    return parts


def _role_of(parts: tuple[Part, ...]) -> Role:
    """Return who says such things: what nobody else can have said tells."""
    if any(isinstance(part, ToolCall | Reasoning) for part in parts):
        return "assistant"
    if any(isinstance(part, ToolResult) for part in parts):
        return "tool"
    return "user"
