"""Divides simple commands into words, without the reader of the product."""

import re

from crush_kernel.permissions.shell.judgement import Judgement, Word
from crush_kernel.permissions.shell.programs import judge

_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""", re.DOTALL)
_PIECE = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^'"\\]+)""", re.DOTALL)


def words_of(line: str) -> tuple[Word, ...]:
    """Return the words of `line`: quotes, backslashes, `$name` as unknown, patterns of names."""
    return tuple(map(_word, _WORD.findall(line)))


def judged(line: str) -> Judgement:
    """Return what the product says of the simple command `line`."""
    return judge(words_of(line))


def everything_judged(line: str) -> list[Judgement]:
    """Return that, and what it says of all commands that `line` runs, scripts included."""
    return _all(words_of(line))


def _all(words: tuple[Word, ...]) -> list[Judgement]:
    found = [judge(words)]
    for run in found[0].runs:
        found += _all(run)
    for script in found[0].scripts:
        found += _all(words_of(script.text or ""))
    return found


def _word(source: str) -> Word:
    text, has_glob, is_known = "", False, True
    for single, double, escaped, plain in _PIECE.findall(source):
        is_known &= not re.search(r"\$[\w{(@*?#]|`", double + plain)
        has_glob |= bool(re.search(r"[*?]|\[.", plain))
        text += single + re.sub(r"\\([\\\"$`])", r"\1", double) + escaped + plain
    return Word(text if is_known else None, source, has_glob=has_glob)
