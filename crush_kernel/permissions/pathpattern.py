"""Patterns of paths in rules, in the syntax of `.gitignore`: `src/**`, `*.env`, `~/data/`. Pure.

They are matched on real paths. One that is relative is about the project, from its root, and
never about what lies outside; one that begins with `/` or `~/` is about that place.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final, Literal

from crush_kernel.permissions.match import BadRule, Match
from crush_kernel.permissions.straight import straight_path

Base = Literal["project", "root", "home"]

_OPEN: Final = re.compile(r"(?<!\\)[*?\[]")
_BLANKS: Final = " \t\r\n"
_UP: Final = re.compile(r"(^|/)\.\.(/|$)")


@dataclass(frozen=True)
class Place:
    """Where relative patterns, and those with a `~`, begin; real paths."""

    root: Path
    home: Path

    @cached_property
    def texts(self) -> tuple[str, str]:
        """The two, each with a slash behind it."""
        root, home = (f"{path.as_posix().rstrip('/')}/" for path in (self.root, self.home))
        return root, home


@dataclass(frozen=True, slots=True)
class Spot:
    """One real path as patterns see it: from each place that they can begin at."""

    project: str | None
    """From the project's root; `None` if it is outside."""
    root: str
    home: str | None

    @classmethod
    def of(cls, path: Path, place: Place) -> "Spot":
        """Return `path`, real and absolute, from every place."""
        text = path.as_posix()
        root, home = place.texts
        return cls(
            project=_below(text, root),
            root=text.lstrip("/"),
            home=_below(text, home),
        )

    def seen_from(self, base: Base) -> str | None:
        """Return the path from there, `None` if it is not below."""
        match base:
            case "project":
                return self.project
            case "root":
                return self.root
            case "home":
                return self.home


@dataclass(frozen=True, slots=True)
class PathPattern:
    """The files that a rule means."""

    base: Base
    regex: re.Pattern[str]
    regex_any_case: re.Pattern[str]
    is_literal: bool
    """Whether it names one file or folder."""
    head: str
    """What all paths that it means begin with, in lower case."""

    def covers(self, spot: Spot, *, by_name: bool = False) -> bool:
        """Return whether the file at `spot` is surely meant.

        Args:
            spot: of the file.
            by_name: whether the pattern has to name that very file, not a folder around it and
                not by a wildcard.
        """
        found = self._found(self.regex, spot)
        if found is None or not by_name:
            return found is not None
        return self.is_literal and found.end() == len(found.string)

    def forbids(self, spot: Spot) -> Match:
        """Return whether somebody who wants none of these files touched means the one at `spot`.

        Case does not count, since disks do not always tell it apart. `MAYBE` is a folder around
        what is meant, if what is done to it is done to all that is in it.
        """
        text = spot.seen_from(self.base)
        if text is None:
            return Match.NO
        # With the slash, a folder whose contents are meant.
        if any(self.regex_any_case.match(each) for each in (text, f"{text}/")):
            return Match.YES
        is_around = text == "." or self.head.startswith(f"{text.casefold()}/")
        return Match.MAYBE if is_around else Match.NO

    def _found(self, regex: re.Pattern[str], spot: Spot) -> re.Match[str] | None:
        text = spot.seen_from(self.base)
        return None if text is None else regex.match(text)


class PathScreen:
    """Tells at once of most files that none of many patterns forbids them.

    Args:
        patterns: all of them; more can be told of none.
    """

    def __init__(self, patterns: Iterable[PathPattern]) -> None:
        self._regexes: dict[Base, re.Pattern[str]] = {}
        self._around: dict[Base, set[str]] = {}
        by_base: dict[Base, list[PathPattern]] = {}
        for pattern in patterns:
            by_base.setdefault(pattern.base, []).append(pattern)
        for base, group in by_base.items():
            sources = (each.regex.pattern.replace("(?P<ps_d>/)", "/") for each in group)
            self._regexes[base] = re.compile("|".join(sources), re.DOTALL | re.IGNORECASE)
            heads = (each.head.split("/") for each in group)
            self._around[base] = {
                "/".join(head[:count]) for head in heads for count in range(1, len(head))
            }

    def may_forbid(self, spot: Spot) -> bool:
        """Return whether a pattern can be about the file at `spot`."""
        return any(
            text == "."
            or regex.match(text)
            or regex.match(f"{text}/")
            or text.casefold() in self._around[base]
            for base, regex in self._regexes.items()
            if (text := spot.seen_from(base)) is not None
        )


def parse_path(text: str) -> PathPattern:
    """Return the pattern that `text` writes.

    Raises:
        BadRule: it is no pattern; the message says what to write instead.
    """
    text = _trimmed(text)
    if text in ("", "."):
        raise BadRule("a rule for files has to name some, such as edit(src/**)")
    if text.startswith("!"):
        raise BadRule("a rule cannot begin with '!': write what it is about, and a rule to deny it")
    if _UP.search(text):
        raise BadRule("a pattern of paths cannot contain '..': write the path that is meant")
    base, pattern = _based(text)
    try:
        source = straight_path((_to_regex()(pattern) or "").replace("|$)", r"|\Z)"))
        regex = re.compile(source, re.DOTALL)
    except (ValueError, re.error) as error:
        raise BadRule(f"{text!r} is no pattern of paths as .gitignore has them") from error
    if not source:
        raise BadRule(f"the pattern {text!r} matches no path")
    inner = pattern.strip("/")
    return PathPattern(
        base,
        regex,
        re.compile(source, re.DOTALL | re.IGNORECASE),
        is_literal=_OPEN.search(pattern) is None,
        head=_OPEN.split(inner)[0].casefold() if "/" in inner else "",
    )


def quoted_path(text: str) -> str:
    r"""Return `text`, a path, as the pattern of it and of what is below it alone."""
    quoted = re.sub(r"[\\*?\[\]!#]", r"\\\g<0>", text)
    return f"{quoted[:-1]}\\ " if quoted.endswith(" ") else quoted


def _trimmed(text: str) -> str:
    """Return `text` without outer spaces, but for one that is escaped."""
    text = text.lstrip(_BLANKS)
    bare = text.rstrip(_BLANKS)
    is_escaped = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return text[: len(bare) + is_escaped]


def _based(text: str) -> tuple[Base, str]:
    """Return where a pattern begins, and the pattern from there, tied to it."""
    if text == "~" or text.startswith("~/"):
        return "home", f"/{text[2:].lstrip('/') or '**'}"
    if text.startswith("/"):
        return "root", f"/{text.lstrip('/') or '**'}"
    if text.startswith("./"):
        return "project", f"/{text[2:].lstrip('/') or '**'}"
    return "project", text


def _below(path: str, folder: str) -> str | None:
    if path.startswith(folder):
        return path[len(folder) :] or "."
    return "." if path == folder[:-1] else None


@cache
def _to_regex() -> Callable[[str], str | None]:
    # Imported by the first rule with a path: 40 ms that a start without one does not pay.
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # noqa: PLC0415

    def to_regex(pattern: str) -> str | None:
        source, _ = GitIgnoreSpecPattern.pattern_to_regex(pattern)
        return source

    return to_regex
