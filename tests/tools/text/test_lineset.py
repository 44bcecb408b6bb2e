"""Sets of lines, against sets of numbers and texts of numbered lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.tools.text.lineset import END, EVERY_LINE, NO_LINE, LineChange, LineSet

SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6)


def _numbers(spans: list[tuple[int, int]]) -> set[int]:
    return {line for start, stop in spans for line in range(start, stop)}


@given(SPANS, SPANS)
def test_sets_of_spans_are_sets_of_lines(
    one: list[tuple[int, int]], two: list[tuple[int, int]]
) -> None:
    both = LineSet.of(one) | LineSet.of(two)
    assert _numbers(list(both.spans)) == _numbers(one) | _numbers(two)
    assert all(a.stop < b.start for a, b in zip(both.spans, both.spans[1:], strict=False))
    assert both | LineSet.of(one) == both


@given(SPANS, st.integers(0, 30), st.integers(0, 30))
def test_what_is_missing_is_what_is_not_in_the_set(
    spans: list[tuple[int, int]], start: int, stop: int
) -> None:
    missing = LineSet.of(spans).missing(start, stop)
    assert _numbers(list(missing.spans)) == set(range(start, stop)) - _numbers(spans)


@st.composite
def _changes(draw: st.DrawFn) -> list[LineChange]:
    borders = sorted(draw(st.lists(st.integers(0, 25), max_size=8, unique=True)))
    pairs = zip(borders[::2], borders[1::2], strict=False)
    return [LineChange(start, stop, draw(st.integers(0, 4))) for start, stop in pairs]


@given(SPANS, _changes(), st.booleans())
def test_lines_are_followed_through_changes(
    spans: list[tuple[int, int]],
    changes: list[LineChange],
    adds: bool,  # noqa: FBT001
) -> None:
    text: list[int | None] = list(range(30))
    for change in reversed(changes):
        text[change.start : change.stop] = [None] * change.count
    known = _numbers(spans)
    wanted = {at for at, line in enumerate(text) if (adds if line is None else line in known)}
    assert _numbers(list(LineSet.of(spans).changed(changes, adds=adds).spans)) == wanted


def test_what_goes_to_the_end_still_does_when_the_text_grows() -> None:
    assert EVERY_LINE.changed([LineChange(3, 5, 9)], adds=True) == EVERY_LINE
    assert LineSet.of([(4, END)]).changed([LineChange(0, 1, 3)], adds=True) == LineSet.of(
        [(0, 3), (6, END)]
    )


@pytest.mark.parametrize(
    ("known", "after"),
    [
        pytest.param([(0, 2)], [(0, 1)], id="to a line that is not known"),
        pytest.param([(0, 3)], [(0, 2)], id="to a line that is known"),
    ],
)
def test_a_line_that_is_joined_is_known_as_it_was(
    known: list[tuple[int, int]], after: list[tuple[int, int]]
) -> None:
    change = LineChange(1, 3, 1, joins=True)
    assert change.place == (1, 2)
    assert LineSet.of(known).changed([change], adds=True) == LineSet.of(after)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        pytest.param(NO_LINE, "no lines", id="none"),
        pytest.param(LineSet.of([(4, 5)]), "line 5", id="one"),
        pytest.param(LineSet.of([(0, 20)]), "lines 1–20", id="some in a row"),
        pytest.param(LineSet.of([(0, 20), (30, 31)]), "lines 1–20 and 31", id="two spans"),
        pytest.param(LineSet.of([(3, END)]), "lines 4 to the end", id="the rest"),
        pytest.param(
            LineSet.of([(n, n + 1) for n in range(0, 40, 2)]),
            "lines 1, 3, 5, 7, 9, 11 and others",
            id="many",
        ),
    ],
)  # fmt: skip
def test_lines_are_named_as_people_count_them(lines: LineSet, words: str) -> None:
    assert str(lines) == words
