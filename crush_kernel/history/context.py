"""What a cell sees: the turns above it, and whether a turn has seen what is above it now.

Pure. A context is a sequence of turns; its fingerprint is a hash that grows turn by turn,
so that one pass over the notebook tells for every cell what its context is.

Source: design §4 "Order", "Fingerprint".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from crush_kernel.history.summary import is_summary
from crush_kernel.history.turn import Turn
from crush_kernel.messages import Message, Reasoning, ShellCommand

BLANK: Final = "0" * 16
"""The fingerprint of an empty context."""


def cells_above(
    cell_id: str, turns: Mapping[str, Turn], order: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the cells whose turns a run of `cell_id` sees, in the order of reading.

    Args:
        cell_id: the cell that is to run; one that `order` does not know counts as last.
        turns: the turns by the cell they stand in, in the order in which they ran.
        order: all cells of the document from top to bottom; `None` if nobody tells.
    """
    if order is None:
        above = [cell for cell in turns if cell != cell_id]
    else:
        end = order.index(cell_id) if cell_id in order else len(order)
        above = [cell for cell in order[:end] if cell in turns]
    for position in range(len(above) - 1, -1, -1):
        if turns[above[position]].is_start:
            return tuple(above[position + 1 :])
    return tuple(above)


def fingerprint_of(turns: Iterable[Turn]) -> str:
    """Return the fingerprint of the context that `turns` make: 16 hex digits."""
    fingerprint = BLANK
    for turn in turns:
        fingerprint = _after(fingerprint, turn)
    return fingerprint


def messages_of(turns: Iterable[Turn]) -> Iterator[Message]:
    """Yield what `turns` say, from the first one on, as a context.

    It begins with the last summary that stands for what is above it; others are left out.
    Thinking, and what a request filled of the window, stay only in turns whose own context is
    still what it was: a provider that signs its thinking refuses it behind anything else.
    """
    for _, messages in shares_of(tuple(turns)):
        yield from messages


def shares_of(turns: Sequence[Turn]) -> Iterator[tuple[Turn, tuple[Message, ...]]]:
    """Yield each of `turns` that a context holds something of, with what that is."""
    is_same = _are_in_place(turns)
    start = standing_summary(turns, is_same)
    for index in range(start or 0, len(turns)):
        turn = turns[index]
        opening, messages = (), turn.messages
        if index == start and turn.summary is not None:
            opening = messages[turn.summary : turn.summary + 1]
            messages = messages[turn.summary + 1 :]
        yield turn, opening + (_in_place(messages) if is_same[index] else _out_of_place(messages))


def standing_summary(turns: Sequence[Turn], is_same: Sequence[bool] = ()) -> int | None:
    """Return which of `turns` has the summary that a context after them begins with, if any.

    Args:
        turns: as they stand above a cell.
        is_same: of each, whether its own context is what it was; found out if left out.
    """
    if all(turn.summary is None for turn in turns):
        return None
    in_place = is_same or _are_in_place(turns)
    standing = [i for i, turn in enumerate(turns) if turn.summary is not None and in_place[i]]
    return standing[-1] if standing else None


def stale_cells(turns: Mapping[str, Turn], order: Sequence[str] | None) -> tuple[str, ...]:
    """Return the cells whose context has changed since they ran, from top to bottom."""
    cells = [cell for cell in (turns if order is None else order) if cell in turns]
    stale: list[str] = []
    fingerprint = BLANK
    for cell in cells:
        turn = turns[cell]
        if depends_on_context(turn) and turn.fingerprint != fingerprint:
            stale.append(cell)
        fingerprint = BLANK if turn.is_start else _after(fingerprint, turn)
    return tuple(stale)


def depends_on_context(turn: Turn) -> bool:
    """Return whether `turn` would come out differently in another context."""
    if turn.is_start or turn.end == "running":
        return False
    return not all(isinstance(part, ShellCommand) for m in turn.messages for part in m.parts)


def _after(fingerprint: str, turn: Turn) -> str:
    if not turn.messages:
        return fingerprint  # one that failed before it said anything, which nobody can have seen
    return blake2b(f"{fingerprint}\n{turn.digest}".encode(), digest_size=8).hexdigest()


def _are_in_place(turns: Iterable[Turn]) -> list[bool]:
    """Return of each turn whether those before it are the context that it ran in."""
    found: list[bool] = []
    fingerprint = BLANK
    for turn in turns:
        found.append(turn.fingerprint == fingerprint)
        fingerprint = _after(fingerprint, turn)
    return found


def _in_place(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return what a turn says where its context is what it was.

    What it has said after a summary that stands for nothing now was said in another context.
    """
    for index, message in enumerate(messages):
        if is_summary(message):
            return messages[:index] + _out_of_place(messages[index + 1 :])
    return messages


def _out_of_place(messages: Iterable[Message]) -> tuple[Message, ...]:
    return tuple(_without_reports(m) for m in messages if not is_summary(m))


def _without_reports(message: Message) -> Message:
    """Return `message` without thinking, and without what a request filled of the window."""
    parts = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    if len(parts) == len(message.parts) and message.usage is None:
        return message
    return replace(message, parts=parts, usage=None)
