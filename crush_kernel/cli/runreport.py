"""How a run is told: to people in a terminal, and to programs as JSON.

People read what the agent said on the standard output and everything else on the standard
error, so that `run work.ipynb > answers.txt` keeps the answers. Programs get one JSON object
a line on the standard output. Whoever stops reading, such as `head`, does not stop the run.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TextIO, assert_never

from crush_kernel.cli.runevents import (
    CellFinished,
    CellStarted,
    Finished,
    Output,
    PermissionDenied,
    Report,
    RunEvent,
    Started,
    SubagentCalled,
    Text,
    ToolAnswered,
    ToolCalled,
    Warned,
)
from crush_kernel.cli.turnnews import line
from crush_kernel.kernel.plaintext import visible
from crush_kernel.kernel.render import duration, thousands
from crush_kernel.messages import object_in
from crush_kernel.wording import counted

TITLE_CHARS = 76
"""Of a line in a terminal, so that a cell stays one."""


def json_report(out: TextIO | None = None) -> Report:
    """Return a report that prints one JSON object a line: `event`, then the event's fields."""
    printer = Printer(out or sys.stdout)

    def report(event: RunEvent) -> None:
        fields = asdict(event)
        kind = fields.pop("kind")
        # ASCII only: whatever encoding the pipe has, and half characters included.
        printer.print(json.dumps({"event": kind, **fields}))

    return report


def people_report(out: TextIO | None = None, err: TextIO | None = None) -> Report:
    """Return a report in lines for people."""
    return _People(Printer(out or sys.stdout), Printer(err or sys.stderr)).report


@dataclass(slots=True)
class Printer:
    """Prints lines until nobody reads them any more."""

    out: TextIO
    is_open: bool = True

    def print(self, text: str) -> None:
        """Print `text` and a line end at once."""
        if self.is_open:
            try:
                print(text, file=self.out, flush=True)
            except (OSError, ValueError):  # the reader has gone, or the stream was closed
                self.is_open = False


@dataclass(slots=True)
class _People:
    out: Printer
    err: Printer
    _cells: int = 0
    _said: str = ""
    """What the model said last in this cell."""
    _names: dict[str, str] = field(default_factory=dict[str, str])

    def report(self, event: RunEvent) -> None:
        match event:
            case Text(text=text):
                self._said = text
            case Output(text=text):
                self.out.print(visible(text))
            case CellFinished():
                if self._said:
                    self.out.print(visible(self._said))
                    self._said = ""
                self._tell(event)
            case _:
                self._tell(event)

    def _tell(self, event: RunEvent) -> None:
        if isinstance(event, Started):
            self._cells = event.cells
        for told in lines(event, cells=self._cells):
            self.err.print(told)


def lines(event: RunEvent, *, cells: int) -> Iterator[str]:
    """Yield what a person reads of `event`, apart from what the agent says.

    Args:
        event: what happened.
        cells: how many cells can run.
    """
    match event:
        case Started():
            yield _started(event)
        case CellStarted():
            yield line(f"[{event.number}/{cells}] {event.source}", TITLE_CHARS)
        case ToolCalled() | ToolAnswered() | SubagentCalled() | PermissionDenied():
            yield _of_tool(event)
        case Warned(text=text):
            yield f"warning: {line(text, 400)}"
        case CellFinished():
            yield f"  {_ended(event)}"
        case Finished():
            yield from _finished(event)
        case Text() | Output():
            pass
        case _:
            assert_never(event)


def _of_tool(event: ToolCalled | ToolAnswered | SubagentCalled | PermissionDenied) -> str:
    match event:
        case ToolCalled():
            return f"  ● {line(f'{event.tool} {_argument(event.input)}', TITLE_CHARS)}"
        case ToolAnswered():
            words = filter(None, (event.tool, event.summary or event.outcome))
            return f"  └ {line(' · '.join(words), TITLE_CHARS)}"
        case SubagentCalled():
            words = (f"{event.tool} {_argument(event.input)}", event.summary or event.outcome)
            return f"  ├ {line(' · '.join(words), TITLE_CHARS)}"
        case PermissionDenied():
            return f"  ! {event.tool}: {line(event.reason)}"


def _started(event: Started) -> str:
    target = "" if event.output == event.notebook else f" to {visible(event.output)}"
    count = counted(event.cells, "cell")
    return f"{visible(event.notebook)}{target}: {count}, kernel {visible(event.kernel)}"


def _argument(text: str) -> str:
    """Return the first argument of a call, which says the most, or all that was written."""
    arguments = object_in(text)
    if arguments is None:
        return text
    return next((value for value in arguments.values() if isinstance(value, str)), "")


_SIGNS: Mapping[str, Callable[[CellFinished], str]] = {
    "ok": lambda _: "✓",
    "failed": lambda event: f"✗ {line(event.error)}: {line(event.message)}",
    "interrupted": lambda _: "■ interrupted",
    "timed_out": lambda _: "✗ took too long and was interrupted",
    "died": lambda _: "✗ the kernel died; what was shown until then is kept",
}


def _ended(event: CellFinished) -> str:
    words = [_SIGNS[event.status](event), duration(event.duration_s), _used(event.usage or {})]
    return " · ".join(filter(None, words))


def _finished(event: Finished) -> Iterator[str]:
    if event.message:
        yield f"✗ {line(event.message, 400)}"
    words = [
        f"{counted(event.ran, 'cell')} run" if event.ran else "Nothing to run",
        f"{event.up_to_date} up to date" if event.up_to_date else "",
        f"{event.failed} failed" if event.failed else "",
        f"{event.denied} denied" if event.denied else "",
    ]
    tail = [duration(event.duration_s), _used(event.usage)]
    yield " · ".join(filter(None, (", ".join(filter(None, words)), *tail)))
    if event.written:
        yield (
            f"{counted(event.written, 'cell')} written by the model in this run: read what they "
            "say, then run the notebook again to run them."
        )
    if event.unasked:
        places, them = ("cells", "them") if len(event.unasked) > 1 else ("cell", "it")
        numbers = ", ".join(map(str, event.unasked))
        yield (
            f"Nobody could be asked in {places} {numbers}: the next run runs {them} again. Allow "
            "what is needed with --permission-mode accept-edits or yolo, or with a rule under "
            "permissions.allow in your own crush.json."
        )
    elif event.denied:
        yield (
            "What was denied can be allowed with --permission-mode accept-edits or yolo; "
            "--all runs those cells again."
        )
    elif not event.ran and event.up_to_date:
        yield "--all runs them again."


def _used(usage: Mapping[str, int]) -> str:
    read = sum(usage.get(f"{kind}_tokens", 0) for kind in ("input", "cache_read", "cache_write"))
    written = usage.get("output_tokens", 0)
    if not (read or written):
        return ""
    guess = "~" if usage.get("is_estimated") else ""
    return f"{guess}{thousands(read)} in {guess}{thousands(written)} out"
