"""Memory files: what people wrote down for agents, in the project and for themselves.

They are looked for from the project's root down to the folder, under all the names that are in
use, in every spelling that exists. The project may be a stranger's: a link must not bring in what
is outside of it, and neither size nor number, nor a pipe in place of a file, may harm a turn.

Source: Crush, context files.
"""

import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from crush_kernel.files.names import printable
from crush_kernel.prompt.diskcache import (
    Bounds,
    DiskCache,
    FileText,
    Remembered,
    Unreadable,
    Walk,
    cut,
    walk_files,
)
from crush_kernel.prompt.hiddentext import without_hidden
from crush_kernel.prompt.system import MemoryText
from crush_kernel.wording import counted

MAX_FILE_BYTES = 40_000
"""How much of one file is read."""

MAX_PROJECT_BYTES = 100_000
MAX_GLOBAL_BYTES = 50_000
"""How much of all. They are apart, so that a project cannot crowd out the user's own."""

MAX_FILES = 200
"""Of the project and of the user each: every file has a heading that counts too."""

MAX_WALK_ENTRIES = 2_000
MAX_WALK_DEPTH = 8
MAX_SECONDS = 0.5
"""How far a folder of rules is searched."""

_MIN_BYTES = 500
"""Less room than this is not worth a file's beginning."""

_STEMS = ("agents", "claude", "crush", "gemini")
NAMES = frozenset(
    (".cursorrules", *(f"{stem}{kind}.md" for stem in _STEMS for kind in ("", ".local")))
)
"""Names of memory files, in lower case."""

RULES = "rules"
_NAMES_BELOW = {
    ".github": frozenset(("copilot-instructions.md",)),
    ".cursor": frozenset((RULES,)),
}
"""The same in folders of these names."""

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)


@dataclass(frozen=True, slots=True)
class MemoryPlaces:
    """Where to look."""

    cwd: Path
    project_root: Path
    """Real paths."""
    config: Path
    """The user's configuration directory."""
    home: Path
    environ: Mapping[str, str] = field(repr=False)
    """For `$VARIABLES` in the paths below."""
    context_paths: tuple[str, ...] = ()
    """More files and folders; relative ones start from the folder and stay in the project."""
    global_context_paths: tuple[str, ...] = ()
    """What is read instead of the user's own `CRUSH.md` and `AGENTS.md`."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What was found."""

    files: tuple[MemoryText, ...] = ()
    left_out: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    """A sentence for the user on each file that is not read, or not all of it."""


class MemoryFiles:
    """Reads the memory files of one project, again before every request."""

    def __init__(self, places: MemoryPlaces, disk: DiskCache) -> None:
        self._places = places
        self._disk = disk
        self._memory = Remembered(disk, self._read)

    def read(self) -> Memory:
        """Return the files as they are now: the project's from the root down, then the user's.

        Of the project's, those in folders of rules come last. Blocks, for half a second at the
        worst that a project can do.
        """
        return self._memory.value()

    def _read(self) -> Memory:
        places = self._places
        reading = _Reading(places, self._disk)
        project = Bounds(places.project_root)
        room = _Room(MAX_PROJECT_BYTES, is_global=False)
        # Folders of rules last: however many these are, the files by name have their room.
        found = [*map(self._named_in, _folders(places.cwd, places.project_root))]
        for is_folder in (False, True):
            for path in chain.from_iterable(found):
                if (path.name == RULES) == is_folder:
                    reading.take(path, project, room)
        for path, bounds in self._context_paths():
            reading.take(path, bounds, room)
        room = _Room(MAX_GLOBAL_BYTES, is_global=True)
        for path in self._global_paths():
            reading.take(path, Bounds(None), room)
        return reading.memory()

    def _named_in(self, folder: Path) -> list[Path]:
        """Return what has the name of a memory file in `folder`, by bytes as Crush has them."""
        found: list[Path] = []
        for entry in self._disk.entries(folder):
            if entry.name.casefold() in NAMES:
                found.append(folder / entry.name)
            elif (names := _NAMES_BELOW.get(entry.name)) is not None:
                inner = folder / entry.name
                found += [
                    inner / below.name
                    for below in self._disk.entries(inner)
                    if below.name.casefold() in names
                ]
        return sorted(found, key=os.fsencode)

    def _context_paths(self) -> Iterator[tuple[Path, Bounds]]:
        for text in self._places.context_paths:
            if (path := self._expanded(text)) is not None:
                # Who names a place in full means that place; a relative one is the project's.
                bounds = Bounds(None if path.is_absolute() else self._places.project_root)
                yield self._places.cwd / path, bounds

    def _global_paths(self) -> Iterator[Path]:
        config = self._places.config
        if not self._places.global_context_paths:
            yield config / "CRUSH.md"
            yield config.parent / "AGENTS.md"
        for text in self._places.global_context_paths:
            if (path := self._expanded(text)) is not None:
                yield config / path

    def _expanded(self, text: str) -> Path | None:
        """Return `text` with `~` and variables replaced; `None` if one is not set."""
        environ = self._places.environ
        names = [first or second for first, second in _VARIABLE.findall(text)]
        if not text.strip() or "\0" in text or any(not environ.get(name) for name in names):
            return None
        text = _VARIABLE.sub(lambda match: environ[match[1] or match[2]], text)
        if text == "~" or text.startswith("~/"):
            return self._places.home / text[2:]
        return Path(text)


@dataclass(slots=True)
class _Room:
    """How much more fits."""

    bytes_left: int
    is_global: bool
    files_left: int = MAX_FILES


class _Reading:
    """One look at all files."""

    def __init__(self, places: MemoryPlaces, disk: DiskCache) -> None:
        self._places = places
        self._disk = disk
        self._deadline_s = time.monotonic() + MAX_SECONDS
        self._seen: set[tuple[int, int]] = set()
        self._files: list[MemoryText] = []
        self._left_out: list[str] = []
        self._notices: list[str] = []

    def memory(self) -> Memory:
        """Return what was read."""
        notices = self._notices
        if self._left_out:
            count = len(self._left_out)
            what = "1 memory file does" if count == 1 else f"{count} memory files do"
            first = printable(self._left_out[0])
            notices = [*notices, f"{what} not fit into the prompt and are left out: {first} …"]
        return Memory(tuple(self._files), tuple(self._left_out), tuple(notices))

    def take(self, path: Path, bounds: Bounds, room: _Room) -> None:
        """Read `path`, or what is below it; nothing if it is not there."""
        facts = self._disk.stat(path)
        if facts is None:
            return
        real, name = Path(os.path.realpath(path)), self._shown(path)
        if not bounds.admit(real):
            self._refuse(name, "leads to where agents read nothing unasked")
        elif room.is_global and not _is_own(facts):
            self._refuse(name, "belongs to another user")
        elif stat.S_ISDIR(facts.st_mode):
            self._take_folder(path, bounds, room)
        elif not stat.S_ISREG(facts.st_mode):
            self._refuse(name, "is no regular file")
        elif (reason := self._take_file(real, facts, name, room)) is not None:
            self._refuse(name, reason)

    def _take_folder(self, folder: Path, bounds: Bounds, room: _Room) -> None:
        """Read the text files below `folder`; what else is there does not matter."""
        walk = Walk(bounds, MAX_WALK_ENTRIES, MAX_WALK_DEPTH, self._deadline_s)
        for found in walk_files(self._disk, folder, walk):
            facts = self._disk.stat(found.path)
            if facts is None or not stat.S_ISREG(facts.st_mode):
                continue
            if bounds.admit(found.real) and (not room.is_global or _is_own(facts)):
                self._take_file(found.real, facts, self._shown(found.path), room)
        if walk.is_cut:
            self._notices.append(
                f"{printable(self._shown(folder))} holds too much to read it all as memory: "
                "the agent knows a part of it."
            )

    def _take_file(self, real: Path, facts: os.stat_result, name: str, room: _Room) -> str | None:
        """Keep the text of a regular file; return why not, if it cannot be read."""
        identity = (facts.st_dev, facts.st_ino)
        if identity in self._seen:
            return None
        self._seen.add(identity)
        if self._is_full(room):
            # Unread: of thousands of files, reading would take its time with each request.
            self._left_out.append(name)
            return None
        found = self._disk.text(real, facts, max_bytes=MAX_FILE_BYTES)
        if isinstance(found, Unreadable):
            return found.reason
        if found.text:
            self._keep(found, name, room)
        return None

    def _is_full(self, room: _Room) -> bool:
        return room.bytes_left < _MIN_BYTES or room.files_left <= 0

    def _keep(self, found: FileText, name: str, room: _Room) -> None:
        text, hidden = without_hidden(found.text)
        kept = cut(text, room.bytes_left, is_head=found.is_cut)
        size = len(kept.text.encode())
        room.bytes_left -= size
        room.files_left -= 1
        self._files.append(MemoryText(name, kept.text, room.is_global, kept.is_cut, hidden))
        if hidden:
            self._notices.append(
                f"{printable(name)} holds {counted(hidden, 'hidden character')}, which the agent "
                "does not get: look at the file with an editor that shows them."
            )
        if kept.is_cut:
            self._notices.append(
                f"{printable(name)} is too long for the prompt: the agent knows its first "
                f"{size // 1000} kB. Shorten it, or have it name files to read when needed."
            )

    def _refuse(self, name: str, reason: str) -> None:
        self._notices.append(f"{printable(name)} is not read as memory: it {reason}.")

    def _shown(self, path: Path) -> str:
        """Return how tools name `path`: from the folder if it is in the project."""
        if path.is_relative_to(self._places.project_root):
            return os.path.relpath(path, self._places.cwd)
        return str(path)


def _folders(cwd: Path, project_root: Path) -> tuple[Path, ...]:
    """Return the folders from the root down to `cwd`."""
    if not cwd.is_relative_to(project_root):
        return (cwd,)
    between = [folder for folder in cwd.parents if folder.is_relative_to(project_root)]
    return (*reversed(between), cwd)


def _is_own(facts: os.stat_result) -> bool:
    """Return whether nobody but this user and the administrator can have written a file."""
    return os.name == "nt" or facts.st_uid in (os.getuid(), 0)
