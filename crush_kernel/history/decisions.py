"""By what right a call was made, or why it was refused: as the journal keeps it.

Pure. A decision is kept for ever, so that what it quotes is cut, with a hash that tells whether
it is the whole of something. What is read may come from any file and never raises.

Source: design §5.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from pydantic import JsonValue

from crush_kernel.messages import JsonObject, well_formed

MAX_TEXT_CHARS: Final = 1_000
MAX_LONG_CHARS: Final = 4_000
"""Of a command line, and of what a call was given."""

MAX_LIST_CHARS: Final = 8_000
"""Of all texts of a list together."""

MAX_LISTED: Final = 100

_LONG: Final = frozenset(("command", "input", "effective_input"))


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One answer to one request. What does not apply is empty."""

    tool: str = ""
    action: str = ""
    title: str = ""
    """What was wanted, to go after "<tool> wants to"."""
    is_allowed: bool = False
    by: str = ""
    """Who decided: `built-in`, `rule`, `mode`, `hook`, `bounds`, `grant`, `person`, `nobody`."""
    rule: str = ""
    """By virtue of what."""
    reason: str = ""
    """Why not."""
    call_id: str = ""
    """Of the call; those of a sub-agent begin with that of the call which started it."""
    on_behalf: str = ""
    """Whose call it was if not the agent's own, such as `agent: task`."""
    is_outside: bool = False
    """Whether a path lay outside the project."""
    is_read_only: bool = False
    """Whether the command was known only to read."""
    paths: tuple[str, ...] = ()
    """The real paths."""
    server: str = ""
    command: str = ""
    cwd: str = ""
    parts: tuple[str, ...] = ()
    """The simple commands of the command line, as they were written."""
    dangers: tuple[str, ...] = ()
    kept_rules: tuple[str, ...] = ()
    """What the answer allows for good."""
    kept_scope: str = ""
    """Where that holds."""
    input: str = ""
    """What the model gave the call, where a hook has changed it."""
    effective_input: str = ""
    """What the call was made with then."""
    at: str = ""
    """When, in UTC, to the second."""


def write_decision(record: DecisionRecord) -> JsonObject:
    """Return `record` as JSON, without what does not apply, whole."""
    facts: dict[str, JsonValue] = {}
    for name in DecisionRecord.__slots__:
        value: str | bool | tuple[str, ...] = getattr(record, name)
        if value:
            facts[name] = list(value) if isinstance(value, tuple) else value
    return facts


def bounded(facts: JsonObject) -> JsonObject:
    """Return `facts` with long texts and lists cut, each cut saying how much there was.

    To be called when secrets have been taken out: half a secret looks like none.
    """
    return {
        name: _bounded(value, MAX_LONG_CHARS if name in _LONG else MAX_TEXT_CHARS)
        for name, value in facts.items()
    }


def is_routine(facts: JsonObject) -> bool:
    """Return whether `facts` tell of what is always allowed, such as reading in the project."""
    return facts.get("by") == "built-in" and facts.get("is_allowed") is True


def read_decision(facts: JsonObject) -> DecisionRecord:
    """Return the decision that `facts` tell of; what cannot be read of it is left empty."""
    return DecisionRecord(
        tool=_text(facts, "tool"),
        action=_text(facts, "action"),
        title=_text(facts, "title"),
        is_allowed=facts.get("is_allowed") is True,
        by=_text(facts, "by"),
        rule=_text(facts, "rule"),
        reason=_text(facts, "reason"),
        call_id=_text(facts, "call_id"),
        on_behalf=_text(facts, "on_behalf"),
        is_outside=facts.get("is_outside") is True,
        is_read_only=facts.get("is_read_only") is True,
        paths=_texts(facts, "paths"),
        server=_text(facts, "server"),
        command=_text(facts, "command"),
        cwd=_text(facts, "cwd"),
        parts=_texts(facts, "parts"),
        dangers=_texts(facts, "dangers"),
        kept_rules=_texts(facts, "kept_rules"),
        kept_scope=_text(facts, "kept_scope"),
        input=_text(facts, "input"),
        effective_input=_text(facts, "effective_input"),
        at=_text(facts, "at"),
    )


def _bounded(value: JsonValue, limit: int) -> JsonValue:
    match value:
        case str() if len(value) > limit:
            return _cut(value, limit)
        case list():
            return _cut_list(value)
        case _:
            return value


def _cut(text: str, limit: int) -> str:
    digest = sha256(well_formed(text).encode()).hexdigest()
    return f"{text[:limit]}… [{len(text):,} characters, SHA-256 {digest}]"


def _cut_list(items: list[JsonValue]) -> JsonValue:
    kept: list[JsonValue] = []
    room = MAX_LIST_CHARS
    for item in items[:MAX_LISTED]:
        short = _bounded(item, MAX_TEXT_CHARS) if isinstance(item, str) else item
        room -= len(short) if isinstance(short, str) else 1
        if room < 0:
            break
        kept.append(short)
    more = len(items) - len(kept)
    return [*kept, f"… {more:,} more"] if more else kept


def _text(facts: JsonObject, name: str) -> str:
    value = facts.get(name)
    return well_formed(value) if isinstance(value, str) else ""


def _texts(facts: JsonObject, name: str) -> tuple[str, ...]:
    value = facts.get(name)
    items = value if isinstance(value, list) else []
    return tuple(well_formed(item) for item in items if isinstance(item, str))
