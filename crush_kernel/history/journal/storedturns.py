"""Turns as the journal has them: which of them count, and what they are when they are read."""

from collections.abc import Collection, Iterable

from pydantic import JsonValue

from crush_kernel.history.journal.journal import StoredTurn
from crush_kernel.history.record import BadRecord, read_turn
from crush_kernel.history.recording import now
from crush_kernel.history.turn import Turn
from crush_kernel.messages import JsonObject, SummaryMark


def sorted_out(
    turns: Iterable[StoredTurn], *, saved: Collection[str]
) -> tuple[set[str], dict[str, StoredTurn]]:
    """Return the turns that a file has held, and by cells the newest ones that none has.

    Args:
        turns: of one session.
        saved: turns that a file has held, whatever the journal says.
    """
    held, newest = {*saved}, dict[str, StoredTurn]()
    for stored in turns:
        known = newest.get(stored.cell_id)
        if known is None or (stored.run, stored.revision) > (known.run, known.revision):
            newest[stored.cell_id] = stored
        if stored.is_saved:
            held.add(stored.id)
    return held, {cell: last for cell, last in newest.items() if last.id not in held}


def is_newer(stored: StoredTurn, turn: Turn | None) -> bool:
    """Return whether a turn was made after another one of the same cell."""
    return turn is None or (stored.run, stored.revision) > (turn.run, turn.revision)


def read_stored(record: JsonObject | None, cell_id: str) -> Turn | None:
    """Return the turn that `record` is, `None` if it is none."""
    try:
        return None if record is None else read_turn(dict(record), cell_id=cell_id)
    except BadRecord:
        return None


def run_again(record: JsonObject, cell_id: str, number: int) -> JsonObject:
    """Return a turn as the run `number` of a cell, which ends now."""
    kept = record.get("volatile")
    volatile = {**(kept if isinstance(kept, dict) else {}), "ended": now()}
    return {**record, "turn": f"{cell_id}.{number}", "run": number, "volatile": volatile}


def taken_back(record: JsonObject, mark: SummaryMark) -> JsonObject:
    """Return a turn whose summary with `mark` stands for nothing, a later state of the same run."""
    raw, revision = record.get("messages"), record.get("revision")
    messages = [_unmarked(each, mark) for each in raw] if isinstance(raw, list) else []
    return {
        **record,
        "revision": revision + 1 if isinstance(revision, int) else 1,
        "messages": messages,
    }


def _unmarked(message: JsonValue, mark: SummaryMark) -> JsonValue:
    parts = message.get("parts") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(parts, list):
        return message
    return {**message, "parts": [_voided(part, mark) for part in parts]}


def _voided(part: JsonValue, mark: SummaryMark) -> JsonValue:
    match part:
        case {"kind": mark.kind, "covers": mark.covers}:
            return {**part, "covers": ""}
        case _:
            return part
