"""What a tool is, and what it gets and gives.

A tool is a value: a name, a description for the model, an argument model whose JSON schema
the model reads, and a coroutine. It gets its services from the factory that builds it
(`def view_tool(files: ProjectFiles) -> Tool[ViewArguments]`) and, per call, a
`ToolContext`. It returns a `ToolOutput` or raises `ToolError` with a message that the model
can act on; whatever else it raises becomes an error result in `agent.dispatch`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue

from crush_kernel.errors import ToolError
from crush_kernel.files.ends import limit
from crush_kernel.messages import JsonObject, Media
from crush_kernel.permissions.decision import Allow, Bounds, Deny, no_bounds
from crush_kernel.permissions.request import PermissionRequest

MAX_OUTPUT_BYTES = 30_000
"""What one tool result may bring into the context; `limit_output` cuts what is longer."""


QUICK_S = 60.0
"""For a call that looks at files or changes them; only on a disk that hangs it takes as long."""


class Arguments(BaseModel):
    """The base of every tool's arguments: unknown names are errors, values are final."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Permit = Callable[[PermissionRequest], Awaitable[None]]
"""Returns when the request is allowed, raises `PermissionDenied` when it is not. It can take
as long as a person takes: check again afterwards what may have changed."""


KeepVersion = Callable[[Path, bytes | None, bytes | None], None]
"""Takes a file and its content before and after a change, `None` where there is no file."""


@dataclass(frozen=True, slots=True)
class Delegation:
    """A task for a sub-agent: another conversation with a model, inside one tool call."""

    agent: str
    """Its name: `task`, `web reader`, or that of a custom one."""
    prompt: str
    """What it is to do, as people are shown it."""
    system: str
    """Its system prompt."""
    tools: "tuple[AnyTool, ...]"
    """What it may call; those that are the agent's own are not handed over."""
    model: str = "large"
    """`large` is the one in use, `small` the one beside it; else a label such as users write."""
    reminder: str = ""
    """What holds only now, such as the date."""
    bounds: Bounds = no_bounds
    """What it may do without a question, and never."""
    enclosed: str = ""
    """What it reads after the prompt, such as a page to begin with."""


@dataclass(frozen=True, slots=True)
class Delegated:
    """What came of a delegation; what was done stands in the result of the call."""

    text: str
    """All text of the last reply; if it failed, what was said until then. May be empty."""
    model: str
    """Who did it, as `provider/model`."""
    failure: str = ""
    """Why it ended before it was done, in sentences."""
    steps: int = 0
    """Requests to the model."""
    tool_calls: int = 0
    activity: tuple[str, ...] = ()
    """What it did, a line each call, oldest first."""
    notes: tuple[str, ...] = ()
    """What the caller should know besides, a sentence each."""


Delegate = Callable[[Delegation], Awaitable[Delegated]]
"""Has a sub-agent do a task, one a call. Cancelling ends it; what it did by then is kept."""


async def nobody_to_delegate_to(delegation: Delegation) -> Delegated:
    """Refuse: sub-agents have none of their own."""
    raise ToolError(f"The agent {delegation.agent!r} cannot be started from here.")


Decided: TypeAlias = Callable[[PermissionRequest, Allow | Deny], None]


def keep_no_decision(_: PermissionRequest, __: Allow | Deny) -> None:
    """Keep nothing, where nothing is kept."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What one call may use."""

    call_id: str
    permit: Permit
    progress: Callable[[str], None]
    """Shows the last lines of what the tool has printed so far; cheap, call it at will."""
    keep_version: KeepVersion
    """Keeps a file as it was and as it will be; to be called before it is written."""
    delegate: Delegate = nobody_to_delegate_to
    decided: Decided = keep_no_decision
    """Keeps on record what a person has decided by other means than `permit`."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a call came to."""

    text: str
    """For the model; never empty."""
    is_error: bool = False
    media: tuple[Media, ...] = ()
    summary: str = ""
    """For people, a few words to stand on the call's line: `3 matches`, `exit 1`, `+2 −1`."""
    diff: str = ""
    """For people, the unified diff of what was changed."""
    metadata: JsonObject = field(default_factory=dict[str, JsonValue])
    """For people and programs: more facts, such as `exit_code`. Never sent to the model."""


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """One tool, ready to be called."""

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A, ToolContext], Awaitable[ToolOutput]]
    describe: Callable[[A], str]
    """What a person sees beside the name: the arguments in short, one line."""
    is_read_only: bool = False
    """Whether calls may run together with other read-only calls."""
    is_harmless: bool = False
    """Whether it touches nothing but the conversation and what belongs to it; then leave is asked
    for it before it runs. All others ask themselves, since they know what they touch."""
    timeout_s: float | None = None
    """When a call is stopped that has not ended, the questions to the user left out; `None` for
    a tool that waits for people, for other agents, or by rules of its own."""


AnyTool = Tool[Arguments]


def erase(tool: Tool[A]) -> AnyTool:
    """Return `tool` as a member of a mixed table; the dispatcher parses before it calls."""
    return tool  # pyright: ignore[reportReturnType] - A is checked by `arguments.model_validate`


def description_of(name: str, values: Mapping[str, object] | None = None) -> str:
    """Return the model-facing text of `descriptions/<name>.md`, `{key}`s filled in."""
    text = resources.files("crush_kernel.tools").joinpath("descriptions", f"{name}.md")
    content = text.read_text(encoding="utf-8").strip()
    return content.format_map(values) if values else content


def limit_output(text: str, *, max_bytes: int = MAX_OUTPUT_BYTES) -> str:
    """Return `text` if it is short enough in bytes and lines, else its head and tail.

    The note between them says how many lines and bytes are left out; see `files.ends.limit`.
    """
    return limit(text, max_bytes=max_bytes)
