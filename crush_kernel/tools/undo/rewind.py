"""Take back what turns have done to files, turn by turn, and show it.

What is to be done is known in full before anything is: with a conflict, nothing is written.
What an undo changes is kept as the changes of its own turn, before it is made, so that a redo
is the undo of an undo. That it has taken back a turn is kept when it is done: when the kernel is
killed half-way, the half is what the next undo takes back.
"""

import os
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from anyio import get_cancelled_exc_class
from anyio.to_thread import run_sync

from crush_kernel.errors import CommandError, NothingToDo, ToolError
from crush_kernel.files.names import printable
from crush_kernel.history.checkpoints import (
    Action,
    Change,
    Entry,
    Plan,
    State,
    by_turn,
    changes_of,
    plan,
    redo_target,
    undo_target,
)
from crush_kernel.history.journal.fileversions import Content, FileChange, FileVersions
from crush_kernel.history.journal.rows import Undone
from crush_kernel.tools.diskfile import MAX_EDIT_BYTES, read_file
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.undo.restore import carry_out, look, missing
from crush_kernel.tools.undo.worktree import Worktree

_NOT_KEPT: Final = "its content is not kept any more"


@dataclass(frozen=True, slots=True)
class Rewinding:
    """A turn that can be taken back, or an undo."""

    kind: Literal["undo", "redo"]
    target: str
    """The turn whose changes are taken back: the undo's own for a redo."""
    of: str
    """The turn of the agent that it is about."""
    plan: Plan


@dataclass(frozen=True, slots=True)
class Rewound:
    """What has become of a `Rewinding`."""

    done: tuple[tuple[str, str], ...]
    """Paths as people read them, each with what was done there."""
    left: tuple[tuple[str, str], ...]
    """Paths that stay as they were, each with the reason."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """Takes back and brings again what the turns of one session have done."""

    paths: PathPolicy
    files: FileVersions
    worktree: Worktree
    session: Callable[[], str]
    """Returns the session's id."""

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Have what the block's commands change counted when it ends, within a bound."""
        is_interrupted = False
        try:
            yield
        except get_cancelled_exc_class():
            is_interrupted = True
            raise
        finally:
            await self.worktree.end_turn(is_interrupted=is_interrupted)

    async def prepare(self, kind: Literal["undo", "redo"], *, is_forced: bool) -> Rewinding:
        """Return what an undo or a redo would do now.

        Raises:
            NothingToDo: there is nothing to take back.
            CommandError: there are conflicts.
        """
        return await run_sync(self._prepare, kind, is_forced)

    async def carry_out(self, rewinding: Rewinding, turn_id: str) -> Rewound:
        """Do it as the turn `turn_id`; once begun it is finished."""
        return await run_sync(self._carry_out, rewinding, turn_id)

    async def changes(self) -> dict[str, tuple[Change, ...]]:
        """Return what each turn has done to files, oldest first."""
        return await run_sync(self._changes)

    async def all_changes(self) -> tuple[Change, ...]:
        """Return what all turns together have done to files."""
        await run_sync(self._changes)
        return changes_of(self.files.all(self.session()))

    def shown(self, path: str) -> str:
        """Return `path` as people read it: in full where it is outside the project."""
        try:
            # Of a link, where it is and not where it leads.
            place = Path(path)
            folder = self.paths.target(place.parent)
        except (ToolError, ValueError, OSError):
            return printable(path)
        inside = not folder.is_outside
        return printable(os.path.relpath(path, self.paths.cwd) if inside else path)

    def _changes(self) -> dict[str, tuple[Change, ...]]:
        self.worktree.catch_up()
        return by_turn(self.files.all(self.session()))

    def _prepare(self, kind: Literal["undo", "redo"], is_forced: bool) -> Rewinding:  # noqa: FBT001
        self.worktree.catch_up()
        versions, undone = self.files.all(self.session()), self.files.undone(self.session())
        changes = by_turn(versions)
        if kind == "undo":
            target = of = undo_target(tuple(changes), undone) or ""
        else:
            last = redo_target(undone)
            target, of = (last.turn_id, last.target) if last else ("", "")
        if not target:
            raise self._nothing(kind, is_any=bool(undone))
        changed = changes.get(target, ())
        present = _look_at([change.path for change in changed])
        planned = plan(changed, present, is_forced=is_forced)
        if planned.conflicts:
            raise self._conflict(kind, planned)
        gone = missing(planned.actions, self.files.content)
        rewinding = Rewinding(kind, target, of, _without(planned, gone))
        if not rewinding.plan.actions and rewinding.plan.left:
            raise self._nothing_left(kind, rewinding.plan)
        return rewinding

    def _carry_out(self, rewinding: Rewinding, turn_id: str) -> Rewound:
        actions = rewinding.plan.actions
        session = self.session()
        changes = {action.path: self._change(action) for action in actions}
        self._keep(session, turn_id, changes.values())
        outcomes = list(carry_out(actions, self.files.content))
        failed = [o for o in outcomes if o.error]
        # What stays as it was has not changed, for a later undo and for the next look.
        self._keep(session, turn_id, (_reversed(changes[o.action.path]) for o in failed))
        if len(failed) < len(outcomes) or not actions:
            # Not before: what a kernel that is killed leaves half done is the next to take back.
            undone = Undone(turn_id, rewinding.target, is_redo=rewinding.kind == "redo")
            self.files.add_undone(session, undone)
        done = tuple((self._named(o.action), _word(o.action)) for o in outcomes if not o.error)
        left = [(self._named(o.action), o.error) for o in failed]
        left += [(self.shown(path), why) for path, why in rewinding.plan.left]
        return Rewound(done, tuple(left))

    def _keep(self, session: str, turn_id: str, changes: Iterable[FileChange]) -> None:
        """Keep `changes` of the turn, and have the next look not count them again."""
        kept = tuple(changes)
        self.files.add(session, turn_id, kept)
        for change in kept:
            self.worktree.note(change)

    def _change(self, action: Action) -> FileChange:
        """Return what an action changes, with the contents."""
        return FileChange(
            action.path, self._content(action.had, action.path), self._content(action.want, "")
        )

    def _content(self, state: State, path: str) -> Content | None:
        if state is None:
            return None
        if state.kind == "folder":
            return Content(b"", "folder")
        data = self.files.content(state.content)
        if data is None and path:
            data = _present(path, state)
        reason = "" if data is not None else _NOT_KEPT
        return Content(data, state.kind, reason, state.rights)

    def _named(self, action: Action) -> str:
        states = (action.want, action.had)
        is_folder = any(state is not None and state.kind == "folder" for state in states)
        return self.shown(action.path) + ("/" if is_folder else "")

    def _nothing(self, kind: str, *, is_any: bool) -> NothingToDo:
        if kind == "redo":
            return NothingToDo(
                "There is no `/undo` to take back.", hint="`/redo` takes back the last `/undo`."
            )
        if is_any:
            return NothingToDo("Everything is taken back already.", hint="`/redo` takes that back.")
        return NothingToDo(
            "There is nothing to take back: no turn of this notebook is known to have changed a "
            "file.",
            hint=" ".join(self.worktree.notes()),
        )

    def _conflict(self, kind: str, planned: Plan) -> CommandError:
        lines = [f"{self.shown(path)} {what}" for path, what in planned.conflicts]
        return CommandError(
            f"Nothing was written, because {_listed(lines)}.",
            hint=f"`/{kind} force` overwrites that too, and can itself be taken back.",
        )

    def _nothing_left(self, kind: str, planned: Plan) -> CommandError:
        lines = [f"{self.shown(path)}: {why}" for path, why in planned.left]
        return CommandError(
            f"Nothing of it can be {'taken back' if kind == 'undo' else 'brought back'}: "
            f"{_listed(lines)}."
        )


def _look_at(paths: Iterable[str]) -> dict[str, State]:
    """Return what is at each path; nothing where what is above it makes room first."""
    present: dict[str, State] = {}
    for path in sorted(paths):
        above = (present.get(str(folder)) for folder in Path(path).parents)
        is_hidden = any(state is not None and state.kind != "folder" for state in above)
        present[path] = None if is_hidden else look(Path(path))
    return present


def _reversed(change: FileChange) -> FileChange:
    return FileChange(change.path, change.after, change.before)


def _without(planned: Plan, gone: Iterable[str]) -> Plan:
    """Return `planned` without the paths that are `gone`, which are left."""
    lost = frozenset(gone)
    kept = tuple(action for action in planned.actions if action.path not in lost)
    left = (*planned.left, *((path, _NOT_KEPT) for path in sorted(lost)))
    return replace(planned, actions=kept, left=left)


def _present(path: str, state: Entry) -> bytes | None:
    try:
        if state.kind == "link":
            return os.fsencode(os.readlink(path))  # noqa: PTH115 - as it is
        file = read_file(Path(path), max_bytes=MAX_EDIT_BYTES)
    except (OSError, ToolError):
        return None
    return None if file is None else file.data


def _word(action: Action) -> str:
    """Return what an action does, in a word or two."""
    want, had = action.want, action.had
    if want is None:
        return "deleted"
    if had is None:
        return "brought back"
    if want.content == had.content and want.kind != had.kind:
        return "executable again" if want.kind == "program" else "not executable again"
    return "restored"


MAX_LISTED: Final = 20


def _listed(lines: list[str]) -> str:
    more = len(lines) - MAX_LISTED
    shown = ", ".join(lines[:MAX_LISTED])
    return f"{shown} and {more} more" if more > 0 else shown
