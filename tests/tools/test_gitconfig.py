"""Which configurations could have git run something."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.tools.gitconfig import names_programs, repository_names_programs

ORDINARY = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
# a remark
[remote "origin"]
\turl = https://example.org/shop.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
[core] hooksPath = .husky/_ # not run by commands that only look
[user] name = Ada ; and a remark
"""


def test_what_git_itself_writes_names_no_programs() -> None:
    assert not names_programs(ORDINARY)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[core]\n fsmonitor = ./spy", id="monitor"),
        pytest.param("[core] fsmonitor = ./spy", id="on the line of its section"),
        pytest.param("[CORE]\n\tFsMonitor=./spy", id="in other letters"),
        pytest.param("[core]\nworktree = /", id="another work tree"),
        pytest.param("[core]\nsshCommand = ./spy", id="transport"),
        pytest.param('[filter "x"]\nclean = ./spy', id="filter"),
        pytest.param('[diff "x"]\ntextconv = ./spy', id="text conversion"),
        pytest.param('[diff "x"]\ncommand = ./spy', id="driver"),
        pytest.param("[diff.x]\ntextconv = ./spy", id="section in the old way"),
        pytest.param("[diff]\nexternal = ./spy", id="external diff"),
        pytest.param("[include]\npath = ../other", id="another file"),
        pytest.param('[includeIf "gitdir:/"]\npath = ../other', id="another file at times"),
        pytest.param("[alias]\nlog = !./spy", id="alias"),
        pytest.param("[gpg]\nprogram = ./spy", id="signatures"),
        pytest.param("[log]\nshowSignature = true", id="signatures are checked"),
        pytest.param('[remote "o"]\nuploadpack = ./spy', id="at the other end"),
        pytest.param('[remote "o"]\npromisor = true', id="what is missing is fetched"),
        pytest.param("[extensions]\npartialClone = o", id="a partial clone"),
        pytest.param("[pager]\nlog = ./spy", id="pager"),
        pytest.param("[a\nfsmonitor = x", id="no section"),
        pytest.param("[user]\nname=a\\\n[core]\n[core]\nfsmonitor=x", id="behind a continuation"),
        pytest.param("?", id="makes no sense"),
    ],
)
def test_whatever_else_there_is_counts_as_a_program(text: str) -> None:
    assert names_programs(text)
    assert names_programs(ORDINARY + text)
    assert names_programs(text + "\n" + ORDINARY)


def test_a_setting_before_every_section_makes_no_sense() -> None:
    assert names_programs("url = x")


@given(st.text(alphabet='[]"\\=#;\n\t .ucorexyz', max_size=80))
def test_nothing_hides_a_monitor_that_git_would_find(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "config"
    path.write_text(f"{text}\n[core]\nfsmonitor = ./spy\n")
    command = ("git", "config", "--file", path, "--get", "core.fsmonitor")
    found = subprocess.run(command, capture_output=True, check=False)
    assert names_programs(path.read_text()) or found.returncode


def test_a_repository_as_git_makes_it_names_none(tmp_path: Path) -> None:
    subprocess.run(("git", "init", "-q", tmp_path / "shop"), check=True)
    (tmp_path / "shop/src").mkdir()
    assert not repository_names_programs(tmp_path / "shop/src")
    assert not repository_names_programs(tmp_path)


def test_a_linked_work_tree_has_the_configuration_of_its_repository(tmp_path: Path) -> None:
    shop, other = tmp_path / "shop", tmp_path / "other"
    git = ("git", "-C", shop, "-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(("git", "init", "-q", shop), check=True)
    subprocess.run((*git, "commit", "-q", "--allow-empty", "-m", "a"), check=True)
    subprocess.run((*git, "worktree", "add", "-q", other), check=True)
    assert not repository_names_programs(other)
    with (shop / ".git/config").open("a") as config:
        config.write("[core]\nfsmonitor = ./spy\n")
    assert repository_names_programs(other)


@pytest.mark.parametrize("kind", ["a link", "no file of git", "bare", "submodules", "a pipe"])
def test_repositories_of_other_kinds_are_not_trusted(tmp_path: Path, kind: str) -> None:
    match kind:
        case "a link":
            subprocess.run(("git", "init", "-q", tmp_path / "real"), check=True)
            (tmp_path / ".git").symlink_to("real/.git")
        case "no file of git":
            (tmp_path / ".git").write_text("hello")
        case "bare":
            subprocess.run(("git", "init", "-q", "--bare", tmp_path), check=True)
        case "submodules":
            subprocess.run(("git", "init", "-q", tmp_path), check=True)
            (tmp_path / ".gitmodules").touch()
        case _:
            (tmp_path / ".git").mkdir()
            subprocess.run(("mkfifo", tmp_path / ".git/config"), check=True)
    assert repository_names_programs(tmp_path)


@pytest.mark.parametrize("link_to", ["evil", "evil/deep"])
def test_a_link_into_another_repository_is_followed(tmp_path: Path, link_to: str) -> None:
    subprocess.run(("git", "init", "-q", tmp_path), check=True)
    subprocess.run(("git", "init", "-q", tmp_path / "evil"), check=True)
    (tmp_path / "evil/deep").mkdir()
    (tmp_path / "link").symlink_to(link_to)
    assert not repository_names_programs(tmp_path / "link")
    with (tmp_path / "evil/.git/config").open("a") as config:
        config.write("[diff]\nexternal = ./spy\n")
    assert repository_names_programs(tmp_path / "link")
