"""What a turn has done to files, and what taking it back comes to: pure functions of values.

A turn's changes of one path fold into one: from what was there first to what it left. Taking
a turn back leads from what it left to what was there first, so taking back *that* brings the
turn's work again: a redo is the undo of an undo. Where something else is there than the turn
left, somebody has worked on it since, and that is a conflict.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from crush_kernel.history.journal.rows import USUAL_RIGHTS, FileVersion, Undone

Kind = Literal["", "file", "program", "link", "folder", "other"]
"""What an entry is. Empty is a file whose rights are not known; `other` nothing we can make."""

_KINDS: Final[Mapping[str, Kind]] = {
    "file": "file",
    "program": "program",
    "link": "link",
    "folder": "folder",
}
_FILES: Final = frozenset(("", "file", "program"))
_BITS: Final = re.compile("[0-7]{1,3}")


@dataclass(frozen=True, slots=True)
class Entry:
    """Something at a path."""

    content: str
    """The hash of a file's bytes or a link's target; empty for what has none or is not known."""
    kind: Kind = ""
    rights: int | None = field(default=None, compare=False)
    """The permission bits of a file, if they are known; a change of them alone is none."""

    @property
    def is_known(self) -> bool:
        """Whether it is known what to make to have it there."""
        return self.kind == "folder" or (bool(self.content) and self.kind != "other")


State = Entry | None
"""What is at a path; `None` is nothing."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a turn has made of one path."""

    path: str
    before: State
    after: State
    reason: str = ""
    """Why one of them is not known, in a clause."""


@dataclass(frozen=True, slots=True)
class Action:
    """Have `want` at `path`, where `had` is."""

    path: str
    want: State
    had: State


@dataclass(frozen=True, slots=True)
class Plan:
    """What taking a turn back comes to."""

    actions: tuple[Action, ...]
    """In the order in which they can be carried out."""
    conflicts: tuple[tuple[str, str], ...] = ()
    """Paths where something else is than the turn left, each with what, in a clause; with any,
    nothing is to be done."""
    left: tuple[tuple[str, str], ...] = ()
    """Paths that stay as they are, each with the reason, a clause."""


def changes_of(versions: Iterable[FileVersion]) -> tuple[Change, ...]:
    """Return what `versions`, oldest first, come to: one change a path, in order of appearance.

    A path that is as it was in the end is left out.
    """
    folded: dict[str, Change] = {}
    for version in versions:
        before = _state(version.before, version.before_kind)
        after = _state(version.after, version.after_kind)
        first = folded.get(version.path)
        folded[version.path] = Change(
            version.path,
            before if first is None else first.before,
            after,
            version.reason or (first.reason if first else ""),
        )
    return tuple(change for change in folded.values() if not _is_same(change.before, change.after))


def by_turn(versions: Iterable[FileVersion]) -> dict[str, tuple[Change, ...]]:
    """Return the changes of each turn that has left any, in the order of the turns."""
    grouped: dict[str, list[FileVersion]] = {}
    for version in versions:
        grouped.setdefault(version.turn_id, []).append(version)
    folded = {turn_id: changes_of(found) for turn_id, found in grouped.items()}
    return {turn_id: changes for turn_id, changes in folded.items() if changes}


def undo_target(turn_ids: Sequence[str], undone: Iterable[Undone]) -> str | None:
    """Return the turn that an `/undo` takes back; `None` if there is none left.

    Args:
        turn_ids: the turns that have changed files, oldest first.
        undone: what was taken back, oldest first.
    """
    known = tuple(undone)
    passed = {each.target for each in _stack(known)} | {each.turn_id for each in known}
    return next((turn for turn in reversed(turn_ids) if turn not in passed), None)


def redo_target(undone: Iterable[Undone]) -> Undone | None:
    """Return the undo that a `/redo` takes back: the last one that still counts."""
    stack = _stack(undone)
    return stack[-1] if stack else None


def plan(changes: Iterable[Change], present: Mapping[str, State], *, is_forced: bool) -> Plan:
    """Return how to take `changes` back.

    Args:
        changes: of one turn.
        present: what is at each of its paths now.
        is_forced: whether what was changed since is overwritten too.
    """
    actions: list[Action] = []
    conflicts: list[tuple[str, str]] = []
    left: list[tuple[str, str]] = []
    for change in changes:
        now, want = present.get(change.path), change.before
        if _is_same(now, want):
            continue
        if now is not None and now.kind == "other":
            left.append((change.path, now.content))
        elif want is not None and not want.is_known:
            left.append((change.path, change.reason or "its content is not kept"))
        elif not (is_forced or _is_same(now, change.after) or _is_about_folder(change, now)):
            conflicts.append((change.path, _what_happened(change, now)))
        else:
            actions.append(Action(change.path, want, now))
    return Plan(tuple(sorted(actions, key=_turn_to_act)), tuple(conflicts), tuple(left))


def _is_about_folder(change: Change, now: State) -> bool:
    """Return whether only a folder comes or goes, which holds nothing: one that does stays."""
    states = (change.before, change.after, now)
    return all(state is None or state.kind == "folder" for state in states)


def _what_happened(change: Change, now: State) -> str:
    if now is None:
        return "is gone"
    if change.after is None:
        return "was made again"
    if not change.after.is_known:
        return "may have changed since"
    return "has changed since"


def _turn_to_act(action: Action) -> tuple[int, int, str]:
    """Return what sorts actions: make room, innermost first, then build up from outside."""
    depth = action.path.count("/")
    is_folder = any(state and state.kind == "folder" for state in (action.want, action.had))
    if action.want is None:
        return (1 if is_folder else 0), -depth, action.path
    if action.had is not None and action.had.kind == "folder":
        return 2, -depth, action.path
    return (3 if is_folder else 4), depth, action.path


def _state(content: str | None, kind: str) -> State:
    """Return what a row says; a hash says nothing of a folder."""
    if content is None:
        return None
    name, _, bits = kind.partition(" ")
    rights = USUAL_RIGHTS.get(name)
    if name in _FILES and _BITS.fullmatch(bits):
        rights = int(bits, 8)
    return Entry("" if name == "folder" else content, _KINDS.get(name, ""), rights)


def _is_same(one: State, other: State) -> bool:
    """Return whether both are the same, as far as is known; what is not known is not."""
    if one is None or other is None:
        return one is other
    if not (one.is_known and other.is_known) or one.content != other.content:
        return False
    kinds = {one.kind, other.kind}
    return len(kinds) == 1 or ("" in kinds and kinds <= _FILES)


def _stack(undone: Iterable[Undone]) -> list[Undone]:
    """Return the undos that no redo has taken back, oldest first."""
    stack: list[Undone] = []
    for each in undone:
        if each.is_redo:
            stack = [one for one in stack if one.turn_id != each.target]
        else:
            stack.append(each)
    return stack
