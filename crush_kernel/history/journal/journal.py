"""The journal: what happens in a turn, written down before anybody sees it.

A turn that runs is a row an entry; when it ends, one row with its record and its outputs
takes their place. So a kernel that is killed leaves entries behind, which the next one
folds into an interrupted turn, and a long session costs no more per turn than a short one.
All kernels of a project write to one file, each in sessions of its own.

Every method may be called from any thread and blocks for one short transaction. None raises
for disk trouble: the turn goes on, and a sentence waits in `take_notice`.

Source: design §§2, 5, 13.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import JsonValue

from crush_kernel.history.blobs import Blobs
from crush_kernel.history.journal import rows
from crush_kernel.history.journal.database import Database
from crush_kernel.history.journal.endedturns import consolidate, keep_imported, recover
from crush_kernel.history.journal.entries import (
    Answered,
    Clean,
    Drafted,
    DraftKind,
    Dropped,
    Entry,
    Unsaid,
    encode,
    to_bytes,
)
from crush_kernel.history.journal.fileversions import FileChange, FileVersions, content_of
from crush_kernel.history.journal.migrations import transaction
from crush_kernel.history.journal.replay import Replayed
from crush_kernel.history.journal.rows import FileVersion, StoredSession, StoredTurn
from crush_kernel.history.journal.runningturn import RunningTurn
from crush_kernel.history.journal.waitingdecisions import DecisionRow, WaitingDecisions
from crush_kernel.history.outputs import Output
from crush_kernel.history.ownership import FileLock, own_session
from crush_kernel.history.subagentmessages import Nested
from crush_kernel.history.turn import Turn
from crush_kernel.messages import JsonObject, Message, ToolResult, well_formed

__all__ = ["FileVersion", "Journal", "StoredSession", "StoredTurn"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

Work: TypeAlias = Callable[[sqlite3.Connection], None]

FILE_NAME: Final = "notebooks.db"

_MAX_UNKEPT: Final = 20
"""How many turns wait in memory for a disk that takes them."""


class Journal:
    """The journal of one project; nothing is made on disk before there is something to keep."""

    def __init__(self, directory: Path, database: Database, *, clean: Clean) -> None:
        self.blobs = Blobs(directory)
        self._directory = directory
        self._database = database
        self._clean = clean
        self._lock = threading.RLock()
        self.file_history = FileVersions(
            self.blobs, clean=clean, read=self._read, write=self._write
        )
        self._running: dict[tuple[str, str], RunningTurn] = {}
        self._sessions: dict[str, StoredSession] = {}
        """What was told of sessions by this kernel; kept again with every turn."""
        self._owned: dict[str, FileLock] = {}
        self._unkept: list[Work] = []
        """What is written when the disk takes it again: turns that have ended meanwhile."""
        self._decisions = WaitingDecisions(clean)
        self._known: set[tuple[str, str]] = set()
        """The turns and digests of this kernel, which are known whatever the disk does."""

    @classmethod
    def open(
        cls, directory: Path, *, clean: Clean = lambda value: value, mark: str = ""
    ) -> "Journal":
        """Return the journal of a project.

        Args:
            directory: the project's data directory; made when needed, its parents never.
            clean: takes the secrets out of everything that is stored.
            mark: tells the user's own journals from one that a repository brings along, see
                `usermark.user_mark`; empty takes any.
        """
        return cls(directory, Database(directory / FILE_NAME, mark=mark), clean=clean)

    @property
    def is_kept(self) -> bool:
        """Whether what was written last was kept."""
        return not self._database.is_failing

    def take_notice(self) -> str:
        """Return what the user has not been told of the disk yet, or nothing."""
        with self._lock:
            return self._database.take_notice()

    def close(self) -> None:
        """Close the file and let go of all sessions; safe to repeat."""
        with self._lock:
            self._write_decisions()
            self._running.clear()
            self._database.close()
            for lock in self._owned.values():
                lock.release()
            self._owned.clear()

    # Sessions

    def own(self, session: str) -> bool:
        """Make this kernel the owner of a session; return whether no other kernel is."""
        with self._lock:
            if session not in self._owned:
                lock = own_session(self._directory, session)
                if lock is None:
                    return False
                self._owned[session] = lock
            return True

    def find(self, path: str, cell_ids: Collection[str] | None) -> str | None:
        """Return the newest session of the notebook `path` in which one of its cells ran.

        Without cells, the newest one in which any has run.
        """
        wanted = None if cell_ids is None else {well_formed(cell_id) for cell_id in cell_ids}

        def look(connection: sqlite3.Connection) -> str | None:
            for session in rows.sessions_at(connection, well_formed(path)):
                cells = rows.cells_of(connection, session)
                if cells if wanted is None else not wanted.isdisjoint(cells):
                    return session
            return None

        return self._read(look, None)

    def adopt(
        self,
        session: str,
        path: str,
        *,
        title: str = "",
        parent: str = "",
        header: JsonObject | None = None,
    ) -> None:
        """Keep what is told of a session; what is left empty stays as it is.

        Where there is no file yet, it is kept with the first turn.
        """
        told = StoredSession(
            id=well_formed(session),
            path=well_formed(path),
            parent=well_formed(parent),
            title=well_formed(title),
            header=header,
        )
        with self._lock:
            known = self._sessions.get(told.id, told)
            self._sessions[told.id] = StoredSession(
                told.id,
                told.path or known.path,
                told.parent or known.parent,
                told.title or known.title,
                known.header if header is None else header,
            )
            if self._database.exists:
                self._write(lambda connection: self._keep_session(connection, told.id))

    def session(self, session: str) -> StoredSession | None:
        """Return what is known of a session, `None` if nothing is."""
        name = well_formed(session)
        with self._lock:
            stored = self._database.read(lambda c: rows.find_session(c, name), None)
            return stored or self._sessions.get(name)

    def sessions(self) -> list[StoredSession]:
        """Return all sessions of the project without their headers, the oldest first."""
        return self._read(rows.sessions, [])

    def branch(self, session: str, path: str) -> str:
        """Begin a session that goes on from another one, and return its id.

        The id depends only on the other session, the path and how many branches there are.
        """
        with self._lock:
            number = 1
            while self.session(branch := _branch_id(session, path, number)) is not None:
                number += 1
            self.adopt(branch, path, parent=session)
            return branch

    # The running turn

    def began(self, session: str, turn: Turn) -> None:
        """Begin a turn. If that cannot be kept, its entries are not kept either."""
        running = RunningTurn(well_formed(session), well_formed(turn.id), self._coded)
        key = running.session, running.turn_id

        def work(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                self._keep_session(connection, running.session)
                running.begin(connection, turn)
            self._running[key] = running

        with self._lock:
            self._running.pop(key, None)
            self._write(work, is_fresh=True)

    def said(self, session: str, turn_id: str, message: Message) -> None:
        """Add a message, complete as it is."""
        self._note(session, turn_id, lambda c, running: running.say(c, message))

    def unsaid(self, session: str, turn_id: str) -> None:
        """Take back the last message."""
        self._note(session, turn_id, lambda c, running: running.add(c, Unsaid()))

    def answered(self, session: str, turn_id: str, result: ToolResult) -> None:
        """Add the result of one call, before the message that answers all calls is said."""
        self._note(session, turn_id, lambda c, running: running.add(c, Answered(result)))

    def nested(self, session: str, turn_id: str, nested: Nested) -> None:
        """Add what a sub-agent of the turn says, as the result of its call will tell it."""
        self._note(session, turn_id, lambda c, running: running.add(c, nested))

    def drafted(  # noqa: PLR0917 - in the order of the key, then the content
        self, session: str, turn_id: str, step: int, attempt: int, kind: DraftKind, text: str
    ) -> None:
        """Add text of a reply that is not complete.

        Args:
            session: the session.
            turn_id: the turn.
            step: which request of the turn is answered, from 1: the n-th reply that is said
                takes the place of what was drafted in step n.
            attempt: which attempt of this request, from 1.
            kind: what the text is part of.
            text: what was added since the last time.
        """
        draft = Drafted(step, attempt, kind, text)
        self._note(session, turn_id, lambda c, running: running.draft(c, draft))

    def dropped(self, session: str, turn_id: str, step: int, attempt: int) -> None:
        """Note that what was drafted in an attempt is void."""
        entry = Dropped(step, attempt)
        self._note(session, turn_id, lambda c, running: running.add(c, entry))

    def published(self, session: str, turn_id: str, msg_type: str, content: dict[str, Any]) -> None:
        """Add an output message of the cell. An update takes the place of what it updates."""
        self._note(session, turn_id, lambda c, running: running.publish(c, msg_type, content))

    def decided(self, session: str, turn_id: str, facts: JsonObject) -> None:
        """Note by what right a call was made, or why it was refused; stays for ever."""
        with self._lock:
            if self._decisions.add(session, turn_id, facts):
                self._write_decisions()

    def file_changed(
        self,
        session: str,
        turn_id: str,
        path: Path | str,
        before: bytes | None,
        after: bytes | None,
    ) -> None:
        """Note a change of a file and keep both contents as they are; stays for ever.

        A content with a secret in it is not kept on disk: cleaned, it would be another file.
        """
        change = FileChange(str(path), content_of(before), content_of(after))
        self.file_history.add_by_tool(session, turn_id, change)

    # Ended turns

    def ended(
        self, session: str, turn: Turn, outputs: list[Output], execution_count: int | None
    ) -> None:
        """Keep a turn as it ended, in place of its entries.

        If that fails, it is tried again when the next turn begins or ends.

        Args:
            session: the session.
            turn: as it ended; what its `record` says is what is kept.
            outputs: what its cell shows.
            execution_count: of the cell.
        """
        name = well_formed(session)

        def work(connection: sqlite3.Connection) -> None:
            self._keep_session(connection, name)
            consolidate(
                connection,
                name,
                turn,
                outputs=outputs,
                execution_count=execution_count,
                clean=self._clean,
                first=running.first if running and running.is_in(connection) else 0,
            )

        with self._lock:
            self._write_decisions()
            running = self._running.pop((name, well_formed(turn.id)), None)
            self._known.add((turn.id, turn.digest))
            if not self._write(work, is_fresh=True):
                self._unkept = [*self._unkept, work][-_MAX_UNKEPT:]

    def recover(self, session: str) -> list[tuple[Turn, list[Output]]]:
        """End the turns that a kernel which is gone has left open, and return them.

        Only the owner of the session may call this.

        Returns:
            The interrupted turns with their outputs, in the order in which they began.
        """
        name = well_formed(session)
        recovered: list[Replayed] = []

        def work(connection: sqlite3.Connection) -> None:
            running = {turn_id for owner, turn_id in self._running if owner == name}
            recovered.extend(recover(connection, name, running=running, clean=self._clean))

        with self._lock:
            if self._database.exists:
                self._write(work, is_fresh=True)
            self._known |= {(each.turn.id, each.turn.digest) for each in recovered}
        return [(each.turn, each.outputs) for each in recovered]

    def imported(self, session: str, turns: Iterable[Turn]) -> None:
        """Keep turns that came from a file, where they are newer than what is kept."""
        came = tuple(turns)
        name = well_formed(session)

        def work(connection: sqlite3.Connection) -> None:
            self._keep_session(connection, name)
            keep_imported(connection, name, came, clean=self._clean)

        with self._lock:
            self._known |= {(turn.id, turn.digest) for turn in came}
            if came:
                self._write(work, is_fresh=True)

    def mark_saved(self, session: str, turn_ids: Collection[str]) -> None:
        """Note that the notebook's file holds these turns."""
        name = well_formed(session)

        def work(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                rows.mark_saved(connection, name, turn_ids)

        with self._lock:
            if self._database.exists:
                self._write(work)

    def turns(self, session: str) -> list[StoredTurn]:
        """Return the turns of a session, in the order in which they ran."""
        name = well_formed(session)
        return self._read(lambda c: list(rows.stored_turns(c, name)), [])

    def versions(self, session: str, cell_id: str) -> list[StoredTurn]:
        """Return the turns that ran in one cell, in the order in which they ran."""
        name, cell = well_formed(session), well_formed(cell_id)
        return self._read(lambda c: list(rows.stored_turns(c, name, cell)), [])

    def record(self, session: str, turn_id: str) -> JsonObject | None:
        """Return the record of a turn, `None` if there is none that can be read."""
        name, turn = well_formed(session), well_formed(turn_id)
        return self._read(lambda c: rows.record_of(c, name, turn), None)

    def outputs(self, session: str, turn_id: str) -> tuple[list[Output], int | None] | None:
        """Return what the cell of a turn showed, and its execution count, if that is kept."""
        name, turn = well_formed(session), well_formed(turn_id)
        return self._read(lambda c: rows.outputs_of(c, name, turn), None)

    def knows(self, turn_id: str, digest: str) -> bool:
        """Return whether a turn with this digest was made or seen here, in whatever session."""
        turn, known = well_formed(turn_id), well_formed(digest)
        return (turn_id, digest) in self._known or self._read(
            lambda c: rows.is_known(c, turn, known), default=False
        )

    def decisions(self, session: str) -> list[tuple[str, JsonObject]]:
        """Return the turns and facts of all decisions in a session, oldest first."""
        with self._lock:
            self._write_decisions()
            return self._read(lambda c: rows.decisions_of(c, well_formed(session)), [])

    def files(self, session: str) -> list[FileVersion]:
        """Return all changes of files in a session, oldest first."""
        return self.file_history.all(session)

    def _write_decisions(self) -> None:
        if decisions := self._decisions.take():
            self._write(lambda connection: _add_decisions(connection, decisions))

    def _keep_session(self, connection: sqlite3.Connection, session: str) -> None:
        """Keep what was told of a session, which the file may not know yet, or no more."""
        told = self._sessions.get(session)
        if told is not None:
            header = None if told.header is None else self._bytes(dict(told.header))
            rows.keep_session(connection, told, header)

    def _note(
        self,
        session: str,
        turn_id: str,
        work: Callable[[sqlite3.Connection, RunningTurn], None],
    ) -> None:
        """Add to a turn, if it has begun and nothing of it is missing so far."""
        key = well_formed(session), well_formed(turn_id)
        with self._lock:
            running = self._running.get(key)
            if running is not None and not self._write(lambda c: self._add(c, running, work)):
                self._running.clear()

    def _add(
        self,
        connection: sqlite3.Connection,
        running: RunningTurn,
        work: Callable[[sqlite3.Connection, RunningTurn], None],
    ) -> None:
        if running.is_in(connection):
            work(connection, running)
        else:
            del self._running[running.session, running.turn_id]

    def _read(self, work: Callable[[sqlite3.Connection], T], default: T) -> T:
        with self._lock:
            return self._database.read(work, default)

    def _write(self, work: Work, *, is_fresh: bool = False) -> bool:
        """Do `work`, first what could not be done before, and return whether it was done."""
        if is_fresh:
            while self._unkept:
                if not self._do(self._unkept[0], is_fresh=True):
                    return False
                del self._unkept[0]
        return self._do(work, is_fresh=is_fresh)

    def _do(self, work: Work, *, is_fresh: bool) -> bool:
        try:
            return self._database.write(work, is_fresh=is_fresh)
        except (ValueError, RecursionError):
            # Content that has no JSON. The turn goes on; what is missing is missing.
            logger.exception("an entry was not kept")
            return True

    def _coded(self, entry: Entry) -> tuple[str, bytes]:
        kind, content = encode(entry)
        return kind, self._bytes(content)

    def _bytes(self, value: JsonValue) -> bytes:
        return to_bytes(self._clean(value))


def _add_decisions(connection: sqlite3.Connection, decisions: Iterable[DecisionRow]) -> None:
    with transaction(connection):
        for decision in decisions:
            rows.add_decision(connection, *decision)


def _branch_id(session: str, path: str, number: int) -> str:
    text = f"{session}\0{path}\0{number}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
