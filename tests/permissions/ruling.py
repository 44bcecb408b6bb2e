"""Requests and policies in few words, for tests of rules."""

import shlex
from dataclasses import replace
from pathlib import Path

from crush_kernel.permissions.pathpattern import Place
from crush_kernel.permissions.policy import Policy, StandingRule
from crush_kernel.permissions.request import Action, CommandPart, PermissionRequest
from crush_kernel.permissions.rule import parse_rule

ROOT = Path("/p")
HOME = Path("/home/u")
PLACE = Place(ROOT, HOME)


def policy(
    allow: tuple[str, ...] = (), ask: tuple[str, ...] = (), deny: tuple[str, ...] = ()
) -> Policy:
    """Return the user's rules."""
    return Policy(
        (
            *(StandingRule("allow", parse_rule(text)) for text in allow),
            *(StandingRule("ask", parse_rule(text)) for text in ask),
            *(StandingRule("deny", parse_rule(text)) for text in deny),
        ),
        PLACE,
    )


def part(
    text: str,
    *,
    is_read_only: bool = False,
    writes: tuple[str, ...] = (),
    is_outside: bool = False,
    rule_words: int = 0,
) -> CommandPart:
    """Return a simple command; its words are split as by a shell, `$…` is known to it alone."""
    words = (None if word.startswith("$") else word for word in shlex.split(text))
    return CommandPart(
        text,
        tuple(words),
        "does something",
        is_read_only=is_read_only,
        writes=writes,
        is_outside=is_outside,
        rule_words=rule_words,
    )


def bash(*parts: CommandPart | str) -> PermissionRequest:
    """Return the wish to run a command line of these parts in the project."""
    made = tuple(part(each) if isinstance(each, str) else each for each in parts)
    return PermissionRequest(
        "c",
        "bash",
        "execute",
        "run",
        command=" && ".join(each.text for each in made),
        cwd=ROOT,
        parts=made,
    )


def file(tool: str, path: str, action: Action = "write") -> PermissionRequest:
    """Return the wish to do something to a file, which is in the project if `path` is relative."""
    real = ROOT / path
    return PermissionRequest(
        "c", tool, action, "touch", paths=(real,), is_outside=not real.is_relative_to(ROOT)
    )


def web(
    server: str, tool: str = "fetch", *, path: str = "", is_private: bool = False
) -> PermissionRequest:
    """Return the wish to talk to `server`, and to write what it says to `path`."""
    request = PermissionRequest("c", tool, "fetch", "fetch", server=server, is_private=is_private)
    if not path:
        return request
    real = ROOT / path
    return replace(request, paths=(real,), is_outside=not real.is_relative_to(ROOT))
