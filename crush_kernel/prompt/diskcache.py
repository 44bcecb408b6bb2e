"""Look at folders and text files again and again, reading only what has changed.

Before every request the same few places are looked at. A folder's names are listed again
when the folder was changed, a file is read again when it was: `stat` tells. What was made of
many of them is `Remembered` and made anew when one has changed. A change within the same tick
of the file system's clock as the last look would go unseen, so what was changed a moment ago
is not yet taken for known.
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

from crush_kernel.files.keyplaces import KEY_FOLDERS
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

_Marks = dict[str, _Signature | None]
"""What was looked at, by path, and what it was; `None` where nothing was."""


@dataclass(frozen=True, slots=True)
class _Known(Generic[T]):
    signature: _Signature
    value: T


class DiskCache:
    """Remembers what was in folders and files. For one thread at a time."""

    def __init__(self, now_ns: Callable[[], int] = time.time_ns) -> None:
        """Begin with nothing known; `now_ns` is the clock that files are stamped by."""
        self._now_ns = now_ns
        self._folders: dict[str, _Known[tuple[Entry, ...]]] = {}
        self._files: dict[tuple[str, int], _Known[FileText | Unreadable]] = {}
        self._marks: _Marks = {}
        self._is_settled = True

    def stat(self, path: Path | str) -> os.stat_result | None:
        """Return what `path` is, links followed; `None` if it is nothing that can be reached."""
        try:
            facts = os.stat(path)  # noqa: PTH116 - of a text it takes half the time
        except (OSError, ValueError):
            self._marks[str(path)] = None
            return None
        self._marks[str(path)] = _signature(facts)
        self._is_settled &= self._has_settled(facts)
        return facts

    def entries(self, folder: Path) -> tuple[Entry, ...]:
        """Return what is in `folder` by name; nothing if it is no folder or closed to us."""
        facts = self.stat(folder)
        if facts is None or not stat.S_ISDIR(facts.st_mode):
            return ()
        key, signature = str(folder), _signature(facts)
        known = self._folders.get(key)
        if known and known.signature == signature:
            return known.value
        try:
            found = _list(folder)
        except OSError:
            return ()
        if self._has_settled(facts):
            self._folders[key] = _Known(signature, found)
        return found

    def text(self, path: Path, facts: os.stat_result, *, max_bytes: int) -> FileText | Unreadable:
        """Return the text of `path`, or why it is not read.

        Args:
            path: a real path, without links.
            facts: what `stat` said of it just now.
            max_bytes: how much of it, in UTF-8. A cut is made between lines where possible.
        """
        key, signature = (str(path), max_bytes), _signature(facts)
        known = self._files.get(key)
        if known and known.signature == signature:
            return known.value
        value = _read(path, max_bytes)
        if self._has_settled(facts):
            self._files[key] = _Known(signature, value)
        return value

    def distrust(self) -> None:
        """Have nothing concluded from this look: it was not finished."""
        self._is_settled = False

    def watch(self, make: Callable[[], T]) -> tuple[T, "_Marks | None"]:
        """Return what `make` makes of the disk, and all that it has looked at.

        `None` says that some of it changed a moment ago, so that nothing may be concluded.
        """
        self._marks, self._is_settled = {}, True
        value = make()
        return value, self._marks if self._is_settled else None

    def _has_settled(self, facts: os.stat_result) -> bool:
        return max(facts.st_mtime_ns, facts.st_ctime_ns) + _TICK_NS < self._now_ns()


class Remembered(Generic[T]):
    """Something that was made of folders and files, made anew when one of them has changed.

    For one thread at a time.
    """

    def __init__(self, disk: DiskCache, make: Callable[[], T]) -> None:
        """Make nothing yet; `make` looks at the disk through `disk` only."""
        self._disk = disk
        self._make = make
        self._known: tuple[T, _Marks] | None = None

    def value(self) -> T:
        """Return it as it is now."""
        if self._known is not None and _is_unchanged(self._known[1]):
            return self._known[0]
        value, marks = self._disk.watch(self._make)
        self._known = None if marks is None else (value, marks)
        return value


def _is_unchanged(marks: "_Marks") -> bool:
    for path, signature in marks.items():
        try:
            facts = os.stat(path)  # noqa: PTH116 - as above
        except (OSError, ValueError):
            if signature is not None:
                return False
        else:
            if signature != _signature(facts):
                return False
    return True


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

    @property
    def is_late(self) -> bool:
        """Return whether its time is over."""
        return time.monotonic() > self.deadline_s

    def may_go_on(self) -> bool:
        """Return whether there is time and number left for another name; counts it."""
        self.entries -= 1
        if self.entries < 0 or self.is_late:
            self.is_cut = True
        return not self.is_cut


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that a walk came by."""

    path: Path
    """As it was reached."""
    real: Path
    """Without links."""


def files_in(disk: DiskCache, folder: Path) -> Iterator[FoundFile]:
    """Yield the files in `folder` itself, by name, links to files included.

    Whether a file may be read is for the caller to decide.
    """
    start = FoundFile(folder, Path(os.path.realpath(folder)))
    for entry in disk.entries(folder):
        if entry.kind in ("file", "link"):
            yield _below(start, entry)


def walk_files(disk: DiskCache, folder: Path, walk: Walk) -> Iterator[FoundFile]:
    """Yield the files below `folder`, by name, links to files and folders included.

    A folder that a link leads out of bounds to, or that is reached a second time, such as by a
    link in a circle, is passed over. Whether a file may be read is for the caller to decide.
    """
    start = FoundFile(folder, Path(os.path.realpath(folder)))
    yield from _walk(disk, start, walk, depth=0, seen=set())


_PASSED_OVER = KEY_FOLDERS.union((".git", ".hg", ".svn", "node_modules", "__pycache__"))


def _walk(
    disk: DiskCache, folder: FoundFile, walk: Walk, *, depth: int, seen: set[tuple[int, int]]
) -> Iterator[FoundFile]:
    facts = disk.stat(folder.path)
    if facts is None or (identity := (facts.st_dev, facts.st_ino)) in seen:
        return
    seen.add(identity)
    if depth > walk.depth:
        walk.is_cut = True
        return
    for entry in disk.entries(folder.path):
        if not walk.may_go_on():
            if walk.is_late:
                disk.distrust()
            return
        found = _below(folder, entry)
        if entry.kind == "folder" or (entry.kind == "link" and _is_folder(disk, found.path)):
            is_within = entry.kind != "link" or walk.bounds.admit(found.real)
            if entry.name not in _PASSED_OVER and is_within:
                yield from _walk(disk, found, walk, depth=depth + 1, seen=seen)
        elif entry.kind != "other":
            yield found


def _below(folder: FoundFile, entry: Entry) -> FoundFile:
    path = folder.path / entry.name
    # Only links have to be asked where they lead, which takes a call for each folder above.
    real = os.path.realpath(path) if entry.kind == "link" else folder.real / entry.name
    return FoundFile(path, Path(real))


def _is_folder(disk: DiskCache, path: Path) -> bool:
    facts = disk.stat(path)
    return facts is not None and stat.S_ISDIR(facts.st_mode)
