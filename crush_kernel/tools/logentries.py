"""Entries of the kernel's log, read from their lines and written for the model. Pure.

An entry is a line that begins with a time, and the lines below it up to the next one: of those,
which are the trace of an exception, only the last says what it was. Lines that belong to no
entry are kept as they are.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from crush_kernel.files.names import printable
from crush_kernel.wording import clipped

MAX_ENTRY_CHARACTERS = 600
"""What is shown of an entry."""

_MAX_FOREIGN = 100
"""How many lines in a row that belong to no entry are kept."""

_ENTRY = re.compile(
    r"\d{4}-\d\d-\d\d (?P<time>\d\d:\d\d:\d\d)(?:,\d+)? (?P<process>\d+) (?P<level>[A-Z]+) "
    r"(?P<source>[\w.]+(?::\d+)?) ?(?P<message>.*)",
    re.ASCII,
)

_LEVELS = {"WARNING": "WARN", "CRITICAL": "ERROR"}

_NEEDS_QUOTES = re.compile(r"[\s=\"\\]")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """What the kernel said at one moment."""

    first: str
    """Its line."""
    error: str = ""
    """The last line of what stood below."""


def entries_backwards(lines: Iterable[bytes]) -> Iterator[LogEntry]:
    """Yield the entries of a log whose lines come from its end to its beginning, likewise."""
    below: list[str] = []
    for data in lines:
        line = data.decode("utf-8", "replace").rstrip("\r")
        if _ENTRY.match(line):
            yield LogEntry(line, below[0] if below else "")
            below.clear()
        # The first that comes is the last that was written.
        elif line.strip() and len(below) < _MAX_FOREIGN:
            below.append(line)
    yield from (LogEntry(line) for line in below)


def show_entry(entry: LogEntry) -> str:
    """Return an entry as `HH:MM:SS LEVEL source:line message key=value`."""
    match = _ENTRY.match(entry.first)
    if match is None:
        return _cut(printable(entry.first.strip()))
    level = _LEVELS.get(match["level"], match["level"])
    source = match["source"].removeprefix("crush_kernel.")
    message = _cut(printable(match["message"]))
    error = f" error={_quoted(_cut(printable(entry.error.strip())))}" if entry.error else ""
    return f"{match['time']} {level} {source} {message}{error} process={match['process']}"


def _cut(text: str) -> str:
    return clipped(text, MAX_ENTRY_CHARACTERS)


def _quoted(text: str) -> str:
    if text and not _NEEDS_QUOTES.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
