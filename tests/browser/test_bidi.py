"""Text that runs from right to left does so, and the code in it does not."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from crush_kernel.history.turn import Turn
from crush_kernel.kernel.export import as_html
from crush_kernel.messages import Message, Text

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(60)]

STYLE = Path(__file__).parents[2] / "labextension" / "style" / "bidi.css"

WORDS = {
    "left to right": "Done, see `foo.py:12` now.",
    "right to left": "שלום עולם (`foo.py:12`) סוף",
    "right to left, named in Latin letters": "مرحبا gpt-5 — `foo.py:12` تم",
}


def in_a_notebook(words: str) -> str:
    """Return `words` as JupyterLab renders them, with our style alone."""
    before, code, after = words.split("`")
    return (
        f"<style>{STYLE.read_text(encoding='utf-8')}</style>"
        "<div class='crush-notebook'><div class='jp-OutputArea'><div class='jp-RenderedMarkdown'>"
        f"<p>{before}<code>{code}</code>{after}</p></div></div></div>"
    )


def in_an_export(words: str) -> str:
    reply = Message("assistant", (Text(words),))
    return as_html([Turn("a", 1, messages=(Message("user", (Text("Ask."),)), reply))])


@pytest.fixture
def page(browser: Browser) -> Generator[Page]:
    opened = browser.new_page()
    yield opened
    opened.close()


PLACES = """() => {
  const code = [...document.querySelectorAll('code')].at(-1);
  const words = code.parentElement;
  const left = (node, index) => {
    const range = document.createRange();
    range.setStart(node, index);
    range.setEnd(node, index + 1);
    return range.getBoundingClientRect().left;
  };
  const last = words.lastChild.data.trimEnd().length - 1;
  return {
    first: left(words.firstChild, 0),
    last: left(words.lastChild, last),
    code: [left(code.firstChild, 0), left(code.firstChild, code.innerText.length - 1)]
  };
}"""
"""Where the first letter, the last one and the ends of the code stand."""


@pytest.mark.parametrize("words", WORDS.values(), ids=[*WORDS])
@pytest.mark.parametrize("render", [in_a_notebook, in_an_export])
def test_each_paragraph_has_its_own_direction_and_code_keeps_its_own(
    page: Page, render: Callable[[str], str], words: str
) -> None:
    page.set_content(render(words))
    places = page.evaluate(PLACES)
    is_rightward = words == WORDS["left to right"]
    assert (places["first"] < places["last"]) == is_rightward
    assert places["code"][0] < places["code"][1]
