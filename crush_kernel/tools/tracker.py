"""Which lines of which files the model knows, and in which version: by content, not by time.

A file is fresh while its bytes are the ones that were last shown to the model or written
for it; how much of them was shown is a set of lines. What it looked like then is kept for a
while, to tell the model what has changed.

A search shows lines of files that it does not hold as a whole. Of those the tracker knows a
`Stamp` only, and takes the file for the same while that is the same; an edit then compares
the lines anyway, since it looks for the text in them.

When a summary takes the place of what was shown, all of it is forgotten (`forget`): the model
cannot see it any more, just as after a restart of the kernel, and would overwrite from
memory. It costs a view.
"""

import os
from collections import OrderedDict
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Literal, NamedTuple
from weakref import WeakValueDictionary

import anyio

from crush_kernel.tools.text.lineset import EVERY_LINE, NO_LINE, LineSet

MAX_KEPT_FILE_BYTES = 250_000
MAX_KEPT_BYTES = 8_000_000
"""How much former content is kept in all; the files longest unused go first."""

FileState = Literal["unread", "fresh", "stale"]


class Stamp(NamedTuple):
    """What changes with a file, nearly always: for when its bytes are not at hand."""

    size: int
    modified_ns: int
    changed_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """Return the stamp of a file of that `status`."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the model knows of a file."""

    state: FileState
    lines: LineSet = NO_LINE
    """Which lines it was shown, or wrote; of a stale file, as they were then."""
    has_cut: bool = False
    """Whether it was shown only a part of some line."""

    @property
    def is_whole(self) -> bool:
        """Return whether nothing of that version is unknown to it."""
        return self.lines.has_all and not self.has_cut


UNREAD = Knowledge("unread")
WHOLE = Knowledge("fresh", EVERY_LINE)


@dataclass(frozen=True, slots=True)
class _Record:
    digest: bytes | None
    """Of the content; `None` if only lines of it were seen."""
    stamp: Stamp | None
    lines: LineSet
    has_cut: bool


class ReadTracker:
    """Remembers what the model has seen of each file. Paths are real: without links.

    Any thread may record and ask; locks are for one event loop.
    """

    def __init__(self) -> None:
        self._records: dict[Path, _Record] = {}
        self._contents: OrderedDict[Path, bytes] = OrderedDict()
        self._kept_bytes = 0
        self._recording = Lock()
        self._locks: WeakValueDictionary[Path, anyio.Lock] = WeakValueDictionary()

    def record(
        self,
        path: Path,
        content: bytes,
        lines: LineSet = EVERY_LINE,
        *,
        has_cut: bool = False,
        stamp: Stamp | None = None,
    ) -> None:
        """Note that the model was shown `lines` of `path`, whose bytes are `content`.

        Args:
            path: of the file.
            content: all of it, also if few lines were shown.
            lines: which; they join those that it was shown of the same content.
            has_cut: whether some of these lines were not shown to their end.
            stamp: of the file that the content was read from.
        """
        digest = _digest(content)
        with self._recording:
            known = self._records.get(path)
            record = _Record(digest, stamp, lines, has_cut)
            if known is not None and _is_of(known, digest, stamp):
                record = _joined(known, record)
            self._records[path] = record
            self._forget(path)
            if len(content) <= MAX_KEPT_FILE_BYTES:
                self._contents[path] = content
                self._kept_bytes += len(content)
            while self._kept_bytes > MAX_KEPT_BYTES:
                self._forget(next(iter(self._contents)))

    def record_lines(
        self, path: Path, stamp: Stamp, lines: LineSet, *, has_cut: bool = False
    ) -> None:
        """Note that the model was shown `lines` of `path`, which has that `stamp`.

        What is known of another version stays: only its changes can tell what became of it.
        """
        with self._recording:
            known = self._records.get(path)
            if known is not None and known.stamp == stamp:
                record = _Record(known.digest, stamp, lines, has_cut)
                self._records[path] = _joined(known, record)
            elif known is None or known.digest is None:
                self._records[path] = _Record(None, stamp, lines, has_cut)

    def knowledge(self, path: Path, content: bytes, stamp: Stamp | None = None) -> Knowledge:
        """Return what the model knows of `path`, which now has the bytes `content`."""
        known = self._records.get(path)
        if known is None:
            return UNREAD
        if known.digest is None:
            return _told(known, "fresh") if known.stamp == stamp else UNREAD
        return _told(known, "fresh" if known.digest == _digest(content) else "stale")

    def seen(self, path: Path) -> bytes | None:
        """Return the bytes that were last recorded, if they are still kept."""
        return self._contents.get(path)

    def forget(self) -> None:
        """Know nothing any more, since what was shown is not in the conversation any more."""
        with self._recording:
            self._records.clear()
            self._contents.clear()
            self._kept_bytes = 0

    def lock(self, path: Path) -> anyio.Lock:
        """Return the lock to hold from the last look at `path` until it is replaced."""
        if (lock := self._locks.get(path)) is None:
            self._locks[path] = lock = anyio.Lock()
        return lock

    def _forget(self, path: Path) -> None:
        self._kept_bytes -= len(self._contents.pop(path, b""))


def _joined(known: _Record, record: _Record) -> _Record:
    """Return `record` with what was `known` before of the same content."""
    if any(each.lines.has_all and not each.has_cut for each in (known, record)):
        return replace(record, lines=EVERY_LINE, has_cut=False)
    return replace(
        record, lines=known.lines | record.lines, has_cut=known.has_cut or record.has_cut
    )


def _is_of(known: _Record, digest: bytes, stamp: Stamp | None) -> bool:
    if known.digest is None:
        return stamp is not None and known.stamp == stamp
    return known.digest == digest


def _told(known: _Record, state: FileState) -> Knowledge:
    return Knowledge(state, known.lines, has_cut=known.has_cut)


def _digest(content: bytes) -> bytes:
    # Processors have it built in, so that it is the fastest there is.
    return sha256(content).digest()
