"""Hooks as configuration files list them: programs that are asked about what the agent does.

Both ways of writing them are read: Crush's flat entries, and the nested ones of Claude Code, which
share a matcher. An entry that makes no sense is one sentence and never a failure; one that might
have been meant to deny is not loosened by a typo.

Source: Crush, hooks, configuration; Claude Code, hooks, configuration.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from pydantic import JsonValue

from crush_kernel.config.configfiles import ConfigFile
from crush_kernel.messages import JsonObject
from crush_kernel.wording import clipped

HookEvent = Literal["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart"]

FailPolicy = Literal["open", "closed"]
"""What it means that a hook fails: no opinion, or a denial."""

TIMEOUT_S: Final = 30.0
MAX_TIMEOUT_S: Final = 600.0

ANYTHING: Final = "*"
"""As a matcher, what only Claude Code has: every tool."""

_LABEL_CHARS: Final = 60

_EVENTS: Final[dict[str, HookEvent]] = {name.lower(): name for name in get_args(HookEvent)}

_KEYS: Final = frozenset(("name", "matcher", "command", "timeout", "fail", "type"))

_Place: TypeAlias = str
"""Where an entry stands, as warnings name it."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One program that is asked, whenever something happens."""

    event: HookEvent
    command: str
    """A bash program; it runs in the folder."""
    matcher: str = ""
    """A regular expression that compiles, searched in the names of tools; empty for all."""
    name: str = ""
    timeout_s: float = TIMEOUT_S
    fail: FailPolicy = "open"
    is_nested: bool = False
    """Whether it was written as for Claude Code, whose names of tools it then goes by."""

    @property
    def label(self) -> str:
        """Return what to call it: its name, or its command in short, on one line."""
        return clipped(" ".join((self.name or self.command).split()), _LABEL_CHARS)


@dataclass(frozen=True, slots=True)
class ReadHooks:
    """What the files say of hooks."""

    hooks: tuple[Hook, ...] = ()
    """In the order of the files, then in theirs; each once."""
    warnings: tuple[str, ...] = ()
    """A sentence for each entry that is not used, or not as it is written."""


def read_hooks(files: Iterable[ConfigFile]) -> ReadHooks:
    """Return the hooks in the documents of `files`; those of all files count."""
    hooks: list[Hook] = []
    warnings: list[str] = []
    for file in files:
        for found in _in_document(file.document, file.path):
            if isinstance(found, Hook):
                hooks.append(found)
            else:
                warnings.append(found)
    return ReadHooks(tuple(dict.fromkeys(hooks)), tuple(warnings))


def _in_document(document: JsonObject, path: Path) -> Iterator[Hook | str]:
    listed = document.get("hooks")
    if listed is None:
        return
    if not isinstance(listed, dict):
        yield f"{path}: `hooks` is not an object of events, so none of it is used."
        return
    for word, entries in listed.items():
        event = _EVENTS.get(word.replace("_", "").lower())
        place = f"{path}: hooks.{clipped(word, _LABEL_CHARS)}"
        if event is None:
            known = ", ".join(get_args(HookEvent))
            yield f"{place} is no event that there is here; its hooks never run. There are {known}."
        elif not isinstance(entries, list):
            yield f"{place} is not a list, so none of it is used."
        else:
            for number, entry in enumerate(entries, start=1):
                yield from _in_entry(entry, event, f"{place}, entry {number}")


def _in_entry(entry: JsonValue, event: HookEvent, place: _Place) -> Iterator[Hook | str]:
    if not isinstance(entry, dict):
        yield f"{place} is not an object, so it is not used."
    elif "hooks" not in entry:
        yield from _hook(entry, event, place)
    elif not isinstance(inner := entry["hooks"], list):
        yield f"{place} has `hooks` that are not a list, so it is not used."
    else:
        for number, each in enumerate(inner, start=1):
            within = f"{place}, hook {number}"
            if isinstance(each, dict):
                shared: JsonObject = {"matcher": entry.get("matcher"), **each}
                yield from _hook(shared, event, within, is_nested=True)
            else:
                yield f"{within} is not an object, so it is not used."


def _hook(
    entry: JsonObject, event: HookEvent, place: _Place, *, is_nested: bool = False
) -> Iterator[Hook | str]:
    """Yield the hook that `entry` is, and before it what is wrong with it."""
    if fault := _fault(entry):
        yield f"{place} {fault}, so it is not used."
        return
    yield from (f"{place} {oddity}." for oddity in _oddities(entry))
    matcher, name = entry.get("matcher"), entry.get("name")
    yield Hook(
        event=event,
        command=str(entry["command"]),
        matcher=matcher if isinstance(matcher, str) else "",
        name=name if isinstance(name, str) else "",
        timeout_s=_timeout_s(entry.get("timeout")),
        fail="open" if entry.get("fail", "open") == "open" else "closed",
        is_nested=is_nested,
    )


def _fault(entry: JsonObject) -> str:
    """Return why `entry` cannot be used, if it cannot."""
    kind, command, matcher = (entry.get(key) for key in ("type", "command", "matcher"))
    if kind not in (None, "command"):
        return "is of a type that does not run here; only `command` does"
    if not isinstance(command, str) or not command.strip():
        return "has no `command`"
    if matcher is None or matcher == ANYTHING:
        return ""
    if not isinstance(matcher, str):
        return "has a `matcher` that is not text"
    try:
        re.compile(matcher)
    except (re.error, OverflowError, RecursionError) as error:
        return f"has a `matcher` that is no regular expression ({error})"
    return ""


def _oddities(entry: JsonObject) -> Iterator[str]:
    """Yield what of `entry` is not used as it is written."""
    if strange := [key for key in entry if key not in _KEYS]:
        names = ", ".join(f"`{clipped(key, _LABEL_CHARS)}`" for key in sorted(strange)[:5])
        yield f"has {names}, which mean nothing here"
    if entry.get("timeout") is not None and not _is_number(entry["timeout"]):
        yield f"has a `timeout` that is no number of seconds; it is {TIMEOUT_S:g}"
    if _is_number(seconds := entry.get("timeout")) and seconds != _timeout_s(seconds):
        yield f"has a `timeout` that cannot be; it is {_timeout_s(seconds):g} seconds"
    if entry.get("fail", "open") not in get_args(FailPolicy):
        yield "has a `fail` that is neither `open` nor `closed`; it is `closed`"
    if not isinstance(entry.get("name") or "", str):
        yield "has a `name` that is not text"


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # an integer of more than 300 digits
        return False


def _timeout_s(value: JsonValue) -> float:
    if not isinstance(value, int | float) or not _is_number(value) or value <= 0:
        return TIMEOUT_S
    return min(float(value), MAX_TIMEOUT_S)
