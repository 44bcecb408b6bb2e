"""That a look without git sees whatever git would see."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crush_kernel.tools.undo.sweep import sweep, telling
from tests.tools.undo.rewound import git, open_project

FILES = ("a.txt", "src/deep/b.txt", "link")
NAMES = telling(FILES, ["empty"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for folder in ("src/deep", "empty"):
        (root / folder).mkdir(parents=True)
    (root / "a.txt").write_bytes(b"one\n")
    (root / "src/deep/b.txt").write_bytes(b"two\n")
    (root / "link").symlink_to("a.txt")
    return root


def same_size_and_time(root: Path) -> None:
    facts = (root / "a.txt").stat()
    (root / "a.txt").write_bytes(b"ONE\n")
    os.utime(root / "a.txt", ns=(facts.st_atime_ns, facts.st_mtime_ns))


def other_folder_in_its_place(root: Path) -> None:
    (root / "src").rename(root.parent / "src")
    (root / "src").symlink_to(root.parent / "src")


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "nothing": (lambda root: root, False),
    "read": (lambda root: (root / "a.txt").read_bytes(), False),
    "content": (lambda root: (root / "a.txt").write_bytes(b"three\n"), True),
    "same size and time": (same_size_and_time, True),
    "new at the top": (lambda root: (root / "new").touch(), True),
    "new below": (lambda root: (root / "src/deep/new").touch(), True),
    "new in an empty folder": (lambda root: (root / "empty/new").touch(), True),
    "new folder": (lambda root: (root / "src/folder").mkdir(), True),
    "gone": (lambda root: (root / "src/deep/b.txt").unlink(), True),
    "gone folder": (lambda root: (root / "empty").rmdir(), True),
    "rights": (lambda root: (root / "a.txt").chmod(0o600), True),
    "link in the place of a folder": (other_folder_in_its_place, True),
}


@pytest.mark.parametrize(("change", "is_seen"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen(root: Path, *, change: Callable[[Path], object], is_seen: bool) -> None:
    deadline_s = time.monotonic() + 10
    while not (before := sweep(root, NAMES)).is_settled:
        assert time.monotonic() < deadline_s
    change(root)
    assert sweep(root, NAMES).is_like(before) is not is_seen


def test_what_was_changed_just_now_tells_nothing_of_later(root: Path) -> None:
    (root / "a.txt").write_bytes(b"now\n")
    just_now = sweep(root, NAMES)
    assert not sweep(root, NAMES).is_like(just_now)


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.parametrize("is_repository", [False, True])
async def test_git_does_not_run_where_nothing_has_changed(
    root: Path, tmp_path: Path, *, is_repository: bool
) -> None:
    if is_repository:
        git(root, "init", "--quiet")
    tool, log = tmp_path / "bin/git", tmp_path / "log"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho git >> "{log}"\nPATH={os.defpath} exec git "$@"\n')
    tool.chmod(0o755)
    environ = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"}
    async with open_project(root, environ=environ) as project:
        await project.run("echo 1 > new")
        project.worktree.forget_age()
        deadline_s = time.monotonic() + 10
        while not sweep(root, NAMES).is_settled:
            assert time.monotonic() < deadline_s
        # This look still asks: what the command has done was done just before the last one.
        await project.run("true")
        asked = log.read_text()
        for _ in range(3):
            project.worktree.forget_age()
            await project.run("true")
        assert log.read_text() == asked
        project.worktree.forget_age()
        await project.run("rm new")
        assert log.read_text() != asked
        await project.undo()
        assert (root / "new").read_bytes() == b"1\n"
