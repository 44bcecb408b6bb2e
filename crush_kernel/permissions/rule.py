"""The rules that people write: `bash(git log:*)`, `edit(src/**)`, `fetch(domain:example.org)`.

Pure. A rule names a tool, or several by `*` and `?`, then maybe an action (`bash:execute`) or a
pattern in parentheses. What a pattern is about depends on the tool: commands, files or servers.
Patterns of files and of servers mean the same with every tool of the family.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from crush_kernel.permissions.commandpattern import CommandPattern, parse_command
from crush_kernel.permissions.hostpattern import PREFIX, HostPattern, parse_host
from crush_kernel.permissions.match import BadRule
from crush_kernel.permissions.pathpattern import PathPattern, parse_path
from crush_kernel.permissions.request import Action
from crush_kernel.permissions.straight import straight_name
from crush_kernel.toolnames import (
    DOWNLOAD,
    FETCHERS,
    KNOWN,
    READERS,
    SHELL,
    WRITERS,
)

MAX_CHARACTERS: Final = 4_000
"""Of a rule; commands that are longer nobody allows for good."""

Pattern = CommandPattern | PathPattern | HostPattern

_ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {
        "use": "use",
        "read": "read",
        "list": "list",
        "write": "write",
        "execute": "execute",
        "fetch": "fetch",
        "download": "fetch",
    }
)
"""Actions by what people call them; Crush has one of its own for downloads."""

_RULE: Final = re.compile(
    r"(?P<tool>[^\s():]+)(:(?P<action>[^\s():]+)|(?P<open>\()(?P<pattern>.*)\))?", re.DOTALL
)
_TOOL: Final = re.compile(r"[A-Za-z0-9_.*?-]+")
_WILD: Final = re.compile(r"[*?]")


@dataclass(frozen=True, slots=True)
class Rule:
    """What a rule is about; whether that is allowed or not, it does not say."""

    text: str
    """As it was written."""
    tool: str
    """The name of the tool, in which `*` and `?` may stand for others."""
    names: re.Pattern[str]
    """What the whole name of a tool that is meant matches."""
    action: Action | None = None
    pattern: Pattern | None = None
    """What it is limited to."""

    def is_about(self, tool: str, action: Action) -> bool:
        """Return whether a rule without a pattern means this tool when it does `action`."""
        return self.names.fullmatch(tool) is not None and self.action in (None, action)


def parse_rule(text: str) -> Rule:
    """Return the rule that `text` writes.

    Raises:
        BadRule: it is none; the message is one sentence that says what to write instead.
    """
    text = text.strip()
    if len(text) > MAX_CHARACTERS:
        raise BadRule(f"a rule has at most {MAX_CHARACTERS:,} characters, and this has more")
    found = _RULE.fullmatch(text)
    if found is None or "\0" in text or not _TOOL.fullmatch(found["tool"]):
        raise BadRule(
            f"{_short(text)} is no rule: write tool, tool:action or tool(pattern), such as "
            "bash(git log:*)"
        )
    tool = found["tool"].lower() if found["tool"].lower() in KNOWN else found["tool"]
    pattern = None if found["open"] is None else _pattern(tool, found["pattern"])
    return Rule(text, tool, _names(tool), _action(found["action"]), pattern)


def nearest_tool(name: str) -> str:
    """Return the tool that somebody who writes `name` is most likely to mean, maybe none."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - 25 ms that only a wrong name costs

    near = process.extractOne(name.lower(), sorted(KNOWN), scorer=fuzz.ratio, score_cutoff=60)
    return near[0] if near else ""


def _names(tool: str) -> re.Pattern[str]:
    pieces = (re.escape(piece).replace(r"\?", ".") for piece in tool.split("*"))
    return re.compile(straight_name(pieces), re.DOTALL)


def _action(name: str | None) -> Action | None:
    if name is None:
        return None
    action = _ACTIONS.get(name.lower())
    if action is None:
        raise BadRule(f"there is no action {_short(name)}; there are {', '.join(_ACTIONS)}")
    return action


def _pattern(tool: str, text: str) -> Pattern | None:
    """Return what stands in parentheses behind `tool`, `None` if that is every command."""
    if tool == SHELL:
        return parse_command(text)
    if tool in FETCHERS and (text.strip().startswith(PREFIX) or tool != DOWNLOAD):
        return _host(tool, text.strip())
    if tool in WRITERS | READERS | {DOWNLOAD}:
        return parse_path(text)
    raise BadRule(_no_pattern(tool))


def _host(tool: str, text: str) -> HostPattern:
    if text == "*":
        return parse_host(text)
    if not text.startswith(PREFIX):
        raise BadRule(f"a rule for {tool} names a server, such as {tool}(domain:example.org)")
    return parse_host(text.removeprefix(PREFIX))


def _no_pattern(tool: str) -> str:
    if _WILD.search(tool) or tool in KNOWN or tool.startswith("mcp_"):
        return f"a rule for {tool} takes no pattern: write {tool} alone"
    near = nearest_tool(tool)
    return f"there is no tool {_short(tool)}" + (f"; {near} may be meant" if near else "")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
