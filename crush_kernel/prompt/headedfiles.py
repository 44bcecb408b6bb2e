"""Files of skills and agents, read as far as it is safe to read what a project brings along.

A file that a stranger's project links to from elsewhere is not the project's to show, and what
lies where keys are kept is nobody's.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

from crush_kernel.config.skilldirectories import SkillScope
from crush_kernel.files.names import printable
from crush_kernel.prompt.diskcache import Bounds, DiskCache, FoundFile, Unreadable

MAX_NOTICES: Final = 3
"""How many sentences about one kind of files are told in a turn; its command tells all."""


class Listed(Protocol):
    """What the model sees of a file."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def description(self) -> str:
        """Return when it is used."""
        ...

    @property
    def location(self) -> str:
        """Return what to give to `view`."""
        ...


L = TypeVar("L", bound=Listed)


def within_room(entries: Iterable[L], room: int) -> tuple[L, ...]:
    """Return those of `entries` that fit into `room` bytes, by name; the first come first."""
    fitting: list[L] = []
    for entry in entries:
        size = len(f"{entry.name}{entry.description}{entry.location}".encode())
        if size <= room:
            room -= size
            fitting.append(entry)
    return tuple(sorted(fitting, key=lambda entry: entry.name))


def first_notices(notices: Sequence[str], command: str) -> tuple[str, ...]:
    """Return the first of `notices`, and how many more `/command` tells."""
    if (more := len(notices) - MAX_NOTICES) <= 0:
        return tuple(notices)
    return (*notices[:MAX_NOTICES], f"{more} more to say about {command}: /{command} tells it.")


@dataclass(frozen=True, slots=True)
class FaultyFile:
    """A file that cannot be used."""

    location: str
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Override:
    """Two files of one name."""

    name: str
    used: str
    """Where the one is that counts."""
    unused: str


@dataclass(frozen=True, slots=True)
class LocatedText:
    """A file that was read."""

    location: str
    """What to give to `view`."""
    text: str


@dataclass(frozen=True, slots=True)
class HeadedFiles:
    """Reads such files for one project. For one thread at a time."""

    disk: DiskCache
    cwd: Path
    """The folder, a real path."""
    project_root: Path
    """The project's root, a real path."""

    def bounds(self, scope: SkillScope) -> Bounds:
        """Return where links from a directory of `scope` may lead."""
        return Bounds(self.project_root if scope == "project" else None)

    def read(
        self, file: FoundFile, scope: SkillScope, *, max_bytes: int
    ) -> LocatedText | FaultyFile:
        """Return the text of `file`, whole or not at all."""
        location = self._shown(file.path)
        if printable(location) != location:
            return FaultyFile(printable(location), ("its path has characters that hide something",))
        if not self.bounds(scope).admit(file.real):
            return FaultyFile(location, ("it leads out of the project",))
        facts = self.disk.stat(file.path)
        if facts is None:
            return FaultyFile(location, ("it cannot be read",))
        if not stat.S_ISREG(facts.st_mode):
            return FaultyFile(location, ("it is no regular file",))
        found = self.disk.text(file.real, facts, max_bytes=max_bytes)
        if isinstance(found, Unreadable):
            return FaultyFile(location, (f"it {found.reason}",))
        if found.is_cut:
            return FaultyFile(location, (f"it is longer than {max_bytes // 1000} kB",))
        return LocatedText(location, found.text)

    def _shown(self, path: Path) -> str:
        """Return what to give to `view`."""
        if path.is_relative_to(self.project_root):
            return os.path.relpath(path, self.cwd)
        return str(path)
