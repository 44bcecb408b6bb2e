"""What the journal notes of a turn that has not ended, in the order in which it happens.

Values, and their form in the journal: a kind and JSON. `decode` takes what `encode` gives,
and `None` stands for whatever else is found there: a journal is a file like any other.

Source: design §§4, 5.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json, to_json

from crush_kernel.history.plainjson import plain
from crush_kernel.history.subagentmessages import Nested
from crush_kernel.history.turn import Turn
from crush_kernel.messages import MESSAGES, Message, ToolResult

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


Entry: TypeAlias = Began | Said | Unsaid | Answered | Nested | Drafted | Dropped | Published

Clean: TypeAlias = Callable[[JsonValue], JsonValue]
"""Takes the secrets out of JSON."""


def encode(entry: Entry) -> tuple[str, JsonValue]:
    """Return the kind of `entry` and its content.

    Raises:
        ValueError: it holds what JSON has not.
    """
    match entry:
        case Began(turn=turn):
            return "began", _header(turn)
        case Said(message=message):
            return "said", _dumped(message)
        case Unsaid():
            return "unsaid", None
        case Answered(result=result):
            return "answered", _dumped(Message("tool", (result,)))
        case Nested(call_id=call_id, agent=agent, model=model, message=message):
            by: dict[str, JsonValue] = {"call_id": call_id, "agent": agent, "model": model}
            return "nested", by | {"message": _dumped(message)}
        case Drafted(step=step, attempt=attempt, part=part, text=text):
            return "drafted", {"step": step, "attempt": attempt, "part": part, "text": text}
        case Dropped(step=step, attempt=attempt):
            return "dropped", {"step": step, "attempt": attempt}
        case Published(msg_type=msg_type, content=content):
            return "published", {"msg_type": msg_type, "content": content}
        case _:
            assert_never(entry)


def decode(kind: str, content: JsonValue) -> Entry | None:
    """Return the entry that `encode` made `kind` and `content` of, `None` if it made none."""
    try:
        return _decode(kind, content)
    except (ValidationError, RecursionError):
        return None


def _decode(kind: str, content: JsonValue) -> Entry | None:
    match kind, content:
        case "began", dict():
            return _began(content)
        case "said", dict():
            return Said(_message(content))
        case "unsaid", _:
            return Unsaid()
        case "answered", dict():
            match _message(content).parts:
                case (ToolResult() as result,):
                    return Answered(result)
                case _:
                    return None
        case "nested", {
            "call_id": str(call_id),
            "agent": str(agent),
            "model": str(model),
            "message": dict(message),
        }:
            return Nested(call_id, agent, model, _message(message))
        case "drafted", {
            "step": int(step),
            "attempt": int(attempt),
            "part": part,
            "text": str(text),
        }:
            return Drafted(step, attempt, part, text) if part in ("text", "reasoning") else None
        case "dropped", {"step": int(step), "attempt": int(attempt)}:
            return Dropped(step, attempt)
        case "published", {"msg_type": str(msg_type), "content": dict(published)}:
            return Published(msg_type, published)
        case _:
            return None


def _dumped(message: Message) -> JsonValue:
    return MESSAGES.dump_python((message,), mode="json")[0]


def _message(content: JsonValue) -> Message:
    return MESSAGES.validate_python([content])[0]


def _header(turn: Turn) -> dict[str, JsonValue]:
    """Return what is known of a turn when it begins."""
    return {
        "cell_id": turn.cell_id,
        "run": turn.run,
        "revision": turn.revision,
        "fingerprint": turn.fingerprint,
        "source": turn.source,
        "is_start": turn.is_start,
        "volatile": dict(turn.volatile),
        "messages": MESSAGES.dump_python(turn.messages, mode="json"),
    }


def _began(header: JsonValue) -> Began | None:
    match header:
        case {
            "cell_id": str(cell_id),
            "run": int(run),
            "revision": int(revision),
            "fingerprint": str(fingerprint),
            "source": str(source),
            "is_start": bool(is_start),
            "volatile": dict(volatile),
            "messages": list(messages),
        }:
            turn = Turn(
                cell_id=cell_id,
                run=run,
                messages=MESSAGES.validate_python(messages),
                revision=revision,
                fingerprint=fingerprint,
                source=source,
                is_start=is_start,
                volatile=volatile,
            )
            return Began(turn)
        case _:
            return None


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
