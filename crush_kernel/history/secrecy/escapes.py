"""Texts in which characters stand as entities, as JSON escapes or percent-encoded.

A secret in such a text is found in the text as it was before, and its place is told in the
text as it is.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

_ESCAPE = re.compile(
    r"&(?:#(?P<decimal>\d{2,5})|#[xX](?P<hex>[0-9a-fA-F]{2,4})|(?P<name>amp|lt|gt|quot|apos));"
    r"|\\(?:u(?P<unicode>[0-9a-fA-F]{4})|(?P<letter>[nrt\"'/\\]))"
    r"|%(?P<byte>[2-7][0-9A-Fa-f])"
)
_NAMES: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Unescaped:
    """A text with its escapes undone."""

    text: str
    ends: list[int]
    """Where in `text` each undone escape ends, in order."""
    shifts: list[int]
    """By how much what follows that place has moved to the left."""

    def place(self, position: int) -> int:
        """Return where `position`, between two characters of `text`, is in the original."""
        index = bisect_right(self.ends, position)
        return position + (self.shifts[index - 1] if index else 0)


def unescaped(text: str) -> Unescaped | None:
    """Return `text` with its escapes undone, `None` if it has none.

    Once only: what comes out may look like an escape again.
    """
    if "&" not in text and "\\" not in text and "%" not in text:
        return None
    parts: list[str] = []
    ends: list[int] = []
    shifts: list[int] = []
    position = length = 0
    for found in _ESCAPE.finditer(text):
        parts += (text[position : found.start()], _character(found))
        length += found.start() - position + 1
        position = found.end()
        ends.append(length)
        shifts.append(position - length)
    if not ends:
        return None
    parts.append(text[position:])
    return Unescaped("".join(parts), ends, shifts)


def _character(found: re.Match[str]) -> str:
    if decimal := found["decimal"]:
        return chr(int(decimal))
    if name := found["name"]:
        return _NAMES[name]
    if letter := found["letter"]:
        return _LETTERS.get(letter, letter)
    return chr(int(found["hex"] or found["unicode"] or found["byte"], 16))
