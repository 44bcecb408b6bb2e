"""Whole turns of edits and real commands, taken back and brought again, on a real disk."""

import resource
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from crush_kernel.errors import CommandError
from crush_kernel.history.checkpoints import Action
from crush_kernel.tools.undo import rewind
from crush_kernel.tools.undo.restore import Outcome, carry_out
from tests.tools.undo.rewound import git, open_project, tree_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SIDE_EFFECTS = {
    "nothing": "true",
    "changes a file": "echo more >> a.txt",
    "makes a file": "echo new > b.txt",
    "makes files in new folders": "mkdir -p x/y && echo 1 > x/y/z && echo 2 > x/w",
    "makes an empty folder": "mkdir -p hollow/inner",
    "deletes a file": "rm a.txt",
    "deletes a folder": "rm -r src",
    "deletes an empty folder": "rmdir empty",
    "fills an empty folder": "echo 1 > empty/one",
    "empties a folder": "rm src/*.py",
    "moves a folder": "mv src lib",
    "makes a file executable": "chmod +x a.txt",
    "takes the right to run": "chmod -x run.sh",
    "changes a program": "echo echo >> run.sh",
    "makes a link": "ln -s src/one.py link2",
    "makes a link that leads nowhere": "ln -s ./no/../where link2",
    "changes a link": "ln -sf run.sh link",
    "puts a file in the place of a link": "rm link && echo real > link",
    "puts a link in the place of a file": "ln -sf run.sh a.txt",
    "puts a link in the place of a folder": "rm -r src && ln -s run.sh src",
    "puts a link to another folder in its place": "rm -r src && ln -s empty src",
    "moves a folder and leaves a link": "mv src lib && ln -s lib src",
    "puts a folder in the place of a file": "rm a.txt && mkdir a.txt && echo 1 > a.txt/in",
    "puts a file in the place of a folder": "rm -r src && echo 1 > src",
    "writes bytes": r"printf '\0\377\r\n\r' > a.txt",
    "writes names": "echo 1 > 'a b'; echo 2 > $'new\\nline'; echo 3 > ünï; echo 4 > ./-x",
    "keeps size and time": "touch -r a.txt t && printf 'ONE\n' > a.txt && touch -r t a.txt && rm t",
    "truncates": ": > a.txt",
    "touches only": "touch a.txt run.sh",
}


@pytest.fixture(params=["plain", "repository"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A project, with and without a repository of its own."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "a.txt").write_bytes(b"one\n")
    (root / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    (root / "src" / "one.py").write_bytes(b"1\n")
    (root / "src" / "two.py").write_bytes(b"2\n")
    (root / "run.sh").write_bytes(b"true\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a.txt")
    if request.param == "repository":
        git(root, "init", "-q")
        git(root, "add", ".")
        git(root, "commit", "-qm", "first")
        (root / "src" / "two.py").write_bytes(b"2, not committed\n")
        (root / "untracked").write_bytes(b"u\n")
    return root


@pytest.mark.parametrize("command", SIDE_EFFECTS.values(), ids=SIDE_EFFECTS.keys())
async def test_what_a_command_does_is_taken_back_and_brought_again(
    root: Path, command: str
) -> None:
    before = tree_of(root)
    async with open_project(root) as project:
        await project.run(command)
        after = tree_of(root)
        if before == after:
            with pytest.raises(CommandError):
                await project.undo()
            return
        assert (await project.undo()).left == ()
        assert tree_of(root) == before
        assert (await project.redo()).left == ()
        assert tree_of(root) == after
        assert (await project.undo()).left == ()
        assert tree_of(root) == before


async def test_all_of_them_are_taken_back_turn_by_turn(root: Path) -> None:
    trees = [tree_of(root)]
    async with open_project(root) as project:
        for command in SIDE_EFFECTS.values():
            async with project.turn():
                project.write("edits/one.py", f"{len(trees)}\n".encode())
                await project.shell(command)
                project.write("edited", f"{len(trees)}\n".encode())
            trees.append(tree_of(root))
        for tree in reversed(trees[:-1]):
            assert (await project.undo()).left == ()
            assert tree_of(root) == tree
        with pytest.raises(CommandError, match="taken back already"):
            await project.undo()
        for tree in trees[1:]:
            assert (await project.redo()).left == ()
            assert tree_of(root) == tree
        with pytest.raises(CommandError):
            await project.redo()


# What goes wrong half-way

MOST_BYTES = 2_000_000


@contextmanager
def full_disk() -> Generator[None]:
    """Have the system refuse files with more than `MOST_BYTES`."""
    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))


@pytest.fixture
def large(root: Path) -> Path:
    """A file of the project that a full disk does not take."""
    path = root / "large"
    path.write_bytes(b"0123456789abcde\n" * (MOST_BYTES // 10))
    return path


async def test_an_undo_for_which_there_is_no_room_can_be_repeated(root: Path, large: Path) -> None:
    before = tree_of(root)
    async with open_project(root) as project:
        await project.run(f"echo small > {large.name}")
        after = tree_of(root)
        with full_disk():
            rewound = await project.undo()
        assert rewound.done == ()
        assert [path for path, _ in rewound.left] == [large.name]
        assert tree_of(root) == after
        with pytest.raises(CommandError):
            await project.redo()
        await project.undo()
        assert tree_of(root) == before
        await project.redo()
        assert tree_of(root) == after


async def test_what_an_undo_could_not_do_is_not_what_its_redo_takes_back(
    root: Path, large: Path
) -> None:
    before = tree_of(root)
    async with open_project(root) as project:
        await project.run(f"echo small > {large.name}; echo changed > a.txt")
        after = tree_of(root)
        with full_disk():
            assert len((await project.undo()).left) == 1
        await project.redo()
        assert tree_of(root) == after
        await project.undo()
        assert tree_of(root) == before


async def test_what_could_not_be_written_is_not_what_the_next_command_has_changed(
    root: Path, large: Path
) -> None:
    async with open_project(root) as project:
        await project.run(f"echo small > {large.name}")
        with full_disk():
            await project.undo()
        left = tree_of(root)
        await project.run(f"echo more >> {large.name}")
        await project.undo()
        assert tree_of(root) == left


@pytest.mark.parametrize("is_redo", [False, True], ids=["undo", "redo"])
@pytest.mark.parametrize("count", range(5))
async def test_what_is_cut_short_is_taken_back_before_anything_else(
    root: Path, monkeypatch: pytest.MonkeyPatch, count: int, *, is_redo: bool
) -> None:
    class Killed(BaseException):
        """The kernel is no more."""

    def killed(
        actions: Iterable[Action], content: Callable[[str], bytes | None]
    ) -> Generator[Outcome]:
        yield from islice(carry_out(actions, content), count)
        raise Killed

    before = tree_of(root)
    async with open_project(root) as project:
        await project.run("echo 1 > one; echo changed > a.txt; rm -r src; mkdir made")
        after = tree_of(root)
        if is_redo:
            await project.undo()
        monkeypatch.setattr(rewind, "carry_out", killed)
        with pytest.raises(Killed):
            await (project.redo() if is_redo else project.undo())
    monkeypatch.undo()
    async with open_project(root) as project:
        await project.undo()
        assert tree_of(root) == (before if is_redo else after)
        if is_redo:
            await project.redo()
            await project.redo()
        else:
            await project.undo()
        assert tree_of(root) == (after if is_redo else before)
