"""Look at folders and text files again and again, reading only what has changed.

Before every request the same few places are looked at. A folder's names are listed again
when the folder was changed, a file is read again when it was: `stat` tells. A change within
the same tick of the file system's clock as the last look would go unseen, so what was changed
a moment ago is not yet taken for known.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, Literal, TypeVar

from crush_kernel.files.names import KEY_FOLDERS
from crush_kernel.files.opening import open_real
from crush_kernel.files.textfile import decode, detect, shown

MAX_NAMES = 100_000
"""How many names of one folder are looked at; a folder can hold millions."""

_TICK_NS = 2_000_000_000
"""What the coarsest file system takes for one moment. Source: FAT, modification times."""

Kind = Literal["folder", "file", "link", "other"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class FileText:
    """The beginning of a text file, or all of it."""

    text: str
    """With `\\n` for every line end, without byte-order mark and blank lines at the end."""
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that is there and is not read."""

    reason: str
    """Completes a sentence that begins with its name: `is no text`."""


_Signature = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Known(Generic[T]):
    signature: _Signature
    value: T


class DiskCache:
    """Remembers what was in folders and files. For one thread at a time."""

    def __init__(self, now_ns: Callable[[], int] = time.time_ns) -> None:
        """Begin with nothing known; `now_ns` is the clock that files are stamped by."""
        self._now_ns = now_ns
        self._folders: dict[Path, _Known[tuple[Entry, ...]]] = {}
        self._files: dict[tuple[Path, int], _Known[FileText | Unreadable]] = {}

    def entries(self, folder: Path) -> tuple[Entry, ...]:
        """Return what is in `folder` by name; nothing if it is no folder or closed to us."""
        try:
            facts = folder.stat()
            signature = _signature(facts)
            known = self._folders.get(folder)
            if known and known.signature == signature:
                return known.value
            found = _list(folder) if stat.S_ISDIR(facts.st_mode) else ()
        except (OSError, ValueError):
            return ()
        if self._is_settled(facts):
            self._folders[folder] = _Known(signature, found)
        return found

    def text(self, path: Path, facts: os.stat_result, *, max_bytes: int) -> FileText | Unreadable:
        """Return the text of `path`, or why it is not read.

        Args:
            path: a real path, without links.
            facts: what `stat` said of it just now.
            max_bytes: how much of it, in UTF-8. A cut is made between lines where possible.
        """
        signature = _signature(facts)
        known = self._files.get((path, max_bytes))
        if known and known.signature == signature:
            return known.value
        value = _read(path, max_bytes)
        if self._is_settled(facts):
            self._files[path, max_bytes] = _Known(signature, value)
        return value

    def _is_settled(self, facts: os.stat_result) -> bool:
        return max(facts.st_mtime_ns, facts.st_ctime_ns) + _TICK_NS < self._now_ns()


def _signature(facts: os.stat_result) -> _Signature:
    return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def _list(folder: Path) -> tuple[Entry, ...]:
    with os.scandir(folder) as entries:
        found = [Entry(entry.name, _kind(entry)) for entry in islice(entries, MAX_NAMES)]
    return tuple(sorted(found, key=lambda entry: os.fsencode(entry.name)))


def _kind(entry: "os.DirEntry[str]") -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _read(path: Path, max_bytes: int) -> FileText | Unreadable:
    try:
        descriptor = open_real(path)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Unreadable("is no regular file")
            # UTF-32 takes four bytes for what UTF-8 may write in one.
            limit = 4 * (max_bytes + 1)
            data = file.read(limit)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return Unreadable("has become a link")
        return Unreadable(f"cannot be read: {(error.strerror or str(error)).lower()}")
    is_head = len(data) == limit
    text_format = detect(data, is_head=is_head)
    if text_format is None:
        return Unreadable("is no text")
    text = shown(decode(data, text_format)).replace("\r\n", "\n").replace("\r", "\n")
    return cut(text, max_bytes, is_head=is_head)


def cut(text: str, max_bytes: int, *, is_head: bool = False) -> FileText:
    """Return what of `text` fits into `max_bytes` of UTF-8, cut between lines where possible.

    Args:
        text: without half characters.
        max_bytes: how much may be left.
        is_head: whether `text` is only a beginning already.
    """
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return FileText(text.rstrip(), is_cut=is_head)
    head = encoded[:max_bytes].decode("utf-8", "ignore")
    line_end = head.rfind("\n")
    # A file of one long line is cut within it.
    head = head[:line_end] if line_end > len(head) // 2 else head
    return FileText(head.rstrip(), is_cut=True)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a link may lead."""

    root: Path | None
    """A real path; `None` is everywhere."""

    def admit(self, real: Path) -> bool:
        """Return whether `real`, a path without links, may be read: never where keys are."""
        if self.root is None:
            return KEY_FOLDERS.isdisjoint(real.parts)
        if not real.is_relative_to(self.root):
            return False
        return KEY_FOLDERS.isdisjoint(real.relative_to(self.root).parts)


@dataclass(slots=True)
class Walk:
    """How far a walk through folders may still go; spent on the way."""

    bounds: Bounds
    entries: int
    """How many names it may look at."""
    depth: int
    """How many folders deep."""
    deadline_s: float
    """Of `time.monotonic()`."""
    is_cut: bool = False
    """Whether it stopped before it had seen everything."""

    def may_go_on(self) -> bool:
        """Return whether there is time and number left for another name; counts it."""
        self.entries -= 1
        if self.entries < 0 or time.monotonic() > self.deadline_s:
            self.is_cut = True
        return not self.is_cut


def walk_files(disk: DiskCache, folder: Path, walk: Walk) -> Iterator[Path]:
    """Yield the files below `folder`, by name, links to files and folders included.

    A folder that a link leads out of bounds to, or that is reached a second time, such as by a
    link in a circle, is passed over. Whether a file may be read is for the caller to decide.
    """
    yield from _walk(disk, folder, walk, depth=0, seen=set())


_PASSED_OVER = KEY_FOLDERS.union((".git", ".hg", ".svn", "node_modules", "__pycache__"))


def _walk(
    disk: DiskCache, folder: Path, walk: Walk, *, depth: int, seen: set[tuple[int, int]]
) -> Iterator[Path]:
    identity = _identity(folder)
    if identity is None or identity in seen:
        return
    seen.add(identity)
    if depth > walk.depth:
        walk.is_cut = True
        return
    for entry in disk.entries(folder):
        if not walk.may_go_on():
            return
        path = folder / entry.name
        if entry.kind == "folder" or (entry.kind == "link" and os.path.isdir(path)):  # noqa: PTH112 - it raises nothing
            if entry.name not in _PASSED_OVER and _is_within(path, entry, walk.bounds):
                yield from _walk(disk, path, walk, depth=depth + 1, seen=seen)
        elif entry.kind != "other":
            yield path


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        facts = folder.stat()
    except (OSError, ValueError):
        return None
    return (facts.st_dev, facts.st_ino)


def _is_within(path: Path, entry: Entry, bounds: Bounds) -> bool:
    return entry.kind != "link" or bounds.admit(Path(os.path.realpath(path)))
