"""What of a project's configuration would run code, or send keys elsewhere.

All that is not known to be harmless is a claim: something that counts only once the user has
trusted that very content. What is left without the claims is inert.

Source: Crush, trust considerations.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pydantic import JsonValue

from crush_kernel.messages import JsonObject

ANY_NAME: Final = "*"
"""Stands for whatever name in `_HARMLESS`."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that a project's file wants to have done."""

    file: str
    """From the project's root, with slashes."""
    keys: tuple[str, ...]
    """Where in the document it stands; none for the file as a whole."""
    content: JsonValue
    """All of it, exactly."""


def claims_of(document: JsonObject, file: str) -> tuple[Claim, ...]:
    """Return what `document`, in `file`, claims, in its order."""
    return tuple(Claim(file, keys, value) for keys, value in _claimed(document, _HARMLESS))


def inert(document: JsonObject) -> JsonObject:
    """Return `document` without what it claims."""
    return _without(document, {keys for keys, _ in _claimed(document, _HARMLESS)})


def digest_of(claims: Iterable[Claim]) -> str:
    """Return a hash over all of the claims' content, in hexadecimal; their order is the same to it.

    Any change of any of them gives another one.
    """
    rows = sorted(json.dumps((claim.file, claim.keys, claim.content)) for claim in claims)
    # JSON in ASCII, one row a line: no two sets of claims look the same.
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


IsHarmless: TypeAlias = Callable[[JsonValue], bool]
Harmless: TypeAlias = "Mapping[str, Harmless] | IsHarmless"


def _claimed(
    document: JsonObject, harmless: Mapping[str, Harmless], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    for key, value in document.items():
        keys = (*above, key)
        allowed = harmless.get(key) or harmless.get(ANY_NAME)
        if callable(allowed):
            if not allowed(value):
                yield keys, value
        elif allowed and isinstance(value, dict):
            yield from _claimed(value, allowed, keys)
        else:
            yield keys, value


def _without(
    document: JsonObject, claimed: set[tuple[str, ...]], above: tuple[str, ...] = ()
) -> dict[str, JsonValue]:
    return {
        key: _without(value, claimed, (*above, key)) if isinstance(value, dict) else value
        for key, value in document.items()
        if (*above, key) not in claimed
    }


def _whatever(_: JsonValue) -> bool:
    return True


def _is_plain(value: JsonValue) -> bool:
    """Return whether nothing in `value` could be taken for a variable or a command."""
    if isinstance(value, str):
        return "$" not in value and "`" not in value
    if isinstance(value, dict):
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return not isinstance(value, list) or all(map(_is_plain, value))


def _stays_inside(value: JsonValue) -> bool:
    """Return whether `value` lists paths that lead nowhere but below the folder."""
    return isinstance(value, list) and all(
        isinstance(path, str)
        and _is_plain(path)
        and not path.startswith(("/", "~", "\\"))
        and ":" not in path
        and ".." not in path.replace("\\", "/").split("/")
        for path in value
    )


def _is_off(value: JsonValue) -> bool:
    return value is False


def _is_on(value: JsonValue) -> bool:
    return value is True


def _only_switches_off(value: JsonValue) -> bool:
    """Return whether `value`, of a server, does nothing but have less of it."""
    return isinstance(value, dict) and value.keys() <= {"disabled_tools"} | (
        {"disabled"} if value.get("disabled") is True else set()
    )


_MODEL: Final = (
    "model", "provider", "reasoning_effort", "think", "max_tokens", "temperature", "top_p",
    "top_k", "frequency_penalty", "presence_penalty",
)  # fmt: skip

_HARMLESS: Final[Mapping[str, Harmless]] = {
    "$schema": _whatever,
    "models": {ANY_NAME: dict.fromkeys(_MODEL, _is_plain)},
    # Of a project's rules only those count that tighten, and nothing in them is ever expanded.
    "permissions": _whatever,
    "tools": _is_plain,
    "providers": {ANY_NAME: {"name": _is_plain, "disable": _is_on}},
    "mcp": {ANY_NAME: _only_switches_off},
    "lsp": {ANY_NAME: _only_switches_off},
    "options": {
        "context_paths": _stays_inside,
        "skills_paths": _stays_inside,
        "tui": _is_plain,
        "attribution": _is_plain,
        "notifications": _is_plain,
        "progress": _is_plain,
        "initialize_as": _is_plain,
        "auto_lsp": _is_off,
        "sandbox": _is_on,
        "disable_auto_summarize": _is_plain,
        "disable_metrics": _is_on,
        "disabled_skills": _whatever,
        "disabled_tools": _whatever,
    },
}
