"""A range of lines out of a stream of bytes, in bounded memory whatever the stream is.

Pure: chunks go in, a `Section` comes out. Only the wanted lines are kept, each cut at a
bound, and together under a budget; everything else is merely counted. A newline ends a
line, it does not begin one: text that ends with it has no empty line after it.
"""

from dataclasses import dataclass
from typing import NamedTuple

MAX_LINE_BYTES = 8_000
"""What is kept of one line: 2,000 characters of any encoding."""
LINE_OVERHEAD = 8
"""What a line costs beyond its bytes, for its number and its newline."""


class Line(NamedTuple):
    """One line without its newline."""

    data: bytes
    """At most `MAX_LINE_BYTES` of it."""
    size: int
    """Its whole length in bytes; if the reading stopped in it, what was seen of it."""


@dataclass(frozen=True, slots=True)
class Section:
    """Some lines of a text."""

    lines: tuple[Line, ...]
    total_lines: int | None
    """How many lines the text has; `None` if the reading ended before its end."""
    is_cut: bool
    """Whether the budget ended the section before the limit did."""
    ends_with_newline: bool
    """Whether the last line that was read had one."""


class SectionReader:
    """Takes in chunks until it has lines `offset` to `offset + limit`, then only counts."""

    def __init__(self, *, offset: int, limit: int, max_bytes: int, newline: bytes = b"\n") -> None:
        self._skip = offset
        self._limit = limit
        self._budget = max_bytes
        self._newline = newline
        self._lines: list[Line] = []
        self._begun = b""
        """The wanted line in the making, as far as it is kept."""
        self._size = 0
        self._complete = 0
        """Newlines that have passed."""
        self._is_in_line = False
        self._is_cut = False

    @property
    def has_begun(self) -> bool:
        """Return whether the lines before the section have passed."""
        return self._complete >= self._skip

    @property
    def has_all(self) -> bool:
        """Return whether nothing that is still to come can be part of the section."""
        return self._is_cut or len(self._lines) >= self._limit

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes; where they are split does not matter."""
        position = self._skip_lines(chunk)
        while position < len(chunk) and not self.has_all:
            end = chunk.find(self._newline, position)
            self._extend(chunk, position, len(chunk) if end < 0 else end)
            if end < 0:
                position = len(chunk)
                break
            position = end + 1
            self._complete += 1
            self._keep()
        self._complete += chunk.count(self._newline, position)
        if chunk:
            self._is_in_line = not chunk.endswith(self._newline)

    def section(self, *, is_whole: bool) -> Section:
        """Return what was found; `is_whole` says whether the text was read to its end."""
        if self._size and not self.has_all:
            self._keep()
        total = self._complete + self._is_in_line
        return Section(
            lines=tuple(self._lines),
            total_lines=total if is_whole else None,
            is_cut=self._is_cut,
            ends_with_newline=not self._is_in_line,
        )

    def _skip_lines(self, chunk: bytes) -> int:
        """Count unwanted lines and return where in `chunk` the first wanted one begins."""
        missing = self._skip - self._complete
        if missing <= 0:
            return 0
        count = chunk.count(self._newline)
        if count < missing:
            self._complete += count
            return len(chunk)
        position = 0
        for _ in range(missing):
            position = chunk.index(self._newline, position) + 1
        self._complete += missing
        return position

    def _extend(self, chunk: bytes, start: int, stop: int) -> None:
        """Add a piece to the line in the making, as far as it is kept."""
        room = MAX_LINE_BYTES - len(self._begun)
        self._begun += chunk[start : min(stop, start + room)]
        self._size += stop - start

    def _keep(self) -> None:
        """Finish the line in the making."""
        line = Line(self._begun, self._size)
        self._begun, self._size = b"", 0
        self._budget -= len(line.data) + LINE_OVERHEAD
        # The first line comes through whatever the budget, or reading on would be stuck.
        if self._budget < 0 and self._lines:
            self._is_cut = True
            return
        self._lines.append(line)
