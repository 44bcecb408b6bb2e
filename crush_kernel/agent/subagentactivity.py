"""What a sub-agent does, as its call shows it while it runs: a line each call. Pure.

The events of a sub-agent go no further than here, but for what was allowed and refused: to
whoever watches the turn they are the progress of one call.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from crush_kernel.agent.events import (
    Emit,
    Event,
    HookTold,
    Notice,
    PermissionSettled,
    Retrying,
    StepStarted,
    ToolFinished,
    ToolRewritten,
    ToolStarted,
)
from crush_kernel.messages import ToolResult
from crush_kernel.wording import clipped

MAX_LINE_CHARS = 160
SHOWN_LINES = 8
"""The last ones, to be seen while the sub-agent works."""
MAX_LINES = 1_000
"""That are remembered; a sub-agent that makes more calls is told by its last ones."""


@dataclass(slots=True)
class Activity:
    """Takes in the events of one sub-agent."""

    progress: Callable[[str], None]
    """Takes the last lines, whenever they change."""
    pass_on: Emit
    """Takes what whoever watches the turn should hear of."""
    _lines: list[str] = field(default_factory=list[str])
    _open: dict[str, int] = field(default_factory=dict[str, int])
    """Where the lines of running calls are."""
    _status: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """What was done, a line each call, oldest first."""
        return tuple(self._lines[-MAX_LINES:])

    def emit(self, event: Event) -> None:
        """Take in what happens."""
        match event:
            case ToolStarted(call_id=call_id, name=name, summary=summary):
                self._open[call_id] = len(self._lines)
                self._lines.append(_line(f"{name} {summary}"))
            case ToolFinished(result=result):
                self._finish(result)
            case Retrying(reason=reason):
                self._status = _line(reason)
            case Notice(text=text):
                self._status = _line(text)
            case StepStarted():
                self._status = ""
            case ToolRewritten(call_id=call_id, summary=summary):
                self._rewrite(call_id, summary)
            case PermissionSettled() | HookTold():
                self.pass_on(event)
                return
            case _:
                return
        self._tell()

    def _rewrite(self, call_id: str, summary: str) -> None:
        if (index := self._open.get(call_id)) is not None:
            name = self._lines[index].partition(" ")[0]
            self._lines[index] = _line(f"{name} {summary}")

    def _finish(self, result: ToolResult) -> None:
        index = self._open.pop(result.call_id, None)
        told = result.metadata.get("summary")
        outcome = told if isinstance(told, str) and told else "failed" if result.is_error else ""
        if index is not None and outcome:
            self._lines[index] = _line(f"{self._lines[index]} · {outcome}")

    def _tell(self) -> None:
        shown = [*self._lines[-SHOWN_LINES:], *filter(None, (self._status,))]
        if shown:
            self.progress("\n".join(shown))


def _line(text: str) -> str:
    return clipped(" ".join(text[: 4 * MAX_LINE_CHARS].split()), MAX_LINE_CHARS)
