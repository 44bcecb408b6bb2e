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

from crush_kernel.kernel import permissiontext
from crush_kernel.kernel.debounce import REST_S, Debounce
from crush_kernel.kernel.permissioncard import PermissionCard
from crush_kernel.kernel.render import Row
from crush_kernel.kernel.ruleoffer import RuleOffer
from crush_kernel.kernel.widgets import LiveCard
from crush_kernel.permissions.gate import Answer
from crush_kernel.permissions.request import CommandPart, PermissionRequest
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
    return PermissionCard(request, offer, Debounce(lambda: 0.0))


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
    assert "a/f" not in shown
    assert shown.count("\n ") == 12 - 3
    button = with_class("crush-show-all")[0]
    assert button.description == "Show all 33 lines"
    button.click()
    assert "\n 29" in texts(card.box)
    assert button.layout.display == "none"
    card.close()


@pytest.mark.parametrize(("count", "is_folded"), [(15, False), (16, True)])
async def test_no_button_stands_where_a_few_lines_would(count: int, *, is_folded: bool) -> None:
    diff = "\n".join(f"+{n}" for n in range(count))
    card = card_for(request(action="write", tool="edit", title="edit f", diff=diff))
    assert bool(with_class("crush-show-all")) is is_folded
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
    card = card_for(request(), OFFER)
    row = card.box.children[-1]
    labels = [getattr(child, "description", "") or child.placeholder for child in row.children]
    assert labels == [
        "Allow once",
        "Allow for this session",
        "Always …",
        "Deny",
        "reason (optional, the model reads it)",
    ]
    assert all(child.tooltip for child in row.children)
    assert "crush-card" in card.box._dom_classes
    assert "var(--jp-warn-color1" in card.box.layout.border_left
    card.close()


async def test_the_parts_of_a_command_stand_with_what_they_do() -> None:
    parts = (
        CommandPart("git stash <b>", ("git",), "changes <i>"),
        CommandPart(
            "pytest > out.txt", ("pytest",), "runs the project's code", writes=("out.txt",)
        ),
    )
    card = card_for(request(command="git stash <b> && pytest > out.txt", parts=parts))
    shown = re.sub(r"<[^>]*>", "|", texts(card.box))
    assert re.search(r"1\|+git stash &lt;b&gt; \|+&amp;&amp;\|+changes &lt;i&gt;", shown)
    assert re.search(
        r"2\|+pytest &gt; out.txt\|+runs the project&#x27;s code · writes out.txt", shown
    )
    assert permissiontext.UNREAD not in shown
    card.close()


async def test_a_command_that_could_not_be_read_says_so() -> None:
    card = card_for(request(command="if ["))
    assert permissiontext.UNREAD in unescape(texts(card.box))
    card.close()


async def test_dangers_are_words_and_not_only_a_colour() -> None:
    card = card_for(request(command="x", dangers=("removes <build>\nfor good",)))
    shown = texts(card.box)
    assert re.search(r">dangerous</span> removes &lt;build&gt;⟨U\+000A⟩for good", shown)
    card.close()


async def test_the_question_mark_explains_the_buttons() -> None:
    card = card_for(request())
    (mark,) = with_class("crush-help")
    (line,) = (each for each in with_class("crush-text") if "this call only" in each.value)
    assert line.layout.display == "none"
    mark.click()
    assert line.layout.display is None
    mark.click()
    assert line.layout.display == "none"
    card.close()


# --- always -------------------------------------------------------------------------------


def open_editor(card: PermissionCard) -> Any:  # noqa: ANN401 - a widget
    """Press Always and return the field with the rules."""
    assert not with_class("crush-rules")
    with_class("crush-always")[0].click()
    (field,) = with_class("crush-rules")
    assert "crush-rule-editor" in card.box.children[-1]._dom_classes
    return field


async def test_always_is_offered_only_where_there_is_something_to_keep() -> None:
    card = card_for(request())
    assert not with_class("crush-always")
    card.close()


async def test_always_proposes_rules_and_keeps_them_where_a_person_says() -> None:
    card = card_for(request(), OFFER)
    field = open_editor(card)
    assert field.value == "bash(pytest:*)"
    (scope,) = with_class("crush-choices")
    assert [label for label, _ in scope.options] == ["in this project", "everywhere"]
    assert scope.value == "project"
    field.value = "bash(pytest -q:*)\n\n bash(pytest x) "
    scope.value = "everywhere"
    with_class("crush-rules-save")[0].click()
    rules = ("bash(pytest -q:*)", "bash(pytest x)")
    assert await answered(card) == Answer("always", rules=rules, scope="everywhere")


async def test_letters_that_arrive_just_after_save_still_count() -> None:
    card = card_for(request(), OFFER)
    field = open_editor(card)
    with_class("crush-rules-save")[0].click()
    field.value = "bash(pytest -x)"
    assert await answered(card) == Answer("always", rules=("bash(pytest -x)",))


@pytest.mark.parametrize("written", ["", "bash(ls)", "bash(pytest)\nnonsense"])
async def test_rules_that_cannot_be_kept_are_not_kept_and_it_is_said(written: str) -> None:
    card = card_for(request(), OFFER)
    waiting = asyncio.ensure_future(card.answer())
    field = open_editor(card)
    field.value = written
    shown = texts(card.box)
    assert "not saved</span> Not &lt;this&gt;." in shown
    with_class("crush-rules-save")[0].click()
    await anyio.sleep(0.2)
    assert not waiting.done()
    field.value = "bash(pytest)"
    assert "not saved" not in texts(card.box)
    with_class("crush-rules-save")[0].click()
    with anyio.fail_after(5):
        assert await waiting == Answer("always", rules=("bash(pytest)",))
    card.close()


async def test_cancel_closes_the_rules_and_the_question_stays() -> None:
    card = card_for(request(), OFFER)
    models = open_models()
    for _ in range(2):
        open_editor(card)
        assert with_class("crush-always")[0].disabled
        with_class("crush-rules-cancel")[0].click()
        assert open_models() == models
    with_class("crush-allow-once")[0].click()
    assert await answered(card) == Answer("once")


async def test_another_button_may_be_pressed_while_the_rules_are_open() -> None:
    card = card_for(request(), OFFER)
    open_editor(card)
    (save,) = with_class("crush-rules-save")
    save.click()
    with_class("crush-deny")[0].click()
    assert await answered(card) == Answer("deny")
    await anyio.sleep(0.2)


# --- settled ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("css_class", "line"),
    [
        ("crush-allow-once", "allowed once · bash make"),
        ("crush-allow-session", "allowed for this session · bash make"),
        ("crush-deny", "denied · bash make"),
    ],
)
async def test_one_line_takes_the_place_of_the_buttons(css_class: str, line: str) -> None:
    card = card_for(request(command="make"))
    row = card.box.children[-1]
    with_class(css_class)[0].click()
    with anyio.fail_after(5):
        await card.answer()
    (settled,) = with_class("crush-settled")
    assert line in settled.value
    assert row.layout.visibility == "hidden"
    assert row in card.box.children
    card.settle("something else")
    assert line in settled.value
    card.close()


async def test_while_another_answer_rests_no_press_counts() -> None:
    now = [0.0]
    debounce = Debounce(lambda: now[0])
    first, second = (PermissionCard(request(), OFFER, debounce) for _ in range(2))
    one, other = with_class("crush-allow-once")
    one.click()
    other.click()
    now[0] = REST_S / 2
    other.click()
    second.settle("no answer needed")
    assert await answered(first) == Answer("once")
    second.close()
    assert "no answer needed" not in texts(first.box)
