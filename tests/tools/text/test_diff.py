"""Unified diffs that say exactly what changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.tools.text.diff import unified_diff
from crush_kernel.tools.text.lineset import NO_LINE, LineSet

lines = st.lists(st.sampled_from(["a", "b", "c", "-- x", "++ y", "", "@@"]), max_size=30)
texts = st.tuples(lines, st.sampled_from(["", "\n"])).map(lambda made: "\n".join(made[0]) + made[1])


def patched(old: str, diff: str) -> str:
    """Return `old` with a unified diff applied: what `patch` does."""
    before = old.splitlines(keepends=True)
    result: list[str] = []
    position = 0
    previous = ""
    for row in diff.splitlines(keepends=True)[2:]:
        mark, content = row[0], row[1:]
        if row.startswith("@@ "):
            first, _, length = row.split()[1][1:].partition(",")
            start = int(first) - (0 if length == "0" else 1)
            result += before[position:start]
            position = start
        elif mark == "\\" and previous != "-":
            result[-1] = result[-1].removesuffix("\n")
        if mark in " +":
            result.append(content)
        if mark in " -":
            position += 1
        previous = mark
    return "".join((*result, *before[position:]))


@given(texts, texts)
def test_a_diff_applied_to_the_old_text_gives_the_new(old: str, new: str) -> None:
    diff = unified_diff("a.txt", old, new)
    assert patched(old, diff.text) == new


@given(texts, texts)
def test_the_counts_are_those_of_the_marked_lines(old: str, new: str) -> None:
    diff = unified_diff("a.txt", old, new)
    marks = [row[0] for row in diff.text.splitlines()[2:]]
    assert diff.additions == marks.count("+")
    assert diff.removals == marks.count("-")


@given(texts, texts)
def test_lines_that_stay_are_followed_and_those_that_come_are_shown(old: str, new: str) -> None:
    diff = unified_diff("a.txt", old, new)
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    touched = LineSet.of((change.start, change.stop) for change in diff.lines)
    for number in touched.missing(0, len(before)).spans:
        for line in range(number.start, number.stop):
            moved = LineSet.of([(line, line + 1)]).changed(diff.lines, adds=False)
            assert after[moved.spans[0].start] == before[line]
    came = NO_LINE.changed(diff.lines, adds=True)
    assert came | diff.shown == diff.shown
    marked = [row[1:] for row in diff.text.splitlines()[2:] if row[0] in " +"]
    assert [after[n].rstrip("\n") for span in diff.shown.spans for n in range(*span)] == marked


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 3), st.integers(1, 3))
def test_far_from_the_start_lines_are_counted_right(
    above: int, below: int, gone: int, came: int
) -> None:
    head = [f"head {n}\n" for n in range(above)]
    tail = [f"tail {n}\n" for n in range(below)]
    old = "".join((*head, *["gone\n"] * gone, *tail))
    new = "".join((*head, *["came\n"] * came, *tail))
    diff = unified_diff("a.txt", old, new)
    assert patched(old, diff.text) == new
    assert [(each.stop - each.start, each.count) for each in diff.lines] == [(gone, came)]
    assert diff.lines[0].start == above


def test_lines_that_look_like_headers_are_counted() -> None:
    diff = unified_diff("q.sql", "-- old\n++ a\n", "-- new\n++ a\n++ b\n")
    assert diff.summary == "+2 −1"


def test_only_the_lines_around_a_change_are_shown() -> None:
    old = "".join(f"{n}\n" for n in range(100))
    diff = unified_diff("n.txt", old, old.replace("50\n", "fifty\n"))
    assert diff.text == (
        "--- a/n.txt\n+++ b/n.txt\n@@ -48,7 +48,7 @@\n 47\n 48\n 49\n-50\n+fifty\n 51\n 52\n 53\n"
    )


def test_a_missing_final_newline_is_shown() -> None:
    diff = unified_diff("a", "one\n", "one")
    assert diff.text == (
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+one\n\\ No newline at end of file\n"
    )


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param("", "--- /dev/null\n+++ b/a\n", id="empty"),
        pytest.param("x\n", "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n", id="one line"),
    ],
)
def test_a_new_file_comes_from_nothing(new: str, expected: str) -> None:
    assert unified_diff("a", None, new).text == expected


def test_line_ends_are_not_compared() -> None:
    assert unified_diff("a", "x\r\ny\r\n", "x\ny\n").text == ""


def test_a_path_cannot_forge_lines_of_the_diff() -> None:
    diff = unified_diff("a\n+++ b/other", "", "x")
    assert diff.text.splitlines()[1] == '+++ b/"a\\n+++ b/other"'


def test_texts_too_long_to_align_are_replaced_as_a_whole() -> None:
    old = "same\n" + "".join(f"old {n}\n" for n in range(20_001)) + "end\n"
    new = "same\n" + "".join(f"new {n}\n" for n in range(20_001)) + "end\n"
    diff = unified_diff("big", old, new)
    assert (diff.additions, diff.removals) == (20_001, 20_001)
    assert patched(old, diff.text) == new
