"""Files that come back have the permission bits that they had, and never more."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from crush_kernel.tools import diskfile
from crush_kernel.tools.diskfile import replace_file
from tests.tools.undo.rewound import Project, git, open_project, tree_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

RIGHTS = {"a.txt": 0o644, "key": 0o600, "shared": 0o664, "run.sh": 0o755, "mine.sh": 0o700}


def rights_of(root: Path) -> dict[str, int]:
    """Return the permission bits of all files in the project."""
    return {
        name: stat.S_IMODE((root / name).stat().st_mode)
        for name, (kind, _) in tree_of(root).items()
        if kind in ("file", "program")
    }


@pytest.fixture(params=["plain", "repository"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    for name, rights in RIGHTS.items():
        (root / name).write_text(f"{name}\n", encoding="utf-8")
        (root / name).chmod(rights)
    if request.param == "repository":
        git(root, "init", "--quiet")
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", "all")
    return root


COMMANDS = {
    "deleted": "rm *",
    "written again": "for f in *; do rm $f; echo other > $f; done",
    "opened to all": "for f in *; do chmod 777 $f; echo other > $f; done",
    "moved away": "mkdir d && mv a.txt key shared run.sh mine.sh d",
    "made links": "for f in *; do ln -sf /dev/null $f; done",
    "made folders": "for f in *; do rm $f; mkdir $f; done",
    "emptied": "for f in *; do : > $f; done",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
async def test_an_undo_and_the_undo_of_its_redo_bring_the_rights_back(
    root: Path, command: str
) -> None:
    async with open_project(root) as project:
        before = rights_of(root), tree_of(root)
        await project.run(command)
        after = rights_of(root), tree_of(root)
        for _ in range(2):
            await project.undo()
            assert (rights_of(root), tree_of(root)) == before
            await project.redo()
            assert (rights_of(root), tree_of(root)) == after


def edited(project: Project) -> None:
    project.write("key", b"edited\n")


def closed(project: Project) -> None:
    # Nothing but the rights changes, which is no change for git.
    (project.root / "a.txt").chmod(0o600)
    project.worktree.forget_age()


@pytest.mark.parametrize("change", [edited, closed])
async def test_rights_are_those_from_just_before_the_command(
    root: Path, change: Callable[[Project], None]
) -> None:
    async with open_project(root) as project:
        await project.run("true")
        project.next_turn()
        change(project)
        before = rights_of(root)
        await project.shell("rm a.txt key")
        await project.worktree.end_turn()
        await project.undo()
        assert rights_of(root) == before


async def test_what_a_command_has_made_private_comes_back_private(root: Path) -> None:
    async with open_project(root) as project:
        await project.run("echo 1 > token && chmod 600 token")
        await project.run("rm token")
        await project.undo()
        assert stat.S_IMODE((root / "token").stat().st_mode) == 0o600


async def test_the_next_kernel_knows_the_rights(root: Path) -> None:
    before = rights_of(root)
    async with open_project(root, session="one") as project:
        await project.run("true")
        project.next_turn()
        async with project.worktree.command():
            for name in RIGHTS:
                (root / name).unlink()
            # What follows never happens: the kernel is killed here.
            project.worktree.tasks.cancel_scope.cancel()
    async with open_project(root, session="one") as project:
        await project.undo()
        assert rights_of(root) == before


@pytest.mark.parametrize("is_there", [False, True])
def test_a_file_is_never_more_open_than_it_is_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    path = tmp_path / "key"
    if is_there:
        path.write_text("open to all\n", encoding="utf-8")
        path.chmod(0o666)
    seen: list[int] = []
    system_calls = {name: getattr(os, name) for name in ("open", "fchmod", "fsync")}

    def watched(name: str) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            result = system_calls[name](*arguments, **named)
            seen.extend(stat.S_IMODE(each.stat().st_mode) for each in tmp_path.glob(".*.crush-tmp"))
            return result

        return call

    for name in system_calls:
        monkeypatch.setattr(diskfile.os, name, watched(name))
    replace_file(path, b"secret\n", rights=0o600)
    assert set(seen) == {0o600}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
