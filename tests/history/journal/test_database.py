"""Whatever the disk does, the turn goes on, and the user is told once."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crush_kernel.history.journal import database as database_module
from crush_kernel.history.journal.journal import FILE_NAME, Journal
from crush_kernel.history.journal.migrations import MIGRATIONS
from crush_kernel.history.turn import Turn
from crush_kernel.messages import Message, Text, ToolResult
from tests.fakes.livesession import LiveSession
from tests.fakes.page import Page
from tests.history.journal.test_journal import PROMPT, SESSION, ended, keep

MARK = "0" * 32


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / ".crush"
    directory.mkdir()
    return directory


@pytest.fixture
def file(directory: Path) -> Path:
    return directory / FILE_NAME


@pytest.fixture
def kernel(directory: Path) -> Generator[Callable[[], Journal]]:
    """Return a way to open the journal as one more kernel does."""
    with ExitStack() as stack:

        def opened() -> Journal:
            return stack.enter_context(closing(Journal.open(directory, mark=MARK)))

        yield opened


def run_turns(journal: Journal) -> None:
    """Do everything that a session does; nothing of it may raise."""
    journal.adopt(SESSION, "/nb.ipynb")
    journal.own(SESSION)
    journal.find("/nb.ipynb", ["a"])
    journal.recover(SESSION)
    journal.imported(SESSION, [ended("a")])
    for cell in "bc":
        turn = Turn(cell)
        journal.began(SESSION, turn)
        journal.said(SESSION, turn.id, PROMPT)
        journal.drafted(SESSION, turn.id, 1, 1, "text", "x" * 3000)
        journal.answered(SESSION, turn.id, ToolResult("c", "y"))
        content = {"data": {}, "metadata": {}, "transient": {"display_id": "1"}}
        journal.published(SESSION, turn.id, "display_data", content)
        journal.published(SESSION, turn.id, "update_display_data", content)
        journal.decided(SESSION, turn.id, {})
        journal.file_changed(SESSION, turn.id, "/x", b"before", b"after")
        journal.said(SESSION, turn.id, Message("assistant", (Text("z"),)))
        journal.ended(SESSION, ended(cell), [], 1)
    journal.mark_saved(SESSION, ["b.1", "c.1"])
    for stored in journal.turns(SESSION):
        journal.record(SESSION, stored.id)
        journal.outputs(SESSION, stored.id)
        journal.knows(stored.id, stored.digest)
    journal.session(SESSION)
    journal.branch(SESSION, "/nb.ipynb")
    journal.decisions(SESSION)
    journal.files(SESSION)


def cells(journal: Journal) -> list[str]:
    return [turn.cell_id for turn in journal.turns(SESSION)]


# Files that cannot be used


def valid(file: Path, *, mark: str = MARK) -> None:
    """Make a journal in which cell `old` ran."""
    with closing(Journal.open(file.parent, mark=mark)) as journal:
        journal.adopt(SESSION, "/nb.ipynb")
        for number in range(50):
            keep(journal, ended("old", number + 1))


def noise(file: Path) -> None:
    file.write_bytes(bytes(range(256)) * 64)


def text(file: Path) -> None:
    file.write_text("my notes\n" * 100)


def truncated(file: Path) -> None:
    valid(file)
    os.truncate(file, file.stat().st_size // 3)


def cut_in_the_header(file: Path) -> None:
    valid(file)
    os.truncate(file, 60)


def damaged_schema(file: Path) -> None:
    valid(file)
    with file.open("r+b") as stream:
        stream.seek(100)
        stream.write(b"\xff" * 900)


def of_another_program(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")


def of_a_later_version(file: Path) -> None:
    valid(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")


def of_another_user(file: Path) -> None:
    valid(file, mark="1" * 32)


@pytest.mark.parametrize(
    "make",
    [
        noise,
        text,
        truncated,
        cut_in_the_header,
        damaged_schema,
        of_another_program,
        of_a_later_version,
        of_another_user,
    ],
)
def test_a_file_that_cannot_be_used_is_set_aside(
    kernel: Callable[[], Journal], file: Path, make: Callable[[Path], None]
) -> None:
    make(file)
    before = file.read_bytes()
    journal = kernel()
    run_turns(journal)
    assert journal.is_kept
    assert {"b", "c"} <= set(cells(journal))
    assert "old" not in cells(journal)
    notice = journal.take_notice()
    assert "notebooks.db.broken-1" in notice
    assert journal.take_notice() == ""
    aside = file.with_name(f"{FILE_NAME}.broken-1")
    assert aside.read_bytes() == before
    assert kernel().take_notice() == ""


def test_what_was_set_aside_before_stays(kernel: Callable[[], Journal], file: Path) -> None:
    for number in (1, 2):
        noise(file)
        assert f"broken-{number}" in _notice_of(kernel())
    file.with_name(f"{FILE_NAME}.broken-3-wal").touch()
    noise(file)
    assert "broken-4" in _notice_of(kernel())


def _notice_of(journal: Journal) -> str:
    journal.began(SESSION, Turn("a"))
    notice = journal.take_notice()
    journal.close()
    return notice


def test_a_file_is_set_aside_with_what_is_not_in_it_yet(
    kernel: Callable[[], Journal], file: Path
) -> None:
    of_a_later_version(file)
    with closing(sqlite3.connect(file)) as later, later:
        later.execute("INSERT INTO known VALUES ('new.1', 'd')")
        later.commit()
        journal = kernel()
        keep(journal, ended("a"))
        aside = file.with_name(f"{FILE_NAME}.broken-1")
        assert aside.with_name(f"{aside.name}-wal").stat().st_size > 0
    with closing(sqlite3.connect(aside)) as later:
        query = "SELECT count(*) FROM known WHERE turn = 'new.1'"
        assert later.execute(query).fetchone() == (1,)
    assert cells(journal) == ["a"]
    journal.take_notice()


def test_an_empty_file_is_a_new_one(kernel: Callable[[], Journal], file: Path) -> None:
    file.touch()
    journal = kernel()
    keep(journal, ended("a"))
    assert (cells(journal), journal.take_notice()) == (["a"], "")


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, 2**20), st.binary(min_size=1)), max_size=6))
def test_no_damage_stops_a_turn(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, bytes]]
) -> None:
    directory = tmp_path_factory.mktemp("damage")
    file = directory / FILE_NAME
    valid(file, mark="")
    data = bytearray(file.read_bytes())
    for place, noise in changes:
        start = place % len(data)
        data[start : start + len(noise)] = noise
    file.write_bytes(data)
    with closing(Journal.open(directory)) as journal:
        run_turns(journal)
        assert journal.is_kept or journal.take_notice()


COLUMNS = {
    "sessions": ("id", "path", "parent", "title", "header"),
    "entries": ("session", "turn", "kind", "content"),
    "turns": (
        *("session", "turn", "cell", "run", "revision", "digest", "is_saved"),
        *("execution_count", "record", "outputs"),
    ),
    "decisions": ("session", "turn", "facts"),
    "files": ("session", "turn", "path", "before", "after"),
}


def overwrite(file: Path, table: str, column: str, value: object) -> None:
    """Put `value` into all rows of `table`, whatever its definition allows."""
    with closing(sqlite3.connect(file)) as connection:
        query = "SELECT sql FROM sqlite_master WHERE name = ?"
        (definition,) = connection.execute(query, (table,)).fetchone()
    define = "UPDATE sqlite_master SET sql = ? WHERE name = ?"
    for statement, values in (
        (define, (definition.replace(" NOT NULL", ""), table)),
        (f"UPDATE {table} SET {column} = ?", (value,)),  # noqa: S608 - names of ours
        (define, (definition, table)),
    ):
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(statement, values)


@pytest.mark.slow
@pytest.mark.parametrize("value", [None, b"\xff"], ids=repr)
@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table in COLUMNS for column in COLUMNS[table]]
)
def test_no_value_in_a_row_stops_a_turn(
    tmp_path: Path, table: str, column: str, value: object
) -> None:
    def again() -> LiveSession:
        live = LiveSession(tmp_path, tmp_path / "nb.ipynb")
        live.open(Page("a", "b", path=str(tmp_path / "nb.ipynb")))
        return live

    first = again()
    first.run("a")
    first.run("a")
    first.begin("b", PROMPT)
    first.session.conversation.decide({"rule": "always"})
    first.session.conversation.keep_version(Path("x"), b"before", b"after")
    session = first.session.id
    first.kill()
    with suppress(sqlite3.IntegrityError):  # of what is one of a kind
        overwrite(tmp_path / ".crush" / FILE_NAME, table, column, value)

    second = again()
    second.session.versions("a")
    second.session.outputs("a")
    second.journal.decisions(session)
    second.journal.files(session)
    assert second.run("b").id in second.turns.values()
    second.kill()


# Places that cannot be used


def a_folder(file: Path, outside: Path) -> None:
    del outside
    file.mkdir()


def a_link(file: Path, outside: Path) -> None:
    file.symlink_to(outside)


def a_dangling_link(file: Path, outside: Path) -> None:
    file.symlink_to(outside.with_name("missing"))


def a_second_name(file: Path, outside: Path) -> None:
    file.hardlink_to(outside)


def a_pipe(file: Path, outside: Path) -> None:
    del outside
    os.mkfifo(file)


def a_linked_log(file: Path, outside: Path) -> None:
    valid(file)
    file.with_name(f"{FILE_NAME}-wal").symlink_to(outside)


def a_linked_index(file: Path, outside: Path) -> None:
    file.with_name(f"{FILE_NAME}-shm").symlink_to(outside)


def a_linked_folder(file: Path, outside: Path) -> None:
    file.parent.rmdir()
    target = outside.with_name("target")
    target.mkdir()
    file.parent.symlink_to(target)


@pytest.mark.parametrize(
    "make",
    [
        a_folder,
        a_link,
        a_dangling_link,
        a_second_name,
        a_pipe,
        a_linked_log,
        a_linked_index,
        a_linked_folder,
    ],
)
def test_nothing_is_written_anywhere_else(
    kernel: Callable[[], Journal],
    file: Path,
    tmp_path: Path,
    make: Callable[[Path, Path], None],
) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    make(file, outside)
    before = sorted(path.name for path in tmp_path.iterdir())
    journal = kernel()
    run_turns(journal)
    assert not journal.is_kept
    assert journal.turns(SESSION) == []
    assert journal.take_notice().count("is not kept") == 1
    run_turns(journal)
    assert journal.take_notice() == ""
    assert outside.read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert not (tmp_path / "target" / FILE_NAME).exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_keeps_nothing(
    kernel: Callable[[], Journal], directory: Path
) -> None:
    directory.chmod(0o500)
    journal = kernel()
    run_turns(journal)
    assert (journal.is_kept, journal.turns(SESSION)) == (False, [])
    assert "is not kept" in journal.take_notice()
    directory.chmod(0o700)


# Trouble while it is open


def connection_of(journal: Journal) -> sqlite3.Connection:
    connection = journal._database._connection  # pyright: ignore[reportPrivateUsage]
    assert connection is not None
    return connection


@contextmanager
def full_disk(journal: Journal) -> Generator[None]:
    """Allow the file no more pages than it has."""
    connection = connection_of(journal)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    yield
    connection.execute(f"PRAGMA max_page_count = {2**30}")


@contextmanager
def read_only(journal: Journal) -> Generator[None]:
    connection = connection_of(journal)
    connection.execute("PRAGMA query_only = ON")
    yield
    connection.execute("PRAGMA query_only = OFF")


@contextmanager
def locked(journal: Journal) -> Generator[None]:
    (path,) = connection_of(journal).execute("SELECT file FROM pragma_database_list").fetchone()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [(full_disk, "disk is full"), (read_only, "read-only"), (locked, "another program")],
)
def test_a_turn_outlives_trouble_and_is_kept_afterwards(
    kernel: Callable[[], Journal],
    monkeypatch: pytest.MonkeyPatch,
    trouble: Callable[[Journal], AbstractContextManager[None]],
    reason: str,
) -> None:
    monkeypatch.setattr(database_module, "BUSY_TIMEOUT_S", 0.02)
    journal = kernel()
    keep(journal, ended("before"))
    journal.began(SESSION, Turn("a"))
    journal.said(SESSION, "a.1", PROMPT)
    large = Message("user", (Text("x" * 100_000),))
    with trouble(journal):
        journal.said(SESSION, "a.1", large)
        assert not journal.is_kept
        assert reason in journal.take_notice()
        journal.said(SESSION, "a.1", large)
        journal.ended(SESSION, ended("a", said="x" * 100_000), [], 1)
        journal.began(SESSION, Turn("b"))
        journal.ended(SESSION, ended("b", said="x" * 100_000), [], 2)
        assert cells(journal) == ["before"]
        assert journal.take_notice() == ""
    keep(journal, ended("c"))
    assert journal.is_kept
    assert cells(journal) == ["before", "a", "b", "c"]
    assert kernel().recover(SESSION) == []


def test_a_turn_with_a_gap_is_kept_up_to_the_gap(
    kernel: Callable[[], Journal],
) -> None:
    journal = kernel()
    journal.began(SESSION, Turn("a"))
    journal.said(SESSION, "a.1", PROMPT)
    with read_only(journal):
        journal.said(SESSION, "a.1", Message("assistant", (Text("lost"),)))
    journal.said(SESSION, "a.1", Message("user", (Text("after"),)))
    journal.adopt(SESSION, "/nb.ipynb")
    ((turn, _),) = kernel().recover(SESSION)
    assert turn.messages == (PROMPT,)
    journal.take_notice()


def test_no_more_turns_wait_for_the_disk_than_memory_takes(kernel: Callable[[], Journal]) -> None:
    journal = kernel()
    keep(journal, ended("first"))
    with read_only(journal):
        for number in range(60):
            journal.ended(SESSION, ended(f"c{number}"), [], None)
    keep(journal, ended("last"))
    kept = cells(journal)
    assert (kept[0], kept[-2], kept[-1]) == ("first", "c59", "last")
    assert 3 < len(kept) < 30
    journal.take_notice()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_was_removed_is_made_anew(
    kernel: Callable[[], Journal], file: Path, *, is_replaced: bool
) -> None:
    journal = kernel()
    journal.adopt(SESSION, "/nb.ipynb")
    keep(journal, ended("a"))
    journal.began(SESSION, Turn("b"))
    for path in file.parent.glob(f"{FILE_NAME}*"):
        path.unlink()
    if is_replaced:
        other = kernel()
        keep(other, ended("x"))
    journal.said(SESSION, "b.1", PROMPT)
    journal.ended(SESSION, ended("b"), [], 1)
    keep(journal, ended("c"))
    assert "was removed" in journal.take_notice()
    assert cells(journal) == [*(["x"] if is_replaced else []), "b", "c"]
    assert kernel().find("/nb.ipynb", ["b"]) == SESSION
    assert journal.take_notice() == ""


def test_a_turn_never_writes_over_what_is_in_a_file_that_it_did_not_begin_in(
    kernel: Callable[[], Journal], file: Path
) -> None:
    content = {"data": {}, "metadata": {}, "transient": {"display_id": "1"}}
    journal, other = kernel(), kernel()
    journal.began(SESSION, Turn("a"))
    journal.published(SESSION, "a.1", "display_data", content)
    journal.drafted(SESSION, "a.1", 1, 1, "text", "mine")
    for path in file.parent.glob(f"{FILE_NAME}*"):
        path.unlink()
    other.began("theirs", Turn("b"))
    for _ in range(5):
        other.said("theirs", "b.1", PROMPT)
    # A page that opens brings history in the middle of the turn.
    journal.imported(SESSION, [ended("c")])
    journal.published(SESSION, "a.1", "update_display_data", content)
    journal.drafted(SESSION, "a.1", 1, 1, "text", "mine")
    journal.ended(SESSION, ended("a"), [], 1)
    assert cells(journal) == ["c", "a"]
    ((turn, outputs),) = kernel().recover("theirs")
    assert (turn.messages, outputs) == ((PROMPT,) * 5, [])
    assert "was removed" in journal.take_notice()


def test_a_folder_that_was_removed_is_made_anew(
    kernel: Callable[[], Journal], directory: Path
) -> None:
    journal = kernel()
    keep(journal, ended("a"))
    directory.rename(directory.with_name("gone"))
    keep(journal, ended("b"))
    assert "was removed" in journal.take_notice()
    assert cells(journal) == ["b"]
    assert directory.is_dir()


def test_damage_that_is_met_later_sets_the_file_aside_for_all_kernels(
    kernel: Callable[[], Journal], file: Path
) -> None:
    valid(file)
    first, second = kernel(), kernel()
    assert cells(first) == cells(second) == ["old"] * 50
    with file.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"\xff" * (file.stat().st_size - 4096))
    for journal in (first, second):
        run_turns(journal)
        assert journal.is_kept
    assert "broken-1" in first.take_notice()
    assert "was removed" in second.take_notice()
    assert not file.with_name(f"{FILE_NAME}.broken-2").exists()
    assert {"b", "c"} <= set(cells(second))


LIMITED = """
import resource, sys
from pathlib import Path
from crush_kernel.history.journal.journal import Journal
from tests.history.journal.test_database import run_turns
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
journal = Journal.open(Path(sys.argv[1]))
run_turns(journal)
print(journal.is_kept, journal.take_notice())
"""


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 10, 5_000, 70_000])
def test_where_files_cannot_grow_turns_go_on(directory: Path, limit: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(directory), str(limit)],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=50,
    )
    assert done.stdout.startswith("False")
    assert "is not kept" in done.stdout
    with closing(Journal.open(directory)) as journal:
        run_turns(journal)
        assert journal.is_kept
