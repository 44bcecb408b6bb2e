"""What rules and modes mean, in words. Pure."""

import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from crush_kernel.config.settings import PermissionMode
from crush_kernel.kernel.plaintext import code_span
from crush_kernel.permissions.commandpattern import CommandPattern, WordPattern
from crush_kernel.permissions.hostpattern import HostPattern
from crush_kernel.permissions.pathpattern import PathPattern
from crush_kernel.permissions.request import Grant
from crush_kernel.permissions.rule import Rule
from crush_kernel.toolnames import READERS

MODES: Final[Mapping[PermissionMode, str]] = MappingProxyType(
    {
        "default": "reading in the project passes, all else is asked",
        "accept-edits": "edits in the project pass too",
        "plan": "the agent only looks, and shows a plan for you to approve",
        "yolo": "everything in the project and all of the web pass unasked",
    }
)
"""What passes in each mode."""

YOLO_WARNING: Final = (
    "**⚠ Yolo mode: the agent runs commands, edits files and uses the network without asking.** "
    "Only what lies outside the project, control files, destructive commands and what your rules "
    "ask or deny still stops. It ends with this kernel, or with `/mode default`."
)


def in_table(text: str) -> str:
    """Return `text` as code for a cell of a table."""
    return code_span(text).replace("|", "\\|")


def meaning(rule: Rule) -> str:
    """Return what `rule` is about, as Markdown for a cell of a table."""
    match rule.pattern:
        case None:
            what = f"`{rule.action}` by" if rule.action else "everything that"
            does = "" if rule.action else ", dangers aside, does"
            return f"{what} {in_table(rule.tool)}{does}"
        case CommandPattern() as pattern:
            return _of_commands(pattern)
        case PathPattern():
            return _of_paths(rule)
        case HostPattern() as pattern:
            return _of_servers(pattern)


def grant_words(grant: Grant) -> str:
    """Return what was allowed for the session, as Markdown."""
    match grant.action:
        case "execute":
            folder, _, command = grant.scope.partition("\0")
            if not command:
                return f"{grant.tool}, with whatever input"
            return f"{grant.tool} runs {code_span(command)} in {code_span(folder)}"
        case "fetch":
            _, server, *paths = grant.scope.split("\0")
            into = f" into {', '.join(map(code_span, paths))}" if paths else ""
            return f"{grant.tool} talks to {code_span(server)}{into}"
        case action:
            places = grant.scope.split("\0") if grant.scope else []
            where = ", ".join(map(code_span, places)) or "anything in the project"
            verb = {"read": "reads", "list": "lists", "write": "changes", "use": "does"}[action]
            return f"{grant.tool} {verb} {where}"


def _of_commands(pattern: CommandPattern) -> str:
    words = " ".join(map(_word, pattern.words))
    if pattern.is_exact:
        return f"exactly this command: {in_table(words)}"
    ending = "that begin with" if pattern.is_open else "such as"
    star = "" if all(word.literal is not None for word in pattern.words) else ", `*` for anything"
    return f"commands {ending} {in_table(words)}{star}"


def _word(pattern: WordPattern) -> str:
    return "*".join(shlex.quote(piece) if piece else "" for piece in pattern.pieces) or "''"


def _of_paths(rule: Rule) -> str:
    pattern = rule.text.partition("(")[2].removesuffix(")").strip()
    deed = "reading" if rule.tool in READERS else "changing"
    return f"{deed} {in_table(pattern)}, with any tool or command"


def _of_servers(pattern: HostPattern) -> str:
    server = pattern.server
    if not server.host:
        return "any server of the internet"
    port = f", port {server.port}" if server.port else ""
    below = "servers below" if pattern.has_subdomains else "the server"
    return f"{below} {in_table(server.host)}{port}"
