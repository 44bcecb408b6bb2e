"""A call while it is carried out, and the result that it ends with, however it ends."""

from dataclasses import dataclass, field

from pydantic import JsonValue

from crush_kernel.agent.callhooks import NO_WORD, HookWord
from crush_kernel.agent.events import PermissionSettled
from crush_kernel.agent.timelimit import TimeLimit
from crush_kernel.history.repair import INTERRUPTED
from crush_kernel.messages import ToolCall, ToolResult
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.text.encoded import without_base64

STOPPED = "The user stopped this call. Do not simply repeat it."


@dataclass(slots=True)
class RunningCall:
    """A call that is carried out; not known by its id, which a model may use twice."""

    call: ToolCall
    limit: TimeLimit
    settled: list[PermissionSettled] = field(default_factory=list[PermissionSettled])
    tail: str = ""
    """What it has printed last, so that a stop does not lose it."""
    facts: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What a sub-agent has done in it."""
    hooks: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What hooks have said of it."""
    word: HookWord = NO_WORD
    """What that means for its permissions."""
    effective_input: str = ""
    """What it is made with, if they have changed that."""
    done: ToolOutput | None = None
    """What it has come to, while they look at that."""


def result_of(running: RunningCall, output: ToolOutput, duration_s: float) -> ToolResult:
    """Return the result of a call that has come to `output` after so many seconds."""
    facts: dict[str, JsonValue] = {**output.metadata, **running.facts, **running.hooks}
    if output.summary:
        facts["summary"] = output.summary
    if output.diff:
        facts["diff"] = output.diff
    if settled := running.settled:
        facts["permission"] = settled[-1].rule
        facts["permission_by"] = settled[-1].by
    facts["volatile"] = {"duration_s": round(duration_s, 3)}
    return ToolResult(
        call_id=running.call.id,
        content=without_base64(output.text),
        is_error=output.is_error,
        media=output.media,
        metadata=facts,
    )


def cut_short(tail: str, *, is_stopped: bool) -> ToolOutput:
    """Return why there is no result, with what the call had printed last."""
    reason, summary = (STOPPED, "stopped") if is_stopped else (INTERRUPTED, "interrupted")
    return ToolOutput(_with_tail(reason, tail), is_error=True, summary=summary)


def timed_out(name: str, tail: str, seconds: float) -> ToolOutput:
    """Return why a call whose time is up has no result, with what it had printed last."""
    reason = (
        f"{name} was stopped after {seconds:g} s, the longest that a call of it may take. Ask for "
        "less at once, or find out what is slow before you repeat it."
    )
    return ToolOutput(_with_tail(reason, tail), is_error=True, summary="timed out")


def _with_tail(reason: str, tail: str) -> str:
    printed = tail.rstrip()
    return f"{reason}\nIts last output:\n{printed}" if printed else reason
