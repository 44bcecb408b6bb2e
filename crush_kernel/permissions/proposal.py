"""What "Always …" offers: rules that would allow a request for good, and nothing much beyond. Pure.

Commands are generalised only as far as the one who knows the program says that it means
something, and quoted where it does not; files to their folder; servers not at all. Where no rule
can say what is wanted, none is proposed.
"""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from crush_kernel.files.names import printable
from crush_kernel.permissions.commandpattern import without_assignments
from crush_kernel.permissions.hostpattern import PREFIX, Server, server_of
from crush_kernel.permissions.match import BadRule
from crush_kernel.permissions.pathpattern import Spot, quoted_path
from crush_kernel.permissions.policy import Policy, StandingRule
from crush_kernel.permissions.request import CommandPart, PermissionRequest
from crush_kernel.permissions.rule import parse_rule
from crush_kernel.permissions.shell.judgement import RUNS_INPUT
from crush_kernel.toolnames import DOWNLOAD, FETCHERS, READERS, SHELL, WRITERS

FED: Final = frozenset(
    (
        *("at", "awk", "batch", "bc", "crontab", "dc", "docker", "ed", "ex", "gawk", "kubectl"),
        *("make", "mysql", "parallel", "patch", "podman", "psql", "sqlite3", "ssh", "uv", "xargs"),
    )
)
"""Programs that may do what comes in, beside those that are known to: where only the whole command
may be granted, its words are not the whole."""

READING = "view"
WRITING = "edit"


class _Unspeakable(Exception):
    """No rule can say it."""


def proposed_rules(request: PermissionRequest, policy: Policy) -> tuple[str, ...]:
    """Return the rules that would allow `request`, none if it cannot be allowed for good.

    They cover it together with what `policy` allows already, which is not proposed again.

    Args:
        request: what is wanted.
        policy: what holds now.
    """
    try:
        rules = tuple(dict.fromkeys(_proposals(request, policy)))
    except _Unspeakable:
        return ()
    is_plain = all(printable(rule) == rule for rule in rules)
    return rules if rules and is_plain and not uncovered(rules, request, policy) else ()


def uncovered(rules: tuple[str, ...], request: PermissionRequest, policy: Policy) -> str:
    """Return why `rules` would not allow `request`, a sentence; empty if they would.

    Args:
        rules: as a person has left or changed them.
        request: what is wanted.
        policy: what holds now.
    """
    more: list[StandingRule] = []
    for text in rules:
        try:
            more.append(StandingRule("allow", parse_rule(text)))
        except BadRule as error:
            return f"{str(error)[:1].upper()}{str(error)[1:]}."
    wider = replace(policy, rules=(*policy.rules, *more))
    by_name = bool(request.dangers)
    if wider.allows(request, by_name=by_name):
        return ""
    if by_name:
        return "What is dangerous is allowed only by a rule that names it, without wildcards."
    return "These rules do not allow all that is wanted here."


def _proposals(request: PermissionRequest, policy: Policy) -> Iterator[str]:
    match request.action:
        case "execute" if request.tool == SHELL:
            yield from _for_command(request, policy)
        case "write" if request.tool in WRITERS:
            for path in request.paths:
                yield _to_write(request, path, policy)
        case "read" | "list" if request.tool in READERS:
            for path in request.paths:
                yield _to_read(path, policy)
        case "fetch" if request.tool in FETCHERS:
            yield from _for_server(request, policy)
        case "use":
            return
        case _:
            yield request.tool


def _for_command(request: PermissionRequest, policy: Policy) -> Iterator[str]:
    if not request.parts or request.unnamed or request.cwd in request.paths:
        raise _Unspeakable
    is_looking_outside = False
    for part in request.parts:
        if part.is_read_only and not part.writes:
            is_looking_outside |= part.is_outside
        elif not _is_allowed(part, request, policy):
            yield f"{SHELL}({_words(part, is_dangerous=bool(request.dangers))})"
    written, redirects = set(request.writes), set(request.redirects)
    for path in request.paths:
        if path not in written and (is_looking_outside or path in redirects):
            yield _to_read(path, policy)
    for path in request.redirects:
        if path in written:
            yield f"{WRITING}({_named(path, policy)})"


def _is_allowed(part: CommandPart, request: PermissionRequest, policy: Policy) -> bool:
    """Return whether `part` alone is allowed already."""
    alone = replace(
        request, parts=(part,), paths=(), is_outside=False, reads=(), writes=(), redirects=()
    )
    return bool(policy.allows(alone, by_name=bool(request.dangers)))


def _words(part: CommandPart, *, is_dangerous: bool) -> str:
    """Return the pattern of `part`: its first words and whatever follows, or exactly it."""
    has_variables = len(without_assignments(part.argv)) < len(part.argv)
    is_short = len(part.argv) < part.rule_words
    is_whole = part.rule_words == 0 or is_dangerous or has_variables or is_short
    words = part.argv if is_whole else part.argv[: part.rule_words]
    if not words or None in words or (is_whole and _is_fed(part)):
        raise _Unspeakable
    text = " ".join(shlex.quote(word) for word in words if word is not None)
    return text if is_whole else f"{text}:*"


def _is_fed(part: CommandPart) -> bool:
    """Return whether `part` may do what comes in, whatever its words are."""
    program = (part.argv[0] or "").rpartition("/")[2]
    return part.does == RUNS_INPUT or program in FED


def _to_write(request: PermissionRequest, path: Path, policy: Policy) -> str:
    """Return the rule for a file that is changed: inside the project for its folder, too."""
    spot = Spot.of(path, policy.place)
    folder = (spot.project or "").rpartition("/")[0]
    if folder and not (request.is_outside or request.dangers):
        return f"{request.tool}({_in_project(folder)}/**)"
    return f"{request.tool}({_named(path, policy)})"


def _to_read(path: Path, policy: Policy) -> str:
    # All of the home folder, or more, is never what a look at a list of names is meant to open.
    if policy.place.home.is_relative_to(path):
        raise _Unspeakable
    return f"{READING}({_named(path, policy)})"


def _named(path: Path, policy: Policy) -> str:
    """Return the pattern of one file, or of a folder with what is in it."""
    inside = Spot.of(path, policy.place).project
    if inside is None:
        return quoted_path(path.as_posix())
    return _in_project(inside)


def _in_project(path: str) -> str:
    quoted = quoted_path(path)
    # Without a slash it would mean that name anywhere; and a name can begin like a home.
    return quoted if "/" in quoted and not quoted.startswith("~") else f"./{quoted}"


def _for_server(request: PermissionRequest, policy: Policy) -> Iterator[str]:
    server = server_of(request.server)
    if not request.is_private and " " in request.server:
        yield request.tool  # no server, but the web
        return
    if request.is_private and not server.is_plainly_private:
        raise _Unspeakable
    tool = DOWNLOAD if request.tool == DOWNLOAD else "fetch"
    yield f"{tool}({PREFIX}{_written(server)})"
    if request.is_outside or request.dangers:
        for path in request.paths:
            yield f"{WRITING}({_named(path, policy)})"


def _written(server: Server) -> str:
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"{host}:{server.port}" if server.port else host
