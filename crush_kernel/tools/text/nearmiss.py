"""What to say when a text to replace is not there: the closest lines, and how they differ."""

import json
import re
from dataclasses import dataclass

MAX_REGION_LINES = 20
_MAX_SHOWN = 300
"""Characters of a line that are shown; the difference is always among them."""

_MAX_PLACES = 50
"""A line that is there more often says nothing about the place."""

_MAX_SEARCHED = 100_000
"""Lines that are searched for a similar one, which is slower than for an equal one."""

_MIN_SIMILARITY = 60.0

_LINE_NUMBER = re.compile(r"\s*\d+[|\t:→]")


@dataclass(frozen=True, slots=True)
class _Region:
    """Lines of the file that stand where the old text was expected."""

    start: int
    """The index of the first; there are as many as in the old text, if the file has them."""
    is_equal_bare: bool
    """Whether all of them differ in whitespace alone."""


def near_miss(text: str, old: str) -> str:
    """Return, for the model, that `old` is not in `text`, and what comes closest.

    Both have LF newlines only. The answer is at most `MAX_REGION_LINES` lines of the file
    and a few sentences long.
    """
    lines = text.split("\n")
    old_lines = old.removesuffix("\n").split("\n")
    if _has_line_numbers(text, old_lines):
        return "old_string was not found: it has line numbers in it. Leave them out."
    region = _closest(lines, old_lines)
    if region is None:
        return "old_string was not found, and no line of the file is like it. View it again."
    actual = lines[region.start : region.start + len(old_lines)]
    different = _first_difference(actual, old_lines)
    first = max(0, min(different - MAX_REGION_LINES // 2, len(actual) - MAX_REGION_LINES))
    excerpt = actual[first : first + MAX_REGION_LINES]
    start = region.start + first + 1
    place = f"line {start}" if len(excerpt) == 1 else f"lines {start}–{start + len(excerpt) - 1}"
    shown = "\n".join(_cut(line, 0) for line in excerpt)
    return (
        f"old_string was not found. What comes closest is on {place}:\n```\n{shown}\n```\n"
        + _explanation(actual, old_lines, different, region)
    )


def _has_line_numbers(text: str, old: list[str]) -> bool:
    """Return whether `old` is in `text` but for numbers before its lines, as `view` shows."""
    is_numbered = all(_LINE_NUMBER.match(line) for line in old)
    return is_numbered and "\n".join(_LINE_NUMBER.sub("", line, count=1) for line in old) in text


def _closest(lines: list[str], old: list[str]) -> _Region | None:
    """Return the region that shares the most of its lines with `old`, whitespace apart."""
    bare_old = [_bare(line) for line in old]
    wanted = frozenset(filter(None, bare_old))
    places: dict[str, list[int]] = {line: [] for line in wanted}
    for index, line in enumerate(lines):
        if (bare := _bare(line)) in wanted:
            places[bare].append(index)
    votes: dict[int, int] = {}
    for index, bare in enumerate(bare_old):
        for place in places.get(bare, ())[:_MAX_PLACES]:
            start = max(0, place - index)
            votes[start] = votes.get(start, 0) + len(bare)
    if not votes:
        return _similar(lines, old)
    start = max(votes, key=lambda start: (votes[start], -start))
    return _Region(start, [_bare(line) for line in lines[start : start + len(old)]] == bare_old)


def _similar(lines: list[str], old: list[str]) -> _Region | None:
    """Return the region around the line that is most like the longest line of `old`."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - 75 ms that few edits need

    longest = max(range(len(old)), key=lambda index: len(old[index].strip()))
    wanted = old[longest].strip()
    if not wanted:
        return None
    # A line many times as long cannot be similar, but comparing it takes long.
    choices = {
        index: line.strip()
        for index, line in enumerate(lines[:_MAX_SEARCHED])
        if line.strip() and len(line) <= 4 * len(wanted) + 80
    }
    found = process.extractOne(wanted, choices, scorer=fuzz.ratio, score_cutoff=_MIN_SIMILARITY)
    return None if found is None else _Region(max(0, found[2] - longest), is_equal_bare=False)


def _explanation(actual: list[str], old: list[str], different: int, region: _Region) -> str:
    if different >= len(actual):
        return "The file ends there."
    line, line_old = actual[different], old[different]
    at = next(
        (i for i, (a, b) in enumerate(zip(line, line_old, strict=False)) if a != b),
        min(len(line), len(line_old)),
    )
    return (
        f"{_whitespace(line, line_old) if region.is_equal_bare else ''}"
        f"Line {region.start + different + 1} is the first that differs; as JSON strings:\n"
        f"in the file:   {json.dumps(_cut(line, at), ensure_ascii=False)}\n"
        f"in old_string: {json.dumps(_cut(line_old, at), ensure_ascii=False)}"
    )


def _whitespace(line: str, line_old: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    indent_old = line_old[: len(line_old) - len(line_old.lstrip())]
    said = "They differ in whitespace only"
    if "\t" in indent and "\t" not in indent_old:
        return f"{said}: the file uses tabs. "
    if "\t" in indent_old and "\t" not in indent:
        return f"{said}: the file uses spaces. "
    if indent == indent_old and line.rstrip() == line_old.rstrip():
        return f"{said}: there are spaces or tabs at the end of the line. "
    return f"{said}. "


def _first_difference(actual: list[str], old: list[str]) -> int:
    pairs = zip(actual, old, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(actual), len(old)))


def _bare(line: str) -> str:
    return "".join(line.split())


def _cut(line: str, around: int) -> str:
    """Return `line`, or the part of it around a position if it is long."""
    start = max(0, min(around - _MAX_SHOWN // 2, len(line) - _MAX_SHOWN))
    head = "…" if start else ""
    tail = "…" if start + _MAX_SHOWN < len(line) else ""
    return f"{head}{line[start : start + _MAX_SHOWN]}{tail}"
