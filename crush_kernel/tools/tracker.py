"""Which files the model knows, and in which version: by content, not by time.

A file is fresh while its bytes are the ones that were last shown to the model or written
for it. What it looked like then is kept for a while, to tell the model what has changed.
"""

from collections import OrderedDict
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Literal
from weakref import WeakValueDictionary

import anyio

MAX_KEPT_FILE_BYTES = 250_000
MAX_KEPT_BYTES = 8_000_000
"""How much former content is kept in all; the files longest unused go first."""

FileState = Literal["unread", "fresh", "stale"]


class ReadTracker:
    """Remembers what the model has seen of each file. Paths are real: without links.

    Any thread may record and ask; locks are for one event loop.
    """

    def __init__(self) -> None:
        self._digests: dict[Path, bytes] = {}
        self._contents: OrderedDict[Path, bytes] = OrderedDict()
        self._kept_bytes = 0
        self._recording = Lock()
        self._locks: WeakValueDictionary[Path, anyio.Lock] = WeakValueDictionary()

    def record(self, path: Path, content: bytes) -> None:
        """Note that the model knows `path` with these bytes, all of the file."""
        digest = _digest(content)
        with self._recording:
            self._digests[path] = digest
            self._forget(path)
            if len(content) <= MAX_KEPT_FILE_BYTES:
                self._contents[path] = content
                self._kept_bytes += len(content)
            while self._kept_bytes > MAX_KEPT_BYTES:
                self._forget(next(iter(self._contents)))

    def state_of(self, path: Path, content: bytes) -> FileState:
        """Return whether the model knows `path`, which now has the bytes `content`."""
        known = self._digests.get(path)
        if known is None:
            return "unread"
        return "fresh" if known == _digest(content) else "stale"

    def seen(self, path: Path) -> bytes | None:
        """Return the bytes that were last recorded, if they are still kept."""
        return self._contents.get(path)

    def lock(self, path: Path) -> anyio.Lock:
        """Return the lock to hold from the last look at `path` until it is replaced."""
        if (lock := self._locks.get(path)) is None:
            self._locks[path] = lock = anyio.Lock()
        return lock

    def _forget(self, path: Path) -> None:
        self._kept_bytes -= len(self._contents.pop(path, b""))


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
