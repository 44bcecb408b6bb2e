"""Read many files of a project as they are: contents, rights to run, where links lead.

Folders on the way are gone through one by one and no link is followed, so that nothing from
outside the project is read. A folder that was opened last stays open, since what is read next
is mostly in it.
"""

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from crush_kernel.files.opening import open_real
from crush_kernel.history.journal.fileversions import Content
from crush_kernel.tools.paths import reason

MAX_FILE_BYTES: Final = 10_000_000
"""Of a file whose content is kept."""

TOO_LARGE: Final = f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB"
TOO_MUCH: Final = "too much has changed at once"

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class There:
    """What is at a path now."""

    content: Content
    stamp: list[int]
    """What changes when it does, as far as one can tell without reading it."""


@dataclass(slots=True)
class Budget:
    """How much may still be read."""

    files: int
    size: int

    @property
    def has_room(self) -> bool:
        """Whether anything may."""
        return self.files > 0 and self.size > 0

    def take(self, size: int) -> bool:
        """Take a file of `size` bytes, and return whether there was room for it."""
        if not self.has_room:
            return False
        self.files -= 1
        self.size -= size
        return True


class EntryReader:
    """Reads below one folder; leaving it closes what is open. One thread at a time."""

    def __init__(self, root: Path) -> None:
        """Read nothing yet; `root` is a real path."""
        self._root = root
        self._folder = ""
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def read(self, path: str, budget: Budget) -> There | None:
        """Return what is at `path`; `None` if that is nothing, or nothing that can be kept.

        Args:
            path: relative to the root.
            budget: what a file is taken from; without room its content is left out.
        """
        folder, _, name = path.rpartition("/")
        try:
            return self._read(name, self._opened(folder), budget)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:  # a link has taken the place of a folder above it
                return None
            return There(Content(None, "", f"it cannot be read: {reason(error)}"), [0])

    def _read(self, name: str, folder: int, budget: Budget) -> There | None:
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        stamp = [facts.st_size, facts.st_mtime_ns, facts.st_mode]
        if stat.S_ISLNK(facts.st_mode):
            return There(Content(os.fsencode(os.readlink(name, dir_fd=folder)), "link"), stamp)
        if not stat.S_ISREG(facts.st_mode):
            return None
        kind = "program" if facts.st_mode & stat.S_IXUSR else "file"
        rights = facts.st_mode & 0o777
        if facts.st_size > MAX_FILE_BYTES:
            return There(Content(None, kind, TOO_LARGE, rights), stamp)
        if not budget.take(facts.st_size):
            return There(Content(None, kind, TOO_MUCH, rights), stamp)
        with os.fdopen(os.open(name, _FLAGS, dir_fd=folder), "rb", buffering=0) as file:
            data = _all_of(file.fileno(), facts.st_size)
            return There(Content(data, kind, rights=rights), stamp)

    def _opened(self, folder: str) -> int:
        if self._descriptor is None or folder != self._folder:
            self._close()
            self._descriptor = open_real(self._root / folder)
            self._folder = folder
        return self._descriptor

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _all_of(descriptor: int, size: int) -> bytes:
    """Return what is in a file, which had `size` bytes a moment ago."""
    parts = [os.read(descriptor, size + 1)]
    while parts[-1] and sum(map(len, parts)) <= MAX_FILE_BYTES:
        parts.append(os.read(descriptor, MAX_FILE_BYTES))
    return b"".join(parts)[:MAX_FILE_BYTES]
