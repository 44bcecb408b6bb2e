"""Find and replace: exact, unique, literal, and careful with whitespace."""

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from crush_kernel.tools.text.lineset import LineChange, LineSet
from crush_kernel.tools.text.nearmiss import MAX_REGION_LINES
from crush_kernel.tools.text.newlines import normalize
from crush_kernel.tools.text.replacement import MAX_PLACES, Rejected, Replaced, replace_text

newlines = st.sampled_from(["\n", "\r\n", "\r"])
mixed_texts = st.lists(st.text("ab (\t", max_size=4) | newlines, max_size=24).map("".join)
replacements = st.text("XY\\$&\n", max_size=8)


def replaced(text: str, old: str, new: str, *, replace_all: bool = False) -> str:
    """Return the text after a replacement that must succeed."""
    outcome = replace_text(text, old, new, replace_all=replace_all)
    assert isinstance(outcome, Replaced), outcome
    return outcome.text


def rejected(text: str, old: str, new: str, *, replace_all: bool = False) -> str:
    """Return the reason why a replacement fails, which it must."""
    outcome = replace_text(text, old, new, replace_all=replace_all)
    assert isinstance(outcome, Rejected), outcome
    return outcome.reason


@given(mixed_texts, mixed_texts, mixed_texts, replacements)
@example("", "\ra\n", "", "\n\n")
@example("\r", "a", "\nb", "")
def test_a_unique_edit_changes_its_place_and_nothing_else(
    before: str, old: str, after: str, new: str
) -> None:
    text = before + old + after
    plain_old = normalize(old)
    assume(normalize(before) + plain_old + normalize(after) == normalize(text))
    assume(plain_old and normalize(text).find(plain_old) == normalize(text).rfind(plain_old))
    assume(not (before.endswith((" ", "\t")) and old.startswith((" ", "\t"))))
    assume(plain_old != new)
    result = replaced(text, plain_old, new)
    assert result.startswith(before)
    assert result.endswith(after)
    assert normalize(result) == normalize(before) + new + normalize(after)


@given(st.lists(mixed_texts, min_size=2, max_size=4), st.text("ab(\n", min_size=1), replacements)
def test_replacing_all_replaces_every_place(parts: list[str], old: str, new: str) -> None:
    text = old.join(parts)
    assume(old != new)
    # Where a text between them is deleted, a CR and an LF become one newline.
    assume("\r" not in text.replace("\r\n", ""))
    result = replaced(text, old, new, replace_all=True)
    assert normalize(result) == normalize(text).replace(old, new)


@given(st.lists(mixed_texts, min_size=2, max_size=4), st.text("ab(", min_size=1))
def test_after_replacing_all_the_old_text_is_gone(parts: list[str], old: str) -> None:
    assert old not in replaced(old.join(parts), old, "XY", replace_all=True)


@given(mixed_texts, mixed_texts, replacements)
def test_whatever_is_asked_there_is_a_text_or_a_reason(text: str, old: str, new: str) -> None:
    outcome = replace_text(text, old, new, replace_all=False)
    assert outcome.text if isinstance(outcome, Replaced) and new else outcome


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        pytest.param(
            "one\r\ntwo\r\nthree\r\n",
            "one\ntwo",
            "one\n2",
            "one\r\n2\r\nthree\r\n",
            id="LF in the call, CRLF in the file",
        ),
        pytest.param("a\nb\n", "a\r\nb", "a\r\nc", "a\nc\n", id="CRLF in the call, LF in the file"),
        pytest.param("a\rb\r", "a\nb", "a\nx\nb", "a\rx\rb\r", id="a file of CR alone"),
        pytest.param(
            "a\r\nb\nc\r\n",
            "a\nb\nc",
            "a\nB\nc",
            "a\r\nB\nc\r\n",
            id="each line of a mixed file keeps its own",
        ),
        pytest.param(
            "a\nb\r\nc\n",
            "b\n",
            "b\nb2\nb3\n",
            "a\nb\r\nb2\r\nb3\r\nc\n",
            id="added lines end like the line above",
        ),
        pytest.param(
            "a\r\nb\nc\nd\r\n",
            "a\nb\nc\nd",
            "a\nc\nd",
            "a\r\nc\nd\r\n",
            id="a removed line takes its own along",
        ),
        pytest.param(
            "a\r\nb", "b", "b\nc", "a\r\nb\r\nc", id="after the last line, like the line above"
        ),
        pytest.param(
            "x = 'a\rb'\n", "x = 'a\nb'", "y = 'a\nb'", "y = 'a\rb'\n", id="a lone CR stays"
        ),
        pytest.param("one line", "line", "line\r\nmore", "one line\r\nmore", id="no newline yet"),
    ],
)
def test_lines_end_as_their_place_does(text: str, old: str, new: str, expected: str) -> None:
    assert replaced(text, old, new) == expected


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(r'log("$& $1 \1 \g<0> $$ ok");', id="groups of three dialects"),
        pytest.param(r"separator=\n  \# note", id="backslashes"),
        pytest.param("{0} %s {name}", id="formats"),
        pytest.param("", id="nothing"),
    ],
)
@pytest.mark.parametrize("replace_all", [False, True])
def test_the_new_text_is_inserted_literally(new: str, replace_all: bool) -> None:  # noqa: FBT001
    assert replaced("a(done)b\n", "(done)", new, replace_all=replace_all) == f"a{new}b\n"


def test_backslashes_in_the_old_text_are_literal() -> None:
    text = "VAR  ${x}  a\\nb  separator=\\n  # note\n"
    result = replaced(text, "separator=\\n  # note", "separator=\\n  \\# note")
    assert result == "VAR  ${x}  a\\nb  separator=\\n  \\# note\n"


def test_several_places_are_counted_and_named() -> None:
    reason = rejected("x = 1\ny = 2\nx = 1\n", "x = 1", "x = 5")
    assert "2 times (line 1, 3)" in reason
    assert "replace_all" in reason


def test_overlapping_places_are_several() -> None:
    assert "2 times" in rejected("aaa", "aa", "b")


def test_at_most_ten_lines_are_named() -> None:
    reason = rejected("x\n" * 30, "x", "y")
    assert "30 times (line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)" in reason


def test_all_places_are_replaced_on_request() -> None:
    outcome = replace_text("x = 1\ny\nx = 1\n", "x = 1", "x = 5", replace_all=True)
    changes = (LineChange(0, 1, 1), LineChange(2, 3, 1))
    assert outcome == Replaced("x = 5\ny\nx = 5\n", count=2, line=1, changes=changes)


_LINES = st.lists(st.text("ab\n", max_size=12), max_size=6).map("".join)


@given(_LINES, st.text("ab\n", min_size=1, max_size=3), st.text("ab\n", max_size=3))
def test_lines_outside_the_changes_are_where_these_say(text: str, old: str, new: str) -> None:
    outcome = replace_text(text, old, new, replace_all=True)
    assume(isinstance(outcome, Replaced))
    assert isinstance(outcome, Replaced)
    before, after = text.split("\n"), outcome.text.split("\n")
    everywhere = LineSet.of([(0, len(before))])
    touched = LineSet.of((change.start, change.stop) for change in outcome.changes)
    for number in range(len(before)):
        if touched.missing(number, number + 1).spans:
            one = LineSet.of([(number, number + 1)]).changed(outcome.changes, adds=False)
            assert after[one.spans[0].start] == before[number]
    moved = everywhere.changed(outcome.changes, adds=True)
    assert not moved.missing(0, len(after)).spans


@pytest.mark.parametrize(
    ("text", "old", "new", "change"),
    [
        pytest.param("a\nb\nc\n", "b", "x", LineChange(1, 2, 1), id="in a line"),
        pytest.param("a\nb\nc\n", "b\n", "", LineChange(1, 2, 0), id="a line away"),
        pytest.param("a\nb\nc\n", "b\n", "x\ny\n", LineChange(1, 2, 2), id="lines for a line"),
        pytest.param("a\nbb\nc\n", "b\n", "", LineChange(1, 3, 1, joins=True), id="joined"),
        pytest.param("a\nb\nc\n", "a\nb", "x", LineChange(0, 2, 1), id="a line for two"),
        pytest.param("a\r\nb\r\nc", "b", "x", LineChange(1, 2, 1), id="CRLF"),
        pytest.param("a\rb\rc", "b", "x", LineChange(1, 2, 1), id="CR"),
        pytest.param("1%\r2%\na\nb\n", "b", "x", LineChange(2, 3, 1), id="a progress bar above"),
        pytest.param("if a:\n\tb\n", "    b", "    c", LineChange(1, 2, 1), id="other whitespace"),
    ],
)  # fmt: skip
def test_lines_are_counted_as_they_are_viewed(
    text: str, old: str, new: str, change: LineChange
) -> None:
    outcome = replace_text(text, old, new, replace_all=text.count(old) > 1)
    assert isinstance(outcome, Replaced)
    assert outcome.changes == (change,)
    assert outcome.line == change.start + 1


@pytest.mark.parametrize(
    ("text", "old", "new", "reason"),
    [
        pytest.param("a\n", "a", "a", "are the same", id="no change"),
        pytest.param("a\nb", "a\nb", "a\r\nb", "Line ends do not count", id="newlines only"),
        pytest.param("a\n", "", "b", "old_string is empty", id="nothing to find"),
        pytest.param("", "", "", "empty already", id="nothing at all"),
        pytest.param("\t x\n", "x \n", "x\n", "has this text already", id="only outer whitespace"),
        pytest.param("", "a", "b", "was not found", id="nothing to search"),
    ],
)
def test_what_changes_nothing_is_an_error(text: str, old: str, new: str, reason: str) -> None:
    assert reason in rejected(text, old, new)


def test_an_empty_file_is_filled_by_an_empty_old_text() -> None:
    assert replaced("", "", "a\r\nb\n") == "a\r\nb\n"


@pytest.mark.parametrize(
    ("text", "new"),
    [
        pytest.param("x" * (MAX_PLACES + 1), "y", id="too many places"),
        pytest.param("x" * 1000, "y" * 100_000, id="too long a result"),
    ],
)
def test_a_replacement_cannot_exhaust_the_memory(text: str, new: str) -> None:
    assert "too many places" in rejected(text, "x", new, replace_all=True)


GO = "func f() {\n\tx := 1\n\tif x > 0 {\n\t\treturn\n\t}\n}\n"
PYTHON = "class A:\n    def f(self):\n        if self.x:\n            return 1\n        return 2\n"
COMMENTED = "/*\n * Doc.\n */\nint f() {\n    if (a) {\n        h();\n    }\n    g();\n}\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        pytest.param(
            "func f() {\n\tx := 1\n\treturn\n}\n",
            "    x := 1",
            "    x := 2",
            "func f() {\n\tx := 2\n\treturn\n}\n",
            id="four spaces for a tab",
        ),
        pytest.param(
            GO,
            "    if x > 0 {\n        return\n    }",
            "    if x > 1 {\n        for {\n            y()\n        }\n    }",
            "func f() {\n\tx := 1\n\tif x > 1 {\n\t\tfor {\n\t\t\ty()\n\t\t}\n\t}\n}\n",
            id="deeper than what was matched",
        ),
        pytest.param(
            GO,
            "x := 1\nif x > 0 {\n    return\n}",
            "x := 1\nif x > 1 {\n    return\n}",
            GO.replace("x > 0", "x > 1"),
            id="no indentation at the outside, spaces inside",
        ),
        pytest.param(
            PYTHON,
            "def f(self):\n    if self.x:\n        return 1",
            "def f(self):\n    if self.y:\n        z()\n        return 1",
            PYTHON.replace("self.x:\n", "self.y:\n            z()\n"),
            id="Python from the wrong base",
        ),
        pytest.param(
            PYTHON,
            "  def f(self):\n    if self.x:\n      return 1",
            "  def f(self):\n    if self.x:\n      if y:\n        return 0\n      return 1",
            PYTHON.replace(
                "            return 1",
                "            if y:\n                return 0\n            return 1",
            ),
            id="two spaces a level for four",
        ),
        pytest.param(
            PYTHON,
            "            if self.x:\n                return 1\n",
            "            if self.x:\n                return 3\n",
            PYTHON.replace("return 1", "return 3"),
            id="one level too deep, with a final newline",
        ),
        pytest.param(
            COMMENTED,
            "  if (a) {\n    h();\n  }",
            "  if (a) {\n    h();\n    i();\n  }",
            COMMENTED.replace("h();\n", "h();\n        i();\n"),
            id="a comment's single spaces are no unit",
        ),
        pytest.param(
            "a()\nif x:\n    y()\n",
            "    a()",
            "    if b:\n        a()",
            "if b:\n    a()\nif x:\n    y()\n",
            id="indentation that is not in the file",
        ),
        pytest.param(
            "if a:\n    if b:\n        c()\n",
            "    c()",
            "    if d:\n        c()",
            "if a:\n    if b:\n        if d:\n            c()\n",
            id="one level deeper than the only one that was matched",
        ),
        pytest.param(
            "if a:\n        b()\n",
            "    b()",
            "    c()\n    b()",
            "if a:\n        c()\n        b()\n",
            id="the old text is there, but only from the middle of the indentation on",
        ),
        pytest.param(
            "a:  \n  b\t\nc\n",
            "a:\n  b\nc",
            "a:\n  b\nd",
            "a:  \n  b\t\nd\n",
            id="kept lines keep their trailing whitespace",
        ),
        pytest.param(
            "if a:\n    b()\n\n    c()\n",
            "if a:\n\tb()\n\n\tc()",
            "if a:\n\tb()\n\n\td()\n\t\n\te()",
            "if a:\n    b()\n\n    d()\n\n    e()\n",
            id="tabs for spaces, over a blank line",
        ),
        pytest.param("a\n\tb\nc\n", "  b\n", "", "a\nc\n", id="a line is deleted with its end"),
        pytest.param(
            "\tf(a,\n\t  b)\n",
            "    f(a,\n      b)",
            "    f(a,\n      c)",
            "\tf(a,\n\t  c)\n",
            id="alignment with spaces after tabs",
        ),
        pytest.param(
            "a {\r\n\tb;\r\n}\r\n", "  b;", "  c;\n  d;", "a {\r\n\tc;\r\n\td;\r\n}\r\n", id="CRLF"
        ),
        pytest.param(
            "def f():\n\n    \n    a()\n",
            "def f():\n\n\n  a()",
            "def f():\n\n\n  b()",
            "def f():\n\n    \n    b()\n",
            id="blank lines match blank lines",
        ),
    ],
)
def test_other_whitespace_around_lines_is_corrected(
    text: str, old: str, new: str, expected: str
) -> None:
    outcome = replace_text(text, old, new, replace_all=False)
    assert isinstance(outcome, Replaced), outcome
    assert outcome.text == expected
    assert outcome.is_reindented


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        pytest.param("\tx = 1\nif a:\n\tx = 1\n", "  x = 1", "  x = 2", id="two such places"),
        pytest.param("\ta = 'x  y'\n", "  a = 'x y'", "  a = 'z'", id="whitespace in a string"),
        pytest.param('a = """\n\tb\n"""\n', "    b", "    c", id="inside a triple-quoted string"),
        pytest.param("a = `\n\tb\n`\n", "    b", "    c", id="inside a template"),
        pytest.param("cat <<EOF\n\tb\nEOF\n", "    b", "    c", id="inside a here-document"),
        pytest.param("a = 'x \\\n\tb'\n", "    b'", "    c'", id="after a continued line"),
        pytest.param(
            "\tx = 1\n",
            "    x = 1\n",
            '    x = """\n  two\n"""\n',
            id="a new string over several lines",
        ),
        pytest.param("\tx = 1\n", "    x = 1", "    cat <<EOF\n  y\nEOF", id="a new here-document"),
        pytest.param(
            "if a:\n    b()\n    c()\n",
            "  if a:\n    b()\n      c()",
            "  if a:\n    b()\n      d()",
            id="lines nest in another way",
        ),
        pytest.param(
            "if a:\n    b()\n    c()\n",
            "if a:\n  b()\nc()",
            "if a:\n  b()\nd()",
            id="a line would change its block",
        ),
        pytest.param("if a:\n        b()\n", "    b()", "  c()\n    b()", id="between two levels"),
        pytest.param(
            "a\n    b\n        x\n",
            "        x  ",
            "      y\n        x",
            id="between two levels, less than what was matched",
        ),
        pytest.param("\t\tb()\n", "    b()", "    if c:\n        b()", id="how wide a tab is"),
        pytest.param("\tb()\n", "  b()", "   c()\n  b()", id="not a whole number of tabs"),
        pytest.param("    a()\n", "\ta()", "        b()\n\ta()", id="two units in the call"),
        pytest.param(
            "if x:\n    a()\n", "  a()\n", "  b()\n" * 2_001, id="more lines than are aligned"
        ),
        pytest.param(" \tb()\n", "  b()", "    c()\n  b()", id="tabs and spaces mixed"),
        pytest.param("\tb()\n", "  b()\n", "  c()", id="it would join two lines"),
        pytest.param("foo(\tb)\n", "b)\t", "c)", id="part of a line"),
    ],
)
def test_a_correction_in_doubt_is_not_made(text: str, old: str, new: str) -> None:
    rejected(text, old, new)


def test_a_shifted_block_is_corrected_after_a_closed_literal() -> None:
    text = 'a = """\nb\n"""\ncat <<EOF\nx\nEOF\n\tx = 1\n'
    assert replaced(text, "    x = 1", "    x = 2") == text.replace("x = 1", "x = 2")


units = st.sampled_from(["\t", "  ", "    "])


@given(
    depths=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    base=st.integers(0, 2),
    unit=units,
    unit_said=units,
    added=st.integers(0, 4),
    data=st.data(),
)
def test_a_corrected_edit_nests_as_it_was_meant(
    *, depths: list[int], base: int, unit: str, unit_said: str, added: int, data: st.DataObject
) -> None:
    """Models drop the base or take another unit; what counts is how lines nest in the call."""
    place = data.draw(st.integers(0, len(depths)))
    assume(added <= depths[max(0, place - 1)] + 1)

    def block(unit: str, base: int, *, is_new: bool) -> str:
        rows = [unit * (base + depth) + f"row {n}" for n, depth in enumerate(depths)]
        if is_new:
            rows.insert(place, unit * (base + added) + "new row")
        return "\n".join(rows)

    around = "".join(unit * depth + f"above {depth}\n" for depth in range(4))
    old, new = (block(unit_said, 0, is_new=is_new) for is_new in (False, True))
    outcome = replace_text(
        f"{around}{block(unit, base, is_new=False)}\n", old, new, replace_all=False
    )
    if isinstance(outcome, Replaced) and outcome.is_reindented:
        assert outcome.text == f"{around}{block(unit, base, is_new=True)}\n"


@given(
    depths=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    base=st.integers(0, 2),
    unit=units,
    unit_said=units,
)
def test_other_words_in_the_same_nesting_are_always_put_in_place(
    depths: list[int], base: int, unit: str, unit_said: str
) -> None:
    def block(unit: str, base: int, word: str) -> str:
        rows = (unit * (base + depth) + f"{word} {n}" for n, depth in enumerate(depths))
        return "\n".join(rows)

    old, new = block(unit_said, 0, "row"), block(unit_said, 0, "new")
    text = f"above\n{block(unit, base, 'row')}\nbelow\n"
    assert replaced(text, old, new) == text.replace("row", "new")


ROWS = st.tuples(
    st.sampled_from(["", " ", "  ", "    ", "\t", "\t\t", " \t"]),
    st.sampled_from(["", "a", "b", "a b", "if a:"]),
    st.sampled_from(["", " ", "\t"]),
)
BLOCKS = st.lists(ROWS.map("".join), min_size=1, max_size=4)


@settings(max_examples=500)
@given(before=BLOCKS, rows=st.lists(ROWS, min_size=1, max_size=3), after=BLOCKS, data=st.data())
def test_a_correction_is_of_the_only_lines_that_are_the_same_but_for_outer_whitespace(
    before: list[str], rows: list[tuple[str, str, str]], after: list[str], data: st.DataObject
) -> None:
    lines = [*before, *("".join(row) for row in rows), *after]
    said = [
        data.draw(ROWS.map(lambda row, word=word: row[0] + word + row[2])) for _, word, _ in rows
    ]
    new = data.draw(BLOCKS)
    assume(said[-1] and new != [""])
    outcome = replace_text("\n".join(lines), "\n".join(said), "\n".join(new), replace_all=False)
    if not isinstance(outcome, Replaced) or not outcome.is_reindented:
        return
    count, bare = len(said), [line.strip() for line in lines]
    wanted = [line.strip() for line in said]
    [place] = (at for at in range(len(lines)) if bare[at : at + count] == wanted)
    result = outcome.text.split("\n")
    end = len(result) - (len(lines) - place - count)
    assert result[:place] == lines[:place]
    assert result[end:] == lines[place + count :]
    assert [line.strip() for line in result[place:end]] == [line.strip() for line in new]


def test_a_miss_shows_the_closest_lines_verbatim() -> None:
    reason = rejected("func f() {\n\tx := 1\n\treturn\n}\n", "x  := 1\nreturn 5", "y")
    assert "on lines 2–3:\n```\n\tx := 1\n\treturn\n```" in reason
    assert 'in the file:   "\\tx := 1"' in reason
    assert 'in old_string: "x  := 1"' in reason


@pytest.mark.parametrize(
    ("text", "old", "expected"),
    [
        pytest.param("\ta\n\ta\n", "    a", "the file uses tabs", id="tabs"),
        pytest.param("    a\n    a\n", "\ta", "the file uses spaces", id="spaces"),
        pytest.param("a \nb\nb\na \nb\n", "a\nb", "at the end of the line", id="trailing spaces"),
        pytest.param("b = 2\n", "b=2", "differ in whitespace only", id="spaces within"),
        pytest.param(r"sep=\n # x" + "\n", r"sep=\\n # x", r'"sep=\\n # x"', id="backslashes"),
        pytest.param("one two three\n", "one too three", "on line 1", id="a similar line"),
        pytest.param("a\nb", "b\nc", "The file ends there", id="past the end"),
        pytest.param("  def f():\n", "     1|  def f():", "line numbers in it", id="as viewed"),
        pytest.param("a\n", "something else", "no line of the file is like it", id="no likeness"),
    ],
)
def test_a_miss_says_how_the_closest_lines_differ(text: str, old: str, expected: str) -> None:
    assert expected in rejected(text, old, "new")


def test_a_miss_shows_a_bounded_part_around_the_first_difference() -> None:
    text = "".join(f"{n:04}{'x' * 2000}\n" for n in range(500))
    old = text.replace("0250x", "0250y")
    reason = rejected(text, old, "new")
    assert len(reason) < 10_000
    assert reason.count("\n") < MAX_REGION_LINES + 8
    assert '"0250y' in reason


def test_the_difference_in_a_long_line_is_among_what_is_shown() -> None:
    reason = rejected("x" * 5000 + "HERE" + "x" * 5000, "x" * 5000 + "THERE" + "x" * 5000, "new")
    assert "THERE" in reason
    assert len(reason) < 2000
