"""The JSON that a turn and a session are kept as, in the notebook, its outputs and the journal.

`version` is the one number to look at: a record of another version is not read. What this
version does not know inside a record stays in it, since a turn that was read is written
back as the very JSON that it came as, and a header is written over the one that was read.

Records come from files, so from anybody. Nothing in them grants or configures anything:
what they say beyond the fields of `Turn` and `SessionHeader` is carried along unread.

Source: design §5.
"""

import re
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Final, TypeGuard, cast

from pydantic import JsonValue

from crush_kernel.history.messagejson import ReadMessages, read_messages, read_usage, write_value
from crush_kernel.history.plainjson import Budget, Unreasonable, is_plain, plain
from crush_kernel.history.summary import standing_in
from crush_kernel.history.turn import VERSION, Turn, TurnState, digest_of
from crush_kernel.messages import JsonObject, Message, Part, ToolResult, Usage

MAX_COUNT: Final = 2**31 - 1
"""Of runs, revisions and turns: what every program can count to."""

MAX_NAME: Final = 512
"""Characters of an id or a label; VS Code's ids of cells hold the path of the notebook."""

MAX_TITLE: Final = 500

_VALUES_A_RECORD: Final = 25
"""What a record costs to read beside its values, in values."""

_ENDS: Final[dict[str, TurnState]] = {
    "end_turn": "end_turn",
    "error": "error",
    "interrupted": "interrupted",
}

_SESSION_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")


class BadRecord(ValueError):
    """Some JSON is no record that this version reads; the text says why, to go after a colon."""


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """A turn as far as it could be read."""

    turn: Turn
    problems: tuple[str, ...] = ()
    """What is missing of it, in words that quote nothing, each to go after a colon."""


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """What is known about a whole notebook."""

    id: str = ""
    title: str = ""
    model: str = ""
    """The one that answered last, as `provider/model`."""
    turns: int = 0
    """How many turns the notebook has."""
    usage: dict[str, Usage] = field(default_factory=dict[str, Usage])
    """What all requests used, those of replaced turns included, by `provider/model`."""
    todos: tuple[JsonObject, ...] = ()
    summaries: tuple[JsonObject, ...] = ()
    volatile: JsonObject = field(default_factory=dict[str, JsonValue])
    """Times: what makes two sessions differ that are the same."""
    extra: JsonObject = field(default_factory=dict[str, JsonValue])
    """The header as it was read; what this version does not know of it is written back."""


def read_turn(value: JsonValue | JsonObject, *, cell_id: str) -> Turn:
    """Return the turn that `value` is; messages that cannot be read are not in it.

    A turn that nobody runs any more counts as interrupted.

    Args:
        value: JSON from anywhere.
        cell_id: whose turn it is if it does not say; a copied cell has that of another one.

    Raises:
        BadRecord: it is no record of a turn, or one of another version.
    """
    return examine_turn(value, cell_id=cell_id).turn


def examine_turn(
    value: JsonValue | JsonObject, *, cell_id: str, budget: Budget | None = None
) -> ReadTurn:
    """Return the turn that `value` is, and what could not be read of it.

    Args:
        value: JSON from anywhere.
        cell_id: whose turn it is if it does not say.
        budget: what may still be read of the notebook; is counted down.

    Raises:
        BadRecord: it is no record of a turn, or one of another version.
    """
    budget = budget or Budget()
    record = _own_record(value, budget)
    run = _count(record, "run", least=1)
    raw = record.get("messages", [])
    if not isinstance(raw, list):
        raise BadRecord("its messages are no list")
    try:
        read = read_messages(raw, budget)
    except Unreasonable as error:
        raise BadRecord(f"it {error}") from None
    fingerprint = _text(record, "fingerprint", MAX_NAME)
    turn = Turn(
        cell_id=_cell_of(record, run) or cell_id,
        run=run,
        messages=read.messages,
        revision=_count(record, "revision", least=0),
        end=_end_of(record),
        fingerprint=fingerprint,
        source=_text(record, "source", MAX_NAME),
        is_start=record.get("is_start") is True,
        volatile=_object(record, "volatile"),
        record=record,
        digest=digest_of(read.messages),
        summary=standing_in(read.messages, fingerprint),
    )
    return ReadTurn(turn, _problems(read, len(raw)))


def write_turn(turn: Turn) -> JsonObject:
    """Return `turn` as it is stored: what was read as it came, else in one fixed form.

    Fields that say nothing are left out, times stand in `volatile` alone, and the JSON is
    plain. Takes time in proportion to the turn.
    """
    if turn.record is not None:
        return turn.record
    written: dict[str, JsonValue] = {
        "version": VERSION,
        "turn": turn.id,
        "run": turn.run,
        "revision": turn.revision,
        "end": turn.end,
    }
    said = {
        "model": _last_model(turn.messages),
        "fingerprint": turn.fingerprint,
        "source": turn.source,
        "is_start": turn.is_start,
        "usage": write_value(turn.usage),
        "messages": [write_value(_timeless(message)) for message in turn.messages],
        "volatile": _volatile(turn),
    }
    written |= {name: value for name, value in said.items() if value}
    return _plain_object(written)


def read_header(value: JsonValue | JsonObject) -> SessionHeader:
    """Return the header that `value` is; fields that cannot be read are left empty.

    Raises:
        BadRecord: it is no header, or one of another version.
    """
    header = _own_record(value, Budget())
    totals = _object(header, "totals")
    session_id = _text(header, "id", MAX_NAME)
    return SessionHeader(
        id=session_id if _SESSION_ID.fullmatch(session_id) else "",
        title=_text(header, "title", MAX_TITLE),
        model=_text(header, "model", MAX_NAME),
        turns=turns if is_count(turns := totals.get("turns"), least=0) else 0,
        usage={
            label: usage
            for label, raw in _object(totals, "usage_by_model").items()
            if len(label) <= MAX_NAME and (usage := read_usage(raw)) is not None
        },
        todos=_objects(header, "todos"),
        summaries=_objects(header, "summaries"),
        volatile=_object(header, "volatile"),
        extra=header,
    )


def write_header(header: SessionHeader) -> JsonObject:
    """Return `header` as it is stored, over the one that was read.

    Fields that say nothing are left out unless they were there.
    """
    usage: JsonValue = {label: asdict(used) for label, used in header.usage.items()}
    said: dict[str, JsonValue] = {
        "version": VERSION,
        "id": header.id,
        "title": header.title,
        "model": header.model,
        "totals": {"turns": header.turns, "usage_by_model": usage},
        "todos": [dict(each) for each in header.todos],
        "summaries": [dict(each) for each in header.summaries],
        "volatile": dict(header.volatile),
    }
    return _plain_object(_laid_over(header.extra, said))


def _laid_over(stored: JsonObject, said: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return `said`, then what only `stored` has, at every level."""
    written: dict[str, JsonValue] = {}
    for name, value in said.items():
        if isinstance(value, dict) and name != "volatile":
            value = _laid_over(_object(stored, name), value)  # noqa: PLW2901 - the same, complete
        if value or name in stored:
            written[name] = value
    return written | {name: value for name, value in stored.items() if name not in said}


def _own_record(value: JsonValue | JsonObject, budget: Budget) -> dict[str, JsonValue]:
    """Return `value`, plain, if it says that it is a record of this version."""
    try:
        budget.take_values(_VALUES_A_RECORD)
        return _own_plain_record(value, budget)
    except Unreasonable as error:
        raise BadRecord(f"it {error}") from None


def _own_plain_record(value: JsonValue | JsonObject, budget: Budget) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise BadRecord("it is no JSON object")
    version = value.get("version")
    if not is_count(version, least=1):
        raise BadRecord("it does not say which version it has")
    if version != VERSION:
        raise BadRecord(f"its version is {version}, and this kernel reads version {VERSION}")
    return value if is_plain(value, budget) else _plain_object(value)


def _plain_object(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    try:
        is_fine = is_plain(value, Budget())
    except Unreasonable:
        is_fine = False
    return value if is_fine else cast("dict[str, JsonValue]", plain(value))


def is_count(value: JsonValue, *, least: int) -> TypeGuard[int]:
    """Return whether `value` is a whole number from `least` up that can be counted to."""
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return least <= value <= MAX_COUNT


def _count(record: JsonObject, name: str, *, least: int) -> int:
    value = record.get(name, least)
    if not is_count(value, least=least):
        raise BadRecord(f"its {name} is no whole number from {least} up")
    return value


def _text(record: JsonObject, name: str, longest: int) -> str:
    value = record.get(name)
    return value if isinstance(value, str) and len(value) <= longest else ""


def _object(record: JsonObject, name: str) -> dict[str, JsonValue]:
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def _objects(record: JsonObject, name: str) -> tuple[JsonObject, ...]:
    value = record.get(name)
    items = value if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, dict))


def _end_of(record: JsonObject) -> TurnState:
    """Return how the turn ended; one that still ran, or ended in a new way, was cut short."""
    return _ENDS.get(_text(record, "end", MAX_NAME), "interrupted")


def _cell_of(record: JsonObject, run: int) -> str:
    """Return whose turn it says it is; empty if it says nothing that can be true."""
    cell_id, _, number = _text(record, "turn", MAX_NAME).rpartition(".")
    return cell_id if number == str(run) and cell_id.isprintable() else ""


def _problems(read: ReadMessages, count: int) -> tuple[str, ...]:
    problems: list[str] = []
    if read.skipped:
        problems.append(f"of {count} messages, {read.skipped} cannot be read")
    if read.damaged:
        problems.append(f"of {count} messages, {read.damaged} can only be read in part")
    return tuple(problems)


def _last_model(messages: tuple[Message, ...]) -> str:
    last = next((m for m in reversed(messages) if m.role == "assistant" and m.model), None)
    return f"{last.provider}/{last.model}" if last else ""


def _timeless(message: Message) -> Message:
    """Return `message` without what makes two runs differ that are the same."""
    if not any(
        isinstance(part, ToolResult) and "volatile" in part.metadata for part in message.parts
    ):
        return message
    return replace(message, parts=tuple(map(_timeless_part, message.parts)))


def _timeless_part(part: Part) -> Part:
    if not isinstance(part, ToolResult):
        return part
    lasting = {name: value for name, value in part.metadata.items() if name != "volatile"}
    return replace(part, metadata=lasting)


def _volatile(turn: Turn) -> dict[str, JsonValue]:
    """Return what is volatile about `turn`, the durations of its calls by call id included."""
    volatile: dict[str, JsonValue] = dict(turn.volatile)
    durations = _object(volatile, "durations") | {
        part.call_id: duration
        for message in turn.messages
        for part in message.parts
        if isinstance(part, ToolResult) and (duration := _duration_of(part)) is not None
    }
    if durations:
        volatile["durations"] = durations
    return volatile


def _duration_of(result: ToolResult) -> float | None:
    volatile = result.metadata.get("volatile")
    duration = volatile.get("duration_s") if isinstance(volatile, dict) else None
    return duration if isinstance(duration, float) and isfinite(duration) else None
