"""The card that asks whether a plan may be carried out, on real ipywidgets models."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# ipywidgets carries no types.

import asyncio
from collections.abc import Iterator

import anyio
import pytest

from crush_kernel.kernel import plantext
from crush_kernel.kernel.debounce import Debounce
from crush_kernel.kernel.plancard import PlanCard
from crush_kernel.tools.present_plan import Approved, KeepPlanning, Plan, PlanAnswer
from tests.kernel.widget_models import open_models, send, texts, with_class

pytestmark = pytest.mark.anyio

PLAN = Plan("c1", "# Plan\n\n1. **do** it <img src=x onerror=alert(1)> \u202e")


@pytest.fixture(autouse=True)
def no_model_stays_open() -> Iterator[None]:
    before = open_models()
    yield
    assert open_models() == before


def card() -> PlanCard:
    return PlanCard(PLAN, Debounce(lambda: 0.0))


@pytest.mark.parametrize(
    ("css_class", "verdict"),
    [
        ("crush-approve", Approved(accepts_edits=False, words="mind it")),
        ("crush-approve-edits", Approved(accepts_edits=True, words="mind it")),
        ("crush-keep-planning", KeepPlanning("mind it")),
    ],
)
async def test_each_button_gives_its_verdict_with_the_words(
    css_class: str, verdict: PlanAnswer
) -> None:
    shown = card()
    with_class(css_class)[0].click()
    with_class("crush-reason")[0].value = " mind it "
    with anyio.fail_after(5):
        assert await shown.answer() == verdict
    assert with_class("crush-settled")
    shown.close()


async def test_enter_in_the_words_keeps_planning_only_with_words() -> None:
    shown = card()
    waiting = asyncio.ensure_future(shown.answer())
    (words,) = with_class("crush-reason")
    send(words, {"event": "submit"})
    await anyio.lowlevel.checkpoint()
    assert not waiting.done()
    words.value = "smaller"
    send(words, {"event": "submit"})
    with anyio.fail_after(5):
        assert await waiting == KeepPlanning("smaller")
    shown.close()


async def test_the_plan_is_markdown_that_can_do_no_harm() -> None:
    shown = card()
    ((output,),) = (each.outputs for each in with_class("crush-plan"))
    assert "**do** it" in output["data"]["text/markdown"]
    assert "<img" not in output["data"]["text/markdown"]
    assert "⟨U+202E⟩" in output["data"]["text/plain"]
    assert "<img" not in texts(shown.box)
    assert "waiting for an answer" in shown.fallback.markdown
    assert "**do** it" in shown.fallback.markdown
    shown.close()


async def test_a_withdrawn_plan_is_dead() -> None:
    shown = card()
    (approve,) = with_class("crush-approve")
    shown.settle("withdrawn")
    approve.click()
    with pytest.raises(asyncio.CancelledError):
        await shown.answer()
    assert "withdrawn" in texts(shown.box)
    shown.close()
    shown.close()


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        pytest.param("y", Approved(accepts_edits=False), id="yes"),
        pytest.param(" E ", Approved(accepts_edits=True), id="with edits"),
        pytest.param("n", KeepPlanning(), id="no"),
        pytest.param("n too much", KeepPlanning("too much"), id="no with words"),
        pytest.param("yes but smaller", KeepPlanning("yes but smaller"), id="half a yes"),
        pytest.param("", KeepPlanning(), id="nothing"),
    ],
)
def test_a_line_says_what_is_meant_with_the_plan(line: str, verdict: PlanAnswer) -> None:
    assert plantext.verdict_in(line) == verdict


def test_a_console_shows_the_plan_as_it_was_written() -> None:
    lines = list(plantext.lines(PLAN))
    assert lines[:2] == [plantext.TITLE, "  # Plan"]
    assert "⟨U+202E⟩" in lines[-1]
