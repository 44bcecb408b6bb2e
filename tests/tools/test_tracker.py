"""What the model knows of a file is decided by content."""

from pathlib import Path

import pytest

from crush_kernel.tools.text.lineset import END, EVERY_LINE, LineSet
from crush_kernel.tools.tracker import (
    MAX_KEPT_BYTES,
    MAX_KEPT_FILE_BYTES,
    UNREAD,
    Knowledge,
    ReadTracker,
    Stamp,
)

A, B = Path("/a"), Path("/b")


def test_a_file_is_unread_then_fresh_then_stale() -> None:
    tracker = ReadTracker()
    assert tracker.knowledge(A, b"one").state == "unread"
    tracker.record(A, b"one")
    assert tracker.knowledge(A, b"one").state == "fresh"
    assert tracker.knowledge(A, b"two").state == "stale"
    assert tracker.knowledge(B, b"one").state == "unread"


def test_a_file_that_is_back_to_what_was_seen_is_fresh() -> None:
    tracker = ReadTracker()
    tracker.record(A, b"one")
    tracker.record(A, b"two")
    assert tracker.knowledge(A, b"one").state == "stale"
    assert tracker.seen(A) == b"two"


def test_a_large_file_is_known_but_not_kept() -> None:
    tracker = ReadTracker()
    tracker.record(A, b"small")
    large = b"x" * (MAX_KEPT_FILE_BYTES + 1)
    tracker.record(A, large)
    assert tracker.knowledge(A, large).state == "fresh"
    assert tracker.seen(A) is None


def test_what_is_kept_is_bounded_and_the_oldest_goes_first() -> None:
    tracker = ReadTracker()
    content = b"x" * MAX_KEPT_FILE_BYTES
    paths = [Path(f"/{n}") for n in range(MAX_KEPT_BYTES // MAX_KEPT_FILE_BYTES + 1)]
    for path in (paths[0], paths[1], paths[0], *paths[2:]):
        tracker.record(path, content)
    kept = [path for path in paths if tracker.seen(path)]
    assert kept == [paths[0], *paths[2:]]
    assert all(tracker.knowledge(path, content).state == "fresh" for path in paths)


def _stamp(modified_ns: int) -> Stamp:
    return Stamp(size=9, modified_ns=modified_ns, changed_ns=1, inode=1)


SOME, OTHER = LineSet.of([(0, 2)]), LineSet.of([(5, END)])


def test_lines_of_one_content_come_together_and_go_with_it() -> None:
    tracker = ReadTracker()
    tracker.record(A, b"one", SOME)
    tracker.record(A, b"one", OTHER)
    assert tracker.knowledge(A, b"one") == Knowledge("fresh", SOME | OTHER)
    tracker.record(A, b"two", OTHER)
    assert tracker.knowledge(A, b"two") == Knowledge("fresh", OTHER)
    assert tracker.knowledge(A, b"one") == Knowledge("stale", OTHER)


@pytest.mark.parametrize(
    ("first", "second", "is_whole"),
    [
        pytest.param((EVERY_LINE, False), (SOME, True), True, id="a part after the whole"),
        pytest.param((SOME, True), (EVERY_LINE, False), True, id="the whole after a part"),
        pytest.param((EVERY_LINE, True), (SOME, False), False, id="a line that is always cut"),
        pytest.param((SOME, False), (LineSet.of([(2, END)]), False), True, id="both parts"),
        pytest.param((SOME, False), (OTHER, False), False, id="with a gap"),
    ],
)
def test_a_file_is_known_whole_once_all_of_it_was_shown(
    first: tuple[LineSet, bool],
    second: tuple[LineSet, bool],
    is_whole: bool,  # noqa: FBT001
) -> None:
    tracker = ReadTracker()
    for lines, has_cut in (first, second):
        tracker.record(A, b"one", lines, has_cut=has_cut)
    assert tracker.knowledge(A, b"one").is_whole is is_whole


def test_lines_without_their_content_hold_while_the_stamp_does() -> None:
    tracker = ReadTracker()
    tracker.record_lines(A, _stamp(1), SOME)
    assert tracker.knowledge(A, b"one", _stamp(1)) == Knowledge("fresh", SOME)
    assert tracker.knowledge(A, b"one", _stamp(2)) == UNREAD
    assert tracker.knowledge(A, b"one") == UNREAD
    tracker.record_lines(A, _stamp(2), OTHER)
    assert tracker.knowledge(A, b"one", _stamp(2)) == Knowledge("fresh", OTHER)


def test_lines_without_their_content_join_what_has_the_same_stamp() -> None:
    tracker = ReadTracker()
    tracker.record(A, b"one", SOME, stamp=_stamp(1))
    tracker.record_lines(A, _stamp(1), OTHER)
    assert tracker.knowledge(A, b"one") == Knowledge("fresh", SOME | OTHER)
    tracker.record_lines(A, _stamp(2), EVERY_LINE)
    assert tracker.knowledge(A, b"one") == Knowledge("fresh", SOME | OTHER)


def test_what_is_forgotten_is_unread() -> None:
    tracker = ReadTracker()
    tracker.record(A, b"one")
    tracker.record_lines(B, _stamp(1), SOME)
    tracker.forget()
    assert tracker.knowledge(A, b"one") == tracker.knowledge(B, b"", _stamp(1)) == UNREAD
    assert tracker.seen(A) is None


def test_a_file_has_one_lock_while_someone_has_it() -> None:
    tracker = ReadTracker()
    lock = tracker.lock(A)
    assert tracker.lock(A) is lock
    assert tracker.lock(B) is not lock
