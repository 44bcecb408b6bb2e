"""Which hooks a tool concerns, by its name here or by the one that it has in Claude Code.

Scripts written for Claude Code know its tools as `Bash` and `Edit`. A matcher that finds nothing
in our name is tried on that one, by the rules that it has there; a hook that was found so is told
that name. Pure.

Source: Crush, hooks, matcher; Claude Code, hooks, matcher.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from crush_kernel.config.hooks import ANYTHING, Hook
from crush_kernel.toolnames import CLAUDE_NAMES

_PLAIN: Final = re.compile(r"[\w|]*", re.ASCII)
"""A matcher that names tools in full, several with bars between, by the rules of Claude Code."""


@dataclass(frozen=True, slots=True)
class MatchedHook:
    """A hook that a tool concerns."""

    hook: Hook
    tool: str
    """What the hook is told to be the tool's name."""


@lru_cache(maxsize=256)
def matched_hooks(hooks: tuple[Hook, ...], tool: str) -> tuple[MatchedHook, ...]:
    """Return those of `hooks` whose matcher fits `tool`, in their order."""
    named = ((hook, _told_name(hook, tool)) for hook in hooks)
    return tuple(MatchedHook(hook, name) for hook, name in named if name)


def _told_name(hook: Hook, tool: str) -> str:
    """Return the name by which `hook` knows `tool`; empty if it does not concern it."""
    if hook.matcher in ("", ANYTHING):
        is_from_there = hook.is_nested or hook.matcher == ANYTHING
        return next(_names_there(tool), tool) if is_from_there else tool
    if re.search(hook.matcher, tool):
        return tool
    return next((name for name in _names_there(tool) if _fits_there(hook.matcher, name)), "")


def _fits_there(matcher: str, name: str) -> bool:
    if _PLAIN.fullmatch(matcher):
        return name in matcher.split("|")
    return re.search(matcher, name) is not None


def _names_there(tool: str) -> Iterator[str]:
    """Yield what `tool` may be called there; of an MCP tool its server's name is not sure."""
    if name := CLAUDE_NAMES.get(tool):
        yield name
    words = tool.split("_")
    if words[0] == "mcp":
        for end in range(2, len(words)):
            yield f"mcp__{'_'.join(words[1:end])}__{'_'.join(words[end:])}"
