"""A tool call as it stands in a record, made ready to be shown.

Pure. Of a record the tools that were called may not be there any more, so that their arguments
are told in short without asking them.
"""

import json
from dataclasses import replace

from crush_kernel.kernel.render import CallFacts, right_in_words
from crush_kernel.messages import ToolCall, ToolResult, object_in

_TELLING = ("command", "file_path", "pattern", "url", "query", "description", "prompt", "path")
"""The arguments that say most of a call, the first that says anything."""

_QUOTED = frozenset(("grep",))
"""Tools whose argument stands in quotes, as while they run."""


def recorded_call(call: ToolCall, result: ToolResult | None) -> CallFacts:
    """Return what is to be shown of `call`; without a result it was interrupted."""
    permission, is_denied = ("", False) if result is None else _permission(result)
    return CallFacts(
        name=call.name,
        summary=_summary(call if result is None else made(call, result)),
        state="interrupted" if result is None else "done",
        result=result,
        permission=permission,
        is_denied=is_denied,
    )


def _permission(result: ToolResult) -> tuple[str, bool]:
    """Return by what right a call ran, and whether it was refused."""
    rule = str(result.metadata.get("permission") or "")
    by = result.metadata.get("permission_by")
    if by == "built-in" and not result.is_error:
        return "", False
    if by != "rule":
        return rule, "denied" in rule
    is_denied = result.is_error and result.metadata.get("summary") == "denied"
    return right_in_words(rule, "rule", is_allowed=not is_denied), is_denied


def made(call: ToolCall, result: ToolResult) -> ToolCall:
    """Return `call` as it was made, with the input that hooks gave it if they changed it."""
    hook = result.metadata.get("hook")
    effective = hook.get("effective_input") if isinstance(hook, dict) else None
    if not isinstance(effective, dict):
        return call
    return replace(call, input=json.dumps(effective, ensure_ascii=False))


def _summary(call: ToolCall) -> str:
    summary = arguments_in_short(call.input)
    return f'"{summary}"' if call.name in _QUOTED and summary else summary


def arguments_in_short(text: str) -> str:
    """Return the argument that says most, or all of them as they were written."""
    known = object_in(text) or {}
    texts = (value for name in _TELLING if isinstance(value := known.get(name), str) and value)
    return next(texts, text if known else "")
