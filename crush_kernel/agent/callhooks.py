"""What hooks mean for a call, and for the turn: their words in those of the agent. Pure.

The agent knows no configuration: it is handed something that can be asked, and asks it before
and after each call, sub-agents' calls included, and before the turn ends.
"""

import json
from dataclasses import dataclass, replace
from typing import Protocol

from crush_kernel.agent.events import PermissionSettled
from crush_kernel.hooks.payload import ToolAnswer, ToolUse, readable
from crush_kernel.hooks.verdict import Verdict
from crush_kernel.messages import JsonObject, ToolCall, well_formed
from crush_kernel.permissions.decision import Allow, Ask, Decision
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.base import ToolOutput

MAX_HELD_BACK = 5
"""How often hooks may have a turn go on that would end."""

HALTED = "This call was not run: a hook of the user's has ended the turn."


class CallHooks(Protocol):
    """Can be asked about calls. Being cancelled ends whatever was started to find an answer."""

    def has_any_for(self, tool: str) -> bool:
        """Return whether there is anything to be asked about a call of `tool`; cheap."""
        ...

    async def before(self, use: ToolUse) -> Verdict:
        """Return what is said of a call that is about to be made."""
        ...

    async def after(self, use: ToolUse, answer: ToolAnswer) -> Verdict:
        """Return what is said of what a call has come to."""
        ...


class TurnHooks(CallHooks, Protocol):
    """Can be asked about what the user says to a turn, and about its end, too."""

    async def prompted(self, text: str) -> Verdict:
        """Return what is said of something that the user says to the running turn."""
        ...

    async def stopping(self, *, is_again: bool) -> Verdict:
        """Return what is said of a turn that is about to end; a denial has it go on."""
        ...


@dataclass(slots=True)
class Halt:
    """Whether a hook has ended the turn; one for the turn and all its sub-agents."""

    is_called: bool = False


@dataclass(frozen=True, slots=True)
class HookWord:
    """What hooks say of a call to whoever settles what it may do."""

    decision: Decision | None = None
    notes: tuple[str, ...] = ()
    """For the person who is asked."""


NO_WORD = HookWord()


def use_of(call: ToolCall, call_id: str, agent: str) -> ToolUse:
    """Return `call` as hooks are told of it; arguments that are nonsense are none."""
    return ToolUse(call_id, call.name, readable(call.input or "{}") or {}, agent)


def word_of(said: Verdict) -> HookWord:
    """Return what `said` means for the permissions of the call; a refusal never gets there."""
    match said.decision:
        case "allow":
            return HookWord(Allow(_rule(said), "hook"))
        case "ask":
            why = f": {said.reason}" if said.reason else ""
            return HookWord(Ask(_rule(said)), (f"{_rule(said)} wants you to decide{why}",))
        case _:
            return NO_WORD


def refusal(request: PermissionRequest, said: Verdict) -> PermissionSettled:
    """Return that hooks are against a call, as it is recorded and told."""
    return PermissionSettled(
        request, is_allowed=False, rule=_rule(said), reason=said.reason, by="hook"
    )


def refused(said: Verdict) -> ToolOutput:
    """Return what the model reads of a call that hooks are against."""
    why = f": {said.reason}" if said.reason else ""
    if said.is_halt:
        text = f"Blocked by a hook of the user's, which has ended the turn{why}"
        summary = "denied, turn ended"
    else:
        text = (
            f"Blocked by a hook of the user's{why}\nDo not try to get the same result another way."
        )
        summary = "denied"
    return adding(ToolOutput(text, is_error=True, summary=summary), said.context)


def objections(said: Verdict) -> str:
    """Return what the model reads of a result that hooks have looked at; may be nothing."""
    parts = [said.context]
    if said.is_refusal and said.reason:
        parts.insert(0, f"A hook of the user's objects: {said.reason}")
    return "\n".join(filter(None, parts))


def held_back(said: Verdict) -> str:
    """Return what the model reads when it would end its turn and may not."""
    why = said.reason or "no reason was given"
    return f"A hook of the user's has the turn go on: {why}"


def adding(output: ToolOutput, text: str) -> ToolOutput:
    """Return `output` with `text` behind what the model reads."""
    return replace(output, text=f"{output.text}\n{text}") if text else output


def input_text(given: JsonObject) -> str:
    """Return `given` as the input of a call.

    Raises:
        RecursionError: it is nested too deeply.
    """
    return well_formed(json.dumps(dict(given), ensure_ascii=False))


def _rule(said: Verdict) -> str:
    return f"hook {said.deciders}"
