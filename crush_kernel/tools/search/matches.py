"""ripgrep's matching lines: out of its output, and cut to what is around the match.

Lines come as `path NUL line : column : offset : text`, context as `path NUL line - offset -
text`. ripgrep cuts a long line at `MAX_COLUMNS`; where the match lies behind that, the text
around it is read from the file, at the offset that ripgrep gives.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

MAX_COLUMNS = 4_096
"""Bytes of a line that ripgrep prints."""
MAX_SHOWN = 300
"""Bytes of a line that are shown."""
LEAD = 100
"""Of these, before the match."""

_MATCH = re.compile(rb"(\d+):(\d+):(\d+):")
_CONTEXT = re.compile(rb"(\d+)-(\d+)-")
_BINARY = re.compile(r"(.+): binary file matches \(found .*\)$")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Hit:
    """One line that was printed."""

    path: str
    line: int
    """From 1."""
    text: bytes
    """At most `MAX_COLUMNS` of the line, and then ripgrep's note."""
    column: int
    """Where the first match begins, in bytes from 0; 0 in a line of context."""
    offset: int
    """Where the line begins in the file, in bytes."""
    is_match: bool


class MatchParser:
    """Takes in ripgrep's output, cut anywhere, until there are more than enough matches."""

    def __init__(self, files: Collection[str], *, limit: int) -> None:
        self.hits: list[Hit] = []
        """In the order of the output: file by file."""
        self.binary_files: list[str] = []
        """Files that match but are no text."""
        self._files = frozenset(files)
        self._limit = limit
        self._matches = 0
        self._rest = b""

    def feed(self, chunk: bytes) -> bool:
        """Take in the next bytes; return whether more are wanted."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        pending = b""
        for line in lines:
            pending += line
            if not self._take(pending):
                pending += b"\n"
                continue
            pending = b""
        self._rest = pending + self._rest
        return self._matches <= self._limit

    def end(self) -> None:
        """Take in what was left at the end of the output."""
        self._note_binary(self._rest)
        self._rest = b""

    def _take(self, record: bytes) -> bool:
        """Take in a record; return false if it is not complete."""
        head, nul, tail = record.partition(b"\0")
        if not nul:
            return False
        path = self._path(head)
        if match := _MATCH.match(tail):
            line, column, offset = map(int, match.groups())
            self._matches += 1
            hit = Hit(path, line, tail[match.end() :], column - 1, offset, is_match=True)
        elif match := _CONTEXT.match(tail):
            line, offset = map(int, match.groups())
            hit = Hit(path, line, tail[match.end() :], 0, offset, is_match=False)
        else:
            return True
        self.hits.append(hit)
        return True

    def _path(self, head: bytes) -> str:
        """Return the path at the end of `head`; before it there may be lines about others."""
        lines = head.split(b"\n")
        for start in range(len(lines)):
            path = b"\n".join(lines[start:]).decode("utf-8", "surrogateescape").removeprefix("./")
            if path in self._files:
                self._note_binary(b"\n".join(lines[:start]))
                return path
        return head.decode("utf-8", "surrogateescape")

    def _note_binary(self, lines: bytes) -> None:
        for line in lines.decode("utf-8", "surrogateescape").split("\n"):
            if found := _BINARY.match(line):
                self.binary_files.append(found[1].removeprefix("./"))


def is_cut(hit: Hit) -> bool:
    """Return whether `excerpt` leaves something of the line out."""
    return len(hit.text.removesuffix(b"\r")) > MAX_SHOWN


def excerpt(hit: Hit, base: Path) -> str:
    """Return the text of `hit` for the model, cut around the match. May read the file."""
    text = hit.text.removesuffix(b"\r")
    if len(text) <= MAX_SHOWN:
        return text.decode("utf-8", "replace")
    if len(text) > MAX_COLUMNS and hit.column > MAX_COLUMNS // 2:
        text, start = _around(hit, base)
        hit = replace(hit, column=hit.column - start)
        return _cut(text, hit.column, has_more_before=start > 0)
    return _cut(text, hit.column, has_more_before=False)


def _around(hit: Hit, base: Path) -> tuple[bytes, int]:
    """Return some of the line around the match, and which byte of the line it begins with."""
    start = hit.column - LEAD - 4
    try:
        with (base / hit.path).open("rb") as file:
            if file.read(2) in _UTF16_MARKS:
                # ripgrep counts in the text that it made of this file.
                return hit.text[:MAX_COLUMNS], 0
            file.seek(hit.offset + start)
            return file.read(2 * MAX_SHOWN).partition(b"\n")[0], start
    except OSError:
        return hit.text[:MAX_COLUMNS], 0


def _cut(text: bytes, column: int, *, has_more_before: bool) -> str:
    start = max(0, min(column - LEAD, len(text) - 1))
    start = _character_start(text, start)
    end = _character_start(text, min(len(text), start + MAX_SHOWN))
    before = "…" if start > 0 or has_more_before else ""
    after = "…" if end < len(text) else ""
    return before + text[start:end].decode("utf-8", "replace") + after


def _character_start(text: bytes, at: int) -> int:
    """Return the nearest place at or after `at` where a character of UTF-8 begins."""
    while at < len(text) and 0x80 <= text[at] < 0xC0:
        at += 1
    return at
