"""What a cell is, from its text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.kernel.cells import Cell, Command, Empty, Prompt, Shell, cell_text, parse_cell


@pytest.mark.parametrize(
    ("code", "cell"),
    [
        pytest.param("", Empty(), id="nothing"),
        pytest.param(" \n\t", Empty(), id="blank"),
        pytest.param("fix the test", Prompt("fix the test"), id="a prompt"),
        pytest.param("\n  why?\n", Prompt("why?"), id="blank around a prompt"),
        pytest.param("a / b ! c %", Prompt("a / b ! c %"), id="marks inside mean nothing"),
        pytest.param("%%python\n1", Prompt("%%python\n1"), id="percent is no command yet"),
        pytest.param("/help", Command("help", ""), id="a command"),
        pytest.param("  /model  gpt ", Command("model", "gpt"), id="a command with arguments"),
        pytest.param("/model\nx y", Command("model", "x y"), id="arguments on the next line"),
        pytest.param("/", Command("", ""), id="a slash alone"),
        pytest.param("/ x", Command("", "x"), id="a slash and a blank"),
        pytest.param("!ls -l", Shell("ls -l"), id="a shell command"),
        pytest.param("! ls\nls", Shell("ls\nls"), id="a shell command of two lines"),
        pytest.param("!", Empty(), id="an exclamation mark alone"),
        pytest.param("\\/etc is full", Prompt("/etc is full"), id="an escaped slash"),
        pytest.param("\\!important", Prompt("!important"), id="an escaped exclamation mark"),
        pytest.param("\\alpha", Prompt("\\alpha"), id="a backslash that escapes nothing"),
    ],
)
def test_the_first_character_decides(code: str, cell: Cell) -> None:
    assert parse_cell(code) == cell


@given(st.text())
def test_a_cell_is_written_so_that_it_reads_as_the_same(text: str) -> None:
    cell = parse_cell(text)
    if isinstance(cell, (Prompt, Shell)):
        assert parse_cell(cell_text(cell)) == cell
