"""Where custom agents are looked for."""

import os
from pathlib import Path

from crush_kernel.config.agentdirectories import agent_directories
from crush_kernel.config.directories import Directories

HOME = Path("/home/ada")
ROOT = Path("/srv/project")
OWN = Directories(HOME / ".config/crush", HOME / "data", HOME / "cache")


def found(cwd: Path, root: Path = ROOT) -> list[tuple[str, str]]:
    directories = agent_directories({"HOME": str(HOME)}, OWN, cwd=cwd, project_root=root)
    return [(str(directory.path), directory.scope) for directory in directories]


def test_the_users_come_first_then_the_projects_from_its_root_to_the_folder() -> None:
    assert found(ROOT / "a/b") == [
        ("/home/ada/.claude/agents", "global"),
        ("/home/ada/.config/crush/agents", "global"),
        ("/srv/project/.claude/agents", "project"),
        ("/srv/project/.crush/agents", "project"),
        ("/srv/project/a/.claude/agents", "project"),
        ("/srv/project/a/.crush/agents", "project"),
        ("/srv/project/a/b/.claude/agents", "project"),
        ("/srv/project/a/b/.crush/agents", "project"),
    ]


def test_each_directory_is_searched_once() -> None:
    assert len(found(ROOT)) == 4


def test_a_folder_outside_of_the_root_is_searched_too() -> None:
    assert [path for path, _ in found(Path("/srv/x"))][-2:] == [
        "/srv/x/.claude/agents",
        "/srv/x/.crush/agents",
    ]


def test_the_users_agents_count_as_the_projects_where_the_home_is_the_project(
    tmp_path: Path,
) -> None:
    home = Path(os.path.realpath(tmp_path))
    directories = agent_directories({"HOME": str(home)}, OWN, cwd=home, project_root=home)
    scopes = {directory.path: directory.scope for directory in directories}
    assert scopes[home / ".claude/agents"] == "project"
