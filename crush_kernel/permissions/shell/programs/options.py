"""Options of programs: how a program's options are written down, and what an argument list gives.

A program's options are a string such as `-abn: -f@ -o> --color? --width: --stat`, separated by
spaces: letters may stand together; after the last stands one sign for each of its values, `:` a
text, `@` a path that is read, `>` a path that is written, `/` the folder to work in; `?` is a
value that may only be attached, `!` one that may be missing at the very end. `-#` stands for
numbers, `-20`. A name of several letters after one dash is written `-name=`.

What is not listed is not understood, abbreviations included, and neither is what may turn out to
be an option when the shell has put something in its place.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from crush_kernel.permissions.shell.judgement import Word

_MOST_VALUES: Final = 8
"""More than any option takes."""

STARTS_OF_PATHS: Final = frozenset("/._~")
"""Beside letters and digits: how a pattern starts whose matches cannot be options."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options that a program is known to have."""

    values: Mapping[str, str]
    """By name, dashes included: the signs of its values."""
    has_numbers: bool = False
    """Whether `-20` is one."""


@dataclass(slots=True)
class Given:
    """What an argument list gives."""

    names: set[str] = field(default_factory=set[str])
    """The options, dashes included."""
    texts: list[tuple[str, Word]] = field(default_factory=list[tuple[str, Word]])
    """Options and their values that are no paths, in order."""
    operands: list[Word] = field(default_factory=list[Word])
    reads: list[Word] = field(default_factory=list[Word])
    """Values that are paths to read."""
    writes: list[Word] = field(default_factory=list[Word])
    """Values that are paths to write."""
    folders: list[Word] = field(default_factory=list[Word])
    """Values that are folders to work in."""
    unclear: list[Word] = field(default_factory=list[Word])
    """Words that may turn out to be options."""
    is_understood: bool = True
    """Whether all options are listed, and all have their values."""

    def value(self, *names: str) -> Word | None:
        """Return the last value of any of the options `names`."""
        found = [word for name, word in self.texts if name in names]
        return found[-1] if found else None


@cache
def options(text: str) -> Options:
    """Return the options that `text` writes down."""
    values: dict[str, str] = {}
    for token in text.split():
        name = token.rstrip(":@>/?!")
        signs = token[len(name) :]
        if name.startswith("--") or name.endswith("="):
            values[name.rstrip("=")] = signs
        else:
            values.update((f"-{letter}", "") for letter in name[1:])
            values[f"-{name[-1]}"] = signs
    return Options(values, has_numbers="-#" in values)


def may_be_option(word: Word) -> bool:
    """Return whether `word` may turn out to be an option once the shell has put it in place."""
    if word.text is None:
        return True
    first = word.text[:1]
    return word.has_glob and not (first.isalnum() or first in STARTS_OF_PATHS)


def is_one(word: Word) -> bool:
    """Return whether `word` is one word for certain, if not which."""
    if word.text is not None:
        return not word.has_glob
    source = word.source
    return len(source) > 1 and source[0] == source[-1] == '"' and not set("@*") & set(source)


def scan(words: tuple[Word, ...], known: Options, *, in_order: bool = False) -> Given:
    """Return what `words`, the name of the program left out, give.

    Args:
        words: of which no option can be read for certain are taken as they stand.
        known: what the program knows.
        in_order: whether the first operand ends the options, as with commands that run another.
    """
    given = Given()
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        text = word.text
        if text == "--":
            given.operands += words[at:]
            break
        if (text is None or word.has_glob) and may_be_option(word):
            given.unclear.append(word)
        if text is None or not text.startswith("-") or text == "-":
            given.operands.append(word)
            if in_order:
                given.operands += words[at:]
                break
        else:
            at += _take(given, known, word, words[at : at + _MOST_VALUES])
    return given


def _take(given: Given, known: Options, word: Word, following: tuple[Word, ...]) -> int:
    """Take the option or the cluster `word`; return how many of the following words it takes."""
    text = word.text or ""
    if known.has_numbers and text[1:].isdecimal():
        given.names.add("-#")
        return 0
    name, equals, attached = text.partition("=")
    if name in known.values and not (equals and len(name) == 2):
        return _take_values(given, known, name, attached if equals else None, following)
    if text.startswith("--"):
        given.names.add(name)
        given.is_understood = False
        return 0
    return _take_cluster(given, known, text, following)


def _take_cluster(given: Given, known: Options, text: str, following: tuple[Word, ...]) -> int:
    for index in range(1, len(text)):
        name = f"-{text[index]}"
        signs = known.values.get(name)
        if signs is None:
            given.names.add(name)
            given.is_understood = False
        elif signs:
            attached = text[index + 1 :]
            return _take_values(given, known, name, attached or None, following)
        else:
            given.names.add(name)
    return 0


def _take_values(
    given: Given, known: Options, name: str, attached: str | None, following: tuple[Word, ...]
) -> int:
    given.names.add(name)
    signs = known.values[name]
    if signs in ("", "?"):
        if attached is not None:
            given.is_understood &= signs == "?"
            given.texts.append((name, Word(attached, attached)))
        return 0
    if attached is not None:
        given.is_understood &= len(signs) == 1
        _keep(given, name, signs[0], Word(attached, attached))
        return 0
    signs = signs.replace("!", ":" if following else "")
    if len(following) < len(signs):
        given.is_understood = False
    for sign, word in zip(signs, following, strict=False):
        given.is_understood &= _is_plain_value(word)
        _keep(given, name, sign, word)
    return min(len(signs), len(following))


def _keep(given: Given, name: str, sign: str, word: Word) -> None:
    match sign:
        case "@":
            given.reads.append(word)
        case ">":
            given.writes.append(word)
        case "/":
            given.folders.append(word)
        case _:
            given.texts.append((name, word))


def _is_plain_value(word: Word) -> bool:
    """Return whether `word` is a value and no option, whatever the program makes of it.

    Programs of the same name differ in which options take a value.
    """
    if not is_one(word):
        return False
    text = word.text or ""
    return not text.startswith("-") or text == "-" or text[1:].isdecimal()
