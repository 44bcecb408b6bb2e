"""Where custom agents are looked for: the user's directories, then the project's."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from crush_kernel.config.directories import Directories, home_directory
from crush_kernel.config.skilldirectories import SkillDirectory, scope_of

PROJECT_DIRECTORIES: Final = (".claude/agents", ".crush/agents")


def agent_directories(
    environ: Mapping[str, str], directories: Directories, *, cwd: Path, project_root: Path
) -> tuple[SkillDirectory, ...]:
    """Return the directories of agents; of two agents of a name that in the later one counts.

    The project's are those of every folder from its root down to `cwd`; both are real paths.
    """
    user = (home_directory(environ) / ".claude/agents", directories.config / "agents")
    project = (
        folder / name for folder in _folders(cwd, project_root) for name in PROJECT_DIRECTORIES
    )
    found = dict.fromkeys(
        (
            *(SkillDirectory(path, scope_of(path, project_root)) for path in user),
            *(SkillDirectory(path, "project") for path in project),
        )
    )
    return tuple(found)


def _folders(cwd: Path, project_root: Path) -> Iterator[Path]:
    """Yield the folders from the root down to `cwd`."""
    if not cwd.is_relative_to(project_root):
        yield from (project_root, cwd)
        return
    yield project_root
    folder = project_root
    for name in cwd.relative_to(project_root).parts:
        folder /= name
        yield folder
