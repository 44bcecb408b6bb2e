"""Sets of lines of a text, and how they move when the text is changed.

Pure. Lines count from 0 and spans are half open. A span that ends at `END` goes to the end
of the text, however long that becomes.
"""

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Final, NamedTuple

END: Final = sys.maxsize
"""Behind the last line of any text."""

_MAX_NAMED: Final = 6
"""Spans that are named to people and models; of more, the rest is only said to be there."""


class Span(NamedTuple):
    """Some lines in a row."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class LineChange:
    """Lines that were replaced by others."""

    start: int
    stop: int
    """Behind the last of the old lines."""
    count: int
    """How many lines stand in their place."""
    joins: bool = False
    """Whether the last of the old lines only got something before it."""

    @property
    def place(self) -> Span:
        """Return the lines whose text was replaced."""
        return Span(self.start, self.stop - self.joins)


@dataclass(frozen=True, slots=True)
class LineSet:
    """Some lines of a text."""

    spans: tuple[Span, ...] = ()
    """In order, with lines between them that are not in the set."""

    @classmethod
    def of(cls, spans: Iterable[tuple[int, int]]) -> "LineSet":
        """Return the lines of all `spans`, which may overlap and come in any order."""
        merged: list[Span] = []
        for start, stop in sorted(spans):
            if merged and start <= merged[-1].stop:
                merged[-1] = Span(merged[-1].start, max(stop, merged[-1].stop))
            elif start < stop:
                merged.append(Span(start, stop))
        return cls(tuple(merged))

    @property
    def has_all(self) -> bool:
        """Return whether every line of any text is in the set."""
        return self == EVERY_LINE

    def __or__(self, other: "LineSet") -> "LineSet":
        """Return the lines that are in one of both."""
        return LineSet.of((*self.spans, *other.spans))

    def changed(self, changes: Iterable[LineChange], *, adds: bool) -> "LineSet":
        """Return where the lines are once `changes` were made.

        Args:
            changes: disjoint, in order, all in terms of the text before.
            adds: whether the lines that came are in the set.
        """
        spans: list[tuple[int, int]] = []
        position = shift = 0
        for change in changes:
            spans += self._within(position, change.start, shift)
            if adds:
                is_lost = change.joins and bool(self.missing(change.stop - 1, change.stop).spans)
                start = change.start + shift
                spans.append((start, start + change.count - is_lost))
            shift += change.count - (change.stop - change.start)
            position = change.stop
        return LineSet.of((*spans, *self._within(position, END, shift)))

    def missing(self, start: int, stop: int) -> "LineSet":
        """Return the lines from `start` to `stop` that are not in the set."""
        return LineSet(tuple(_gaps(self._near(start, stop), start, stop)))

    def _within(self, start: int, stop: int, shift: int) -> Iterator[tuple[int, int]]:
        """Yield the lines from `start` to `stop`, moved down by `shift`."""
        for span in self._near(start, stop):
            end = min(span.stop, stop)
            yield max(span.start, start) + shift, end if end == END else end + shift

    def _near(self, start: int, stop: int) -> Iterator[Span]:
        """Yield the spans that have lines from `start` to `stop`."""
        first = bisect_right(self.spans, start, key=lambda span: span.stop)
        yield from takewhile(lambda span: span.start < stop, islice(self.spans, first, None))

    def __str__(self) -> str:
        """Return the lines as people count them: `lines 1–20 and 35`."""
        if not self.spans:
            return "no lines"
        named = [_name(span) for span in self.spans[:_MAX_NAMED]]
        if len(self.spans) > _MAX_NAMED:
            named.append("others")
        noun = "line" if len(named) == 1 and named[0].isdecimal() else "lines"
        *first, last = named
        return f"{noun} {', '.join(first)} and {last}" if first else f"{noun} {last}"


NO_LINE: Final = LineSet()
EVERY_LINE: Final = LineSet((Span(0, END),))


def _gaps(spans: Iterable[Span], start: int, stop: int) -> Iterator[Span]:
    for span in spans:
        if start < span.start:
            yield Span(start, span.start)
        start = max(start, span.stop)
    if start < stop:
        yield Span(start, stop)


def _name(span: Span) -> str:
    if span.stop == END:
        return f"{span.start + 1} to the end"
    return f"{span.start + 1}" + (f"–{span.stop}" if span.stop > span.start + 1 else "")
