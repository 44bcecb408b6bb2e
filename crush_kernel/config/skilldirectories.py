"""Where skills are looked for: the user's directories, then the project's.

Source: Crush, skills, directories.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from crush_kernel.config.directories import Directories, home_directory

SkillScope = Literal["built-in", "global", "project"]

PROJECT_DIRECTORIES: Final = (
    ".agents/skills",
    ".crush/skills",
    ".claude/skills",
    ".cursor/skills",
)


@dataclass(frozen=True, slots=True)
class SkillDirectory:
    """A directory of skills; it need not exist."""

    path: Path
    scope: SkillScope


def skill_directories(
    environ: Mapping[str, str],
    directories: Directories,
    *,
    cwd: Path,
    project_root: Path,
    extra: tuple[str, ...] = (),
) -> tuple[SkillDirectory, ...]:
    """Return the directories of skills; of two skills of a name that in the later one counts.

    Args:
        environ: the user's environment.
        directories: the user's directories.
        cwd: the folder, a real path.
        project_root: the project's root, a real path.
        extra: what the user names beside the usual ones; relative to the folder.
    """
    user = (*_user_directories(environ, directories), *_named(extra, cwd, environ))
    folders = dict.fromkeys((project_root, cwd))
    project = (folder / name for folder in folders for name in PROJECT_DIRECTORIES)
    found = dict.fromkeys(
        (
            *(SkillDirectory(path, scope_of(path, project_root)) for path in user),
            *(SkillDirectory(path, "project") for path in project),
        )
    )
    return tuple(found)


def _user_directories(environ: Mapping[str, str], directories: Directories) -> Iterator[Path]:
    home = home_directory(environ)
    if only := environ.get("CRUSH_SKILLS_DIR", "").strip():
        # A relative one would mean another place for every notebook.
        path = _expanded(only, environ)
        if path is not None and path.is_absolute():
            yield path
        return
    yield home / ".claude/skills"
    yield home / ".agents/skills"
    xdg = Path(environ.get("XDG_CONFIG_HOME", "").strip())
    yield (xdg if xdg.is_absolute() else home / ".config") / "agents/skills"
    yield directories.config / "skills"


def _named(texts: tuple[str, ...], cwd: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    for text in texts:
        if (path := _expanded(text, environ)) is not None:
            yield cwd / path


def _expanded(text: str, environ: Mapping[str, str]) -> Path | None:
    """Return `text` with a leading `~` or `$VARIABLE` replaced; `None` if it says nothing."""
    head, slash, rest = text.strip().partition("/")
    if head == "~":
        head = str(home_directory(environ))
    elif head.startswith("$"):
        head = environ.get(head[1:].strip("{}"), "")
        if not head:
            return None
    whole = f"{head}{slash}{rest}"
    return Path(whole) if whole and "\0" not in whole else None


def scope_of(path: Path, project_root: Path) -> SkillScope:
    """Return whose what lies at `path` is, whatever links lead there."""
    is_inside = Path(os.path.realpath(path)).is_relative_to(project_root)
    return "project" if is_inside else "global"
