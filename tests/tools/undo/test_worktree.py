"""What counts to which turn, and what a project cannot make us do."""

import os
import subprocess
from pathlib import Path

import pytest

from crush_kernel.errors import CommandError
from tests.tools.undo.rewound import SECRET, git, open_project, tree_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "a.txt").write_bytes(b"one\n")
    (root / "src" / "b.txt").write_bytes(b"two\n")
    return root


def stored(root: Path) -> bytes:
    """Return all that is in the project's data directory, as far as git can read it too."""
    data = b"".join(path.read_bytes() for path in (root / ".crush").rglob("*") if path.is_file())
    shadow = root / ".crush" / "shadow.git"
    listed = subprocess.run(
        ["git", f"--git-dir={shadow}", "cat-file", "--batch-all-objects", "--batch"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    return data + listed.stdout


# To which turn


async def test_what_others_change_between_turns_is_not_taken_back(root: Path) -> None:
    async with open_project(root) as project:
        await project.run("echo 1 > one")
        (root / "mine").write_bytes(b"mine\n")
        (root / "a.txt").write_bytes(b"mine\n")
        project.worktree.turn_id = "later"
        left = tree_of(root)
        # As if a while had passed.
        project.worktree.forget_age()
        await project.run("echo 2 > two")
        await project.undo()
        assert tree_of(root) == left
        await project.undo()
        assert not (root / "one").exists()
        assert (root / "mine").read_bytes() == (root / "a.txt").read_bytes() == b"mine\n"


async def test_what_a_job_changes_counts_to_the_turn_that_sees_it(root: Path) -> None:
    before = tree_of(root)
    async with open_project(root) as project:
        project.jobs.append("runs")
        await project.run("echo started > log")
        started = tree_of(root)
        (root / "log").write_bytes(b"started\nmore\n")
        async with project.turn() as turn_id:
            pass
        assert project.journal.files(project.session)[-1].turn_id == turn_id
        project.jobs.clear()
        await project.undo()
        assert tree_of(root) == started
        await project.undo()
        assert tree_of(root) == before


async def test_commands_and_tools_of_a_turn_change_one_file_in_turn(root: Path) -> None:
    before = tree_of(root)
    async with open_project(root) as project:
        async with project.turn():
            await project.shell("echo two >> a.txt")
            project.write("a.txt", b"three\n")
            await project.shell("echo four >> a.txt; echo x > x")
            project.write("x", b"y\n")
        after = tree_of(root)
        await project.undo()
        assert tree_of(root) == before
        await project.redo()
        assert tree_of(root) == after


async def test_an_edit_between_turns_of_commands_is_its_own_turns(root: Path) -> None:
    trees = [tree_of(root)]
    async with open_project(root) as project:
        await project.run("echo 1 > one")
        trees.append(tree_of(root))
        async with project.turn():
            project.write("a.txt", b"edited\n")
        trees.append(tree_of(root))
        await project.run("echo more >> a.txt")
        for tree in reversed(trees):
            await project.undo()
            assert tree_of(root) == tree


async def test_the_next_kernel_counts_what_was_cut_short_to_its_turn(root: Path) -> None:
    before = tree_of(root)
    async with open_project(root) as project:
        await project.run("true")
        turn_id = project.next_turn()
        async with project.worktree.command():
            (root / "a.txt").write_bytes(b"half")
            # What follows never happens: the kernel is killed here.
            project.worktree.tasks.cancel_scope.cancel()
    async with open_project(root) as project:
        rewinding = await project.rewind.prepare("undo", is_forced=False)
        assert rewinding.of == turn_id
        await project.rewind.carry_out(rewinding, "undo")
        assert tree_of(root) == before


async def test_what_changes_while_no_kernel_runs_counts_to_no_turn(root: Path) -> None:
    async with open_project(root) as project:
        await project.run("echo 1 > one")
    (root / "a.txt").write_bytes(b"mine\n")
    async with open_project(root) as project:
        await project.run("echo 2 > two")
        await project.undo()
        await project.undo()
        assert (root / "a.txt").read_bytes() == b"mine\n"
        assert not (root / "one").exists()


async def test_sessions_do_not_take_back_each_others_commands(root: Path) -> None:
    async with open_project(root) as one, open_project(root, session="two") as two:
        await one.run("echo 1 > shared; echo 1 > one")
        await two.run("echo 2 > shared; echo 2 > two")
        left = tree_of(root)
        with pytest.raises(CommandError, match="shared has changed since"):
            await one.undo()
        assert tree_of(root) == left
        await two.undo()
        await one.undo()
        assert {"shared", "one", "two"}.isdisjoint(tree_of(root))


# What is not covered


@pytest.mark.parametrize("is_edit", [False, True], ids=["command", "tool"])
async def test_a_secret_is_written_nowhere_and_taken_back_while_the_kernel_lives(
    root: Path, *, is_edit: bool
) -> None:
    (root / "config").write_text(f"key={SECRET}\n")
    before = tree_of(root)
    async with open_project(root) as project:
        async with project.turn():
            await project.shell("true" if is_edit else "echo other > config")
            if is_edit:
                project.write("config", b"other\n")
        async with project.turn():
            await project.shell(f"echo {SECRET} > .env")
        assert SECRET.encode() not in stored(root)
        await project.undo()
        assert (await project.undo()).left == ()
        assert tree_of(root) == before
        await project.redo()
        assert (root / "config").read_text() == "other\n"
        assert SECRET.encode() not in stored(root)


async def test_a_secret_that_no_kernel_remembers_is_named_and_left(root: Path) -> None:
    (root / "config").write_text(f"key={SECRET}\n")
    async with open_project(root) as project:
        await project.run("echo other > config; echo 1 > one")
    async with open_project(root) as project:
        rewound = await project.undo()
        assert rewound.left == (("config", "it contains a secret"),)
        assert rewound.done == (("one", "deleted"),)
        assert (root / "config").read_text() == "other\n"


async def test_large_files_are_named_and_left(root: Path) -> None:
    with (root / "large").open("wb") as file:
        file.truncate(10_000_001)
    async with open_project(root) as project:
        await project.run("echo x >> large; echo 1 > one")
        assert any("1 file is too large" in note for note in project.worktree.notes())
        rewound = await project.undo()
        assert rewound.left == (("large", "it is larger than 10 MB"),)
        assert not (root / "one").exists()


async def test_ignored_files_and_the_open_notebook_are_let_be(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    (root / "open.ipynb").write_text("{}")
    async with open_project(root) as project:
        await project.run(
            "echo 1 > a.log; mkdir -p build .ipynb_checkpoints; echo 1 > build/x;"
            "echo 1 > .ipynb_checkpoints/x; echo '[]' > open.ipynb; echo 1 > one"
        )
        assert (await project.undo()).done == (("one", "deleted"),)
        for name in ("a.log", "build/x", ".ipynb_checkpoints/x"):
            assert (root / name).exists()
        assert (root / "open.ipynb").read_text() == "[]\n"


async def test_repositories_inside_are_let_be_and_named(root: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "file").write_text("1")
    async with open_project(root) as project:
        await project.run("echo 2 > inner/file; echo 1 > one; git init -q later; echo 3 > later/x")
        assert "inner" in " ".join(project.worktree.notes())
        await project.undo()
        assert (inner / "file").read_text() == "2\n"
        assert (root / "later" / "x").read_text() == "3\n"
        assert not (root / "one").exists()


async def test_without_git_tools_alone_are_taken_back_and_that_is_told(
    root: Path, tmp_path: Path
) -> None:
    environ = {"PATH": str(tmp_path / "nowhere"), "HOME": str(tmp_path)}
    async with open_project(root, environ=environ) as project:
        async with project.turn():
            project.write("a.txt", b"edited\n")
            await project.shell("echo 1 > one")
        assert "git is not installed" in " ".join(project.worktree.notes())
        await project.undo()
        assert (root / "a.txt").read_bytes() == b"one\n"
        assert (root / "one").exists()


async def test_files_outside_the_project_are_taken_back_and_named_in_full(
    root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_bytes(b"before\n")
    async with open_project(root) as project:
        async with project.turn():
            project.journal.file_changed(
                project.session, project.worktree.turn_id, outside, b"before\n", b"after\n"
            )
            outside.write_bytes(b"after\n")
        assert (await project.undo()).done == ((str(outside), "restored"),)
        assert outside.read_bytes() == b"before\n"


async def test_nothing_is_written_through_a_link_that_was_put_in_the_way(
    root: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "b.txt").write_bytes(b"changed\n")
    async with open_project(root) as project:
        await project.run("echo changed > src/b.txt; echo changed > a.txt")
        (root / "src").rename(root / "moved")
        (root / "src").symlink_to(elsewhere)
        (root / "a.txt").unlink()
        (root / "a.txt").symlink_to(elsewhere / "b.txt")
        with pytest.raises(CommandError, match=r"a\.txt has changed since"):
            await project.undo()
        rewound = await project.undo(is_forced=True)
        assert rewound.left == ((str(root / "src/b.txt"), "there is a link in its path now"),)
        assert (elsewhere / "b.txt").read_bytes() == b"changed\n"
        assert (root / "a.txt").read_bytes() == b"one\n"
        assert not (root / "a.txt").is_symlink()


# A hostile project


HOSTILE_CONFIG = """
[core]
    fsmonitor = "touch {proof}; false"
    hooksPath = {hooks}
    sshCommand = "touch {proof}"
    worktree = /
    autocrlf = true
[filter "evil"]
    clean = "touch {proof}; cat"
    smudge = "touch {proof}; cat"
    process = "touch {proof}"
    required = true
[extensions]
    worktreeConfig = true
"""


def make_hostile(root: Path, proof: Path) -> None:
    """Have the project's repository, and one that came as ours, try to run something."""
    git(root, "init", "-q")
    hooks = root / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "pre-auto-gc", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {proof}\n")
        (hooks / name).chmod(0o755)
    config = HOSTILE_CONFIG.format(proof=proof, hooks=hooks)
    (root / ".git" / "config").write_text(config)
    (root / ".gitattributes").write_text("* filter=evil text=auto eol=crlf ident\n")
    shadow = root / ".crush" / "shadow.git"
    for name in ("objects/info", "refs", "info", "hooks"):
        (shadow / name).mkdir(parents=True)
    (shadow / "HEAD").write_text("ref: refs/heads/main\n")
    (shadow / "config").write_text(config)
    (shadow / "config.worktree").write_text(config)
    (shadow / "crush-mark").write_text("not the mark of this user")
    (shadow / "info" / "attributes").write_text("* filter=evil\n")


async def test_a_hostile_repository_runs_nothing_and_changes_no_byte(
    root: Path, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    make_hostile(root, proof)
    (root / "crlf.txt").write_bytes(b"$Id$\r\nline\nmixed\r\n")
    before = tree_of(root)
    async with open_project(root) as project:
        await project.run("printf 'x\\r\\ny\\n' > crlf.txt; rm a.txt; printf '$Id$\\n' > id.txt")
        after = tree_of(root)
        assert project.worktree.notes() == ()
        await project.undo()
        assert tree_of(root) == before
        await project.redo()
        assert tree_of(root) == after
    assert not proof.exists()


async def test_a_shadow_that_is_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("1")
    (root / ".crush").mkdir()
    (root / ".crush" / "shadow.git").symlink_to(elsewhere)
    async with open_project(root) as project:
        await project.run("echo 1 > one")
        await project.undo()
    assert not (root / "one").exists()
    assert [path.name for path in elsewhere.iterdir()] == ["precious"]


@pytest.mark.parametrize("text", ["gitdir: /nowhere\n", "gitdir: ../other/.git\n", "\0", ""])
async def test_a_git_file_that_points_elsewhere_changes_nothing(
    root: Path, tmp_path: Path, text: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (root / ".git").write_text(text)
    untouched = tree_of(other, without=())
    before = tree_of(root)
    async with open_project(root) as project:
        await project.run("rm -r src; echo 1 > one")
        await project.undo()
    assert tree_of(root) == before
    assert tree_of(other, without=()) == untouched


async def test_what_is_no_file_is_let_be(root: Path) -> None:
    os.mkfifo(root / "pipe")
    async with open_project(root) as project:
        await project.run("mkfifo pipe2; rm pipe; echo 1 > one; echo 1 > pipe")
        await project.undo()
    assert set(os.listdir(root)) == {".crush", "a.txt", "src", "pipe2"}  # noqa: PTH208 - names
