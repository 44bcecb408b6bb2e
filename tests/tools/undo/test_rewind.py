"""Whole turns of edits and real commands, taken back and brought again, on a real disk."""

from pathlib import Path

import pytest

from crush_kernel.errors import CommandError
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
