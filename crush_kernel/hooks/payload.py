"""What a hook is told: a JSON object on its stdin, and a few variables. Pure.

The object has the fields of Crush's contract and of Claude Code's, side by side: a script that
was written for one of them finds its own.

Source: Crush, hooks, input; Claude Code, hooks, input.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from crush_kernel.config.hooks import HookEvent
from crush_kernel.config.settings import PermissionMode
from crush_kernel.messages import JsonObject, object_in, well_formed

MAX_VARIABLE_BYTES: Final = 100_000
"""A longer one no program could be started with; the object has it all the same."""

_MODES: Final[Mapping[PermissionMode, str]] = {
    "default": "default",
    "accept-edits": "acceptEdits",
    "plan": "plan",
    "yolo": "bypassPermissions",
}
"""Our modes, as Claude Code calls them."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Where and when a hook is asked."""

    session_id: str
    cwd: str
    project: str
    """The project's root."""
    transcript_path: str = ""
    """Of the notebook, if it has one by now."""
    mode: PermissionMode = "default"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call that hooks are asked about."""

    call_id: str
    tool: str
    """By its name here."""
    input: JsonObject
    """Its arguments; none if the model wrote nonsense."""
    agent: str = ""
    """The sub-agent that makes it, if one does."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What came of a call."""

    text: str
    """As the model is to read it."""
    metadata: JsonObject


def readable(text: str) -> dict[str, JsonValue] | None:
    """Return the JSON object that `text` is, `None` if not every program would read it so.

    Python takes `1e999` for a number and nests without end; others give up, and a hook that
    gives up has said nothing.
    """
    found = object_in(text)
    try:
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return found


def payload(event: HookEvent, situation: Situation, facts: JsonObject) -> bytes:
    """Return the object, in UTF-8.

    Args:
        event: what happens.
        situation: where.
        facts: what else is told of this event.
    """
    told: dict[str, JsonValue] = {
        "event": event,
        "hook_event_name": event,
        "session_id": situation.session_id,
        "transcript_path": situation.transcript_path,
        "cwd": situation.cwd,
        "permission_mode": _MODES[situation.mode],
        **facts,
    }
    return well_formed(json.dumps(told, ensure_ascii=False)).encode()


def use_facts(use: ToolUse, name: str) -> dict[str, JsonValue]:
    """Return what is told of a call, the tool called `name`."""
    facts: dict[str, JsonValue] = {
        "tool_name": name,
        "tool_input": dict(use.input),
        "tool_use_id": use.call_id,
    }
    return {**facts, "agent_type": use.agent} if use.agent else facts


def answer_facts(use: ToolUse, answer: ToolAnswer) -> dict[str, JsonValue]:
    """Return what is told of a call's result, by the names that scripts look for."""
    response: dict[str, JsonValue] = {"content": answer.text, "success": True}
    if isinstance(path := use.input.get("file_path"), str):
        response["filePath"] = path
    if use.tool == "bash":
        response |= {"stdout": answer.text, "stderr": "", "interrupted": False}
    if answer.metadata:
        response["metadata"] = dict(answer.metadata)
    return {"tool_response": response}


def variables(event: HookEvent, situation: Situation, facts: JsonObject) -> dict[str, str]:
    """Return the variables that a hook has beside those that every command has."""
    told = {
        "CRUSH": "1",
        "CRUSH_EVENT": event,
        "CRUSH_SESSION_ID": situation.session_id,
        "CRUSH_CWD": situation.cwd,
        "CRUSH_PROJECT_DIR": situation.project,
        "CLAUDE_PROJECT_DIR": situation.project,
    }
    if isinstance(tool := facts.get("tool_name"), str):
        told["CRUSH_TOOL_NAME"] = tool
    given = facts.get("tool_input")
    if isinstance(given, dict):
        for key in ("command", "file_path"):
            if isinstance(value := given.get(key), str):
                told[f"CRUSH_TOOL_INPUT_{key.upper()}"] = value
    fit = {name: well_formed(value).replace("\0", "\ufffd") for name, value in told.items()}
    return {name: value for name, value in fit.items() if len(value.encode()) <= MAX_VARIABLE_BYTES}
