"""What the journal is told is there for the next kernel."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.blobs import Blobs
from crush_kernel.history.journal.entries import (
    Answered,
    Began,
    Drafted,
    Dropped,
    Entry,
    Published,
    Said,
    Unsaid,
)
from crush_kernel.history.journal.journal import FILE_NAME, FileVersion, Journal, StoredSession
from crush_kernel.history.journal.replay import fold
from crush_kernel.history.record import read_turn, write_turn
from crush_kernel.history.subagentmessages import Nested
from crush_kernel.history.turn import Turn, digest_of
from crush_kernel.messages import JsonObject, Message, Text, ToolResult
from tests.history.journal.entry_strategies import later_entries, turns

SESSION = "s"
PATH = "/project/nb.ipynb"
PROMPT = Message("user", (Text("Go"),))
TURN = Turn("c1")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / ".crush"


@pytest.fixture
def next_kernel(directory: Path) -> Generator[Callable[[], Journal]]:
    """Return a way to open the journal once more, as another kernel does."""
    with ExitStack() as stack:

        def opened() -> Journal:
            return stack.enter_context(closing(Journal.open(directory)))

        yield opened


@pytest.fixture
def journal(next_kernel: Callable[[], Journal]) -> Generator[Journal]:
    journal = next_kernel()
    journal.adopt(SESSION, PATH)
    yield journal
    assert journal.take_notice() == ""


def ended(cell_id: str, run: int = 1, *, revision: int = 3, said: str = "Go") -> Turn:
    messages = (Message("user", (Text(said),)),)
    turn = Turn(cell_id, run, messages, revision, "end_turn", digest=digest_of(messages))
    return replace(turn, record=write_turn(turn))


def records_in(journal: Journal) -> dict[str, JsonObject | None]:
    return {kept.id: journal.record(SESSION, kept.id) for kept in journal.turns(SESSION)}


def keep(journal: Journal, turn: Turn, *, session: str = SESSION) -> None:
    journal.began(session, Turn(turn.cell_id, turn.run))
    journal.ended(session, turn, [], turn.run)


def display(text: str, display_id: str) -> dict[str, Any]:
    return {"data": {"text/plain": text}, "metadata": {}, "transient": {"display_id": display_id}}


def query(directory: Path, statement: str) -> Any:  # noqa: ANN401 - as it is stored
    with sqlite3.connect(directory / FILE_NAME) as connection:
        (value,) = connection.execute(statement).fetchone()
    connection.close()
    return value


# Nothing before its time


def test_nothing_is_made_before_there_is_something_to_keep(
    next_kernel: Callable[[], Journal], directory: Path
) -> None:
    journal = next_kernel()
    journal.adopt(SESSION, PATH)
    journal.mark_saved(SESSION, ["c1.1"])
    assert journal.turns(SESSION) == []
    assert journal.recover(SESSION) == []
    assert journal.record(SESSION, "c1.1") is None
    assert journal.outputs(SESSION, "c1.1") is None
    assert not journal.knows("c1.1", "d")
    assert journal.find(PATH, ["c1"]) is None
    assert journal.take_notice() == ""
    journal.close()
    assert not directory.exists()


def test_a_deleted_project_stays_deleted(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "gone" / ".crush")
    journal.began(SESSION, TURN)
    assert "is not kept" in journal.take_notice()
    assert list(tmp_path.iterdir()) == []


def test_what_is_made_is_for_its_owner_only_and_no_business_of_git(
    journal: Journal, directory: Path
) -> None:
    journal.began(SESSION, TURN)
    assert directory.stat().st_mode & 0o077 == 0
    for path in directory.glob(f"{FILE_NAME}*"):
        assert path.stat().st_mode & 0o077 == 0
    assert (directory / ".gitignore").read_text() == "*\n"


# Sessions


def test_a_notebook_finds_the_newest_session_in_which_a_cell_of_it_ran(journal: Journal) -> None:
    keep(journal, ended("a"))
    journal.adopt("newer", PATH)
    keep(journal, ended("b"), session="newer")
    journal.adopt("elsewhere", "/project/other.ipynb")
    keep(journal, ended("a"), session="elsewhere")
    assert journal.find(PATH, ["a", "x"]) == SESSION
    assert journal.find(PATH, ["a", "b"]) == "newer"
    assert journal.find(PATH, ["x"]) is None
    assert journal.find(PATH, []) is None
    assert journal.find("/project/third.ipynb", ["a"]) is None


def test_a_notebook_finds_the_session_of_a_turn_that_never_ended(
    journal: Journal, next_kernel: Callable[[], Journal]
) -> None:
    journal.began(SESSION, Turn("a.b", run=12))
    assert next_kernel().find(PATH, ["a.b"]) == SESSION


def test_what_is_not_told_of_a_session_stays(
    journal: Journal, next_kernel: Callable[[], Journal]
) -> None:
    journal.adopt(SESSION, PATH, title="Tour", header={"model": "m"})
    keep(journal, ended("a"))
    journal.adopt(SESSION, "/project/moved.ipynb")
    expected = StoredSession(SESSION, "/project/moved.ipynb", "", "Tour", {"model": "m"})
    assert journal.session(SESSION) == expected
    other = next_kernel()
    assert other.session(SESSION) == expected
    other.adopt(SESSION, "", title="Renamed")
    assert other.session(SESSION) == replace(expected, title="Renamed")


def test_branches_are_numbered_by_what_they_go_on_from(journal: Journal, tmp_path: Path) -> None:
    first, second = journal.branch(SESSION, PATH), journal.branch(SESSION, PATH)
    assert len({SESSION, first, second}) == 3
    assert journal.session(first) == StoredSession(first, PATH, SESSION)
    elsewhere = Journal.open(tmp_path / "elsewhere")
    assert [elsewhere.branch(SESSION, PATH) for _ in range(2)] == [first, second]
    assert elsewhere.branch(SESSION, "/other.ipynb") not in {first, second}


def test_a_branch_is_known_to_other_kernels(
    journal: Journal, next_kernel: Callable[[], Journal]
) -> None:
    keep(journal, ended("a"))
    branch = journal.branch(SESSION, PATH)
    other = next_kernel()
    assert other.session(branch) == StoredSession(branch, PATH, SESSION)
    assert other.branch(SESSION, PATH) != branch


def test_one_kernel_owns_a_session(journal: Journal, next_kernel: Callable[[], Journal]) -> None:
    other = next_kernel()
    assert journal.own(SESSION)
    assert journal.own(SESSION)
    assert not other.own(SESSION)
    assert other.own("another")
    journal.close()
    assert other.own(SESSION)
    other.close()


# Turns


def test_a_turn_that_ended_takes_the_place_of_its_entries(
    journal: Journal, directory: Path
) -> None:
    turn = ended("c1")
    journal.began(SESSION, TURN)
    journal.said(SESSION, TURN.id, PROMPT)
    journal.published(SESSION, TURN.id, "display_data", display("x", "1"))
    outputs = [{"output_type": "stream", "name": "stdout", "text": "x"}]
    journal.ended(SESSION, turn, outputs, 7)
    assert journal.record(SESSION, turn.id) == turn.record
    assert records_in(journal) == {turn.id: turn.record}
    assert journal.outputs(SESSION, turn.id) == (outputs, 7)
    assert journal.recover(SESSION) == []
    assert query(directory, "SELECT count(*) FROM entries") == 0


def test_outputs_are_kept_as_a_file_holds_them(journal: Journal) -> None:
    output = {"output_type": "display_data", "data": {"text/plain": "x"}, "metadata": {}}
    journal.ended(SESSION, ended("c1"), [{**output, "transient": {"display_id": "1"}}], None)
    assert journal.outputs(SESSION, "c1.1") == ([output], None)


def test_all_runs_of_a_cell_are_kept(journal: Journal) -> None:
    for turn in (ended("a"), ended("b"), ended("a", 2), ended("a", 10)):
        keep(journal, turn)
    assert [turn.id for turn in journal.turns(SESSION)] == ["a.1", "b.1", "a.2", "a.10"]
    assert [turn.run for turn in journal.versions(SESSION, "a")] == [1, 2, 10]
    assert journal.versions("another", "a") == []


def test_what_is_told_of_a_turn_comes_without_its_record(journal: Journal) -> None:
    keep(journal, turn := ended("a", 2))
    (stored,) = journal.turns(SESSION)
    assert (stored.id, stored.cell_id, stored.run, stored.revision) == ("a.2", "a", 2, 3)
    assert stored.digest == turn.digest
    assert not stored.is_saved


def test_an_older_state_of_a_turn_does_not_replace_a_newer_one(journal: Journal) -> None:
    newer = ended("a", revision=5, said="newer")
    for turn in (ended("a", revision=4), newer, ended("a", revision=4, said="older")):
        journal.ended(SESSION, turn, [], None)
    assert journal.record(SESSION, "a.1") == newer.record


def test_saved_is_what_the_file_held(journal: Journal) -> None:
    for cell in "abc":
        keep(journal, ended(cell))
    journal.mark_saved(SESSION, ["a.1", "x.1"])
    assert [turn.is_saved for turn in journal.turns(SESSION)] == [True, False, False]
    journal.mark_saved("another", ["b.1"])
    assert [turn.is_saved for turn in journal.turns(SESSION)] == [True, False, False]
    journal.mark_saved(SESSION, ["b.1", "c.1"])
    assert [turn.is_saved for turn in journal.turns(SESSION)] == [True, True, True]


def test_turns_from_a_file_are_kept_where_they_are_newer(journal: Journal) -> None:
    mine = [ended("same"), ended("older", revision=5), ended("newer", revision=2)]
    for turn in mine:
        keep(journal, turn)
    theirs = [
        ended("same"),
        ended("older", revision=4, said="theirs"),
        ended("newer", revision=6, said="theirs"),
        ended("unknown"),
    ]
    journal.imported(SESSION, theirs)
    records = {turn.id: turn.record for turn in [*mine, theirs[2], theirs[3]]}
    assert records_in(journal) == records
    saved = {turn.cell_id for turn in journal.turns(SESSION) if turn.is_saved}
    assert saved == {"same", "newer", "unknown"}
    assert journal.outputs(SESSION, "same.1") == ([], 1)
    assert journal.outputs(SESSION, "newer.1") is None


def test_what_was_made_or_seen_here_is_known_in_every_session(
    journal: Journal, next_kernel: Callable[[], Journal]
) -> None:
    made, seen, recovered = ended("made"), ended("seen"), ended("open")
    keep(journal, made)
    journal.imported("another", [seen])
    journal.began(SESSION, Turn("open"))
    journal.said(SESSION, "open.1", PROMPT)
    other = next_kernel()
    other.recover(SESSION)
    third = next_kernel()
    for turn in (made, seen, recovered):
        assert third.knows(turn.id, turn.digest)
        assert not third.knows(turn.id, "another")
    assert not third.knows("never.1", made.digest)


# What was left open


def note(journal: Journal, session: str, turn_id: str, entry: Entry) -> None:
    match entry:
        case Began(turn=turn):
            journal.began(session, turn)
        case Said(message=message):
            journal.said(session, turn_id, message)
        case Unsaid():
            journal.unsaid(session, turn_id)
        case Answered(result=result):
            journal.answered(session, turn_id, result)
        case Nested():
            journal.nested(session, turn_id, entry)
        case Drafted(step=step, attempt=attempt, part=part, text=text):
            journal.drafted(session, turn_id, step, attempt, part, text)
        case Dropped(step=step, attempt=attempt):
            journal.dropped(session, turn_id, step, attempt)
        case Published(msg_type=msg_type, content=content):
            journal.published(session, turn_id, msg_type, content)


numbers = count()


@pytest.fixture
def other(next_kernel: Callable[[], Journal]) -> Journal:
    return next_kernel()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns, st.lists(later_entries, max_size=14))
def test_what_is_written_over_adds_up_to_the_same(
    journal: Journal, other: Journal, turn: Turn, noted: list[Entry]
) -> None:
    session = f"s{next(numbers)}"
    for entry in (Began(turn), *noted):
        note(journal, session, turn.id, entry)
    expected = fold(turn.id, [Began(turn), *noted])
    found = other.recover(session)
    if not expected.turn.messages and not expected.outputs:
        assert found == other.turns(session) == []
        return
    assert [(replace(turn, record=None), outputs) for turn, outputs in found] == [
        (expected.turn, expected.outputs)
    ]
    record = other.record(session, turn.id)
    assert read_turn(dict(record or {}), cell_id="").messages == expected.turn.messages
    assert other.recover(session) == []


def test_turns_are_recovered_in_the_order_in_which_they_began(
    journal: Journal, next_kernel: Callable[[], Journal]
) -> None:
    for cell in "ba":
        journal.began(SESSION, Turn(cell))
        journal.said(SESSION, f"{cell}.1", PROMPT)
    journal.began("another", Turn("c"))
    recovered = next_kernel().recover(SESSION)
    assert [turn.cell_id for turn, _ in recovered] == ["b", "a"]
    assert [turn.end for turn, _ in recovered] == ["interrupted"] * 2


def test_a_turn_that_runs_is_not_recovered(journal: Journal) -> None:
    journal.began(SESSION, TURN)
    journal.said(SESSION, TURN.id, PROMPT)
    assert journal.recover(SESSION) == []
    journal.ended(SESSION, turn := ended("c1"), [], None)
    assert records_in(journal) == {turn.id: turn.record}


def test_what_comes_before_or_after_a_turn_is_none_of_it(
    journal: Journal, next_kernel: Callable[[], Journal], directory: Path
) -> None:
    journal.said(SESSION, TURN.id, PROMPT)
    keep(journal, turn := ended("c1"))
    journal.published(SESSION, TURN.id, "display_data", display("late", "1"))
    assert query(directory, "SELECT count(*) FROM entries") == 0
    assert next_kernel().recover(SESSION) == []
    assert records_in(journal) == {turn.id: turn.record}


def test_a_turn_that_begins_again_begins_with_nothing(
    journal: Journal, next_kernel: Callable[[], Journal]
) -> None:
    journal.began(SESSION, TURN)
    journal.said(SESSION, TURN.id, PROMPT)
    journal.began(SESSION, TURN)
    assert next_kernel().recover(SESSION) == []


# What it takes


def test_a_long_stream_takes_no_more_than_what_is_shown(
    journal: Journal, next_kernel: Callable[[], Journal], directory: Path
) -> None:
    journal.began(SESSION, TURN)
    journal.published(SESSION, TURN.id, "display_data", display("first", "1"))
    journal.published(SESSION, TURN.id, "display_data", display("second", "2"))
    for number in range(500):
        journal.published(SESSION, TURN.id, "update_display_data", display("x" * number, "1"))
        journal.drafted(SESSION, TURN.id, 1, 1, "text", f"word {number:04} ")
    size = query(directory, "SELECT sum(length(content)) FROM entries")
    assert size < 500 + 500 * 10 + 2000
    assert query(directory, "SELECT count(*) FROM entries") < 10
    ((turn, outputs),) = next_kernel().recover(SESSION)
    text = "".join(f"word {number:04} " for number in range(500))
    assert turn.messages == (Message("assistant", (Text(text),), stop="interrupted"),)
    assert [each["data"]["text/plain"] for each in outputs] == ["x" * 499, "second"]


def test_a_reply_takes_the_place_of_its_drafts(journal: Journal, directory: Path) -> None:
    journal.began(SESSION, TURN)
    for text in ("a" * 1500, "b" * 1500, "c" * 1500):
        journal.drafted(SESSION, TURN.id, 1, 1, "text", text)
    journal.said(SESSION, TURN.id, Message("assistant", (Text("done"),)))
    assert query(directory, "SELECT count(*) FROM entries WHERE kind = 'drafted'") == 0


# Secrets


SECRET = "sk-5ecret-value"  # noqa: S105 - nobody's


def without_secret(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return value.replace(SECRET, "[secret]")
        case list():
            return [without_secret(each) for each in value]
        case dict():
            return {key: without_secret(each) for key, each in value.items()}
        case _:
            return value


def test_nothing_is_stored_before_it_is_cleaned(
    next_kernel: Callable[[], Journal], directory: Path
) -> None:
    journal = Journal.open(directory, clean=without_secret)
    text = f"key {SECRET}"
    journal.adopt(SESSION, PATH, header={"title": text})
    journal.began(SESSION, TURN)
    journal.said(SESSION, TURN.id, Message("user", (Text(text),)))
    for piece in ("The key is sk-5", "ecret", "-val", "ue, yes. ", "x" * 2500, " sk-", SECRET[3:]):
        journal.drafted(SESSION, TURN.id, 1, 1, "text", piece)
    journal.answered(SESSION, TURN.id, ToolResult("c", text, metadata={"diff": text}))
    journal.published(SESSION, TURN.id, "display_data", display(text, "1"))
    journal.published(SESSION, TURN.id, "update_display_data", display(text * 2, "1"))
    journal.decided(SESSION, TURN.id, {"command": text})
    journal.began(SESSION, Turn("c2"))
    turn = ended("c2", said=text)
    journal.ended(SESSION, turn, [{"output_type": "stream", "name": "a", "text": text}], 1)
    journal.imported(SESSION, [ended("c3", said=text)])
    stored = b"".join(path.read_bytes() for path in directory.glob(f"{FILE_NAME}*"))
    assert SECRET.encode() not in stored
    journal.close()
    ((recovered, _),) = next_kernel().recover(SESSION)
    assert recovered.messages[-1].parts == (
        Text(f"The key is [secret], yes. {'x' * 2500} [secret]"),
    )


# What stays


def test_decisions_and_files_stay_when_the_turn_has_ended(
    journal: Journal, next_kernel: Callable[[], Journal], directory: Path
) -> None:
    journal.began(SESSION, TURN)
    journal.decided(SESSION, TURN.id, {"rule": "allowed once"})
    journal.file_changed(SESSION, TURN.id, Path("/a.py"), None, b"new")
    journal.file_changed(SESSION, TURN.id, "/a.py", b"new", b"")
    journal.ended(SESSION, ended("c1"), [], None)
    other = next_kernel()
    assert other.decisions(SESSION) == [(TURN.id, {"rule": "allowed once"})]
    first, second = other.files(SESSION)
    assert (first.turn_id, first.path, first.before) == (TURN.id, "/a.py", None)
    blobs = Blobs(directory)
    contents = [blobs.fetch(each or "") for each in (first.after, second.before, second.after)]
    assert contents == [b"new", b"new", b""]


def test_a_file_with_a_secret_is_on_record_without_its_content(directory: Path) -> None:
    def clean(value: JsonValue) -> JsonValue:
        return value.replace(SECRET, "[secret]") if isinstance(value, str) else value

    with closing(Journal.open(directory, clean=clean)) as journal:
        journal.began(SESSION, TURN)
        journal.file_changed(SESSION, TURN.id, "/project/.env", b"A=1", f"A={SECRET}".encode())
        (version,) = journal.files(SESSION)
        assert journal.blobs.fetch(version.before or "") == b"A=1"
        assert journal.blobs.fetch(version.after or "") is None
        assert journal.file_history.content(version.after or "") == f"A={SECRET}".encode()
    with closing(Journal.open(directory, clean=clean)) as journal:
        (version,) = journal.files(SESSION)
        assert (version.after, version.reason) == ("", "it contains a secret")
    kept = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in data for data in kept)


# Hostile content


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "'; DROP TABLE turns --", "", "x" * 100_000])
def test_any_text_is_a_name(journal: Journal, text: str) -> None:
    journal.adopt(text, text, title=text, parent=text, header={text: text})
    keep(journal, ended(text), session=text)
    journal.file_changed(text, text, text, None, None)
    (stored,) = journal.turns(text)
    assert journal.record(text, stored.id) is not None
    assert journal.find(text, [text]) is not None
    assert journal.session(text) is not None
    assert [type(each) for each in journal.files(text)] == [FileVersion]


def test_numbers_beyond_reason_are_cut(journal: Journal) -> None:
    turn = replace(ended("a"), run=10**30, revision=10**30)
    journal.ended(SESSION, turn, [], 10**30)
    (stored,) = journal.turns(SESSION)
    assert stored.run == stored.revision == 2**63 - 1


def test_what_is_no_json_is_left_out_and_the_turn_goes_on(journal: Journal, other: Journal) -> None:
    journal.began(SESSION, TURN)
    journal.published(SESSION, TURN.id, "stream", {"name": "stdout", "text": object()})
    journal.decided(SESSION, TURN.id, {"rule": cast("JsonValue", object())})
    journal.said(SESSION, TURN.id, PROMPT)
    ((turn, outputs),) = other.recover(SESSION)
    assert (turn.messages, outputs) == ((PROMPT,), [])


# Several at once


def test_threads_write_one_after_the_other(journal: Journal, other: Journal) -> None:
    def work(cell: str) -> None:
        journal.began(SESSION, Turn(cell))
        for number in range(50):
            journal.said(SESSION, f"{cell}.1", Message("user", (Text(str(number)),)))

    threads = [threading.Thread(target=work, args=(cell,)) for cell in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = {
        turn.cell_id: [
            part.text for m in turn.messages for part in m.parts if isinstance(part, Text)
        ]
        for turn, _ in other.recover(SESSION)
    }
    assert said == {cell: [str(number) for number in range(50)] for cell in "abcd"}


WRITER = """
import sys
from pathlib import Path
from crush_kernel.history.journal.journal import Journal
from crush_kernel.history.turn import Turn
from crush_kernel.messages import JsonObject, Message, Text
from tests.history.journal.test_journal import ended
directory, session = Path(sys.argv[1]), sys.argv[2]
journal = Journal.open(directory)
print("ready", flush=True)
sys.stdin.readline()
journal.adopt(session, f"/{session}.ipynb")
for number in range(40):
    journal.began(session, Turn(f"c{number}"))
    for _ in range(5):
        journal.said(session, f"c{number}.1", Message("user", (Text("x" * 2000),)))
    if number < 39:
        journal.ended(session, ended(f"c{number}"), [], number)
print(journal.take_notice() or "no trouble", flush=True)
"""


@pytest.mark.slow
def test_kernels_that_write_at_once_lose_nothing(
    next_kernel: Callable[[], Journal], directory: Path
) -> None:
    directory.mkdir()
    command = [sys.executable, "-c", WRITER, str(directory)]
    sessions = ["one", "two", "three"]
    kernels = [
        subprocess.Popen(
            [*command, session],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        )
        for session in sessions
    ]
    for kernel in kernels:
        assert kernel.stdout is not None
        assert kernel.stdout.readline() == "ready\n"
    said = [kernel.communicate("go\n", timeout=50)[0] for kernel in _all_started(kernels)]
    assert said == ["no trouble\n"] * 3
    journal = next_kernel()
    for session in sessions:
        assert len(journal.turns(session)) == 39
        ((turn, _),) = journal.recover(session)
        assert (turn.cell_id, len(turn.messages)) == ("c39", 5)
    assert [path.name for path in directory.glob("*broken*")] == []
    journal.close()


def _all_started(kernels: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    for kernel in kernels:
        assert kernel.stdin is not None
        kernel.stdin.write("go\n")
        kernel.stdin.flush()
    return kernels
