"""What a turn tells its watcher, as it happens.

Pure values. The kernel turns them into outputs, the command line into text, the tests into
lists. A watcher must be quick and must not raise: it is called on the way of the stream.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from crush_kernel.history.todos import Todo
from crush_kernel.messages import ToolResult, Usage
from crush_kernel.permissions.decision import By
from crush_kernel.permissions.request import PermissionRequest


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A request goes out; `number` counts from 1 within the turn."""

    number: int


@dataclass(frozen=True, slots=True)
class TextAdded:
    """More of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningAdded:
    """More of the model's thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyDropped:
    """The reply of this step broke off and will be made anew: what was shown of it is void."""


@dataclass(frozen=True, slots=True)
class Retrying:
    """The request failed and is made again after a wait."""

    reason: str
    attempt: int
    """The attempt that is waited for, from 2."""
    attempts: int
    """How many there will be at most."""
    delay_s: float


@dataclass(frozen=True, slots=True)
class ToolCallWritten:
    """The model is writing a call; its arguments are not complete yet."""

    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call is being carried out."""

    call_id: str
    name: str
    summary: str
    """Its arguments in short, one line, as the model wrote them: escape before showing."""


@dataclass(frozen=True, slots=True)
class ToolRewritten:
    """A hook has changed what a call is made with, before anything was done."""

    call_id: str
    summary: str
    """Its new arguments in short, as in `ToolStarted`."""


@dataclass(frozen=True, slots=True)
class HookTold:
    """What a hook has done, or could not do, one sentence; a silent hook is not told."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolProgressed:
    """The last lines of what a running call has printed."""

    call_id: str
    tail: str


@dataclass(frozen=True, slots=True)
class PermissionSettled:
    """A permission request was answered, by a person or by a rule."""

    request: PermissionRequest
    is_allowed: bool
    rule: str
    """`allowed once`, `allowed for the session`, `yolo mode`, `denied` …"""
    reason: str = ""
    by: By = "built-in"
    kept_rules: tuple[str, ...] = ()
    """What the answer allows for good."""
    kept_scope: str = ""
    """Where that holds: `project` or `everywhere`."""
    original_input: str = ""
    """What the model gave the call, if a hook has changed it."""
    effective_input: str = ""
    """What the call is made with then."""


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A call has its result; `duration_s` counts from `ToolStarted`, waiting included."""

    result: ToolResult
    duration_s: float


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A reply is complete."""

    usage: Usage
    context_tokens: int


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user should know that is no failure: one sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class SummaryStarted:
    """The conversation so far is being summarized; `SummaryFinished` follows if it works out."""


@dataclass(frozen=True, slots=True)
class SummaryFinished:
    """A summary stands for everything before it from now on."""

    text: str
    before_tokens: int
    """What the context came to without it."""
    after_tokens: int
    """What it comes to with it."""


@dataclass(frozen=True, slots=True)
class TodosChanged:
    """The model has set its list of what is to do."""

    todos: tuple[Todo, ...]


@dataclass(frozen=True, slots=True)
class Steered:
    """What the user has said to the running turn is with the model from the next request on."""

    text: str


TurnEnd = Literal["end_turn", "interrupted", "error"]


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn is over; nothing follows."""

    end: TurnEnd
    usage: Usage
    """Of all requests, those of sub-agents included."""
    context_tokens: int
    """What the last request filled of the window."""
    steps: int
    tool_calls: int
    retries: int
    duration_s: float
    cost_usd: float | None = None
    """What `usage` costs, each model at its own price; `None` where one is not known."""


Event = (
    StepStarted
    | TextAdded
    | ReasoningAdded
    | ReplyDropped
    | Retrying
    | ToolCallWritten
    | ToolStarted
    | ToolRewritten
    | HookTold
    | ToolProgressed
    | PermissionSettled
    | ToolFinished
    | StepFinished
    | Notice
    | SummaryStarted
    | SummaryFinished
    | TodosChanged
    | Steered
    | TurnFinished
)

Emit = Callable[[Event], None]
