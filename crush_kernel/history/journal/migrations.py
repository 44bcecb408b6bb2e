"""The shape of the journal's file, and the way to it from every earlier shape.

`MIGRATIONS[n]` leads from version n to n + 1; a new file is of version 0. What a released
version has led to is never changed: a later one is added behind.

Source: SQLite, `PRAGMA application_id`, `PRAGMA user_version`, "Defense against the dark arts".
"""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Final, TypeAlias

APPLICATION_ID: Final = 0x43525348
"""`CRSH`: tells our files from those of other programs."""

Migrations: TypeAlias = Sequence[Sequence[str]]

# Numbers need no AUTOINCREMENT, which would write one page more an entry: a turn's entries
# are only ever compared with each other, and are deleted together.
MIGRATIONS: Final[Migrations] = (
    (
        """
        CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID
        """,
        """
        CREATE TABLE sessions (
            number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, path TEXT NOT NULL,
            parent TEXT NOT NULL, title TEXT NOT NULL, header BLOB
        )
        """,
        "CREATE INDEX sessions_by_path ON sessions (path)",
        """
        CREATE TABLE entries (
            number INTEGER PRIMARY KEY, session TEXT NOT NULL, turn TEXT NOT NULL,
            kind TEXT NOT NULL, content BLOB NOT NULL
        )
        """,
        """
        CREATE TABLE turns (
            number INTEGER PRIMARY KEY, session TEXT NOT NULL, turn TEXT NOT NULL,
            cell TEXT NOT NULL, run INTEGER NOT NULL, revision INTEGER NOT NULL,
            digest TEXT NOT NULL, is_saved INTEGER NOT NULL, execution_count INTEGER,
            record BLOB NOT NULL, outputs BLOB,
            UNIQUE (session, turn)
        )
        """,
        """
        CREATE TABLE known (
            turn TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (turn, digest)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE decisions (
            number INTEGER PRIMARY KEY, session TEXT NOT NULL, turn TEXT NOT NULL,
            facts BLOB NOT NULL
        )
        """,
        "CREATE INDEX decisions_by_session ON decisions (session)",
        """
        CREATE TABLE files (
            number INTEGER PRIMARY KEY, session TEXT NOT NULL, turn TEXT NOT NULL,
            path TEXT NOT NULL, before TEXT, after TEXT
        )
        """,
        "CREATE INDEX files_by_session ON files (session)",
    ),
    (
        "ALTER TABLE files ADD COLUMN before_kind TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE files ADD COLUMN after_kind TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE files ADD COLUMN reason TEXT NOT NULL DEFAULT ''",
        """
        CREATE TABLE undone (
            number INTEGER PRIMARY KEY, session TEXT NOT NULL, turn TEXT NOT NULL,
            target TEXT NOT NULL, is_redo INTEGER NOT NULL
        )
        """,
        "CREATE INDEX undone_by_session ON undone (session)",
    ),
)


class NotOurs(Exception):
    """The file is none that this version can write to; the message says why, in a clause."""


def prepare(
    connection: sqlite3.Connection, *, mark: str = "", migrations: Migrations = MIGRATIONS
) -> None:
    """Bring the file of `connection` into the shape that this version writes.

    A file that is not ours is not changed.

    Args:
        connection: in autocommit mode, used by nobody else yet.
        mark: what the user's own files are marked with; empty to take any.
        migrations: the way from each version to the next.

    Raises:
        NotOurs: another program, a later version or another user has written the file.
        sqlite3.Error: it cannot be read or written.
    """
    version = _distrust(connection, migrations)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA secure_delete = FAST")
    if version < len(migrations):
        _migrate(connection, mark, migrations)
    _check_contents(connection, mark, migrations)


def examine(
    connection: sqlite3.Connection, *, mark: str, migrations: Migrations = MIGRATIONS
) -> None:
    """Make sure that the file of `connection` is ours, of this version or an earlier one.

    Nothing is written.

    Args:
        connection: used by nobody else yet.
        mark: what the user's own files are marked with.
        migrations: the way from each version to the next.

    Raises:
        NotOurs: another program, a later version or another user has written the file.
        sqlite3.Error: it cannot be read.
    """
    version = _distrust(connection, migrations)
    if version == 0:
        raise NotOurs("there is nothing in it")
    _check_contents(connection, mark, migrations[:version])


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Run the block as one write, all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _distrust(connection: sqlite3.Connection, migrations: Migrations) -> int:
    """Have nothing run that a file brings along, and return its version, if it is ours or empty."""
    # No function in a view, index or trigger.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    return _check(connection, migrations)


def _check(connection: sqlite3.Connection, migrations: Migrations) -> int:
    """Return the version of a file that is ours or empty."""
    application = _number(connection, "PRAGMA application_id")
    version = _number(connection, "PRAGMA user_version")
    is_empty = _number(connection, "SELECT count(*) FROM sqlite_master") == 0
    if application != APPLICATION_ID and not (is_empty and application == 0):
        raise NotOurs("another program has written it")
    if not 0 <= version <= len(migrations):
        raise NotOurs("a later version of this program has written it")
    return version


def _migrate(connection: sqlite3.Connection, mark: str, migrations: Migrations) -> None:
    with transaction(connection):
        # Another kernel may have been faster.
        version = _check(connection, migrations)
        _run(connection, migrations[version:])
        if version == 0 and mark:
            connection.execute("INSERT INTO facts VALUES ('mark', ?)", (mark,))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")


def _check_contents(connection: sqlite3.Connection, mark: str, migrations: Migrations) -> None:
    """Refuse what was put into the file beside our tables, or is damaged in their definitions."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        _run(fresh, migrations)
        if _schema(connection) != _schema(fresh):
            raise NotOurs("its tables are not ours")
    found = connection.execute("SELECT value FROM facts WHERE name = 'mark'").fetchone()
    if mark and found != (mark,):
        raise NotOurs("another user, or a kernel on another computer, has written it")


def _run(connection: sqlite3.Connection, migrations: Migrations) -> None:
    for steps in migrations:
        for step in steps:
            connection.execute(step)


def _schema(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    """Return what there is and its columns; the SQL of it depends on SQLite's version."""
    query = """
        SELECT of.type, of.name, of.tbl_name, c.cid, c.name, c.type, c."notnull", c.pk, c.hidden
        FROM sqlite_master AS of LEFT JOIN pragma_table_xinfo(of.name) AS c
        ORDER BY of.type, of.name, c.cid
    """
    return connection.execute(query).fetchall()


def _number(connection: sqlite3.Connection, query: str) -> int:
    (value,) = connection.execute(query).fetchone()
    return value
