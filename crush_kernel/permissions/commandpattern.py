"""Patterns of commands in rules: `git log:*`, `go build *`, `git status`. Pure.

A pattern is matched word by word against the words of one simple command, never against its
text: what a shell would make of a longer line plays no part. Quoting is as in a shell and makes
everything literal; an unquoted `*` stands for anything within its word, and as the last word, or
as `:*` behind it, for any further words, also for none.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from crush_kernel.permissions.match import BadRule, Match

_OPERATORS: Final = frozenset(";|&<>()`\n")
_BLANK: Final = frozenset(" \t")
_EXPANDS: Final = re.compile(r"\$[A-Za-z0-9_{(\[@*#?$!'\"-]")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_ESCAPABLE: Final = frozenset('$`"\\\n')
"""What a backslash makes literal between double quotes."""


@dataclass(frozen=True, slots=True)
class WordPattern:
    """One word: its literal stretches, between which anything may stand."""

    pieces: tuple[str, ...]

    @property
    def literal(self) -> str | None:
        """Return the word if nothing in it is open."""
        return self.pieces[0] if len(self.pieces) == 1 else None

    def matches(self, word: str) -> bool:
        """Return whether `word` is one that is meant."""
        if len(self.pieces) == 1:
            return word == self.pieces[0]
        first, *middle, last = self.pieces
        if len(word) < len(first) + len(last):
            return False
        if not (word.startswith(first) and word.endswith(last)):
            return False
        at, end = len(first), len(word) - len(last)
        for piece in middle:
            found = word.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    def matches_program(self, word: str) -> bool:
        """Return whether `word` calls a program that is meant, from whatever folder."""
        name = word.rpartition("/")[2]
        if self.literal is not None:
            return name == self.literal.rpartition("/")[2]
        return self.matches(word) or self.matches(name)


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """The commands that a rule means."""

    words: tuple[WordPattern, ...]
    """The first words of them, at least one."""
    is_open: bool
    """Whether any further words may follow."""

    @property
    def is_exact(self) -> bool:
        """Return whether it is one command and no other."""
        return not self.is_open and all(word.literal is not None for word in self.words)

    @property
    def names_program(self) -> bool:
        """Return whether it says which program it is about."""
        return self.words[0].literal is not None

    def covers(self, argv: Sequence[str | None]) -> bool:
        """Return whether `argv` is surely meant, word by word and as it is spelled.

        A word that only the shell knows is covered where any word is, at the end.
        """
        count = len(self.words)
        if len(argv) < count or (len(argv) > count and not self.is_open):
            return False
        return all(
            word is not None and pattern.matches(word)
            for pattern, word in zip(self.words, argv, strict=False)
        )

    def forbids(self, argv: Sequence[str | None]) -> Match:
        """Return whether `argv` is meant by somebody who wants none of these commands.

        The folder of the program and assignments before it change nothing. `MAYBE` is a word that
        only the shell knows in the place of one that is meant, and the right words with options
        between them, such as `git -C . push` for `git push`.
        """
        words = without_assignments(argv)
        if not words:
            return Match.NO
        if words[0] is None:  # it can be any number of words
            return Match.MAYBE
        if not self.words[0].matches_program(words[0]):
            return Match.NO
        return _lined_up(self.words[1:], words[1:], is_open=self.is_open)


def parse_command(text: str) -> CommandPattern | None:
    """Return the pattern that `text` writes, `None` if that is every command.

    Raises:
        BadRule: it is no simple command; the message says what to write instead.
    """
    tokens = list(_tokens(text))
    if not tokens:
        raise BadRule("a rule for a command has to name one, such as bash(git log:*)")
    last = tokens[-1]
    is_open = last == _Token(("", ""), "*") or last.source.endswith(":*")
    if is_open:
        tokens.pop()
    if last.source.endswith(":*") and (kept := _without_mark(last)) is not None:
        tokens.append(kept)
    if not tokens:
        return None
    return CommandPattern(tuple(WordPattern(token.pieces) for token in tokens), is_open)


@dataclass(frozen=True, slots=True)
class _Token:
    pieces: tuple[str, ...]
    source: str
    """What of it is not quoted; quoted characters are `\\0`."""


def _without_mark(token: _Token) -> _Token | None:
    """Return `token` less the `:*` at its end, `None` if nothing is left."""
    *before, last, _ = token.pieces
    pieces = (*before, last.removesuffix(":"))
    return None if pieces == ("",) and token.source == ":*" else _Token(pieces, token.source[:-2])


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the words of `text` as a shell splits them."""
    pieces: list[str] | None = None
    source = ""
    for character, is_quoted in _characters(text):
        if not is_quoted and character in _BLANK:
            if pieces is not None:
                yield _Token(tuple(pieces), source)
            pieces, source = None, ""
            continue
        pieces = [""] if pieces is None else pieces
        if not is_quoted and character == "*":
            pieces.append("")
        else:
            pieces[-1] += character
        source += "\0" if is_quoted else character
    if pieces is not None:
        yield _Token(tuple(pieces), source)


def _characters(text: str) -> Iterator[tuple[str, bool]]:
    """Yield every character with whether it is quoted; an empty one for quotes around nothing."""
    at = 0
    while at < len(text):
        character = text[at]
        if character == "'":
            end = _closing(text, at)
            yield "", True
            yield from ((quoted, True) for quoted in text[at + 1 : end])
            at = end + 1
        elif character == '"':
            end = yield from _double_quoted(text, at)
            at = end + 1
        elif character == "\\" and at + 1 < len(text):
            yield text[at + 1], True
            at += 2
        else:
            _check_plain(text, at)
            yield character, False
            at += 1


def _double_quoted(text: str, start: int) -> Generator[tuple[str, bool], None, int]:
    """Yield what stands between double quotes, and return where they end."""
    yield "", True
    at = start + 1
    while at < len(text) and text[at] != '"':
        if text[at] == "\\" and text[at + 1 : at + 2] in _ESCAPABLE:
            at += 1
        elif text[at] == "`" or _EXPANDS.match(text, at):
            raise _unknowable(text, at)
        yield text[at : at + 1], True
        at += 1
    if at >= len(text):
        raise BadRule(f"the quote at {text[start : start + 20]!r} is never closed")
    return at


def _closing(text: str, start: int) -> int:
    end = text.find("'", start + 1)
    if end < 0:
        raise BadRule(f"the quote at {text[start : start + 20]!r} is never closed")
    return end


def _check_plain(text: str, at: int) -> None:
    if text[at] == "`" or _EXPANDS.match(text, at):
        raise _unknowable(text, at)
    if text[at] in _OPERATORS:
        raise BadRule(
            f"a rule is for one simple command, and {text[at]!r} makes it more: write one rule "
            "for each, or quote it"
        )


def _unknowable(text: str, at: int) -> BadRule:
    return BadRule(
        f"what {text[at : at + 20]!r} stands for only the shell knows: end the rule with :* "
        "before it, or put it in single quotes"
    )


def without_assignments(argv: Sequence[str | None]) -> Sequence[str | None]:
    """Return `argv` from the program on, without the variables that are set for it."""
    for index, word in enumerate(argv):
        if word is None or not _ASSIGNMENT.match(word):
            return argv[index:]
    return ()


def _lined_up(
    patterns: Sequence[WordPattern], words: Sequence[str | None], *, is_open: bool
) -> Match:
    """Return whether `words` are those of `patterns`, with nothing or only options between."""
    is_long_enough = len(words) >= len(patterns) if is_open else len(words) == len(patterns)
    pairs = zip(patterns, words, strict=False)
    if is_long_enough and all(word is not None and each.matches(word) for each, word in pairs):
        return Match.YES
    return Match.MAYBE if _may_hide(patterns, words, is_open=is_open) else Match.NO


def _may_hide(
    patterns: Sequence[WordPattern], words: Sequence[str | None], *, is_open: bool
) -> bool:
    """Return whether `patterns` stand in `words` with options, and their values, between them."""
    at, follows_option = 0, False
    for index, word in enumerate(words):
        if at == len(patterns):
            # What only the shell knows can be no word at all.
            return is_open or all(each is None for each in words[index:])
        if word is None:
            return True
        if patterns[at].matches(word):
            at, follows_option = at + 1, False
        elif word.startswith("-"):
            follows_option = True
        elif follows_option:
            follows_option = False
        else:
            return False
    return at == len(patterns)
