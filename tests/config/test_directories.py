"""Crush's places are found as Crush finds them, and a root never grows by accident."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from crush_kernel.config.directories import (
    Directories,
    project_data_directory,
    project_root,
    read_directories,
)

ADA = {"HOME": "/home/ada"}
DEFAULT = Directories(
    config=Path("/home/ada/.config/crush"),
    data=Path("/home/ada/.local/share/crush"),
    cache=Path("/home/ada/.cache/crush"),
)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({}, DEFAULT, id="nothing set"),
        pytest.param(
            {"XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d", "XDG_CACHE_HOME": "/k"},
            Directories(Path("/c/crush"), Path("/d/crush"), cache=Path("/k/crush")),
            id="XDG",
        ),
        pytest.param(
            {
                "XDG_CONFIG_HOME": "/c",
                "CRUSH_GLOBAL_CONFIG": "/own/c",
                "CRUSH_GLOBAL_DATA": "~/d",
                "CRUSH_CACHE_DIR": "/own/k",
            },
            Directories(Path("/own/c"), Path("/home/ada/d"), cache=Path("/own/k")),
            id="Crush's own variables",
        ),
        pytest.param({"XDG_CONFIG_HOME": "relative"}, DEFAULT, id="relative XDG, as XDG demands"),
        pytest.param({"CRUSH_GLOBAL_CONFIG": "  "}, DEFAULT, id="blank"),
    ],
)
def test_user_directories(environ: Mapping[str, str], expected: Directories) -> None:
    assert read_directories({**ADA, **environ}, is_windows=False) == (expected, ())


@pytest.mark.parametrize("name", ["CRUSH_GLOBAL_CONFIG", "CRUSH_GLOBAL_DATA", "CRUSH_CACHE_DIR"])
@pytest.mark.parametrize("value", ["conf", "../conf", "/a\0b"])
def test_a_path_that_is_not_absolute_is_reported_and_ignored(name: str, value: str) -> None:
    directories, warnings = read_directories({**ADA, name: value}, is_windows=False)
    assert directories == DEFAULT
    assert [name in warning for warning in warnings] == [True]


def test_windows_keeps_data_and_cache_where_windows_does() -> None:
    environ = {**ADA, "LOCALAPPDATA": "/local"}
    directories, _ = read_directories(environ, is_windows=True)
    assert directories.data == Path("/local/crush")
    assert directories.cache == Path("/local/crush/cache")


@pytest.mark.parametrize("home", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_a_home_in_the_environment_the_systems_word_counts(
    home: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/bob")
    directories, _ = read_directories(home, is_windows=False)
    assert directories.config == Path("/home/bob/.config/crush")


def test_a_user_without_any_home_gets_a_place_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("no such user")

    monkeypatch.setattr(Path, "home", nowhere)
    directories, _ = read_directories({}, is_windows=False)
    assert directories.data.is_absolute()


def git(folder: Path) -> Path:
    """Make `folder` look like the top of a work tree."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    return folder


def test_the_root_is_the_nearest_work_tree_above(tmp_path: Path) -> None:
    git(tmp_path / "outer")
    inner = git(tmp_path / "outer" / "inner")
    below = inner / "a" / "b"
    below.mkdir(parents=True)
    assert project_root(below, home=tmp_path / "home") == inner
    assert project_root(inner, home=tmp_path / "home") == inner


def test_a_linked_work_tree_has_a_file_for_git(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "src").mkdir(parents=True)
    (tree / ".git").write_text("gitdir: /elsewhere\n", encoding="utf-8")
    assert project_root(tree / "src", home=tmp_path / "home") == tree


def test_without_a_work_tree_the_folder_itself_is_the_root(tmp_path: Path) -> None:
    assert project_root(tmp_path, home=tmp_path / "home") == tmp_path


def test_an_empty_folder_called_git_is_no_work_tree(tmp_path: Path) -> None:
    (tmp_path / "a" / ".git").mkdir(parents=True)
    (tmp_path / "a" / "b").mkdir()
    assert project_root(tmp_path / "a" / "b", home=tmp_path / "home") == tmp_path / "a" / "b"


@pytest.mark.parametrize("where", ["home", "above home"])
def test_a_home_under_version_control_is_no_project(tmp_path: Path, where: str) -> None:
    home = tmp_path / "users" / "ada"
    git(home if where == "home" else tmp_path / "users")
    notes = home / "notes"
    notes.mkdir(parents=True, exist_ok=True)
    assert project_root(notes, home=home) == notes
    assert project_root(home, home=home) == home


def test_a_link_into_a_work_tree_leads_to_its_real_root(tmp_path: Path) -> None:
    tree = git(tmp_path / "tree")
    (tree / "src").mkdir()
    (tmp_path / "link").symlink_to(tree / "src")
    assert project_root(tmp_path / "link", home=tmp_path / "home") == tree


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_work_tree_that_somebody_else_planted_above_is_not_adopted(tmp_path: Path) -> None:
    shared = git(tmp_path / "shared")
    os.chown(shared / ".git", 12345, 12345)
    mine = shared / "mine"
    mine.mkdir()
    assert project_root(mine, home=tmp_path / "home") == mine
    os.chown(mine, 12345, 12345)
    assert project_root(mine, home=tmp_path / "home") == shared


def test_data_goes_to_the_nearest_data_directory_up_to_the_root(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert project_data_directory(below, tmp_path) == tmp_path / ".crush"
    (tmp_path / "a" / ".crush").mkdir()
    assert project_data_directory(below, tmp_path) == tmp_path / "a" / ".crush"


def test_data_goes_to_the_root_from_a_folder_outside_it(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    (outside / ".crush").mkdir(parents=True)
    assert project_data_directory(outside, root) == root / ".crush"


def test_data_never_goes_above_the_root(tmp_path: Path) -> None:
    (tmp_path / ".crush").mkdir()
    root = tmp_path / "root"
    root.mkdir()
    assert project_data_directory(root, root) == root / ".crush"


def test_a_folder_that_cannot_be_looked_into_is_passed_over(tmp_path: Path) -> None:
    no_name = tmp_path / ("x" * 300)  # the system refuses it, to root as well
    assert project_data_directory(no_name, tmp_path) == tmp_path / ".crush"


def test_a_file_called_like_the_data_directory_is_passed_over(tmp_path: Path) -> None:
    below = tmp_path / "a"
    below.mkdir()
    (below / ".crush").write_text("", encoding="utf-8")
    assert project_data_directory(below, tmp_path) == tmp_path / ".crush"
