"""Whether commands are confined: the user decides, a project only tightens."""

from pathlib import Path

import pytest

from crush_kernel.config.configfiles import ConfigFile, Scope
from crush_kernel.config.directories import read_directories
from crush_kernel.config.sandbox import confinement_for, wants_sandbox
from crush_kernel.messages import JsonObject


def file(scope: Scope, value: object) -> ConfigFile:
    document: JsonObject = {"options": {"sandbox": value}}  # type: ignore[dict-item]
    return ConfigFile(Path(f"/{scope}/crush.json"), scope, document, "")


@pytest.mark.parametrize(
    ("variable", "files", "is_wanted"),
    [
        pytest.param("", [], False, id="nobody says anything"),
        pytest.param("1", [], True, id="the variable"),
        pytest.param("true", [("user", False)], True, id="the variable goes before files"),
        pytest.param("0", [("user", True), ("project", True)], False, id="also when it says no"),
        pytest.param("", [("user", True)], True, id="the user"),
        pytest.param("", [("user", True), ("user", False)], False, id="the user's last file"),
        pytest.param("", [("user", True), ("project", False)], True, id="a project cannot loosen"),
        pytest.param("", [("project", True)], True, id="a project can tighten"),
        pytest.param("", [("user", False), ("project", True)], False, id="the user has the word"),
        pytest.param("", [("project", True), ("project", False)], True, id="two of a project"),
        pytest.param("", [("user", "yes")], True, id="a typo is no reason to be free"),
        pytest.param("", [("project", [1])], True, id="a typo of a project"),
        pytest.param("perhaps", [("user", True)], True, id="a variable that makes no sense"),
        pytest.param("", [("user", None)], False, id="null"),
    ],
)
def test_the_user_decides_and_a_project_only_tightens(
    variable: str, files: list[tuple[Scope, object]], *, is_wanted: bool
) -> None:
    environ = {"CRUSH_SANDBOX": variable} if variable else {}

    assert wants_sandbox(environ, [file(*each) for each in files])[0] == is_wanted


@pytest.mark.parametrize(
    ("variable", "files", "words"),
    [
        pytest.param("", [("project", False)], "cannot switch the sandbox off", id="loosening"),
        pytest.param("", [("user", 1)], "neither true nor false", id="a number"),
        pytest.param("perhaps", [], "CRUSH_SANDBOX is neither", id="the variable"),
    ],
)
def test_what_is_set_aside_is_said(
    variable: str, files: list[tuple[Scope, object]], words: str
) -> None:
    environ = {"CRUSH_SANDBOX": variable} if variable else {}
    _, (warning,) = wants_sandbox(environ, [file(*each) for each in files])

    assert words in warning


@pytest.mark.parametrize("document", [{}, {"options": None}, {"options": []}, {"options": {}}])
def test_files_that_say_nothing_switch_nothing(document: JsonObject) -> None:
    files = [ConfigFile(Path("/crush.json"), "project", document, "")]

    assert wants_sandbox({}, files) == (False, ())


def test_commands_write_in_the_project_and_in_temporary_folders_only(tmp_path: Path) -> None:
    root, home = tmp_path / "home" / "project", tmp_path / "home"
    environ = {"HOME": str(home), "TMPDIR": "/somewhere"}
    directories, _ = read_directories(environ)
    found = confinement_for(environ, directories, root=root, cwd=root / "sub", data=root / ".crush")

    assert found.writable[:2] == (root, Path("/somewhere"))
    assert {root / "crush.json", root / "sub" / ".crushrc", root / ".crush"} <= {*found.sealed}
    assert {home / ".ssh", home / ".aws", directories.data} <= {*found.hidden}
    assert directories.config not in found.hidden


@pytest.mark.parametrize("temporary", ["", "relative", "/", "/home", "/home/me"])
def test_a_temporary_folder_around_the_home_is_none(temporary: str) -> None:
    environ = {"HOME": "/home/me", "TMPDIR": temporary}
    directories, _ = read_directories(environ)
    found = confinement_for(
        environ, directories, root=Path("/project"), cwd=Path("/project"), data=Path("/data")
    )

    assert found.writable == (Path("/project"), Path("/tmp"))  # noqa: S108 - what is allowed


def test_a_worktree_cannot_be_told_of_another_git_folder(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / ".git").write_text("gitdir: /elsewhere/.git/worktrees/a")
    (tmp_path / "inner" / ".git").mkdir()

    environ = {"HOME": str(tmp_path / "home")}
    directories, _ = read_directories(environ)
    found = confinement_for(
        environ,
        directories,
        root=tmp_path,
        cwd=tmp_path / "inner",
        data=tmp_path / ".crush",
    )

    assert tmp_path / ".git" in found.sealed
    assert tmp_path / "inner" / ".git" not in found.sealed
