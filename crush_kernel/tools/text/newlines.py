"""Newlines: text is matched as if every line ended in LF, and changed with its own line ends.

An `Edit` is in terms of the normalized text. `apply_edits` puts it into the original, where
everything outside the edited spans stays as it is, character for character, and new lines
end as the lines around them do, even in a file that mixes its newlines.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from crush_kernel.tools.text.lineset import LineChange

_NEWLINE = re.compile("\r\n|\n|\r")

_MAX_ALIGNED = 4_000_000
"""Old lines times new lines; beyond, lines are paired by their order instead of aligned."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the span from `start` to `end` of the normalized text by `text`."""

    start: int
    end: int
    text: str


def normalize(text: str) -> str:
    """Return `text` with LF for every CRLF, CR and LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def apply_edits(original: str, edits: Sequence[Edit]) -> str:
    """Return `original` with `edits` made, which are disjoint and in order."""
    kinds = _newlines_in(original)
    if not kinds:
        return _spliced(original, edits)
    first, *others = kinds
    plain = [Edit(edit.start, edit.end, normalize(edit.text)) for edit in edits]
    if others:
        return _spliced_mixed(normalize(original), plain, _NEWLINE.findall(original))
    changed = _spliced(normalize(original), plain)
    return changed if first == "\n" else changed.replace("\n", first)


def _newlines_in(text: str) -> tuple[str, ...]:
    """Return the kinds of newlines in `text`. Counts, since a list of them all takes long."""
    cr = text.count("\r") if "\r" in text else 0
    crlf = text.count("\r\n") if cr else 0
    has_lf = "\n" in text and (not crlf or text.count("\n") > crlf)
    kinds = (("\r\n", crlf > 0), ("\n", has_lf), ("\r", cr > crlf))
    return tuple(kind for kind, is_there in kinds if is_there)


def line_changes(original: str, edits: Sequence[Edit]) -> tuple[LineChange, ...]:
    """Return which lines of `original` the `edits` touch, and how many come of them.

    Lines are counted as `view` does it: a lone CR ends one only where no LF is. Where two
    edits touch the same line, it is one change.
    """
    text = original
    if "\r" in text:
        text = text.replace("\r\n", "\n") if "\n" in text else normalize(text)
    changes: list[LineChange] = []
    position = line = 0
    for edit in edits:
        line += text.count("\n", position, edit.start)
        position = edit.start
        is_shared = bool(changes) and line < changes[-1].stop
        change = _line_change(text, edit, line, is_shared=is_shared)
        if is_shared:
            changes[-1] = _merged(changes[-1], change)
        else:
            changes.append(change)
    return tuple(changes)


def _line_change(text: str, edit: Edit, line: int, *, is_shared: bool) -> LineChange:
    """Return what `edit` does to its lines, of which an edit before it may share the first."""
    lines = text.count("\n", edit.start, edit.end)
    lines_new = normalize(edit.text).count("\n")
    is_at_start = not is_shared and (edit.start == 0 or text[edit.start - 1] == "\n")
    ends_line = text.endswith("\n", edit.start, edit.end)
    ends_line_new = edit.text.endswith(("\n", "\r")) or (not edit.text and is_at_start)
    if ends_line and ends_line_new:
        return LineChange(line, line + lines, lines_new)
    return LineChange(line, line + lines + 1, lines_new + 1, joins=ends_line)


def _merged(one: LineChange, other: LineChange) -> LineChange:
    """Return two changes as one, the second of which begins in the last line of the first."""
    shared = one.stop - other.start
    count = one.count + other.count - shared
    return LineChange(one.start, other.stop, count, joins=other.joins)


def _spliced(text: str, edits: Sequence[Edit]) -> str:
    pieces: list[str] = []
    position = 0
    for edit in edits:
        pieces += text[position : edit.start], edit.text
        position = edit.end
    return "".join((*pieces, text[position:]))


def _spliced_mixed(text: str, edits: Sequence[Edit], newlines: list[str]) -> str:
    pieces: list[str] = []
    position = passed = 0
    for edit in edits:
        before, old = text[position : edit.start], text[edit.start : edit.end]
        first = passed + before.count("\n")
        pieces.append(_spelled(before, newlines[passed:first]))
        passed = first + old.count("\n")
        near = newlines[max(0, first - 1)] if first else newlines[0]
        spelled = _paired(old, edit.text, newlines[first:passed], near)
        pieces.append(_spelled(edit.text, _apart(edit.text, spelled)))
        position = edit.end
    pieces.append(_spelled(text[position:], newlines[passed:]))
    return _joined(pieces)


def _apart(text: str, newlines: list[str]) -> list[str]:
    """Return `newlines` of `text` with none that would be one with the CR right before it."""
    lines = text.split("\n")
    return [
        "\r\n" if newline == "\n" and index and not lines[index] and near == "\r" else newline
        for index, (near, newline) in enumerate(zip(("", *newlines), newlines, strict=False))
    ]


def _joined(pieces: Sequence[str]) -> str:
    """Return `pieces` in a row; an LF at the border of two is not made part of a CRLF."""
    text: list[str] = []
    for piece in filter(None, pieces):
        if piece[0] == "\n" and text and text[-1][-1] == "\r":
            text.append("\r")
        text.append(piece)
    return "".join(text)


def _spelled(text: str, newlines: Sequence[str]) -> str:
    """Return `text` with its LFs spelled as `newlines`, of which there are as many."""
    lines = text.split("\n")
    return "".join(part for pair in zip(lines, (*newlines, ""), strict=True) for part in pair)


def _paired(old: str, new: str, newlines: list[str], near: str) -> list[str]:
    """Return how each LF of `new` is spelled, where `old` had `newlines` and `near` precedes.

    A line that stays keeps its newline. A changed line gets that of the line it stands for,
    an additional one that of the line before it.
    """
    if len({near, *newlines}) == 1:
        return [near] * new.count("\n")
    old_lines, new_lines = old.split("\n")[:-1], new.split("\n")[:-1]
    found: dict[int, str] = {}
    for first, first_new, length, length_new in _blocks(old_lines, new_lines):
        for index in range(min(length, length_new)):
            found[first_new + index] = newlines[first + index]
    spelled: list[str] = []
    for index in range(len(new_lines)):
        near = found.get(index, near)
        spelled.append(near)
    return spelled


def _blocks(old: list[str], new: list[str]) -> list[tuple[int, int, int, int]]:
    """Return which old lines stand for which new ones: starts, then lengths."""
    if len(old) == len(new) or len(old) * len(new) > _MAX_ALIGNED:
        return [(0, 0, len(old), len(new))]
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(i1, j1, i2 - i1, j2 - j1) for _, i1, i2, j1, j2 in codes]
