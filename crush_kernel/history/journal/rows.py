"""The rows of the journal: every SQL statement on them, as functions of a connection.

Each function is one statement or is called inside a transaction. Texts may be anything that
a notebook can hold; half characters, which SQLite cannot store, become U+FFFD. Rows in which
damage has made something else of a text or a number are passed over.
"""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from crush_kernel.history.journal.entries import Entry, decode, from_bytes
from crush_kernel.history.outputs import Output
from crush_kernel.history.turn import Turn
from crush_kernel.messages import JsonObject, well_formed

_MAX_INTEGER: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """What is known of a turn without reading its record."""

    id: str
    cell_id: str
    run: int
    revision: int
    digest: str
    is_saved: bool
    """Whether the notebook's file has held it."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as the journal knows it."""

    id: str
    path: str = ""
    """Of its notebook, as last told."""
    parent: str = ""
    """The session that it is a branch of, or empty."""
    title: str = ""
    header: JsonObject | None = None


USUAL_RIGHTS: Final[Mapping[str, int]] = {"file": 0o644, "program": 0o755}
"""The permission bits of files of which nothing else is said."""


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A change of a file by a turn; the contents are in the blobs."""

    turn_id: str
    path: str
    before: str | None
    """The hash of what was there, empty if it could not be kept, `None` if nothing was."""
    after: str | None
    before_kind: str = ""
    """What was there: `file`, `program`, `link` or `folder`; empty for a file whose rights are
    not known. Where a file's permission bits are unusual, they follow: `file 600`."""
    after_kind: str = ""
    reason: str = ""
    """Why a content could not be kept, in a clause; empty if nobody said."""


@dataclass(frozen=True, slots=True)
class Undone:
    """A turn that took back what another one had done to files."""

    turn_id: str
    """The turn that took it back."""
    target: str
    """The turn whose changes were taken back: that of an `/undo` for a `/redo`."""
    is_redo: bool = False


def json_object(data: object) -> JsonObject | None:
    """Return the JSON object that `data` holds, `None` if it holds none."""
    try:
        value: object = from_bytes(data)
    except ValueError:
        return None
    return cast("JsonObject", value) if isinstance(value, dict) else None


# Entries


def add_entry(
    connection: sqlite3.Connection, session: str, turn_id: str, kind: str, content: bytes
) -> int:
    """Add an entry and return its number."""
    cursor = connection.execute(
        "INSERT INTO entries (session, turn, kind, content) VALUES (?, ?, ?, ?)",
        (session, turn_id, kind, content),
    )
    return cursor.lastrowid or 0


def rewrite_entry(
    connection: sqlite3.Connection,
    number: int,
    kind: str,
    content: bytes,
    *,
    session: str,
    turn_id: str,
) -> None:
    """Put another entry in the place of the one with this number, if that is the turn's."""
    connection.execute(
        "UPDATE entries SET kind = ?, content = ? WHERE number = ? AND session = ? AND turn = ?",
        (kind, content, number, session, turn_id),
    )


def delete_drafts(
    connection: sqlite3.Connection, session: str, turn_id: str, *, first: int
) -> None:
    """Delete the drafts of a turn whose entries begin at number `first`."""
    connection.execute(
        "DELETE FROM entries WHERE number >= ? AND session = ? AND turn = ? AND kind = 'drafted'",
        (first, session, turn_id),
    )


def delete_entries(
    connection: sqlite3.Connection, session: str, turn_id: str, *, first: int = 0
) -> None:
    """Delete the entries of a turn, which begin at number `first`."""
    connection.execute(
        "DELETE FROM entries WHERE number >= ? AND session = ? AND turn = ?",
        (first, session, turn_id),
    )


def entries_by_turn(connection: sqlite3.Connection, session: str) -> dict[str, list[Entry]]:
    """Return the entries of the turns that have not ended, oldest first; bad ones are skipped."""
    rows = connection.execute(
        """
        SELECT turn, kind, content FROM entries
        WHERE session = ? AND typeof(turn) = 'text' ORDER BY number
        """,
        (session,),
    )
    found: dict[str, list[Entry]] = {}
    for turn_id, kind, content in rows:
        entries = found.setdefault(turn_id, [])
        try:
            entry = decode(kind, from_bytes(content))
        except ValueError:
            continue
        if entry is not None:
            entries.append(entry)
    return found


# Turns


def keep_turn(
    connection: sqlite3.Connection,
    session: str,
    turn: Turn,
    *,
    record: bytes,
    outputs: bytes | None,
    execution_count: int | None,
    is_saved: bool,
) -> None:
    """Keep a turn that has ended, unless a newer state of it is kept."""
    turn_id = well_formed(turn.id)
    connection.execute(
        """
        INSERT INTO turns (session, turn, cell, run, revision, digest, is_saved,
                           execution_count, record, outputs)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (session, turn) DO UPDATE SET
            revision = excluded.revision, digest = excluded.digest,
            is_saved = excluded.is_saved, execution_count = excluded.execution_count,
            record = excluded.record, outputs = excluded.outputs
        WHERE (excluded.revision, excluded.digest) >= (turns.revision, turns.digest)
        """,
        (
            session,
            turn_id,
            well_formed(turn.cell_id),
            _integer(turn.run),
            _integer(turn.revision),
            well_formed(turn.digest),
            is_saved,
            None if execution_count is None else _integer(execution_count),
            record,
            outputs,
        ),
    )
    connection.execute(
        "INSERT OR IGNORE INTO known VALUES (?, ?)", (turn_id, well_formed(turn.digest))
    )


def has_turn(connection: sqlite3.Connection, session: str, turn_id: str) -> bool:
    """Return whether a turn is kept as ended."""
    query = "SELECT 1 FROM turns WHERE session = ? AND turn = ?"
    return connection.execute(query, (session, turn_id)).fetchone() is not None


def is_known(connection: sqlite3.Connection, turn_id: str, digest: str) -> bool:
    """Return whether a turn with this digest was kept in any session."""
    query = "SELECT 1 FROM known WHERE turn = ? AND digest = ?"
    return connection.execute(query, (turn_id, digest)).fetchone() is not None


def stored_turns(
    connection: sqlite3.Connection, session: str, cell_id: str | None = None
) -> Iterator[StoredTurn]:
    """Yield the turns of a session, or of one of its cells, in the order in which they ran."""
    rows = connection.execute(
        """
        SELECT turn, cell, run, revision, digest, is_saved FROM turns
        WHERE session = ?1 AND (?2 IS NULL OR cell = ?2)
            AND (typeof(turn), typeof(cell), typeof(digest)) = ('text', 'text', 'text')
            AND (typeof(run), typeof(revision)) = ('integer', 'integer')
        ORDER BY number
        """,
        (session, cell_id),
    )
    for *known, is_saved in rows:
        yield StoredTurn(*known, is_saved=bool(is_saved))


def record_of(connection: sqlite3.Connection, session: str, turn_id: str) -> JsonObject | None:
    """Return the record of a turn, `None` if there is none that can be read."""
    query = "SELECT record FROM turns WHERE session = ? AND turn = ?"
    row = connection.execute(query, (session, turn_id)).fetchone()
    return json_object(row[0]) if row else None


def outputs_of(
    connection: sqlite3.Connection, session: str, turn_id: str
) -> tuple[list[Output], int | None] | None:
    """Return what the cell of a turn showed, and its execution count, as far as kept."""
    query = "SELECT outputs, execution_count FROM turns WHERE session = ? AND turn = ?"
    row = connection.execute(query, (session, turn_id)).fetchone()
    try:
        outputs: object = from_bytes(row[0]) if row else None
    except ValueError:
        return None
    count = row[1] if row and isinstance(row[1], int) else None
    return (cast("list[Output]", outputs), count) if isinstance(outputs, list) else None


def mark_saved(connection: sqlite3.Connection, session: str, turn_ids: Collection[str]) -> None:
    """Note that the notebook's file holds these turns."""
    query = "UPDATE turns SET is_saved = 1 WHERE session = ? AND turn = ? AND is_saved = 0"
    connection.executemany(query, [(session, well_formed(turn_id)) for turn_id in turn_ids])


# Sessions


def keep_session(
    connection: sqlite3.Connection, session: StoredSession, header: bytes | None
) -> None:
    """Keep what is told of a session; what is empty stays as it is kept."""
    connection.execute(
        """
        INSERT INTO sessions (id, path, parent, title, header) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET
            path = coalesce(nullif(excluded.path, ''), path),
            parent = coalesce(nullif(excluded.parent, ''), parent),
            title = coalesce(nullif(excluded.title, ''), title),
            header = coalesce(excluded.header, header)
        """,
        (session.id, session.path, session.parent, session.title, header),
    )


def find_session(connection: sqlite3.Connection, session: str) -> StoredSession | None:
    """Return what is kept of a session."""
    query = "SELECT id, path, parent, title, header FROM sessions WHERE id = ?"
    row = connection.execute(query, (session,)).fetchone()
    return None if row is None else _stored_session(row)


def sessions(connection: sqlite3.Connection) -> list[StoredSession]:
    """Return what is kept of all sessions but their headers, the oldest first."""
    query = "SELECT id, path, parent, title, NULL FROM sessions ORDER BY number"
    found = map(_stored_session, connection.execute(query))
    return [session for session in found if session is not None]


def _stored_session(row: Sequence[object]) -> StoredSession | None:
    *values, header = row
    texts = [value for value in values if isinstance(value, str)]
    is_whole = len(texts) == len(values)
    return StoredSession(*texts, header=json_object(header)) if is_whole else None


def sessions_at(connection: sqlite3.Connection, path: str) -> list[str]:
    """Return the ids of the sessions of a notebook, newest first."""
    query = """
        SELECT id FROM sessions WHERE path = ? AND typeof(id) = 'text' ORDER BY number DESC
    """
    return [row[0] for row in connection.execute(query, (path,))]


def cells_of(connection: sqlite3.Connection, session: str) -> set[str]:
    """Return the cells that have run in a session."""
    ended = connection.execute("SELECT DISTINCT cell FROM turns WHERE session = ?", (session,))
    begun = connection.execute("SELECT DISTINCT turn FROM entries WHERE session = ?", (session,))
    turns = (turn_id for (turn_id,) in begun if isinstance(turn_id, str))
    return {cell for (cell,) in ended} | {turn_id.rpartition(".")[0] for turn_id in turns}


# What stays when a turn has ended


def add_decision(connection: sqlite3.Connection, session: str, turn_id: str, facts: bytes) -> None:
    """Add by what right a call was made, or why it was refused."""
    connection.execute(
        "INSERT INTO decisions (session, turn, facts) VALUES (?, ?, ?)", (session, turn_id, facts)
    )


def decisions_of(connection: sqlite3.Connection, session: str) -> list[tuple[str, JsonObject]]:
    """Return the turns and facts of all decisions in a session, oldest first."""
    query = "SELECT turn, facts FROM decisions WHERE session = ? ORDER BY number"
    rows = connection.execute(query, (session,))
    return [(turn_id, facts) for turn_id, data in rows if (facts := json_object(data)) is not None]


def add_file_version(connection: sqlite3.Connection, session: str, version: FileVersion) -> int:
    """Add a change of a file and return its number."""
    cursor = connection.execute(
        """
        INSERT INTO files (session, turn, path, before, after, before_kind, after_kind, reason)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            session,
            version.turn_id,
            version.path,
            version.before,
            version.after,
            version.before_kind,
            version.after_kind,
            version.reason,
        ),
    )
    return cursor.lastrowid or 0


def file_versions(connection: sqlite3.Connection, session: str) -> list[tuple[int, FileVersion]]:
    """Return all changes of files in a session with their numbers, oldest first."""
    rows = connection.execute(
        """
        SELECT number, turn, path, before, after, before_kind, after_kind, reason FROM files
        WHERE session = ? AND (typeof(turn), typeof(path)) = ('text', 'text')
            AND typeof(before) IN ('text', 'null') AND typeof(after) IN ('text', 'null')
            AND (typeof(before_kind), typeof(after_kind), typeof(reason)) = ('text', 'text', 'text')
        ORDER BY number
        """,
        (session,),
    )
    return [(number, FileVersion(*version)) for number, *version in rows]


def add_undone(connection: sqlite3.Connection, session: str, undone: Undone) -> None:
    """Add that a turn has taken back another one."""
    connection.execute(
        "INSERT INTO undone (session, turn, target, is_redo) VALUES (?, ?, ?, ?)",
        (session, undone.turn_id, undone.target, undone.is_redo),
    )


def undone_of(connection: sqlite3.Connection, session: str) -> list[Undone]:
    """Return which turns of a session have taken back which, oldest first."""
    rows = connection.execute(
        """
        SELECT turn, target, is_redo FROM undone
        WHERE session = ? AND (typeof(turn), typeof(target)) = ('text', 'text') ORDER BY number
        """,
        (session,),
    )
    return [Undone(turn, target, is_redo=bool(is_redo)) for turn, target, is_redo in rows]


def _integer(value: int) -> int:
    return max(-_MAX_INTEGER, min(_MAX_INTEGER, value))
