"""What a run of a notebook tells, as it happens.

Pure values. A report for people makes lines of them, a report for programs JSON; their
names and fields are what `run --json` prints, so they stay as they are: new ones may come.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["ok", "failed", "interrupted", "timed_out", "died"]
"""How a cell ended; `died` is said of the kernel under it."""


@dataclass(frozen=True, slots=True)
class Started:
    """The notebook was read; its kernel will be started."""

    notebook: str
    output: str
    """The file that is written: another one only with `--output`."""
    kernel: str
    cells: int
    """How many code cells there are that can run."""
    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class CellStarted:
    """A cell runs."""

    cell: str
    """Its id."""
    number: int
    """Its place among the code cells that can run, from 1."""
    source: str
    """What it says, cut if it is long."""
    reason: str
    """Why it is not up to date."""
    kind: Literal["cell_started"] = "cell_started"


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The model has called a tool."""

    cell: str
    call: str
    tool: str
    input: str
    """The arguments as the model wrote them, in JSON, cut if they are long."""
    kind: Literal["tool_called"] = "tool_called"


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """A call has its result."""

    cell: str
    call: str
    tool: str
    outcome: Literal["ok", "error", "denied"]
    summary: str
    """In a few words: `3 lines`, `exit 1`."""
    kind: Literal["tool_answered"] = "tool_answered"


@dataclass(frozen=True, slots=True)
class SubagentCalled:
    """A sub-agent has called a tool; told when it is over, before its own call is answered."""

    cell: str
    call: str
    """The call that has started the sub-agent."""
    agent: str
    tool: str
    input: str
    """The arguments as the model wrote them, in JSON, cut if they are long."""
    outcome: Literal["ok", "error", "denied", "interrupted"]
    summary: str
    """In a few words: `3 lines`, `exit 1`."""
    kind: Literal["subagent_called"] = "subagent_called"


@dataclass(frozen=True, slots=True)
class PermissionDenied:
    """Something was refused, since nobody can be asked; the turn goes on without it."""

    cell: str
    tool: str
    reason: str
    kind: Literal["permission_denied"] = "permission_denied"


@dataclass(frozen=True, slots=True)
class Text:
    """The model has said something: the text of one reply, cut if it is very long."""

    cell: str
    text: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Output:
    """What a cell shows in plain text that has no turn to tell of, cut if it is very long."""

    cell: str
    text: str
    kind: Literal["output"] = "output"


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that the user should know: one sentence."""

    text: str
    kind: Literal["warning"] = "warning"


@dataclass(frozen=True, slots=True)
class CellFinished:
    """A cell has ended."""

    cell: str
    status: Status
    duration_s: float
    error: str = ""
    """The name of what went wrong, the `ename` of the reply."""
    message: str = ""
    """What went wrong, in a sentence."""
    model: str = ""
    """The model that answered, `provider/model`; empty where none did."""
    usage: dict[str, int] | None = None
    """Tokens by kind; `None` where nothing was asked."""
    denied: int = 0
    """How often something was refused."""
    kind: Literal["cell_finished"] = "cell_finished"


@dataclass(frozen=True, slots=True)
class Finished:
    """The run is over; nothing follows."""

    exit_code: int
    ran: int = 0
    up_to_date: int = 0
    """Cells that were left as they are."""
    written: int = 0
    """Cells that hold what a model has written in this run; they wait for the next one."""
    failed: int = 0
    denied: int = 0
    """How often something was refused, in all cells that ran."""
    unasked: tuple[int, ...] = ()
    """The numbers of the cells in which that was because nobody could be asked: they are due
    again."""
    usage: dict[str, int] = field(default_factory=dict[str, int])
    """Tokens by kind, of all cells that ran."""
    duration_s: float = 0.0
    message: str = ""
    """Why nothing came of it or it ended early, in a sentence; empty if it did not."""
    kind: Literal["finished"] = "finished"


RunEvent = (
    Started
    | CellStarted
    | ToolCalled
    | ToolAnswered
    | SubagentCalled
    | PermissionDenied
    | Text
    | Output
    | Warned
    | CellFinished
    | Finished
)

Report = Callable[[RunEvent], None]
"""Takes events in order; must be quick and must not raise."""


def exit_code(cells: tuple[CellFinished, ...], *, is_stopped: bool, is_broken: bool = False) -> int:
    """Return what the process says of `cells` in the end.

    Args:
        cells: all cells that ran.
        is_stopped: whether the user ended the run.
        is_broken: whether something other than a cell has failed, such as saving.
    """
    statuses = {cell.status for cell in cells}
    if is_broken:
        return 1
    if is_stopped:
        return 130
    if statuses & {"failed", "timed_out", "died"}:
        return 1
    if "interrupted" in statuses:
        return 130
    return 3 if any(cell.denied for cell in cells) else 0
