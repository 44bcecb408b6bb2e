"""Where skills are looked for."""

from pathlib import Path

import pytest

from crush_kernel.config.directories import Directories
from crush_kernel.config.skilldirectories import skill_directories

HOME = Path("/home/ada")
ROOT = Path("/srv/project")
OWN = Directories(HOME / ".config/crush", HOME / "data", HOME / "cache")
PROJECT = [".agents/skills", ".crush/skills", ".claude/skills", ".cursor/skills"]


def found(
    *extra: str, cwd: Path = ROOT, environ: dict[str, str] | None = None
) -> list[tuple[str, str]]:
    directories = skill_directories(
        {"HOME": str(HOME), **(environ or {})}, OWN, cwd=cwd, project_root=ROOT, extra=extra
    )
    return [(str(directory.path), directory.scope) for directory in directories]


def test_the_users_come_before_the_projects() -> None:
    assert found() == [
        ("/home/ada/.claude/skills", "global"),
        ("/home/ada/.agents/skills", "global"),
        ("/home/ada/.config/agents/skills", "global"),
        ("/home/ada/.config/crush/skills", "global"),
        *((f"/srv/project/{name}", "project") for name in PROJECT),
    ]


def test_those_of_the_folder_come_after_those_of_the_root() -> None:
    assert found(cwd=ROOT / "a/b")[-4:] == [
        (f"/srv/project/a/b/{name}", "project") for name in PROJECT
    ]
    assert len(found(cwd=ROOT / "a/b")) == 12


@pytest.mark.parametrize("value", ["/skills", " /skills ", "~/../../skills"])
def test_crush_skills_dir_replaces_the_users(value: str) -> None:
    paths = [Path(path) for path, _ in found(environ={"CRUSH_SKILLS_DIR": value})]
    assert len(paths) == 5
    assert paths[0] in (Path("/skills"), HOME / "../../skills")


@pytest.mark.parametrize("value", ["skills", "$UNSET/skills"])
def test_a_relative_crush_skills_dir_is_no_place(value: str) -> None:
    assert len(found(environ={"CRUSH_SKILLS_DIR": value})) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/more", ("/more", "global")),
        ("~/more", ("/home/ada/more", "global")),
        ("$PLACE/more", ("/place/more", "global")),
        ("${PLACE}/more", ("/place/more", "global")),
        ("more", ("/srv/project/more", "project")),
        ("./more", ("/srv/project/more", "project")),
    ],
)
def test_more_directories_can_be_named(text: str, expected: tuple[str, str]) -> None:
    assert found(text, environ={"PLACE": "/place"})[4] == expected


@pytest.mark.parametrize("text", ["", " ", "$UNSET/more", "a\0b"])
def test_what_names_no_place_is_passed_over(text: str) -> None:
    assert found(text) == found()


def test_xdg_moves_the_directory_that_programs_share() -> None:
    paths = [path for path, _ in found(environ={"XDG_CONFIG_HOME": "/xdg"})]
    assert "/xdg/agents/skills" in paths
    assert "/home/ada/.config/agents/skills" not in paths
