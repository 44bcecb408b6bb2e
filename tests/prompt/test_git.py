"""What is told of a git work tree, and that a repository cannot run anything by it."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from crush_kernel.prompt.git import Git
from crush_kernel.prompt.gitcommand import git_environment
from crush_kernel.prompt.gitfacts import GitAnswer, GitFacts, describe_git
from tests.fakes.workcopy import ENVIRON, git, make_repository

pytestmark = pytest.mark.anyio


async def described(folder: Path, *, root: Path | None = None) -> str:
    asking = Git(cwd=folder, project_root=root or folder, environ=ENVIRON)
    return describe_git(await asking.facts())


async def test_branch_changes_and_commits_are_told(tmp_path: Path) -> None:
    folder = make_repository(tmp_path, "one", "two", "three", "four")
    (folder / "file.txt").write_text("changed\n", encoding="utf-8")
    (folder / "ü new.txt").write_text("", encoding="utf-8")
    branch, heading, *lines = (await described(folder)).splitlines()
    assert branch == "Git branch: main"
    assert heading == "Git status, short form:"
    # The first column of the first line is a space: it says that nothing is staged.
    assert lines[:2] == [" M file.txt", '?? "ü new.txt"']
    assert lines[2] == "Last commits:"
    assert [line.split(maxsplit=1)[1] for line in lines[3:]] == ["four", "three", "two"]


async def test_a_folder_of_a_work_tree_belongs_to_it(tmp_path: Path) -> None:
    root = make_repository(tmp_path, "one")
    folder = root / "a/b"
    folder.mkdir(parents=True)
    (folder / "new.txt").write_text("", encoding="utf-8")
    assert "?? ../" in await described(folder, root=root)


async def test_more_than_twenty_changes_are_counted(tmp_path: Path) -> None:
    folder = make_repository(tmp_path, "one")
    for number in range(25):
        (folder / f"new{number:02}").touch()
    lines = (await described(folder)).splitlines()
    assert lines[2:22] == [f"?? new{number:02}" for number in range(20)]
    assert lines[22] == "… and 5 more"


async def test_a_clean_work_tree_is_called_clean(tmp_path: Path) -> None:
    assert "Git status: clean" in await described(make_repository(tmp_path, "one"))


async def test_a_repository_without_commits_is_no_failure(tmp_path: Path) -> None:
    told = await described(make_repository(tmp_path))
    assert told.splitlines() == ["Git branch: main", "Git status: clean", "No commits yet"]


async def test_a_detached_head_is_told(tmp_path: Path) -> None:
    folder = make_repository(tmp_path, "one")
    git(folder, "checkout", "--quiet", "--detach")
    assert "Git branch: none, HEAD is detached" in await described(folder)


async def test_a_failing_git_is_not_clean(tmp_path: Path) -> None:
    folder = make_repository(tmp_path, "one")
    (folder / ".git/index").write_bytes(b"broken")
    told = await described(folder)
    assert "clean" not in told
    assert "Git status is not known: git failed with exit code 128" in told


async def test_a_missing_git_is_not_clean(tmp_path: Path) -> None:
    folder = make_repository(tmp_path, "one")
    asking = Git(cwd=folder, project_root=folder, environ={"PATH": str(tmp_path / "none")})
    told = describe_git(await asking.facts())
    assert told == "Git status is not known: git is not installed."


@pytest.mark.slow
async def test_a_slow_git_is_stopped(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repository", "one")
    tool = tmp_path / "bin/git"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho $$ >> "{tmp_path}/pids"\nexec sleep 600\n', encoding="utf-8")
    tool.chmod(0o755)
    environ = {"PATH": f"{tool.parent}:{ENVIRON['PATH']}"}
    with anyio.fail_after(20):
        told = describe_git(await Git(cwd=folder, project_root=folder, environ=environ).facts())
    assert told == "Git status is not known: git took longer than 2 s."
    for pid in (tmp_path / "pids").read_text(encoding="utf-8").split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(b"## main...origin/main\n", "Git branch: main", id="followed"),
        pytest.param(b"## a\xc2\x9bb\n M x\n", "Git branch: a\\x9bb", id="control character"),
        pytest.param(b"## m\n?? a\xe2\x80\xaeb\n", "?? a\\u202eb", id="reordering"),
        pytest.param(b"## m\n?? a\rb\n", "?? a\\x0db", id="carriage return"),
        pytest.param(b"## m\n?? " + b"a" * 9000 + b"\n", "a…", id="long line"),
    ],
)
def test_names_stay_on_their_line(status: bytes, expected: str) -> None:
    told = describe_git(GitFacts(GitAnswer(status), GitAnswer(b"")))
    assert expected in told
    assert max(map(len, told.splitlines())) <= 210


def test_a_cut_status_says_so() -> None:
    output = b"## main\n" + b"?? a\n" * 30 + b"?? hal"
    told = describe_git(GitFacts(GitAnswer(output, is_cut=True), GitAnswer(b"")))
    assert "… and more than 10 more" in told
    assert "hal" not in told


# --- A hostile repository ---

Attack = Callable[[Path, str], None]
"""Prepares a repository so that git runs a program, if it does."""


def _configured(*settings: tuple[str, str]) -> Attack:
    def attack(folder: Path, program: str) -> None:
        for name, value in settings:
            git(folder, "config", name, value.replace("PROGRAM", program))

    return attack


def _filtered(name: str) -> Attack:
    def attack(folder: Path, program: str) -> None:
        (folder / ".gitattributes").write_text(f"* filter={name}\n", encoding="utf-8")
        with (folder / ".git/config").open("a", encoding="utf-8") as config:
            config.write(f'[filter "{name}"]\nclean = {program}\nrequired = true\n')
        (folder / "file.txt").write_text("8\n", encoding="utf-8")

    return attack


def _included(folder: Path, program: str) -> None:
    (folder / "more").write_text(f'[filter "x"]\nprocess = {program}\n', encoding="utf-8")
    git(folder, "config", "include.path", "../more")
    (folder / ".gitattributes").write_text("* filter=x\n", encoding="utf-8")
    (folder / "file.txt").write_text("8\n", encoding="utf-8")


def _hooked(folder: Path, program: str) -> None:
    hook = folder / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
    hook.chmod(0o755)
    # The index is out of date, so that a status would write it anew.
    os.utime(folder / "file.txt", (1, 1))


def _signed(folder: Path, program: str) -> None:
    commit = git(folder, "cat-file", "commit", "HEAD")
    head, _, message = commit.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    raw = f"{head}\n{signature}\n\n{message}\n".encode()
    signed = git(folder, "hash-object", "-t", "commit", "-w", "--stdin", data=raw)
    git(folder, "update-ref", "HEAD", signed)
    git(folder, "config", "gpg.program", program)
    git(folder, "config", "log.showSignature", "true")


def _partial(folder: Path, program: str) -> None:
    tree = git(folder, "rev-parse", "HEAD^{tree}")
    (folder / ".git/objects" / tree[:2] / tree[2:]).unlink()
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::{program}"),
        ("protocol.ext.allow", "always"),
    ):
        git(folder, "config", name, value)


def _with_submodule(folder: Path, program: str) -> None:
    inner = make_repository(folder / "inner", "one")
    git(folder, "-c", "advice.addEmbeddedRepo=false", "add", "inner")
    git(folder, "commit", "--quiet", "--message", "inner")
    git(inner, "config", "core.fsmonitor", program)


ATTACKS: dict[str, tuple[Attack, bool]] = {
    "fsmonitor": (_configured(("core.fsmonitor", "PROGRAM")), True),
    "filter": (_filtered("x"), True),
    "filter with an equals sign": (_filtered("x=y"), True),
    "filter in an included file": (_included, True),
    "hook": (_hooked, True),
    "signature": (_signed, True),
    "partial clone": (_partial, True),
    "submodule": (_with_submodule, True),
    "pager": (_configured(("core.pager", "PROGRAM"), ("pager.status", "PROGRAM")), False),
    "diff": (_configured(("diff.external", "PROGRAM"), ("diff.x.textconv", "PROGRAM")), False),
    "alias": (_configured(("alias.status", "!PROGRAM"), ("alias.log", "!PROGRAM")), False),
}
"""The attack, and whether it works on a git without protection: the test of the test."""


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_repository_runs_nothing(tmp_path: Path, name: str) -> None:
    attack, works = ATTACKS[name]
    folder = make_repository(tmp_path / "repository", "one", "two")
    trace = tmp_path / "trace"
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\ntouch "{trace}"\nexit 1\n', encoding="utf-8")
    program.chmod(0o755)
    attack(folder, str(program))
    await described(folder)
    assert not trace.exists()
    if works:
        _run_unprotected(folder)
        assert trace.exists()


async def test_a_filter_that_is_added_later_is_not_run(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repository", "one")
    os.utime(folder / ".git/config", (1, 1))
    trace = tmp_path / "trace"
    asking = Git(cwd=folder, project_root=folder, environ=ENVIRON)
    for number in range(2):
        await asking.facts()
        if number == 0:
            _filtered("x")(folder, f"touch {trace}")
    assert not trace.exists()
    _run_unprotected(folder)
    assert trace.exists()


def _run_unprotected(folder: Path) -> None:
    for command in ("status", "log"):
        subprocess.run(
            ["git", command],
            cwd=folder,
            env={**ENVIRON, "HOME": str(folder)},
            capture_output=True,
            check=False,
            timeout=10,
        )


async def test_a_program_in_the_folder_is_not_taken_for_git(tmp_path: Path) -> None:
    folder = make_repository(tmp_path, "one")
    (folder / "git").write_text(f'#!/bin/sh\ntouch "{tmp_path}/trace"\n', encoding="utf-8")
    (folder / "git").chmod(0o755)
    environ = {**ENVIRON, "PATH": f".::{ENVIRON['PATH']}"}
    await Git(cwd=folder, project_root=folder, environ=environ).facts()
    assert not (tmp_path / "trace").exists()


async def test_a_repository_cannot_have_another_folder_looked_at(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repository", "one")
    (tmp_path / "private").mkdir()
    (tmp_path / "private/secret-name").touch()
    git(folder, "config", "core.worktree", str(tmp_path / "private"))
    assert "secret-name" not in await described(folder)


def test_variables_that_point_to_another_repository_are_left_out(tmp_path: Path) -> None:
    environ = {"GIT_DIR": "/x", "GIT_TRACE": "/y", "GIT_EXEC_PATH": "/z", "HOME": "/h"}
    kept = git_environment(environ, tmp_path)
    assert "GIT_DIR" not in kept
    assert "GIT_TRACE" not in kept
    assert (kept["GIT_EXEC_PATH"], kept["HOME"]) == ("/z", "/h")


# --- When the answers come ---


async def test_a_turn_hears_of_what_git_says_when_it_begins(tmp_path: Path) -> None:
    folder = make_repository(tmp_path, "one")
    asking = Git(cwd=folder, project_root=folder, environ=ENVIRON)
    async with anyio.create_task_group() as tasks:
        asking.ask(tasks)
    (folder / "new").touch()
    news = await asking.news()
    assert news is not None
    assert "clean" in describe_git(news.facts)
    async with anyio.create_task_group() as tasks:
        asking.ask(tasks)
    news = await asking.news()
    assert news is not None
    assert "?? new" in describe_git(news.facts)


def commit(folder: Path) -> None:
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "another")


def pack_and_commit(folder: Path) -> None:
    git(folder, "pack-refs", "--all")
    commit(folder)


def replace_commit(folder: Path) -> None:
    git(folder, "replace", "HEAD", "HEAD~1")


MOVES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda folder: folder,
    "commit": commit,
    "commit of a packed branch": pack_and_commit,
    "packed": lambda folder: git(folder, "pack-refs", "--all"),
    "reset": lambda folder: git(folder, "reset", "--quiet", "--hard", "HEAD~1"),
    "other branch": lambda folder: git(folder, "switch", "--quiet", "older"),
    "detached": lambda folder: git(folder, "switch", "--quiet", "--detach", "older"),
    "no commit": lambda folder: git(folder, "switch", "--quiet", "--orphan", "empty"),
    "another in its place": replace_commit,
    "less of the history": lambda folder: (folder / ".git/shallow").write_text(
        git(folder, "rev-parse", "HEAD") + "\n"
    ),
    "no HEAD": lambda folder: (folder / ".git/HEAD").unlink(),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("begins", ["as it is", "packed", "detached"])
async def test_the_last_commits_are_those_that_git_would_tell_now(
    tmp_path: Path, begins: str, move: Callable[[Path], object]
) -> None:
    folder = make_repository(tmp_path, "one", "two", "three")
    git(folder, "branch", "older", "HEAD~1")
    if begins != "as it is":
        MOVES[begins](folder)
    asking = Git(cwd=folder, project_root=folder, environ=ENVIRON)
    await asking.facts()
    move(folder)
    asked_afresh = Git(cwd=folder, project_root=folder, environ=ENVIRON)
    assert (await asking.facts()).log == (await asked_afresh.facts()).log


async def test_git_is_not_asked_for_the_commits_that_are_known(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repository", "one")
    tool = tmp_path / "bin/git"
    tool.parent.mkdir()
    tool.write_text(
        f'#!/bin/sh\necho " $@ " >> "{tmp_path}/asked"\nPATH={ENVIRON["PATH"]} exec git "$@"\n',
        encoding="utf-8",
    )
    tool.chmod(0o755)
    environ = ENVIRON | {"PATH": f"{tool.parent}:{ENVIRON['PATH']}"}
    asking = Git(cwd=folder, project_root=folder, environ=environ)
    told = {describe_git(await asking.facts()) for _ in range(3)}
    asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    assert len(told) == 1
    assert [sum(f" {command} " in line for line in asked) for command in ("log", "status")] == [
        1,
        3,
    ]


async def test_nothing_is_told_of_a_folder_without_git(tmp_path: Path) -> None:
    asking = Git(cwd=tmp_path, project_root=tmp_path, environ=ENVIRON)
    async with anyio.create_task_group() as tasks:
        asking.ask(tasks)
    assert await asking.news() is None
