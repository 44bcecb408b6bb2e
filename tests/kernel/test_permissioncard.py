"""The permission card, on real ipywidgets models."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportPrivateUsage=false
# ipywidgets carries no types.

import asyncio
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.kernel.permissioncard import PermissionCard
from crush_kernel.kernel.render import Row
from crush_kernel.kernel.ruleoffer import RuleOffer
from crush_kernel.kernel.turnstile import Turnstile
from crush_kernel.kernel.widgets import LiveCard
from crush_kernel.permissions.gate import Answer
from crush_kernel.permissions.request import PermissionRequest
from tests.kernel.widget_models import open_models, send, texts, with_class

pytestmark = pytest.mark.anyio

DIFF = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n" + "".join(f" {n}\n" for n in range(30))


@pytest.fixture(autouse=True)
def no_model_stays_open() -> Iterator[None]:
    before = open_models()
    yield
    assert open_models() == before


def problem(rules: tuple[str, ...]) -> str:
    """Take rules for pytest, nothing else."""
    return "" if rules and all(rule.startswith("bash(pytest") for rule in rules) else "Not <this>."


OFFER = RuleOffer(("bash(pytest:*)",), problem)


def card_for(request: PermissionRequest, offer: RuleOffer | None = None) -> PermissionCard:
    return PermissionCard(request, offer, Turnstile(lambda: 0.0))


def request(**fields: Any) -> PermissionRequest:  # noqa: ANN401 - any field
    known: dict[str, Any] = {"call_id": "c1", "tool": "bash", "action": "execute", "title": "run"}
    return PermissionRequest(**{**known, **fields})


async def answered(card: PermissionCard) -> Answer:
    with anyio.fail_after(5):
        answer = await card.answer()
    card.close()
    return answer


@pytest.mark.parametrize(
    ("css_class", "answer"),
    [
        ("crush-allow-once", Answer("once")),
        ("crush-allow-session", Answer("session")),
        ("crush-deny", Answer("deny")),
    ],
)
async def test_each_button_gives_its_answer(css_class: str, answer: Answer) -> None:
    card = card_for(request())
    with_class(css_class)[0].click()
    assert await answered(card) == answer


async def test_a_click_from_the_browser_counts_while_someone_waits() -> None:
    card = card_for(request())
    waiting = asyncio.ensure_future(card.answer())
    await anyio.lowlevel.checkpoint()
    send(with_class("crush-allow-once")[0], {"event": "click"})
    with anyio.fail_after(5):
        assert await waiting == Answer("once")
    card.close()


async def test_denying_takes_the_reason_along() -> None:
    card = card_for(request())
    with_class("crush-reason")[0].value = "  use a branch "
    with_class("crush-deny")[0].click()
    assert await answered(card) == Answer("deny", "use a branch")


async def test_letters_that_arrive_just_after_the_click_still_count() -> None:
    card = card_for(request())
    waiting = asyncio.ensure_future(card.answer())
    with_class("crush-deny")[0].click()
    await anyio.lowlevel.checkpoint()
    with_class("crush-reason")[0].value = "use a branch"
    with anyio.fail_after(5):
        assert await waiting == Answer("deny", "use a branch")
    card.close()


async def test_allowing_ignores_the_reason() -> None:
    card = card_for(request())
    with_class("crush-reason")[0].value = "fine"
    with_class("crush-allow-once")[0].click()
    assert await answered(card) == Answer("once")


async def test_enter_in_the_reason_denies_only_with_a_reason() -> None:
    card = card_for(request())
    waiting = asyncio.ensure_future(card.answer())
    reason = with_class("crush-reason")[0]
    send(reason, {"event": "submit"})
    await anyio.lowlevel.checkpoint()
    assert not waiting.done()
    reason.value = "not today"
    send(reason, {"event": "submit"})
    with anyio.fail_after(5):
        assert await waiting == Answer("deny", "not today")
    card.close()


async def test_a_second_click_changes_nothing() -> None:
    card = card_for(request())
    once, deny = with_class("crush-allow-once")[0], with_class("crush-deny")[0]
    deny.click()
    once.click()
    assert once.disabled
    assert await answered(card) == Answer("deny")
    once.click()


async def test_a_click_after_the_question_was_withdrawn_grants_nothing() -> None:
    card = card_for(request())
    once = with_class("crush-allow-once")[0]
    waiting = asyncio.ensure_future(card.answer())
    await anyio.lowlevel.checkpoint()
    waiting.cancel()
    card.close()
    once.click()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_the_card_says_what_where_and_what_is_unusual() -> None:
    card = card_for(
        request(
            command="rm -rf build <x>\u202e",
            cwd=Path("/srv/shop"),
            notes=("runs the project's code",),
            paths=(Path("/etc/hosts"),),
            is_outside=True,
        )
    )
    shown = texts(card.box)
    assert "<b>bash</b> wants to run" in shown
    assert "rm -rf build &lt;x&gt;⟨U+202E⟩" in shown
    assert re.search(r"outside the project</span> <code[^>]*>/etc/hosts</code>", shown)
    assert "runs the project&#x27;s code" in shown
    assert re.search(r"in <code[^>]*>/srv/shop</code>", shown)
    card.close()


async def test_nothing_in_a_card_is_raw_html() -> None:
    evil = "<img src=x onerror=alert(1)>"
    card = card_for(
        request(
            tool=evil,
            title=evil,
            command=evil,
            diff=evil,
            notes=(evil,),
            cwd=Path(evil),
            paths=(Path(evil),),
            is_outside=True,
        )
    )
    live = LiveCard(lambda _: None)
    live.show([Row("c", evil, evil, evil, is_running=True, tail=evil)], [card])
    assert "<img" not in texts(card.box)
    assert "<img" not in texts(with_class("crush-live")[0])
    live.close()
    card.close()


async def test_a_long_diff_shows_twelve_lines_and_then_all() -> None:
    card = card_for(request(action="write", tool="edit", title="edit f", diff=DIFF))
    shown = texts(card.box)
    assert shown.count("\n ") == 12 - 5
    button = with_class("crush-show-all")[0]
    assert button.description == "Show all 35 lines"
    button.click()
    assert "\n 29" in texts(card.box)
    assert button.layout.display == "none"
    card.close()


async def test_an_endless_diff_comes_by_the_page() -> None:
    card = card_for(request(diff="+x\n" * 4500 + "+" + "y" * 100_000))
    button = with_class("crush-show-all")[0]
    labels = [button.description]
    for _ in range(3):
        button.click()
        assert len(texts(card.box)) < 300_000
        labels.append(button.description)
    assert texts(card.box).count("y") > 100_000
    assert labels == [
        "Show lines 1–2,000 of 4,521",
        "Show lines 2,001–4,000 of 4,521",
        "Show lines 4,001–4,521 of 4,521",
        "Show lines 1–2,000 of 4,521",
    ]
    card.close()


@pytest.mark.parametrize(
    "padding",
    [
        pytest.param("\n" * 3000, id="blank lines"),
        pytest.param(" \n" * 3000, id="lines of blanks"),
        pytest.param("# nothing\n" * 3000, id="comments"),
        pytest.param(" " * 60_000, id="blanks"),
        pytest.param("x" * 60_000, id="an endless word"),
    ],
)
async def test_what_a_command_ends_in_is_shown_at_once(padding: str) -> None:
    card = card_for(request(command=f"ls {padding}; rm -rf ~"))
    shown = texts(card.box)
    assert "; rm -rf ~" in shown
    assert shown.count("\n") < 30
    card.close()


@given(st.text(alphabet="ab \n\r\t\u202e", max_size=120))
def test_all_of_a_command_can_be_read(middle: str) -> None:
    async def read_all() -> None:
        card = card_for(request(command=f"a{middle}b"))
        for button in with_class("crush-show-all"):
            button.click()
        shown = unescape(re.sub(r"<[^>]*>|\[… \d+ blank lines …\]", "", texts(card.box)))
        for word in re.split(r"[\s\u202e]+", f"a{middle}b"):
            assert word in shown
        assert shown.count("⟨U+000D⟩") == middle.count("\r")
        assert shown.count("⟨U+202E⟩") == middle.count("\u202e")
        card.close()

    asyncio.run(read_all())


async def test_every_control_is_labelled_and_in_reading_order() -> None:
    card = card_for(request())
    row = card.box.children[-1]
    labels = [getattr(child, "description", "") or child.placeholder for child in row.children]
    assert labels == [
        "Allow once",
        "Allow for this session",
        "Deny",
        "reason (optional, the model reads it)",
    ]
    assert all(child.tooltip for child in row.children)
    assert "crush-card" in card.box._dom_classes
    assert "var(--jp-warn-color1" in card.box.layout.border_left
    card.close()
