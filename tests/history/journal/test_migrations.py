"""A file is brought into today's shape, or left alone."""

import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import pytest

from crush_kernel.history.journal.migrations import (
    APPLICATION_ID,
    MIGRATIONS,
    NotOurs,
    prepare,
    transaction,
)

MARK = "0" * 32

TABLES = ["decisions", "entries", "facts", "files", "known", "sessions", "turns", "undone"]


@pytest.fixture
def connection(tmp_path: Path) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        yield connection


def value(connection: sqlite3.Connection, query: str) -> object:
    return connection.execute(query).fetchone()[0]


def tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {row[0] for row in rows}


def schema(connection: sqlite3.Connection) -> list[tuple[str]]:
    return connection.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()


def test_an_empty_file_gets_all_tables(connection: sqlite3.Connection) -> None:
    prepare(connection)
    assert tables(connection) == {*TABLES}
    assert value(connection, "PRAGMA application_id") == APPLICATION_ID
    assert value(connection, "PRAGMA user_version") == len(MIGRATIONS)
    assert value(connection, "PRAGMA journal_mode") == "wal"


def test_a_file_of_today_stays_as_it_is(connection: sqlite3.Connection) -> None:
    prepare(connection, mark=MARK)
    connection.execute("INSERT INTO known VALUES ('c1.1', 'd')")
    before = schema(connection)
    prepare(connection, mark=MARK)
    assert schema(connection) == before
    assert value(connection, "SELECT count(*) FROM known") == 1


def test_a_file_that_was_begun_and_not_finished_is_finished(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    prepare(connection)
    assert tables(connection) == {*TABLES}


LATER = (*MIGRATIONS, ("ALTER TABLE known ADD COLUMN seen INTEGER NOT NULL DEFAULT 7",))


def test_a_file_of_an_earlier_version_keeps_what_it_holds(connection: sqlite3.Connection) -> None:
    prepare(connection, mark=MARK)
    connection.execute("INSERT INTO known VALUES ('c1.1', 'd')")
    prepare(connection, mark=MARK, migrations=LATER)
    assert connection.execute("SELECT * FROM known").fetchall() == [("c1.1", "d", 7)]
    assert value(connection, "PRAGMA user_version") == len(LATER)


def test_versions_are_passed_one_by_one_or_at_once(
    connection: sqlite3.Connection, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "b.db", isolation_level=None)) as other:
        prepare(other)
        prepare(other, migrations=LATER)
        prepare(connection, migrations=LATER)
        assert schema(other) == schema(connection)


def test_a_migration_that_fails_changes_nothing(connection: sqlite3.Connection) -> None:
    prepare(connection)
    broken = (*MIGRATIONS, ("CREATE TABLE extra (a)", "CREATE NONSENSE"))
    before = schema(connection)
    with pytest.raises(sqlite3.OperationalError):
        prepare(connection, migrations=broken)
    assert schema(connection) == before
    assert value(connection, "PRAGMA user_version") == len(MIGRATIONS)


def _foreign(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE bookmarks (url TEXT)")


def _other_application(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA application_id = 7")


def _newer(connection: sqlite3.Connection) -> None:
    prepare(connection, mark=MARK)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")


def _other_user(connection: sqlite3.Connection) -> None:
    prepare(connection, mark="1" * 32)


def _unmarked(connection: sqlite3.Connection) -> None:
    prepare(connection)


def _trigger(connection: sqlite3.Connection) -> None:
    prepare(connection, mark=MARK)
    connection.execute("CREATE TRIGGER t AFTER INSERT ON known BEGIN DELETE FROM turns; END")


def _view(connection: sqlite3.Connection) -> None:
    prepare(connection, mark=MARK)
    connection.execute("DROP TABLE known")
    connection.execute("CREATE VIEW known AS SELECT turn, digest FROM turns")


def _generated(connection: sqlite3.Connection) -> None:
    prepare(connection, mark=MARK)
    connection.execute("ALTER TABLE known ADD COLUMN x AS (upper(turn))")


def _missing(connection: sqlite3.Connection) -> None:
    prepare(connection, mark=MARK)
    connection.execute("DROP TABLE known")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(_foreign, "another program", id="tables of another program"),
        pytest.param(_other_application, "another program", id="another application id"),
        pytest.param(_newer, "a later version", id="a later version"),
        pytest.param(_other_user, "another user", id="the mark of another user"),
        pytest.param(_unmarked, "another user", id="no mark"),
        pytest.param(_trigger, "not ours", id="a trigger"),
        pytest.param(_view, "not ours", id="a view for a table"),
        pytest.param(_generated, "not ours", id="a column too many"),
        pytest.param(_missing, "not ours", id="a table too few"),
    ],
)
def test_a_file_that_is_not_ours_is_not_changed(
    connection: sqlite3.Connection, make: Callable[[sqlite3.Connection], None], reason: str
) -> None:
    make(connection)
    before = [*schema(connection), value(connection, "PRAGMA user_version")]
    with pytest.raises(NotOurs, match=reason):
        prepare(connection, mark=MARK)
    assert [*schema(connection), value(connection, "PRAGMA user_version")] == before


def test_without_a_mark_every_file_of_ours_is_taken(connection: sqlite3.Connection) -> None:
    prepare(connection, mark=MARK)
    prepare(connection)
    assert value(connection, "SELECT value FROM facts WHERE name = 'mark'") == MARK


class Interrupt(BaseException):
    pass


def interrupted(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        connection.execute("INSERT INTO known VALUES ('c1.1', 'd')")
        raise Interrupt


def test_a_transaction_is_all_or_nothing(connection: sqlite3.Connection) -> None:
    prepare(connection)
    with pytest.raises(Interrupt):
        interrupted(connection)
    assert not connection.in_transaction
    with transaction(connection):
        connection.execute("INSERT INTO known VALUES ('c2.1', 'd')")
    assert connection.execute("SELECT turn FROM known").fetchall() == [("c2.1",)]
