"""What the journal notes of a turn that has not ended, in the order in which it happens.

Values, and their form in the journal: a kind and JSON. `decode` takes what `encode` gives,
and `None` stands for whatever else is found there: a journal is a file like any other.

Source: design §§4, 5.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, assert_never

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from crush_kernel.history.plainjson import plain
from crush_kernel.history.turn import Turn
from crush_kernel.messages import MESSAGES, JsonObject, Message, ToolResult

DraftKind = Literal["text", "reasoning"]


@dataclass(frozen=True, slots=True)
class Began:
    """A turn has begun; anything noted of it before is void."""

    turn: Turn
    """With no record yet, and mostly without messages."""


@dataclass(frozen=True, slots=True)
class Said:
    """The next message is complete."""

    message: Message


@dataclass(frozen=True, slots=True)
class Unsaid:
    """The last message is taken back."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One call has its result, before the message that answers all calls is said."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class Drafted:
    """More text of a reply that is not complete."""

    step: int
    """Which request of the turn it answers, from 1."""
    attempt: int
    """Which attempt of this request, from 1."""
    part: DraftKind
    text: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """What was drafted in this attempt is void."""

    step: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Published:
    """An output message of the cell."""

    msg_type: str
    content: dict[str, Any]


Entry: TypeAlias = Began | Said | Unsaid | Answered | Drafted | Dropped | Published

Clean: TypeAlias = Callable[[JsonValue], JsonValue]
"""Takes the secrets out of JSON."""


@dataclass(frozen=True, slots=True)
class _Header:
    """What a turn begins with."""

    cell_id: str
    run: int = 1
    revision: int = 0
    fingerprint: str = ""
    source: str = ""
    is_start: bool = False
    volatile: JsonObject | None = None
    messages: tuple[Message, ...] = ()


_HEADER: Final = TypeAdapter(_Header)
_DRAFTED: Final = TypeAdapter(Drafted)
_DROPPED: Final = TypeAdapter(Dropped)
_PUBLISHED: Final = TypeAdapter(Published)


def encode(entry: Entry) -> tuple[str, JsonValue]:
    """Return the kind of `entry` and its content.

    Raises:
        ValueError: it holds what JSON has not.
    """
    match entry:
        case Began(turn=turn):
            return "began", _HEADER.dump_python(_header(turn), mode="json")
        case Said(message=message):
            return "said", MESSAGES.dump_python((message,), mode="json")[0]
        case Unsaid():
            return "unsaid", None
        case Answered(result=result):
            return "answered", MESSAGES.dump_python((Message("tool", (result,)),), mode="json")[0]
        case Drafted():
            return "drafted", _DRAFTED.dump_python(entry, mode="json")
        case Dropped():
            return "dropped", _DROPPED.dump_python(entry, mode="json")
        case Published(msg_type=msg_type, content=content):
            return "published", {"msg_type": msg_type, "content": content}
        case _:
            assert_never(entry)


def decode(kind: str, content: object) -> Entry | None:
    """Return the entry that `encode` made `kind` and `content` of, `None` if it made none."""
    try:
        return _decode(kind, content)
    except (ValidationError, RecursionError):
        return None


def _decode(kind: str, content: object) -> Entry | None:
    match kind:
        case "began":
            return Began(_turn(_HEADER.validate_python(content)))
        case "said":
            return Said(MESSAGES.validate_python([content])[0])
        case "unsaid":
            return Unsaid()
        case "answered":
            match MESSAGES.validate_python([content])[0].parts:
                case (ToolResult() as result,):
                    return Answered(result)
                case _:
                    return None
        case "drafted":
            return _DRAFTED.validate_python(content)
        case "dropped":
            return _DROPPED.validate_python(content)
        case "published":
            return _PUBLISHED.validate_python(content)
        case _:
            return None


def _header(turn: Turn) -> _Header:
    return _Header(
        cell_id=turn.cell_id,
        run=turn.run,
        revision=turn.revision,
        fingerprint=turn.fingerprint,
        source=turn.source,
        is_start=turn.is_start,
        volatile=turn.volatile,
        messages=turn.messages,
    )


def _turn(header: _Header) -> Turn:
    return Turn(
        cell_id=header.cell_id,
        run=header.run,
        revision=header.revision,
        fingerprint=header.fingerprint,
        source=header.source,
        is_start=header.is_start,
        volatile=header.volatile or {},
        messages=header.messages,
    )


def to_bytes(value: JsonValue) -> bytes:
    """Return `value` as JSON in UTF-8, made plain if it cannot be stored as it is.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return to_json(value, inf_nan_mode="null")
    except ValueError:  # half a character, or nested deeper than it goes
        return to_json(plain(value))


def from_bytes(data: object) -> Any:  # noqa: ANN401 - whatever was stored
    """Return the JSON value that `data` holds.

    Raises:
        ValueError: it holds none.
    """
    if not isinstance(data, bytes):
        raise ValueError("no JSON")  # noqa: TRY004 - as for bytes that hold none
    try:
        return from_json(data, cache_strings="keys")
    except ValueError:  # no JSON, or nested deeper than it goes
        pass
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
