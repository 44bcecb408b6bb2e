"""The rules that people have written: what they say to a request. Pure.

Rules are indexed once, by what they are about, so that a request meets few of them. The order in
which they are written means nothing.

Source: design §5, "Grants, trust and hooks are never read from a notebook"; Crush,
`permissions.allowed_tools`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crush_kernel.config.configfiles import Scope
from crush_kernel.config.ruletexts import VERDICTS, Verdict
from crush_kernel.permissions.commandpattern import CommandPattern
from crush_kernel.permissions.hostpattern import Server, server_of
from crush_kernel.permissions.match import Match
from crush_kernel.permissions.pathpattern import PathPattern, Place, Spot
from crush_kernel.permissions.request import CommandPart, PermissionRequest
from crush_kernel.permissions.rule import Rule
from crush_kernel.permissions.ruleindex import RuleIndex
from crush_kernel.toolnames import DOWNLOAD, FETCHERS, SHELL

NOWHERE: Final = Place(Path("/"), Path("/"))


@dataclass(frozen=True, slots=True)
class StandingRule:
    """A rule, what it says, and where it comes from."""

    verdict: Verdict
    rule: Rule
    source: str = ""
    """Where it is written, for people: `~/.config/crush/crush.json`."""
    scope: Scope = "user"
    """Whose it is. What allows counts only if it is the user's: a project may tighten."""


@dataclass(frozen=True, slots=True)
class Policy:
    """All rules that hold, of the user and of the project, which may only tighten.

    What an allow rule covers:

    - One without a pattern: everything that its tool does. Not what is dangerous, and not a
      server in a private network.
    - One for commands: simple commands by their words, so also the files that these name. The
      parts of a command line may be covered by several rules, and those that only read inside
      the project need none. Files of redirections are nobody's words: those that are written,
      and those outside that are read, need a rule for files. A command line that does
      something that stands in no part is covered by no pattern, nor is one that begins in a
      folder outside the project.
    - One for files: every tool that changes files, or every tool that reads them. What
      `download` writes needs one too, or a rule of its own for the server.
    - One for servers: that host alone, or what is below it with `*.`; private ones only by
      address or as `localhost`.

    A rule that denies or wants to be asked needs one part, one file or the server of it.
    """

    rules: tuple[StandingRule, ...] = ()
    place: Place = NOWHERE
    _allow: RuleIndex = field(init=False, repr=False, compare=False)
    _ask: RuleIndex = field(init=False, repr=False, compare=False)
    _deny: RuleIndex = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The user's alone may allow, wherever these rules were put together.
        counting = [each for each in self.rules if each.verdict != "allow" or each.scope == "user"]
        for verdict in VERDICTS:
            rules = (each.rule for each in counting if each.verdict == verdict)
            object.__setattr__(self, f"_{verdict}", RuleIndex(rules))

    def denies(self, request: PermissionRequest) -> str:
        """Return the rule that refuses `request`, empty if none does; one subject suffices."""
        return self._deny.forbidding(request, self.place)[Match.YES]

    def asks(self, request: PermissionRequest) -> str:
        """Return the rule that wants `request` to be asked, empty if none does.

        Those are also the rules that would refuse it if what only the shell knows, or what
        stands in a folder, is what they mean.
        """
        for rules in (self._ask, self._deny):
            found = rules.forbidding(request, self.place)
            if rule := found[Match.YES] or found[Match.MAYBE]:
                return rule
        return ""

    def allows(self, request: PermissionRequest, *, by_name: bool = False) -> str:
        """Return the rules that allow `request`, empty if they do not; all of it must be covered.

        Args:
            request: what is wanted.
            by_name: whether only rules count that name what it is done to, `bash(rm -r build)`
                and not `bash`: what is dangerous passes by no other.
        """
        if not by_name and not request.is_private:
            for rule in self._allow.about(request):
                return rule.text
        if not self._allow.has_patterns:
            return ""
        rules = _Coverage(self._allow, request, self.place, by_name=by_name).rules()
        return ", ".join(sorted({rule.text for rule in rules or ()}))


@dataclass(frozen=True, slots=True)
class _Coverage:
    """Which rules cover all of a request together."""

    allow: RuleIndex
    request: PermissionRequest
    place: Place
    by_name: bool

    def rules(self) -> list[Rule] | None:
        """Return the rules that it takes, `None` if they do not cover everything."""
        request = self.request
        match request.action:
            case "execute":
                return self._command() if request.tool == SHELL else None
            case "fetch":
                return self._fetch()
            case "read" | "list" if request.paths:
                return self._files(self.allow.reads, request.paths)
            case "write" if request.paths:
                return self._files(self.allow.writes, request.paths)
            case _:
                return None

    def _command(self) -> list[Rule] | None:
        request = self.request
        if not request.parts or request.unnamed:
            return None
        used: list[Rule] = []
        is_looking_outside = False
        for part in request.parts:
            if rule := self._part(part):
                used.append(rule)
            elif part.is_read_only and not part.writes:
                is_looking_outside |= part.is_outside
            else:
                return None
        if used and request.cwd in request.paths:
            return None
        outside = set(request.paths)
        written, read = set(request.writes), set(request.reads)
        redirects = set(request.redirects)
        to_read = outside - written if is_looking_outside else redirects & read & outside
        files = self._files(self.allow.reads, to_read)
        more = self._files(self.allow.writes, redirects & written)
        return None if files is None or more is None else [*used, *files, *more]

    def _part(self, part: CommandPart) -> Rule | None:
        for rule, pattern in self.allow.commands.about(part.argv):
            if pattern.covers(part.argv) and (not self.by_name or _names(pattern, part)):
                return rule
        return None

    def _fetch(self) -> list[Rule] | None:
        request = self.request
        if request.tool not in FETCHERS:
            return None
        server = server_of(request.server)
        rule = self._host(server)
        if rule is None:
            return None
        if rule.tool == DOWNLOAD and not request.is_outside and not self.by_name:
            return [rule]
        files = self._files(self.allow.writes, request.paths)
        return None if files is None else [rule, *files]

    def _host(self, server: Server) -> Rule | None:
        found = [
            rule
            for rule, pattern in self.allow.hosts
            if pattern.covers(server, is_private=self.request.is_private, by_name=self.by_name)
        ]
        # One that is meant for downloads goes further.
        return next((rule for rule in found if rule.tool == DOWNLOAD), found[0] if found else None)

    def _files(
        self, rules: list[tuple[Rule, PathPattern]], paths: Iterable[Path]
    ) -> list[Rule] | None:
        used: list[Rule] = []
        for path in paths:
            spot = Spot.of(path, self.place)
            for rule, pattern in rules:
                if pattern.covers(spot, by_name=self.by_name):
                    used.append(rule)
                    break
            else:
                return None
        return used


def _names(pattern: CommandPattern, part: CommandPart) -> bool:
    """Return whether `pattern` says what is done by `part`, and to what."""
    is_known = None not in part.argv and not part.writes
    # `git:*` says nothing of `git push --force`.
    names_danger = len(pattern.words) >= part.danger_words
    return pattern.is_exact or (pattern.names_program and is_known and names_danger)
