"""When a project is looked at, and to which turn a change counts that a command has made.

The project is looked at before a command, unless that was done a moment ago, and after it,
once a moment has passed without another one: commands in a row wait for nothing. What was
changed in between counts to the turn. A tool that is about to change a file has what commands
did before it counted first, and its own change is known and counted to nobody else.

While jobs run in the background, what has changed since the last look counts to the turn that
sees it. What has changed while nothing of ours ran is somebody else's and counts to no turn.
When a kernel was killed during a command, what has changed since the last look counts to the
turn that was cut short.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from crush_kernel.history.journal.fileversions import Content, FileChange
from crush_kernel.tools.undo.lastlook import Found
from crush_kernel.tools.undo.shadow import Shadow
from crush_kernel.tools.undo.shadowstore import ShadowFailed

logger = logging.getLogger(__name__)

YOUNG_S: Final = 2.0
"""How long a look counts as one just before a command: people do not edit in between."""

QUIET_S: Final = 0.15
"""How long no command runs before what they did is looked at; the model takes longer to go on."""

FIRST_LIMIT_S: Final = 20.0
"""For the first look, which reads the whole project."""

LIMIT_S: Final = 10.0
"""For a later one."""

FIRST_PATIENCE_S: Final = 8.0
PATIENCE_S: Final = 2.0
"""How long a command waits for the look before it; past that it runs all the same."""

INTERRUPTED_PATIENCE_S: Final = 0.3
"""The same at the end of a turn that the user has stopped."""

_MAX_LOOKS: Final = 3

MAX_NOTED: Final = 200
"""Changes of tools that no look has seen yet; those of ignored files never are."""


class Worktree:
    """Owns the shadow of a project and tells what commands have changed.

    The coroutines belong to one event loop, the other methods to any thread.
    """

    def __init__(
        self,
        *,
        root: Path,
        open_shadow: Callable[[], Shadow],
        record: Callable[[str, Sequence[FileChange]], None],
        has_jobs: Callable[[], bool],
        tasks: TaskGroup,
    ) -> None:
        """Prepare; nothing is looked at yet.

        Args:
            root: the project, a real path.
            open_shadow: makes the shadow, once the session is known.
            record: keeps the changes of a turn.
            has_jobs: whether anything runs in the background.
            tasks: where looks run that nobody waits for.
        """
        self._root = root
        self._open_shadow = open_shadow
        self.turn_id = ""
        """Of the turn that runs."""
        self._record = record
        self._told: frozenset[str] = frozenset()
        self._has_jobs = has_jobs
        self.tasks = tasks
        """Where looks run that nobody waits for."""
        self._lock = threading.RLock()
        """Held during a look, and while a change of a tool is noted."""
        self._shadow: Shadow | None = None
        self._due_turn = ""
        """To which turn the next look counts what it sees; empty if to none."""
        self._had_jobs = False
        """Whether something ran in the background at the last look."""
        self._looked_s = float("-inf")
        self._noted: OrderedDict[str, FileChange] = OrderedDict()
        """What tools have changed and no look has seen, by path in the project."""
        self._running = 0
        """How many commands run that are waited for."""
        self._quiet_s = 0.0
        self._is_waiting = False
        self._before: anyio.Event | None = None
        """Set when the look before a command that runs now has ended."""
        self._failure = ""
        self._uncovered: set[str] = set()

    # Around a command

    def expect(self) -> None:
        """Begin to look, since a command is about to run: while permission is asked for it."""
        if self._before is None and self._needs_look():
            self._before = anyio.Event()
            self.tasks.start_soon(self._look_before, self._before)

    @asynccontextmanager
    async def command(self) -> AsyncGenerator[None]:
        """Have what the block changes count to the running turn."""
        self.expect()
        is_first = self._shadow is None
        if self._before is not None:
            with anyio.move_on_after(FIRST_PATIENCE_S if is_first else PATIENCE_S):
                await self._before.wait()
        turn_id = self.turn_id
        if self._before is not None:
            self._uncovered.add(turn_id)
        self._begin(turn_id)
        try:
            yield
        finally:
            self._running -= 1
            self._quiet_s = anyio.current_time() + QUIET_S
            if not (self._running or self._is_waiting or self.tasks.cancel_scope.cancel_called):
                self._is_waiting = True
                self.tasks.start_soon(self._look_after)

    async def end_turn(self, *, is_interrupted: bool = False) -> None:
        """Count what the turn has changed, within a bound; what is late is counted later."""
        if not (self._due_turn or (self._shadow is not None and self._has_jobs())):
            return
        patience_s = INTERRUPTED_PATIENCE_S if is_interrupted else LIMIT_S
        with anyio.move_on_after(patience_s, shield=True):
            if not self._due_turn:
                self._begin_turn(self.turn_id)
            await run_sync(self.settle, abandon_on_cancel=True)

    @property
    def problem(self) -> str:
        """Why commands are not covered at all, in a clause; empty if they are."""
        return self._failure

    def notes(self) -> tuple[str, ...]:
        """Return what is not covered of what commands change, a sentence each."""
        if self._failure:
            return (f"What commands change is not covered: {self._failure}.",)
        shadow = self._shadow
        notes: list[str] = []
        if shadow is not None and shadow.nested:
            names = ", ".join(sorted(shadow.nested)[:5])
            notes.append(f"What commands do to repositories inside is not covered: {names}.")
        if shadow is not None and (count := shadow.uncovered_files):
            files = "1 file is" if count == 1 else f"{count} files are"
            what = "it" if count == 1 else "them"
            notes.append(
                f"{files} too large or cannot be read: what commands do to {what} is not covered."
            )
        return tuple(notes)

    def news(self) -> tuple[str, ...]:
        """Return the notes that this has not returned before: once is enough for people."""
        notes = self.notes()
        new = tuple(note for note in notes if note not in self._told)
        self._told = frozenset(notes)
        return new

    def is_covered(self, turn_id: str) -> bool:
        """Return whether all looks before the commands of a turn were in time."""
        return not self._failure and turn_id not in self._uncovered

    def _needs_look(self) -> bool:
        if self._running:
            return False
        if self._due_turn:
            # What the same turn has done counts to it whenever it is seen.
            return self._due_turn != self.turn_id or self._shadow is None
        return time.monotonic() - self._looked_s > YOUNG_S

    async def _look_before(self, ended: anyio.Event) -> None:
        try:
            await run_sync(self._refresh, self.turn_id, abandon_on_cancel=True)
        except Exception:
            # A command must not fail because nobody can look.
            logger.exception("the project cannot be looked at")
            self._failure = "it failed unexpectedly"
        finally:
            ended.set()
            self._before = None

    async def _look_after(self) -> None:
        try:
            while self._quiet_s > anyio.current_time():  # noqa: ASYNC110 - it is a time
                await anyio.sleep_until(self._quiet_s)
            if not self._running:
                await run_sync(self.settle, abandon_on_cancel=True)
        except Exception:
            logger.exception("the project cannot be looked at")
        finally:
            self._is_waiting = False

    # Any thread

    def forget_age(self) -> None:
        """Have the next command be looked at before, however young the last look is."""
        self._looked_s = float("-inf")

    def settle(self) -> None:
        """Have what commands have changed so far counted; blocks for at most one look."""
        with self._lock:
            if self._due_turn and self._open():
                self._look(self._due_turn)

    def catch_up(self) -> None:
        """Do the same also for what an earlier kernel has left uncounted."""
        with self._lock:
            self._open()
            self.settle()

    def note(self, change: FileChange) -> None:
        """Have a change that a tool is about to make not count as a command's."""
        path = Path(change.path)
        if not path.is_relative_to(self._root):
            return
        with self._lock:
            self.settle()
            name = str(path.relative_to(self._root))
            self._noted[name] = change
            self._noted.move_to_end(name)
            while len(self._noted) > MAX_NOTED:
                self._noted.popitem(last=False)

    def _begin(self, turn_id: str) -> None:
        self._running += 1
        self._begin_turn(turn_id)

    def _begin_turn(self, turn_id: str) -> None:
        if self._due_turn != turn_id:
            self._due_turn = turn_id
            if self._shadow is not None:
                self._shadow.last.mark_turn(turn_id)

    def _refresh(self, turn_id: str) -> None:
        """Look before a command of a turn."""
        with self._lock:
            if not self._open():
                return
            self._look(self._due_turn or (turn_id if self._had_jobs else ""))

    def _open(self) -> bool:
        """Look for the first time, unless that was done; return whether it could be done."""
        if self._shadow is not None:
            return True
        if self._failure:
            return False
        shadow = self._open_shadow()
        try:
            shadow.open(limit_s=FIRST_LIMIT_S)
        except ShadowFailed as error:
            logger.warning("what commands change is not covered: %s", error)
            self._failure = str(error)
            return False
        self._shadow = shadow
        self._due_turn = self._due_turn or shadow.last.open_turn
        return True

    def _look(self, turn_id: str) -> None:
        """Look, and count what has changed to a turn; to none if `turn_id` is empty."""
        shadow = self._shadow
        if shadow is None:
            return
        had_jobs = self._has_jobs()
        try:
            # Git shows what is in a folder only once it knows that no file is there.
            for _ in range(_MAX_LOOKS):
                if not self._look_once(shadow, turn_id):
                    break
        except ShadowFailed as error:
            logger.warning("what commands have changed is not known: %s", error)
            self._uncovered.add(turn_id)
            return
        self._looked_s = time.monotonic()
        self._had_jobs = had_jobs
        if self._due_turn == turn_id and not self._running:
            self._due_turn = ""
            if turn_id:
                shadow.last.mark_turn("")

    def _look_once(self, shadow: Shadow, turn_id: str) -> bool:
        """Look and count; return whether there may be more to see."""
        look = shadow.look(limit_s=LIMIT_S)
        changes = [change for each in look.found if (change := self._counted(each))]
        if turn_id and changes:
            self._record(turn_id, changes)
        if look.found or look.seen or look.others:
            shadow.accept(look)
        return any(each.after is None and (self._root / each.path).is_dir() for each in look.found)

    def _counted(self, found: Found) -> FileChange | None:
        """Return what of a change is not a tool's, as it is to be kept."""
        noted = self._noted.pop(found.path, None)
        before = found.before
        if noted is not None:
            if _is_same(found.after, noted.after):
                return None
            before = noted.after
            if before is not None and before.rights is None and found.before is not None:
                before = replace(before, rights=found.before.rights)
        return FileChange(str(self._root / found.path), before, found.after)


def _is_same(one: Content | None, other: Content | None) -> bool:
    """Return whether both are nothing, or files with the same bytes."""
    if one is None or other is None:
        return one is other
    return one.data is not None and one.data == other.data
