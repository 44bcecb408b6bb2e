"""Private keys in armor: `-----BEGIN … PRIVATE KEY-----`, and lines of Base64 after it.

Output of tools may show only a part, with a line number or the sign of a diff before each
line, and a note in the middle. So a block is what goes on like one after its begin mark,
with few other lines between; or what stands like one before an end mark that has no begin.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final, NamedTuple

from crush_kernel.history.secrecy.span import Span

LABEL: Final = "private key"
GUARD: Final = "PRIVATE KEY"
"""Stands in every mark."""
OPEN_GUARD: Final = "-----|[A-Za-z0-9+/=]{24}"
"""An expression without look-around that matches wherever a block may be open."""

MAX_GAP: Final = 2
"""How many lines together may be none of a key's, such as a note of what was left out."""

_MARK = re.compile(r"-----(?P<kind>BEGIN|END) [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----")
_UNFINISHED = re.compile(r"-----(?:BEGIN|END)[A-Z0-9 ]{0,60}\Z")
_RUN = re.compile(r"[A-Za-z0-9+/=]{24,}")
_SURE_CHARS: Final = 60
"""A run of Base64 this long is a line of a key, whatever it is made of."""
_HEADER = re.compile(r"[ \t>|+:\d-]{0,20}(?:\s*\Z|(?:Proc-Type|DEK-Info|Version|Comment): )")
_LAST = re.compile(r"[ \t>|+:\d-]{0,20}?((?:[A-Za-z0-9+/=]{4}){1,17})\s*\Z")


class _Walk(NamedTuple):
    """How far a block was followed."""

    end: int
    """Where it ends, so far; where it began if there is no line of a key."""
    is_open: bool
    """Whether it may go on after the text."""


def key_blocks(text: str) -> Iterator[Span]:
    """Yield where `text` has private keys, or parts of them that can be told. Linear time."""
    if GUARD not in text:
        return
    done = 0
    marks = list(_MARK.finditer(text))
    for mark, following in zip_longest(marks, marks[1:]):
        if mark["kind"] == "BEGIN":
            end = _followed(text, mark.end(), following).end
            if end > mark.end():
                yield Span(mark.start(), end, LABEL)
                done = end
        elif mark.start() >= done:
            start = _traced_back(text, mark.start(), done)
            if start < mark.start():
                yield Span(start, mark.end(), LABEL)
            done = mark.end()


def open_block(text: str) -> int:
    """Return where in `text` something begins that may be part of a block when more comes.

    Its length if there is no such thing.
    """
    unfinished = _UNFINISHED.search(text, max(0, len(text) - 70))
    position = unfinished.start() if unfinished else len(text)
    marks = list(_MARK.finditer(text)) if GUARD in text else []
    if marks and marks[-1]["kind"] == "BEGIN":
        begin = marks[-1]
        if _followed(text, begin.end(), None).is_open:
            return min(position, begin.start())
    return min(position, _traced_back(f"{text}\n", len(text) + 1, 0))


def _followed(text: str, body: int, following: re.Match[str] | None) -> _Walk:
    """Follow the block whose begin mark ends at `body`, to the mark `following` at most."""
    limit = following.start() if following else len(text)
    end = position = body
    gap = 0
    while position <= limit and gap <= MAX_GAP:
        newline = text.find("\n", position, limit)
        stop = limit if newline < 0 else newline
        line = text[position:stop]
        if _is_body(line) or (end > body and gap == 0 and _LAST.match(line)):
            end, gap = stop, 0
        elif not _HEADER.match(line):
            gap += 1
        position = stop + 1
    if gap > MAX_GAP or following is None:
        return _Walk(end, is_open=gap <= MAX_GAP)
    is_its_end = following["kind"] == "END" and end > body
    return _Walk(following.end() if is_its_end else end, is_open=False)


def _traced_back(text: str, end: int, floor: int) -> int:
    """Return where the lines begin that stand before `end` and look like a key's."""
    top = end
    newline = text.rfind("\n", floor, end)
    is_last = True
    while newline >= floor:
        start = max(text.rfind("\n", floor, newline) + 1, floor)
        line = text[start:newline]
        runs = [run for run in _RUN.finditer(line) if _is_key_like(run)]
        if runs:
            top = start + runs[0].start()
        elif not is_last:  # the last line of a key is short
            break
        is_last = False
        newline = start - 1
    return top


def _is_body(line: str) -> bool:
    return any(map(_is_key_like, _RUN.finditer(line)))


def _is_key_like(run: re.Match[str]) -> bool:
    text = run[0]
    return len(text) >= _SURE_CHARS or (
        any(map(str.isdigit, text)) and any(map(str.isupper, text)) and any(map(str.islower, text))
    )
