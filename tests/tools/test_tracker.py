"""What the model knows of a file is decided by content."""

from pathlib import Path

from crush_kernel.tools.tracker import MAX_KEPT_BYTES, MAX_KEPT_FILE_BYTES, ReadTracker

A, B = Path("/a"), Path("/b")


def test_a_file_is_unread_then_fresh_then_stale() -> None:
    tracker = ReadTracker()
    assert tracker.state_of(A, b"one") == "unread"
    tracker.record(A, b"one")
    assert tracker.state_of(A, b"one") == "fresh"
    assert tracker.state_of(A, b"two") == "stale"
    assert tracker.state_of(B, b"one") == "unread"


def test_a_file_that_is_back_to_what_was_seen_is_fresh() -> None:
    tracker = ReadTracker()
    tracker.record(A, b"one")
    tracker.record(A, b"two")
    assert tracker.state_of(A, b"one") == "stale"
    assert tracker.seen(A) == b"two"


def test_a_large_file_is_known_but_not_kept() -> None:
    tracker = ReadTracker()
    tracker.record(A, b"small")
    large = b"x" * (MAX_KEPT_FILE_BYTES + 1)
    tracker.record(A, large)
    assert tracker.state_of(A, large) == "fresh"
    assert tracker.seen(A) is None


def test_what_is_kept_is_bounded_and_the_oldest_goes_first() -> None:
    tracker = ReadTracker()
    content = b"x" * MAX_KEPT_FILE_BYTES
    paths = [Path(f"/{n}") for n in range(MAX_KEPT_BYTES // MAX_KEPT_FILE_BYTES + 1)]
    for path in (paths[0], paths[1], paths[0], *paths[2:]):
        tracker.record(path, content)
    kept = [path for path in paths if tracker.seen(path)]
    assert kept == [paths[0], *paths[2:]]
    assert all(tracker.state_of(path, content) == "fresh" for path in paths)


def test_a_file_has_one_lock_while_someone_has_it() -> None:
    tracker = ReadTracker()
    lock = tracker.lock(A)
    assert tracker.lock(A) is lock
    assert tracker.lock(B) is not lock
