"""The second chance of an edit whose old text differs from the file in whitespace alone.

Models lose tabs, or count indentation from another base. Where whole lines match but for
whitespace at their ends, and only once, the edit is carried over: lines that it keeps stay
as the file has them, lines that it changes are indented as the matched lines say. Whenever
that is not certain to keep the nesting and the content of string literals, there is no
answer: the model is better told than second-guessed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from fractions import Fraction
from itertools import pairwise

from crush_kernel.tools.text.newlines import Edit

_BLANKS = " \t"

_MAX_LINES = 2_000
"""Longer edits are no matter of whitespace any more, and aligning them takes time."""

_HEREDOC = re.compile(r"<<[-~]?[ \t]*[\"']?([A-Z][A-Z_0-9]+)\b")
_RAW_STRING = re.compile(r'\bR"|\br#+"')
_QUOTES = ('"""', "'''", "`")


def reindented(text: str, old: str, new: str) -> Edit | None:
    """Return the edit of `text` that `old` → `new` means, or `None` if in doubt.

    All three have LF newlines only.
    """
    is_cut = old.endswith("\n")
    if is_cut and new and not new.endswith("\n"):
        return None
    old_lines = old.removesuffix("\n").split("\n")
    new_lines = new.removesuffix("\n").split("\n") if is_cut else new.split("\n")
    lines = text.split("\n")
    start = _only_place(lines, old_lines)
    if start is None or len(new_lines) > _MAX_LINES:
        return None
    actual = lines[start : start + len(old_lines)]
    offset = sum(len(line) + 1 for line in lines[:start])
    end = offset + sum(len(line) + 1 for line in actual) - 1
    if not new:
        return Edit(offset, min(end + is_cut, len(text)), "")
    if _may_be_in_literal(text[:offset], (*old_lines, *new_lines)):
        return None
    changed = _carried_over(actual, old_lines, new_lines, lines)
    return None if changed is None else Edit(offset, end, "\n".join(changed))


def _only_place(lines: list[str], old: list[str]) -> int | None:
    """Return the one index in `lines` at which `old` matches but for outer whitespace."""
    bare_old = [line.strip(_BLANKS) for line in old]
    if not any(bare_old) or len(old) > _MAX_LINES:
        return None
    anchor = next(index for index, line in enumerate(bare_old) if line)
    bare = [line.strip(_BLANKS) for line in lines]
    places = [
        index - anchor
        for index, line in enumerate(bare)
        if line == bare_old[anchor]
        and index >= anchor
        and bare[index - anchor : index - anchor + len(old)] == bare_old
    ]
    return places[0] if len(places) == 1 else None


def _carried_over(
    actual: list[str], old: list[str], new: list[str], lines: list[str]
) -> list[str] | None:
    """Return `new` as lines of the file, or `None` if a line's indentation is in doubt."""
    indents = _Indents.of(actual, old, new, lines)
    if indents is None:
        return None
    result: list[str] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            result += actual[i1:i2]
            continue
        for line in new[j1:j2]:
            if not line.strip(_BLANKS):
                result.append("")
                continue
            indent = indents.translate(_indent(line))
            if indent is None:
                return None
            result.append(indent + line.lstrip(_BLANKS))
    return result


@dataclass(frozen=True, slots=True)
class _Indents:
    """How indentation in the edit corresponds to indentation in the file."""

    known: dict[str, str]
    """From the matched lines: the edit's indentation to the file's."""
    used: frozenset[str]
    """All indentations in the file."""
    step: int
    """The least difference between indentations in the edit; 0 if there is but one."""
    file_step: int
    """The commonest deepening from one line of the file to the next; 0 if there is none."""

    @classmethod
    def of(
        cls, actual: list[str], old: list[str], new: list[str], lines: list[str]
    ) -> "_Indents | None":
        """Return the correspondence, or `None` if it would change how lines nest."""
        known: dict[str, str] = {}
        for line, line_old in zip(actual, old, strict=True):
            if line_old.strip(_BLANKS):
                indent, indent_old = _indent(line), _indent(line_old)
                if known.setdefault(indent_old, indent) != indent:
                    return None
        pairs = list(known.items())
        if any(_depth(a, b) != _depth(x, y) for a, x in pairs for b, y in pairs):
            return None
        file_indents = [_indent(line) for line in lines if line.strip(_BLANKS)]
        sizes = sorted({len(_indent(line)) for line in (*old, *new) if line.strip(_BLANKS)})
        step = min((b - a for a, b in pairwise(sizes)), default=0)
        return cls(known, frozenset(file_indents), step, _common_step(file_indents))

    def translate(self, indent: str) -> str | None:
        """Return what `indent` in the edit is in the file, or `None` if that is a guess."""
        if indent in self.known:
            return self.known[indent]
        found = self._scaled(indent)
        if found is None:
            found = self._shifted(indent)
        if found is None:
            return None
        # A line between two levels of the file would belong to neither.
        is_deeper = all(found.startswith(base) for base in self.known.values())
        return found if is_deeper or found in self.used else None

    def _shifted(self, indent: str) -> str | None:
        """Return `indent` moved as all matched lines are, by the same whitespace in front.

        Where all matched lines are at one level, it could as well be another unit. Only a
        deeper line settles that, if the steps agree, as code deepens by one level at a time.
        """
        old, actual = next(iter(self.known.items()))
        is_settled = self.step == self.file_step and indent.startswith(old)
        if len(self.known) == 1 and old != actual and not is_settled:
            return None
        if actual.endswith(old):
            front = actual.removesuffix(old)
            found = front + indent
            is_same = all(b == front + a for a, b in self.known.items())
            return found if is_same and (not front or _is_plain(found)) else None
        front = old.removesuffix(actual)
        is_same = all(a == front + b for a, b in self.known.items())
        return indent.removeprefix(front) if is_same and indent.startswith(front) else None

    def _scaled(self, indent: str) -> str | None:
        """Return `indent` in the file's units: tabs for spaces, or other numbers of them."""
        if not all(map(_is_plain, (indent, *self.known, *self.known.values()))):
            return None
        if len({text[0] for text in (indent, *self.known) if text}) > 1:
            return None
        marks = {text[0] for text in self.known.values() if text}
        points = sorted((len(a), len(b)) for a, b in self.known.items())
        line = _line_through(points) if len(points) > 1 else self._proportion(points[0])
        if line is None or len(marks) != 1:
            return None
        slope, base = line
        size = slope * len(indent) + base
        return marks.pop() * int(size) if size >= 0 and size.denominator == 1 else None

    def _proportion(self, point: tuple[int, int]) -> tuple[Fraction, Fraction] | None:
        """Return the line from nought through a single `point`, if the steps confirm it."""
        size, actual = point
        if not size or not actual:
            return None
        slope = Fraction(actual, size)
        return (slope, Fraction(0)) if slope * self.step == self.file_step else None


def _line_through(points: Sequence[tuple[int, int]]) -> tuple[Fraction, Fraction] | None:
    """Return slope and base of the line through all `points`, or `None`."""
    (x1, y1), (x2, y2) = points[0], points[1]
    slope = Fraction(y2 - y1, x2 - x1)
    base = y1 - slope * x1
    return (slope, base) if all(slope * x + base == y for x, y in points) else None


def _depth(a: str, b: str) -> int | None:
    """Return 1 if `b` nests in `a`, −1 the other way round, 0 if equal, else `None`."""
    if a == b:
        return 0
    if b.startswith(a):
        return 1
    return -1 if a.startswith(b) else None


def _common_step(indents: list[str]) -> int:
    """Return by how many characters lines are most often deeper than the line before."""
    counts: dict[int, int] = {}
    for before, after in pairwise(indents):
        if after.startswith(before) and after != before:
            step = len(after) - len(before)
            counts[step] = counts.get(step, 0) + 1
    return max(counts, key=lambda step: (counts[step], step), default=0)


def _may_be_in_literal(before: str, lines: Sequence[str]) -> bool:
    """Return whether the edit may lie in, or open, a literal that spans lines."""
    if any(before.count(quote) % 2 for quote in _QUOTES) or before.endswith("\\\n"):
        return True
    return _is_in_heredoc(before) or any(_may_open_literal(line) for line in lines)


def _may_open_literal(line: str) -> bool:
    return (
        any(line.count(quote) % 2 for quote in _QUOTES)
        or line.endswith("\\")
        or _HEREDOC.search(line) is not None
        or _RAW_STRING.search(line) is not None
    )


def _is_in_heredoc(before: str) -> bool:
    openers = list(_HEREDOC.finditer(before))
    if not openers:
        return False
    end = rf"^[ \t]*{openers[-1][1]}[ \t]*$"
    return re.search(end, before[openers[-1].end() :], re.MULTILINE) is None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def _is_plain(indent: str) -> bool:
    return len(set(indent)) <= 1
