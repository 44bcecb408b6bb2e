"""What a job printed: its last part in a file of bounded size that has no name.

The text is cleaned before it is written, piece by piece: neither the file nor any part of it
that is read holds a secret. Positions count the bytes of the text since its beginning.
"""

import logging
import os
import tempfile
from dataclasses import dataclass
from typing import Protocol

logger = logging.getLogger(__name__)

LOG_BYTES = 2 * 1024 * 1024
"""How much of a job's output is kept, the last of it."""


class TextStream(Protocol):
    """Cleans a text that comes in pieces."""

    def add(self, text: str) -> None:
        """Take in more of the text."""

    def take(self) -> str:
        """Return what has come since, as far as it can be shown before the rest is known."""
        ...

    def flush(self) -> str:
        """Return what was kept back: nothing follows."""
        ...


class PlainStream:
    """A text without secrets."""

    def __init__(self) -> None:
        self._text = ""

    def add(self, text: str) -> None:
        """Take in more of the text."""
        self._text += text

    def take(self) -> str:
        """Return what has come since the last time."""
        text, self._text = self._text, ""
        return text

    def flush(self) -> str:
        """Return the same: nothing is kept back."""
        return self.take()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a log."""

    text: str
    lost_bytes: int
    """How much before it is not kept any more."""


class JobLog:
    """A log that one job writes. Whoever opens it closes it."""

    def __init__(self, stream: TextStream, *, size: int = LOG_BYTES) -> None:
        """Open an empty log that keeps `size` bytes of what `stream` lets through.

        Raises:
            OSError: there is no place for its file.
        """
        self._stream = stream
        self._size = size
        self.end = 0
        """The position behind the last byte."""
        self._oldest = 0
        self._has_failed = False
        with tempfile.TemporaryFile() as file:
            self._file: int | None = os.dup(file.fileno())

    @property
    def disk_bytes(self) -> int:
        """Return how large the file is."""
        return 0 if self._file is None else os.fstat(self._file).st_size

    def add(self, data: bytes) -> None:
        """Take in more of the text, whole characters of UTF-8. What the disk refuses is lost."""
        self._stream.add(data.decode(errors="replace"))
        self._write(self._stream.take())

    def lose(self, count: int) -> None:
        """Note that `count` bytes were printed before anything was added, and are not kept."""
        self.end += count
        self._oldest = self.end

    def finish(self) -> None:
        """Say that nothing follows."""
        self._write(self._stream.flush())

    def read(self, start: int = 0) -> Section:
        """Return what is kept from the position `start` on.

        If some of it is lost, the section begins with a whole line.
        """
        first = max(start, self._oldest, self.end - self._size)
        data = self._bytes(first)
        lost_bytes = first - start
        if lost_bytes:
            lost_bytes += data.find(b"\n") + 1
            data = data[data.find(b"\n") + 1 :]
        return Section(data.decode(errors="ignore"), lost_bytes)

    def close(self) -> None:
        """Give the file back; safe to repeat."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _write(self, text: str) -> None:
        # The loop waits for the page cache only: microseconds for what a pipe brings at a time.
        data = text.encode(errors="replace")
        position = self.end + max(0, len(data) - self._size)
        self.end += len(data)
        try:
            for piece in self._pieces(data[-self._size :], position):
                self._put(*piece)
        except OSError:
            # Once is enough: an endless printer would fill the kernel's log as well.
            if not self._has_failed:
                logger.exception("the output of a job cannot be kept")
            self._has_failed = True
            self._oldest = self.end

    def _pieces(self, data: bytes, position: int) -> tuple[tuple[bytes, int], ...]:
        """Return what goes up to the file's end, and what goes to its beginning."""
        place = position % self._size
        room = self._size - place
        return (data[:room], place), (data[room:], 0)

    def _put(self, data: bytes, place: int) -> None:
        while data and self._file is not None:
            count = os.pwrite(self._file, data, place)
            data, place = data[count:], place + count

    def _bytes(self, first: int) -> bytes:
        if self._file is None:
            return b""
        place, length = first % self._size, self.end - first
        head = os.pread(self._file, min(length, self._size - place), place)
        return head + os.pread(self._file, length - len(head), 0) if len(head) < length else head
