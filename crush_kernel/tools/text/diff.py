"""Unified diffs of whole texts, with counts that are right for any content."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from crush_kernel.tools.text.lineset import NO_LINE, LineChange, LineSet
from crush_kernel.tools.text.newlines import normalize

CONTEXT_LINES = 3

_MAX_COMPARED = 20_000
"""Lines that are compared one by one; where more differ, all old ones go and all new come."""

_STEP = 65_536
"""Characters that are compared at once; a power of two, which is halved at a difference."""

Code = tuple[str, int, int, int, int]
"""What `difflib` calls an opcode: tag, span of old lines, span of new lines."""


@dataclass(frozen=True, slots=True)
class Diff:
    """How one text became another."""

    text: str
    """In unified format; empty if nothing changed. Line ends are not compared."""
    additions: int
    removals: int
    lines: tuple[LineChange, ...] = ()
    """The changes one by one, in order."""
    shown: LineSet = NO_LINE
    """The lines of the new text that are in the diff."""

    @property
    def summary(self) -> str:
        """Return the counts for people: `+2 −1`."""
        return f"+{self.additions} −{self.removals}"


def unified_diff(path: str, old: str | None, new: str) -> Diff:
    """Return what changes in `path` from `old` to `new`; `None` is a file that is not there."""
    skipped, before, after = _different(normalize(old or ""), normalize(new))
    hunks = _hunks(before, after)
    changes = [code for hunk in hunks for code in hunk if code[0] != "equal"]
    name = path if path.isprintable() else json.dumps(path)
    header = ("--- /dev/null" if old is None else f"--- a/{name}", f"+++ b/{name}")
    body = [line for hunk in hunks for line in _shown(hunk, before, after, skipped)]
    return Diff(
        text="\n".join((*header, *body)) + "\n" if body or old is None else "",
        additions=sum(j2 - j1 for _, _, _, j1, j2 in changes),
        removals=sum(i2 - i1 for _, i1, i2, _, _ in changes),
        lines=tuple(
            LineChange(skipped + i1, skipped + i2, j2 - j1) for _, i1, i2, j1, j2 in changes
        ),
        shown=LineSet.of((skipped + hunk[0][3], skipped + hunk[-1][4]) for hunk in hunks),
    )


def _different(old: str, new: str) -> tuple[int, list[str], list[str]]:
    """Return how many lines both begin with, and the others as far as they matter.

    Those are the lines that differ and a few around them. Of a large text, most is neither
    split into lines nor compared by them.
    """
    head = _start_of_context(old, _common_start(old, new))
    tail = _end_of_context(old, _common_end(old, new, head))
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    return old.count("\n", 0, head), _lines(before), _lines(after)


def _common_start(old: str, new: str) -> int:
    """Return how many characters both begin with."""
    start, size = 0, min(len(old), len(new))
    step = _STEP
    while step:
        end = min(start + step, size)
        if start < end and old[start:end] == new[start:end]:
            start = end
        else:
            step //= 2
    return start


def _common_end(old: str, new: str, head: int) -> int:
    """Return how many characters both end with, apart from the first `head`."""
    length, size = 0, min(len(old), len(new)) - head
    step = _STEP
    while step:
        end = min(length + step, size)
        one, other = len(old) - length, len(new) - length
        if length < end and old[len(old) - end : one] == new[len(new) - end : other]:
            length = end
        else:
            step //= 2
    return length


def _start_of_context(text: str, same: int) -> int:
    """Return where the lines begin that are shown before the first difference."""
    start = same
    for _ in range(CONTEXT_LINES + 1):
        start = text.rfind("\n", 0, start)
        if start < 0:
            return 0
    return start + 1


def _end_of_context(text: str, same: int) -> int:
    """Return how much of the end is behind the lines that are shown after the last difference."""
    end = len(text) - same
    for _ in range(CONTEXT_LINES + 1):
        end = text.find("\n", end) + 1
        if not end:
            return 0
    return len(text) - end


def _lines(text: str) -> list[str]:
    """Return the lines of `text`, each with its LF; the last may be without."""
    lines = text.split("\n")
    last = lines.pop()
    return [*(f"{line}\n" for line in lines), *([last] if last else [])]


def _hunks(old: list[str], new: list[str]) -> list[list[Code]]:
    """Return the changes from `old` to `new` by hunk, each with equal lines around it.

    What both have at their ends is left out before `difflib` sees them: it takes its time.
    """
    head = _common(old, new)
    rest_old, rest_new = old[head:], new[head:]
    tail = _common(rest_old[::-1], rest_new[::-1])
    start = max(0, head - CONTEXT_LINES)
    trailing = max(0, tail - CONTEXT_LINES)
    a, b = old[start : len(old) - trailing], new[start : len(new) - trailing]
    if max(len(a), len(b)) <= _MAX_COMPARED:
        groups = SequenceMatcher(None, a, b).get_grouped_opcodes(CONTEXT_LINES)
        hunks = [group for group in groups if any(code[0] != "equal" for code in group)]
    else:
        i1, i2, j2 = head - start, len(a) - (tail - trailing), len(b) - (tail - trailing)
        hunks = [
            [
                ("equal", 0, i1, 0, i1),
                ("replace", i1, i2, i1, j2),
                ("equal", i2, len(a), j2, len(b)),
            ]
        ]
    return [
        [(tag, i1 + start, i2 + start, j1 + start, j2 + start) for tag, i1, i2, j1, j2 in hunk]
        for hunk in hunks
    ]


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines both begin with."""
    pairs = zip(old, new, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def _shown(codes: list[Code], old: list[str], new: list[str], skipped: int) -> Iterator[str]:
    (_, i1, _, j1, _), (_, _, i2, _, j2) = codes[0], codes[-1]
    places = (_range(skipped + start, skipped + stop) for start, stop in ((i1, i2), (j1, j2)))
    yield "@@ -{} +{} @@".format(*places)
    for tag, a1, a2, b1, b2 in codes:
        if tag == "equal":
            yield from _marked(" ", old[a1:a2])
        else:
            yield from _marked("-", old[a1:a2])
            yield from _marked("+", new[b1:b2])


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _range(start: int, stop: int) -> str:
    """Return a line range as diffs spell it; an empty one names the line before it."""
    length = stop - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"
