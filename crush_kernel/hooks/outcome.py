"""What one hook says, from its exit code and what it printed. Pure, and never raises.

Source: Crush, hooks, result protocol; Claude Code, hooks, output.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from pydantic import JsonValue

from crush_kernel.config.hooks import Hook
from crush_kernel.files.ends import limit
from crush_kernel.hooks.payload import readable
from crush_kernel.messages import JsonObject

Opinion = Literal["allow", "ask", "deny"]

DENIED: Final = 2
"""The exit code that denies; stderr says why."""

HALTED: Final = 49
"""The exit code that denies and ends the turn."""

MAX_SAID_BYTES: Final = 10_000
"""Of a reason, a context or a message: it goes into the conversation."""

_MAX_BLAME_BYTES: Final = 500
"""What is repeated of the stderr of a hook that has failed."""

_OPINIONS: Final[Mapping[str, Opinion]] = {
    "allow": "allow",
    "approve": "allow",
    "ask": "ask",
    "deny": "deny",
    "block": "deny",
}

_SAYS_CONTEXT: Final = frozenset(("UserPromptSubmit", "SessionStart"))
"""The events of which the hooks may print what the model is to know as it is."""

_CAN_FAIL_CLOSED: Final = frozenset(("PreToolUse", "UserPromptSubmit"))
"""The events in which something is about to happen that a denial prevents."""


@dataclass(frozen=True, slots=True)
class HookExit:
    """How the program of a hook has ended."""

    exit_code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    trouble: str = ""
    """Why it did not end by itself or cannot be judged: `it took longer than 30 s`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a hook says."""

    opinion: Opinion | None = None
    reason: str = ""
    is_halt: bool = False
    """Whether the turn is to end."""
    context: str = ""
    """What the model is to read besides."""
    patch: JsonObject | None = None
    """What to replace in the tool's input, by top-level keys."""
    message: str = ""
    """For the user."""
    failure: str = ""
    """Why it has said nothing, or not all, though it should have; a clause."""


def outcome(hook: Hook, ran: HookExit) -> Outcome:
    """Return what `hook` says; of one that fails closed a failure is a denial."""
    said = _said(hook, ran)
    # What was allowed was the call with the new input that could not be read.
    if said.failure and said.opinion in (None, "allow") and not said.is_halt:
        if hook.fail == "closed" and hook.event in _CAN_FAIL_CLOSED:
            return replace(said, opinion="deny", reason=f"{said.failure}, and must not be missing")
        return Outcome(failure=said.failure)
    return said


def _said(hook: Hook, ran: HookExit) -> Outcome:
    if ran.trouble:
        return Outcome(failure=f"the hook failed: {ran.trouble}")
    stderr = _text(ran.stderr)
    match ran.exit_code:
        case 0:
            return _printed(hook, _text(ran.stdout))
        case code if code == DENIED:
            return Outcome("deny", _bounded(stderr) or "the hook gave no reason")
        case code if code == HALTED:
            return Outcome("deny", _bounded(stderr) or "the hook gave no reason", is_halt=True)
        case code:
            blame = limit(stderr, max_bytes=_MAX_BLAME_BYTES)
            return Outcome(failure=f"the hook failed: exit {code}{blame and f', {blame}'}")


def _printed(hook: Hook, text: str) -> Outcome:
    said = readable(text) if text else None
    is_context = hook.event in _SAYS_CONTEXT
    if said is None and text.startswith("{") and (hook.fail == "closed" or not is_context):
        return Outcome(failure="the hook failed: it printed what begins like JSON and is none")
    if said is None:
        return Outcome(context=_bounded(text) if is_context else "")
    try:
        return _in_object(said)
    except _Senseless as error:
        return Outcome(failure=f"the hook failed: {error}")


class _Senseless(Exception):
    """A field of the answer has a wrong type; says which, a clause."""


def _in_object(said: JsonObject) -> Outcome:
    specific = _field(said, "hookSpecificOutput", dict)
    inner: JsonObject = specific if isinstance(specific, dict) else {}
    _field(said, "version", int)
    stops = _field(said, "continue", bool) is False
    word = _one_of((inner, "permissionDecision"), (said, "decision"))
    reasons = (
        _one_of((inner, "permissionDecisionReason"), (said, "reason")),
        _one_of((said, "stopReason")) if stops else "",
    )
    contexts = _contexts(inner.get("additionalContext")), _contexts(said.get("context"))
    patch, failure = _patch(inner.get("updatedInput", said.get("updated_input")))
    return Outcome(
        opinion=_OPINIONS.get(word.strip().lower()),
        reason=_bounded("\n".join(dict.fromkeys(filter(None, reasons)))),
        is_halt=stops or _field(said, "halt", bool) is True,
        context=_bounded("\n".join(text for each in contexts for text in each)),
        patch=patch,
        message=_bounded(_one_of((said, "systemMessage"))),
        failure=failure,
    )


def _one_of(*places: tuple[JsonObject, str]) -> str:
    """Return the first text that is there; all that are there have to be texts."""
    texts = [_field(said, key, str) for said, key in places]
    return next((text for text in texts if isinstance(text, str) and text), "")


def _field(said: JsonObject, key: str, kind: type) -> JsonValue:
    """Return the value of `key`, `None` if there is none.

    Raises:
        _Senseless: it is of another kind.
    """
    value = said.get(key)
    is_truth = isinstance(value, bool)
    if value is None or (isinstance(value, kind) and is_truth == (kind is bool)):
        return value
    raise _Senseless(f"it printed JSON in which `{key}` is of a wrong type")


def _contexts(value: JsonValue) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and each.strip():
            yield each


def _patch(value: JsonValue) -> tuple[JsonObject | None, str]:
    """Return what to replace in the input, or why nothing can be."""
    found = readable(value) if isinstance(value, str) else value
    if found is None and value is None:
        return None, ""
    if isinstance(found, dict):
        return found, ""
    return None, "the hook's new input is no object and was not used"


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", errors="replace").strip()


def _bounded(text: str) -> str:
    return limit(text.strip(), max_bytes=MAX_SAID_BYTES)
