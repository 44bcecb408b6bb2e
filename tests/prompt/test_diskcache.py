"""What is read again, and what is remembered."""

import time
from pathlib import Path

import pytest

from crush_kernel.prompt.diskcache import (
    Bounds,
    DiskCache,
    FileText,
    Remembered,
    Walk,
    cut,
    walk_files,
)


def later() -> int:
    """Return a time at which nothing has changed lately."""
    return time.time_ns() + 60_000_000_000


def test_what_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("one", encoding="utf-8")
    disk = DiskCache(later)
    first = disk.text(path, path.stat(), max_bytes=100)
    assert disk.text(path, path.stat(), max_bytes=100) is first
    assert disk.entries(tmp_path) is disk.entries(tmp_path)
    path.write_text("two", encoding="utf-8")
    assert disk.text(path, path.stat(), max_bytes=100) == FileText("two", is_cut=False)


def test_what_changed_a_moment_ago_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("one", encoding="utf-8")
    disk = DiskCache()
    facts = path.stat()
    disk.text(path, facts, max_bytes=100)
    path.write_text("two", encoding="utf-8")
    # As a file system with a coarse clock would have it: the same size at the same time.
    assert disk.text(path, facts, max_bytes=100) == FileText("two", is_cut=False)


def test_a_new_name_is_seen(tmp_path: Path) -> None:
    disk = DiskCache(later)
    assert not disk.entries(tmp_path)
    (tmp_path / "a").mkdir()
    assert [(entry.name, entry.kind) for entry in disk.entries(tmp_path)] == [("a", "folder")]


def test_a_folder_that_is_none_has_nothing_in_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "none", "a\0b"):
        assert not DiskCache().entries(tmp_path / name)


@pytest.mark.parametrize("name", ["file", "folder/file", "new", "link"])
def test_what_was_made_of_files_is_made_anew_when_one_has_changed(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    for existing in ("file", "folder/file"):
        (tmp_path / existing).write_text("one", encoding="utf-8")
    (tmp_path / "link").symlink_to("file")
    disk = DiskCache(later)
    made: list[int] = []

    def make() -> int:
        for entry in (*disk.entries(tmp_path), *disk.entries(tmp_path / "folder")):
            disk.stat(tmp_path / entry.name)
        disk.stat(tmp_path / "folder/file")
        disk.stat(tmp_path / "new")
        made.append(1)
        return len(made)

    remembered = Remembered(disk, make)
    assert [remembered.value(), remembered.value()] == [1, 1]
    (tmp_path / name).write_text("longer", encoding="utf-8")
    assert [remembered.value(), remembered.value()] == [2, 2]


def test_what_was_made_of_fresh_files_is_made_again(tmp_path: Path) -> None:
    disk = DiskCache()
    made = iter(range(9))
    (tmp_path / "file").touch()
    remembered = Remembered(disk, lambda: (disk.stat(tmp_path / "file"), next(made))[1])
    assert [remembered.value(), remembered.value()] == [0, 1]


def test_a_walk_without_time_is_not_remembered(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    disk = DiskCache(later)
    walks = iter((time.monotonic() - 1, time.monotonic() + 60))

    def make() -> int:
        walk = Walk(Bounds(None), entries=9, depth=9, deadline_s=next(walks))
        return len(list(walk_files(disk, tmp_path, walk)))

    remembered = Remembered(disk, make)
    assert [remembered.value(), remembered.value(), remembered.value()] == [0, 1, 1]


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        pytest.param("one\ntwo\n", 100, FileText("one\ntwo", is_cut=False), id="fits"),
        pytest.param("first\na\nb\n", 7, FileText("first", is_cut=True), id="between lines"),
        pytest.param("x" * 9, 4, FileText("xxxx", is_cut=True), id="one long line"),
        pytest.param("äöü", 3, FileText("ä", is_cut=True), id="between characters"),
    ],
)
def test_a_text_is_cut(text: str, limit: int, expected: FileText) -> None:
    assert cut(text, limit) == expected


def test_a_walk_stays_in_bounds(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    for name in ("inside/a/1", "inside/.git/2", "inside/b/.ssh/3", "outside/4"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (inside / "out").symlink_to(tmp_path / "outside")
    (inside / "again").symlink_to(inside / "a")
    (inside / "keys").symlink_to(inside / "b/.ssh")
    walk = Walk(Bounds(inside), entries=100, depth=3, deadline_s=time.monotonic() + 10)
    assert [file.path.name for file in walk_files(DiskCache(), inside, walk)] == ["1"]
    assert not walk.is_cut


@pytest.mark.parametrize(
    "walk",
    [
        pytest.param(Walk(Bounds(None), 3, 9, time.monotonic() + 60), id="names"),
        pytest.param(Walk(Bounds(None), 99, 1, time.monotonic() + 60), id="depth"),
        pytest.param(Walk(Bounds(None), 99, 9, time.monotonic() - 1), id="time"),
    ],
)
def test_a_walk_ends_at_its_limits(tmp_path: Path, walk: Walk) -> None:
    (tmp_path / "a/b/c/d").mkdir(parents=True)
    (tmp_path / "a/b/c/d/file").touch()
    assert not list(walk_files(DiskCache(), tmp_path, walk))
    assert walk.is_cut
