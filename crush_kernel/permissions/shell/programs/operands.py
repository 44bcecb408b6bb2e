"""Operands: which of the words that are no options are read, and which are written.

Written down as letters, one for each operand in order: `t` a text, `r` a path that is read, `w` a
path that is written; the letter before a `*` stands for any number, none included.
"""

from dataclasses import dataclass

from crush_kernel.permissions.shell.judgement import Judgement, Word
from crush_kernel.permissions.shell.programs.options import Given, Options, is_one, options, scan

HERE = Word(".", ".")


@dataclass(frozen=True, slots=True)
class Usage:
    """How a program is used."""

    options: Options
    operands: str
    """By letters."""
    otherwise: tuple[tuple[str, ...], str] = ((), "")
    """Options with any of which the operands are others, and those."""
    is_harmless: bool = False
    """Whether no option and no operand, listed or not, makes it write, run or talk."""
    reads_here: tuple[str, ...] | None = None
    """With which options, any of them, it reads the folder that it runs in when no path is named;
    none: with any or without."""
    changes: bool = False
    """Whether it is there to change something."""
    removes: tuple[str, ...] | None = None
    """With which options, any of them, what it writes is gone with all that is in it; none: with
    any or without."""
    does: str = ""


def usage(
    known: str = "",
    operands: str = "r*",
    *,
    otherwise: tuple[str, str] = ("", ""),
    is_harmless: bool = False,
    reads_here: str | None = None,
    changes: bool = False,
    removes: str | None = None,
    does: str = "reads files",
) -> Usage:
    """Return the usage that these strings write down; names are separated by spaces."""
    return Usage(
        options(known),
        operands,
        otherwise=(tuple(otherwise[0].split()), otherwise[1]),
        is_harmless=is_harmless,
        reads_here=None if reads_here is None else tuple(reads_here.split()),
        changes=changes,
        removes=None if removes is None else tuple(removes.split()),
        does=does,
    )


def judge_usage(use: Usage, arguments: tuple[Word, ...]) -> Judgement:
    """Return what a program that is used like this does with `arguments`."""
    given = scan(arguments, use.options)
    return judge_given(use, given)


def judge_given(use: Usage, given: Given) -> Judgement:
    """Return what a program does that is used like this and was given this."""
    others, letters = use.otherwise
    roles = shared_out(letters if given.names.intersection(others) else use.operands, given)
    reads, writes = (*given.reads, *roles.reads), (*given.writes, *roles.writes)
    if given.unclear and "r" in use.operands:
        # An option that nobody has seen may name a file.
        reads = (*reads, *(word for word in given.unclear if word not in reads))
    if not reads and _holds(use.reads_here, given):
        reads = (HERE,)
    is_clear = use.is_harmless or not given.unclear
    is_read_only = given.is_understood and is_clear and roles.fit and not writes and not use.changes
    return Judgement(
        use.does,
        is_read_only,
        reads=reads,
        writes=writes,
        removes_trees=bool(writes) and _holds(use.removes, given),
        # Of the others some options do more than read, and a rule covers them all.
        rule_words=int(use.is_harmless),
    )


def _holds(names: tuple[str, ...] | None, given: Given) -> bool:
    return names is not None and (not names or bool(given.names.intersection(names)))


@dataclass(frozen=True, slots=True)
class Roles:
    """What becomes of operands."""

    reads: tuple[Word, ...]
    writes: tuple[Word, ...]
    fit: bool = True
    """Whether there are no more of them than the program takes."""


def shared_out(letters: str, given: Given) -> Roles:
    """Return what becomes of the operands that were given."""
    words = given.operands
    if letters in ("r*", "t*"):
        return Roles(tuple(words) if letters == "r*" else (), ())
    before, star, after = letters.partition("*")
    if not star:
        before, many = letters, ""
    else:
        before, many = before[:-1], before[-1]
    rest = max(len(words) - len(before), 0)
    last = min(rest, len(after))
    roles = before[: len(words)] + many * (rest - last) + (after[-last:] if last else "")
    pairs = list(zip(roles, words, strict=False))
    return Roles(
        # What becomes several words leaves its place.
        reads=tuple(
            word
            for role, word in pairs
            if role == "r" or (role == "t" and "r" in letters and not is_one(word))
        ),
        writes=tuple(word for role, word in pairs if role == "w"),
        # Where the number counts, one word must not become several.
        fit=len(roles) == len(words) and (bool(many) or not _may_be_many(words)),
    )


def _may_be_many(words: list[Word]) -> bool:
    return any(word.text is None or word.has_glob for word in words)
