"""What is told of hooks: lines for people, facts for the record. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from crush_kernel.config.hooks import HookEvent
from crush_kernel.hooks.verdict import HookRun, Verdict
from crush_kernel.messages import JsonObject
from crush_kernel.wording import clipped

MAX_TOLD_CHARS: Final = 300

_DENIED: Final[Mapping[HookEvent, str]] = {
    "PreToolUse": "denied {tool}",
    "PostToolUse": "objects to what {tool} has done",
    "UserPromptSubmit": "did not let the prompt pass",
    "Stop": "has the turn go on",
    "SessionStart": "objects to the session",
}


def lines(said: Verdict, tool: str = "") -> Iterator[str]:
    """Yield what people are told: a sentence for each hook that did anything; silence is none.

    Args:
        said: what hooks have said.
        tool: of what.
    """
    for each in said.runs:
        for line in _lines(each, tool, is_changed=said.input is not None):
            yield clipped(" ".join(line.split()), MAX_TOLD_CHARS)


def facts_of(
    said: Verdict, given: JsonObject, *, effective: JsonObject | None
) -> dict[str, JsonValue]:
    """Return what the result of a call records of hooks that were asked about it.

    Args:
        said: what they have said of it before it was made.
        given: the input as the model wrote it.
        effective: what the tool got instead, if it got something else.

    Source: Crush, hooks, effect on the call.
    """
    facts: dict[str, JsonValue] = {
        "hook_count": len(said.runs),
        "decision": said.decision or "none",
        **_halt(is_halt=said.is_halt, reason=said.reason),
        "hooks": [_facts_of_one(each) for each in said.runs],
    }
    if effective is not None:
        facts |= {
            "input_rewrite": True,
            "original_input": dict(given),
            "effective_input": dict(effective),
        }
    return facts


def _lines(run: HookRun, tool: str, *, is_changed: bool) -> Iterator[str]:
    said, event, name = run.outcome, run.matched.hook.event, f'Hook "{run.label}"'
    if said.is_halt:
        yield _because(f"{name} ended the turn", said.reason)
    elif said.opinion == "deny":
        yield _because(f"{name} {_DENIED[event].format(tool=tool)}", said.reason)
    elif said.failure:
        yield f"{name}: {said.failure}."
    elif said.opinion == "ask" and event == "PreToolUse":
        yield _because(f"{name} wants a person to decide on {tool}", said.reason)
    if said.patch and is_changed:
        yield f"{name} changed the input of {tool}: {', '.join(sorted(said.patch))}."
    if said.message:
        yield f"{name} says: {said.message}"


def _because(what: str, reason: str) -> str:
    if not reason:
        return f"{what}."
    return f"{what}: {reason}" if reason.endswith((".", "!", "?")) else f"{what}: {reason}."


def _facts_of_one(run: HookRun) -> dict[str, JsonValue]:
    said, hook = run.outcome, run.matched.hook
    facts: dict[str, JsonValue] = {
        "name": run.label,
        "decision": said.opinion or "none",
        **_halt(is_halt=said.is_halt, reason=said.reason),
    }
    if hook.matcher:
        facts["matcher"] = hook.matcher
    if said.patch:
        facts["input_rewrite"] = True
    if said.failure:
        facts["failure"] = said.failure
    return facts


def _halt(*, is_halt: bool, reason: str) -> dict[str, JsonValue]:
    facts: dict[str, JsonValue] = {"halt": True} if is_halt else {}
    return {**facts, "reason": reason} if reason else facts
