"""Rules that say the same, indexed by what they are about, so that a request meets few. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from crush_kernel.permissions.commandpattern import CommandPattern, without_assignments
from crush_kernel.permissions.hostpattern import HostPattern, server_of
from crush_kernel.permissions.match import Match
from crush_kernel.permissions.pathpattern import PathPattern, PathScreen, Place, Spot
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.permissions.rule import Rule
from crush_kernel.toolnames import READERS, SHELL

Found = tuple[Rule, CommandPattern]


class RuleIndex:
    """Some rules, in an order that is not theirs, so that the same one is always named first."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._named: dict[str, list[Rule]] = defaultdict(list)
        self._wild: list[Rule] = []
        self.commands = CommandIndex()
        self.reads: list[tuple[Rule, PathPattern]] = []
        self.writes: list[tuple[Rule, PathPattern]] = []
        self.hosts: list[tuple[Rule, HostPattern]] = []
        self._last: tuple[PermissionRequest | None, dict[Match, str]] = (None, {})
        for rule in sorted(rules, key=lambda rule: rule.text):
            self._add(rule)

    def _add(self, rule: Rule) -> None:
        match rule.pattern:
            case None if "*" in rule.tool or "?" in rule.tool:
                self._wild.append(rule)
            case None:
                self._named[rule.tool].append(rule)
            case CommandPattern() as pattern:
                self.commands.add(rule, pattern)
            case PathPattern() as pattern:
                (self.reads if rule.tool in READERS else self.writes).append((rule, pattern))
            case HostPattern() as pattern:
                self.hosts.append((rule, pattern))

    @cached_property
    def has_patterns(self) -> bool:
        """Whether any rule is limited to something."""
        return bool(self.commands.is_any or self.reads or self.writes or self.hosts)

    def about(self, request: PermissionRequest) -> Iterator[Rule]:
        """Yield the rules without a pattern that are about `request`."""
        for rule in (*self._named.get(request.tool, ()), *self._wild):
            if rule.is_about(request.tool, request.action):
                yield rule

    def forbidding(self, request: PermissionRequest, place: Place) -> Mapping[Match, str]:
        """Return the first rule that forbids `request`, and the first that may, if any do."""
        asked, found = self._last
        # One decision asks twice, about the very same request.
        if asked is not request:
            found = {Match.YES: "", Match.MAYBE: "", Match.NO: ""}
            for rule, match in self._matches(request, place):
                found[match] = found[match] or rule.text
                if match is Match.YES:
                    break
            self._last = request, found
        return found

    def _matches(self, request: PermissionRequest, place: Place) -> Iterator[tuple[Rule, Match]]:
        """Yield how far rules forbid any part, file or server of `request`."""
        yield from ((rule, Match.YES) for rule in self.about(request))
        if self.has_patterns:
            yield from self._pattern_matches(request, place)

    def _pattern_matches(
        self, request: PermissionRequest, place: Place
    ) -> Iterator[tuple[Rule, Match]]:
        if self.commands.is_any and request.tool == SHELL and request.action == "execute":
            yield from self._command_matches(request)
        for path in request.read_paths if self.reads else ():
            spot = Spot.of(path, place)
            if self._reads_screen.may_forbid(spot):
                # Of a folder around it, the names; contents are looked at file by file.
                for rule, pattern in self.reads:
                    if pattern.forbids(spot) is Match.YES:
                        yield rule, Match.YES
        for path in request.written_paths if self.writes else ():
            spot = Spot.of(path, place)
            if self._writes_screen.may_forbid(spot):
                yield from ((rule, pattern.forbids(spot)) for rule, pattern in self.writes)
        if self.hosts and request.action == "fetch" and request.server:
            server = server_of(request.server)
            yield from (
                (rule, Match.YES) for rule, pattern in self.hosts if pattern.forbids(server)
            )

    @cached_property
    def _reads_screen(self) -> PathScreen:
        return PathScreen(pattern for _, pattern in self.reads)

    @cached_property
    def _writes_screen(self) -> PathScreen:
        return PathScreen(pattern for _, pattern in self.writes)

    def _command_matches(self, request: PermissionRequest) -> Iterator[tuple[Rule, Match]]:
        if not request.parts:
            yield from ((rule, Match.MAYBE) for rule, _ in self.commands.about((None,)))
        for part in request.parts:
            argv = without_assignments(part.argv)
            yield from ((rule, found.forbids(argv)) for rule, found in self.commands.about(argv))


class CommandIndex:
    """Patterns of commands, by the first words of what they are about."""

    def __init__(self) -> None:
        self._by_words: dict[str, dict[str | None, list[Found]]] = {}
        """By the program without its folder, then by the next word; `None` for any."""
        self._others: list[Found] = []
        """Those that do not say which program."""

    def add(self, rule: Rule, pattern: CommandPattern) -> None:
        """Have `pattern` found, too."""
        program = pattern.words[0].literal
        if program is None:
            self._others.append((rule, pattern))
            return
        second = pattern.words[1].literal if len(pattern.words) > 1 else None
        by_second = self._by_words.setdefault(_program(program), {})
        by_second.setdefault(second, []).append((rule, pattern))

    @property
    def is_any(self) -> bool:
        """Return whether there are any."""
        return bool(self._by_words or self._others)

    def about(self, argv: Sequence[str | None]) -> Iterator[Found]:
        """Yield the patterns that can cover or forbid `argv`."""
        if not argv:
            return
        if argv[0] is None:
            for by_second in self._by_words.values():
                yield from _all(by_second)
        elif by_second := self._by_words.get(_program(argv[0])):
            second = argv[1] if len(argv) > 1 else ""
            if second is None or second.startswith("-"):
                # Behind it may stand the word that is meant.
                yield from _all(by_second)
            else:
                yield from by_second.get(second, ())
                yield from by_second.get(None, ())
        yield from self._others


def _all(by_second: dict[str | None, list[Found]]) -> Iterator[Found]:
    for found in by_second.values():
        yield from found


def _program(word: str) -> str:
    return word.rpartition("/")[2]
