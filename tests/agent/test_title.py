"""A title for a notebook: what is asked, what is made of the answer, and what is left without."""

import unicodedata

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.agent.title import (
    MAX_COLUMNS,
    MAX_READ_CHARS,
    REASONING_TOKENS,
    SYSTEM,
    TITLE_TOKENS,
    Titled,
    ask_title,
    clean_title,
    cut,
    first_line,
    title_request,
    title_within,
)
from crush_kernel.errors import Overloaded
from crush_kernel.history.repair import repair
from crush_kernel.messages import Usage, text_of
from crush_kernel.providers.base import ModelInfo
from tests.fakes.model import FakeModel, says

pytestmark = pytest.mark.anyio

PLAIN = ModelInfo("p", "m", output_price=1.0)


@pytest.mark.parametrize(
    ("said", "title"),
    [
        pytest.param("Fix the price test", "Fix the price test", id="as it is"),
        pytest.param('"Fix the price test"\n', "Fix the price test", id="quotation marks"),
        pytest.param("„Preistest reparieren“", "Preistest reparieren", id="others"),
        pytest.param("**Fix it**", "Fix it", id="Markdown"),
        pytest.param("# Fix it", "Fix it", id="a heading"),
        pytest.param("\n\nFix it\nand more", "Fix it", id="only the first line"),
        pytest.param("<think>a test?\n</think>\n\nFix it", "Fix it", id="thoughts"),
        pytest.param("well\n</think>Fix it", "Fix it", id="the end of thoughts"),
        pytest.param("<THINKING>hm</THINKING>Fix it", "Fix it", id="thoughts in capitals"),
        pytest.param("<think>never ends", "", id="nothing but thoughts"),
        pytest.param(" \n ", "", id="nothing"),
        pytest.param("Fix\u202e \x1b[31mit\x00", "Fix [31mit", id="what hides"),
        pytest.param("x" * 60, "x" * 49 + "…", id="too long"),
    ],
)
def test_a_title_is_one_clean_line(said: str, title: str) -> None:
    assert clean_title(said) == title


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        pytest.param("Fix the test.\nIt fails.", "Fix the test.", id="first line"),
        pytest.param("\n \n  Fix\tit", "Fix it", id="first that says anything"),
        pytest.param("", "", id="nothing"),
        pytest.param("y" * 50, "y" * 50, id="fits"),
        pytest.param("word " * 20, "word " * 9 + "word…", id="cut"),
        pytest.param("价" * 26, "价" * 24 + "…", id="wide letters"),
        pytest.param("価" * 25, "価" * 25, id="wide letters that fit"),
        pytest.param("e\u0301" * 50, "e\u0301" * 50, id="marks take no room"),
    ],
)
def test_without_a_model_the_first_line_is_the_title(prompt: str, title: str) -> None:
    assert first_line(prompt) == title


@given(st.text())
def test_any_title_fits_and_is_printable(text: str) -> None:
    for title in (clean_title(text), first_line(text)):
        wide = sum(unicodedata.east_asian_width(char) in "WF" for char in title)
        marks = sum(unicodedata.combining(char) > 0 for char in title)
        assert len(title) + wide - marks <= MAX_COLUMNS
        assert title.isprintable()
        assert cut(title) == title


def test_the_request_is_short_repaired_and_without_tools() -> None:
    request = title_request("Fix it. " + "x" * 10_000, PLAIN)
    assert request.system == SYSTEM
    assert request.tools == ()
    assert request.messages == repair(request.messages)
    (message,) = request.messages
    assert "Fix it." in text_of(message)
    assert len(text_of(message)) < MAX_READ_CHARS + 100


@pytest.mark.parametrize(
    ("info", "tokens"),
    [
        pytest.param(PLAIN, TITLE_TOKENS, id="writes at once"),
        pytest.param(
            ModelInfo("p", "m", output_price=1.0, can_reason=True), REASONING_TOKENS, id="thinks"
        ),
        pytest.param(ModelInfo("ollama", "m"), REASONING_TOKENS, id="nobody knows"),
    ],
)
def test_a_model_that_may_think_has_room_for_it(info: ModelInfo, tokens: int) -> None:
    assert title_request("a", info).max_output_tokens == tokens


async def test_a_title_comes_with_what_it_used() -> None:
    titled = await ask_title("Fix it", FakeModel([says("Fix the test")]))
    assert titled == Titled("Fix the test", Usage(input_tokens=10, output_tokens=2))


async def test_a_title_that_was_cut_off_is_none_but_was_paid_for() -> None:
    titled = await ask_title("Fix it", FakeModel([says("Fix the", stop="max_tokens")]))
    assert titled == Titled("", Usage(input_tokens=10, output_tokens=2))


async def test_a_failure_is_no_title() -> None:
    assert await title_within("Fix it", FakeModel([[Overloaded("busy")]])) == Titled("", Usage())


async def test_nobody_waits_for_a_slow_title() -> None:
    model = FakeModel([[anyio.Event()]])
    with anyio.fail_after(5):
        assert await title_within("Fix it", model, timeout_s=0.01) == Titled("", Usage())
    assert len(model.requests) == 1
