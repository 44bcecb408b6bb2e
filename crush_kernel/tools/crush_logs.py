"""The `crush_logs` tool: what the kernel has logged lately.

The log is read from its end, the files that were rotated away behind it. A project may come
from a stranger with links in the place of the log: none is followed.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import anyio.to_thread
from pydantic import Field

from crush_kernel.files.names import printable
from crush_kernel.files.opening import open_real
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
    limit_output,
)
from crush_kernel.tools.logentries import LogEntry, entries_backwards, show_entry
from crush_kernel.tools.paths import reason
from crush_kernel.tools.text.backwards import lines_backwards

DEFAULT_LINES = 50
MAX_LINES = 100

MAX_SCANNED_LINES = 20_000
"""Lines of a file that are looked at; more are no entries of ours."""

_MAX_FILES = 10
"""Files that are looked at, with those that were rotated away."""


class CrushLogsArguments(Arguments):
    """How much of the log to read."""

    lines: int = Field(
        default=DEFAULT_LINES, description=f"How many of the last entries, {MAX_LINES} at most"
    )

    @property
    def count(self) -> int:
        """How many to show. Source: Crush: none and fewer mean the default."""
        return min(self.lines, MAX_LINES) if self.lines > 0 else DEFAULT_LINES


def crush_logs_tool(log: Path, *, redact: Callable[[str], str] = str) -> Tool[CrushLogsArguments]:
    """Return the tool that reads the file `log` and those that were rotated away from it.

    Args:
        log: what the kernel writes; it need not exist.
        redact: returns a text without the secrets in it.
    """

    async def run(arguments: CrushLogsArguments, _: ToolContext) -> ToolOutput:
        read = partial(_read, log, arguments.count)
        look = await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
        if not look.entries:
            return ToolOutput(look.trouble or f"The log {_name(log)} is empty.", summary="empty")
        shown = "\n".join(map(show_entry, look.entries))
        notes = (f"[{each}]" for each in (f"from {_name(log)}", look.trouble) if each)
        count = len(look.entries)
        return ToolOutput(
            limit_output("\n".join((redact(shown), "", *notes))),
            summary=f"{count} entries" if count > 1 else "1 entry",
        )

    return Tool(
        name="crush_logs",
        description=description_of("crush_logs"),
        arguments=CrushLogsArguments,
        run=run,
        describe=lambda arguments: f"last {arguments.count}",
        is_read_only=True,
        timeout_s=QUICK_S,
        is_harmless=True,
    )


@dataclass(frozen=True, slots=True)
class _Look:
    entries: tuple[LogEntry, ...]
    """Oldest first."""
    trouble: str = ""
    """Why there may be more than that."""


def _read(log: Path, count: int) -> _Look:
    """Return the last `count` entries, from as many files as it takes."""
    found: list[LogEntry] = []
    trouble = ""
    for path in _files(log):
        try:
            found += _last_entries(path, count - len(found))
        except FileNotFoundError:
            break
        except OSError as error:
            trouble = f"{_name(path)} cannot be read: {reason(error)}"
            break
        if len(found) >= count:
            break
    if not found and not trouble:
        trouble = "" if log.exists() else f"There is no log yet; it will be {_name(log)}."
    return _Look(tuple(reversed(found)), trouble)


def _files(log: Path) -> Iterator[Path]:
    yield log
    for number in range(1, _MAX_FILES):
        yield log.with_name(f"{log.name}.{number}")


def _last_entries(path: Path, count: int) -> tuple[LogEntry, ...]:
    """Return the last `count` entries of one file, the last first."""
    descriptor = open_real(path)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            raise OSError("it is no file of its own")
        lines = lines_backwards(
            lambda start, size: os.pread(descriptor, size, start), facts.st_size
        )
        return tuple(islice(entries_backwards(islice(lines, MAX_SCANNED_LINES)), count))
    finally:
        os.close(descriptor)


def _name(path: Path) -> str:
    return printable(str(path))
