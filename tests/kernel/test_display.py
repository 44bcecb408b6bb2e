"""What a person sees of a turn while it runs, and what stays."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crush_kernel.agent.events import (
    Event,
    Notice,
    PermissionSettled,
    ReasoningAdded,
    ReplyDropped,
    Retrying,
    StepFinished,
    StepStarted,
    TextAdded,
    ToolCallWritten,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
)
from crush_kernel.errors import Overloaded
from crush_kernel.kernel import slots
from crush_kernel.kernel.debounce import REST_S
from crush_kernel.kernel.display import TurnDisplay
from crush_kernel.kernel.permissiontext import UNREAD
from crush_kernel.messages import Media, ToolResult, Usage
from crush_kernel.permissions.gate import Answer
from crush_kernel.permissions.request import PermissionRequest
from tests.kernel.front_end import WIDGET_VIEW, FrontEnd, VirtualLoop
from tests.kernel.stage import (
    FOOTER,
    LiveStage,
    Stage,
    assert_final,
    finished,
    has_card,
    until,
)
from tests.kernel.widget_models import open_models, texts, with_class

PNG = Media("image/png", "aGk=", "plot.png")
REQUEST = PermissionRequest("c1", "bash", "execute", "run", command="make")


def words(text: str, every: int = 5) -> list[Event]:
    return [TextAdded(text[index : index + every]) for index in range(0, len(text), every)]


PARAGRAPHS = "".join(f"Paragraph {number} says **this** and `that`.\n\n" for number in range(400))

# --- text ---------------------------------------------------------------------------------


def test_the_status_line_is_there_before_the_first_request() -> None:
    page = Stage().page
    assert page.markdown == "<sub>claude is thinking …</sub>"


def test_the_first_word_is_shown_at_once_and_the_rest_at_most_ten_times_a_second() -> None:
    stage = Stage()
    stage.loop.advance(1.0)
    stage.play(TextAdded("First"), after_s=0.0)
    assert stage.page.markdown == "First"
    stage.play(*words(PARAGRAPHS[:6000]), after_s=0.001)
    times = Counter(
        (content["transient"]["display_id"], int(when * 10))
        for when, _, content in stage.page.messages
    )
    assert max(times.values()) <= 2  # a tenth of a second may hold both ends of an interval
    for display_id in stage.page.outputs:
        sent = [
            when
            for when, _, content in stage.page.messages
            if content["transient"]["display_id"] == display_id
        ]
        assert all(later - earlier > 0.099 for earlier, later in pairwise(sent[2:]))


def test_a_long_reply_stays_cheap_and_ends_complete() -> None:
    stage = Stage()
    stage.play(StepStarted(1), *words(PARAGRAPHS), after_s=0.004)
    shown = stage.finish()
    for number in range(400):
        assert f"Paragraph {number} says" in shown
    assert len(stage.page.outputs) < 8
    sent = sum(len(content["data"]["text/markdown"]) for _, _, content in stage.page.messages)
    assert sent < 40 * len(PARAGRAPHS)


def test_what_is_sent_again_and_again_stays_small() -> None:
    stage = Stage()
    stage.play(StepStarted(1), *words(PARAGRAPHS), after_s=0.004)
    seen: list[str] = []
    live: list[int] = []
    for _, _, content in stage.page.messages:
        display_id = content["transient"]["display_id"]
        if display_id not in seen:
            seen.append(display_id)
        if display_id == seen[-1]:
            live.append(len(content["data"]["text/markdown"]))
    assert len(live) > 100
    assert max(live) < 4000


def test_a_closed_segment_is_never_sent_again() -> None:
    stage = Stage()
    last_times: dict[str, int] = {}
    for number, event in enumerate(words(PARAGRAPHS)):
        stage.play(event, after_s=0.004)
        closed = list(stage.page.outputs)[:-2]
        for display_id in closed:
            count = len(stage.page.sent(display_id))
            assert last_times.setdefault(display_id, count) == count, number
    assert last_times


def test_a_code_block_longer_than_the_live_slot_is_one_block_in_the_end() -> None:
    stage = Stage()
    code = "\n".join(f"print({number})  # <b>" for number in range(150))
    stage.play(StepStarted(1), *words(f"Here:\n\n```python\n{code}\n```\n\nDone."), after_s=0.01)
    assert f"```python\n{code}\n```" in stage.finish()


def test_a_code_block_longer_than_a_segment_stays_code_in_every_part() -> None:
    stage = Stage()
    lines = [f"print({number})  # <b>{number}</b>" for number in range(2000)]
    code = "\n".join(lines)
    stage.play(StepStarted(1), *words(f"```python\n{code}\n```\n", 40), after_s=0.01)
    shown = stage.finish()
    assert len(stage.page.outputs) > 2
    assert [line for line in shown.split("\n") if line.startswith("print")] == lines
    for bundle in stage.page.bundles[:-1]:
        assert bundle["text/markdown"].startswith("```python\n")
        assert bundle["text/markdown"].endswith("\n```")


def test_a_line_without_end_is_shown_whole() -> None:
    stage = Stage()
    text = "".join(f"{number} " for number in range(5000))
    stage.play(StepStarted(1), *words(text), after_s=0.01)
    assert re.findall(r"\d+ ", stage.finish())[:5000] == re.findall(r"\d+ ", text)


@pytest.mark.slow
@given(
    st.lists(
        st.sampled_from(["```\n", "```py\n", "- a\n", "word ", "\n", "\n\n", "x" * 900, "`"]),
        max_size=40,
    )
)
@settings(max_examples=60, deadline=None)
def test_however_text_streams_no_word_of_it_is_lost(parts: list[str]) -> None:
    parts = [part.replace("word", f"w{number}w") for number, part in enumerate(parts)]
    stage = Stage()
    stage.play(StepStarted(1), *map(TextAdded, parts), after_s=0.03)
    shown = stage.finish()
    found = re.findall(r"w(\d+)w", shown)
    assert found == re.findall(r"w(\d+)w", "".join(parts))


def test_model_text_is_made_safe() -> None:
    stage = Stage()
    stage.play(TextAdded("<img src=x onerror=alert(1)> \u202e"), Notice("<b>note</b>"))
    shown = stage.finish()
    assert "<img" not in shown
    assert "\u202e" not in shown
    assert "<b>note" not in shown


def test_reasoning_is_a_status_while_it_streams_and_folded_after() -> None:
    stage = Stage()
    stage.play(StepStarted(1), ReasoningAdded("Let me think."), after_s=0.2)
    assert stage.page.markdown == "<sub>claude is thinking …</sub>"
    stage.play(TextAdded("Yes."), StepFinished(Usage(), 1), after_s=0.2)
    assert stage.page.markdown.startswith("<details><summary>Reasoning</summary>")
    assert stage.finish().endswith("Yes.\n\n<sub>claude · 1.0 s</sub>")


@pytest.mark.slow
def test_a_broken_off_reply_is_taken_back() -> None:
    stage = Stage()
    stage.play(StepStarted(1), TextAdded("Before."), StepFinished(Usage(), 1), after_s=0.1)
    stage.call()
    stage.play(StepStarted(2), *words("void.\n\n" * 6000), after_s=0.004)
    outputs = len(stage.page.outputs)
    assert outputs > 3
    stage.play(ReplyDropped(), after_s=0.2)
    assert "void" not in stage.page.markdown
    stage.play(*words("anew.\n\n" * 6000), after_s=0.004)
    shown = stage.finish()
    assert "void" not in shown
    assert shown.startswith("Before.")
    assert shown.count("anew.") == 6000
    assert len(stage.page.outputs) <= outputs + 2


def test_a_retry_is_counted_down_and_replaced_when_it_works() -> None:
    stage = Stage()
    stage.play(StepStarted(1), Retrying("overloaded", 2, 4, 8.0), after_s=0.2)
    assert "overloaded · next try in 8 s (2 of 4)" in stage.page.markdown
    stage.loop.advance(5.0)
    assert "next try in 3 s" in stage.page.markdown
    stage.loop.advance(4.0)
    assert "trying again (2 of 4)" in stage.page.markdown
    stage.play(TextAdded("Hello."), after_s=0.2)
    assert stage.page.markdown == "Hello."


def test_a_call_in_the_writing_is_announced() -> None:
    stage = Stage()
    stage.play(TextAdded("So."), ToolCallWritten("c1", "edit"), after_s=0.2)
    assert stage.page.markdown == "So.\n\n<sub>writing a call of edit …</sub>"


# --- calls --------------------------------------------------------------------------------


def test_quick_calls_never_become_widgets() -> None:
    stage = Stage()
    for number in range(20):
        stage.call(f"c{number}", lasts_s=0.14)
    shown = stage.finish()
    assert not [content for _, _, content in stage.page.messages if WIDGET_VIEW in content["data"]]
    assert shown.count("<b>bash</b>") == 20


def test_a_slow_call_gets_a_card_that_text_replaces() -> None:
    stage = Stage()
    stage.play(TextAdded("Now:"), ToolStarted("c1", "bash", "sleep 9"))
    stage.loop.advance(0.2)
    live = stage.page.last
    assert WIDGET_VIEW in live["data"]
    assert live["metadata"] == {"crush": {"pending": True}}
    assert "<b>bash</b> sleep 9 · running" in live["data"]["text/markdown"]
    stage.play(finished(), after_s=0.2)
    assert_final(stage.page)
    assert "<b>bash</b> sleep 9 · exit 0</summary>" in stage.page.markdown


def test_what_waits_for_an_answer_does_not_run() -> None:
    stage = Stage()
    stage.play(ToolStarted("c1", "bash", "make"), after_s=300.0)
    stage.play(PermissionSettled(REQUEST, is_allowed=True, rule="allowed once"), after_s=2.5)
    assert "running 2 s" in texts(with_class("crush-call")[0])
    stage.play(finished())
    stage.finish()


def test_results_keep_the_order_of_their_calls() -> None:
    stage = Stage()
    stage.play(*(ToolStarted(f"c{number}", "view", f"f{number}") for number in range(3)))
    stage.play(finished("c2"), finished("c0"), after_s=0.3)
    stage.play(finished("c1"), after_s=0.3)
    assert re.findall(r"</b> (f\d)", stage.finish()) == ["f0", "f1", "f2"]


def test_by_what_right_a_call_ran_is_on_record() -> None:
    stage = Stage()
    stage.play(ToolStarted("c1", "bash", "make"))
    stage.play(PermissionSettled(REQUEST, is_allowed=True, rule="allowed once"), finished())
    stage.play(ToolStarted("c2", "bash", "rm"))
    denied = PermissionRequest("c2", "bash", "execute", "run")
    stage.play(PermissionSettled(denied, is_allowed=False, rule="denied", reason="no"))
    stage.play(ToolFinished(ToolResult("c2", "Permission denied", is_error=True), 0.1))
    shown = stage.finish()
    assert "make · exit 0 · allowed once</summary>" in shown
    assert '<sub><b>bash</b> rm · denied: "no"</sub>' in shown


@pytest.mark.slow
@pytest.mark.parametrize("front_end", ["rich", "headless"])
@pytest.mark.parametrize("lasts_s", [0.01, 0.6])
def test_a_hundred_calls_stay_under_twenty_outputs(front_end: str, lasts_s: float) -> None:
    stage = Stage(front_end)
    for number in range(100):
        stage.play(StepStarted(number), *words(f"Step {number}, next file."), after_s=0.01)
        stage.call(f"c{number}", lasts_s=lasts_s, content="a line of output\n" * 400)
    shown = stage.finish()
    assert len(stage.page.outputs) < 20
    assert shown.count("<details>") == shown.count("</details>") == 100
    sent = sum(len(str(content)) for _, _, content in stage.page.messages)
    assert sent < 20 * len(shown)


@pytest.mark.slow
def test_a_turn_of_two_thousand_calls_stays_under_forty_outputs_and_a_megabyte() -> None:
    stage = Stage("headless")
    for number in range(2000):
        stage.call(f"c{number}", lasts_s=0.01, content="a line of output\n" * 400)
    shown = stage.finish()
    assert len(stage.page.outputs) < 40
    assert len(shown) < 1_000_000
    assert shown.count("<b>bash</b>") == 2000


def test_images_are_outputs_of_their_own_in_their_place() -> None:
    stage = Stage()
    stage.play(TextAdded("See:"), ToolStarted("c1", "view", "plot.png"))
    stage.play(ToolFinished(ToolResult("c1", "an image", media=(PNG,)), 0.1), after_s=0.2)
    stage.play(TextAdded("Nice."))
    stage.finish()
    kinds = [next(iter(bundle)) for bundle in stage.page.bundles]
    assert kinds == ["text/markdown", "image/png", "text/markdown"]
    assert stage.page.bundles[2]["text/markdown"].startswith("Nice.")


def test_of_many_images_the_last_are_only_named() -> None:
    stage = Stage()
    for number in range(60):
        stage.play(ToolStarted(f"c{number}", "view", "plot.png"))
        stage.play(ToolFinished(ToolResult(f"c{number}", "image", media=(PNG,)), 0.1), after_s=0.2)
    stage.finish()
    assert sum("image/png" in bundle for bundle in stage.page.bundles) == slots.MAX_IMAGES
    assert len(stage.page.outputs) < 40
    assert "plot.png (not shown)" in stage.page.markdown


def test_large_images_are_shown_up_to_what_a_notebook_can_hold() -> None:
    stage = Stage()
    large = Media("image/jpeg", "/9j/" * 375_000, "shot.png")
    for number, image in enumerate((large, large, large, PNG)):
        stage.play(ToolStarted(f"c{number}", "view", "shot.png"))
        stage.play(ToolFinished(ToolResult(f"c{number}", "image", media=(image,)), 0.1))
    stage.finish()
    shown = [next(iter(bundle)) for bundle in stage.page.bundles]
    assert [kind for kind in shown if kind.startswith("image/")] == [
        *("image/jpeg", "image/jpeg"),
        "image/png",
    ]
    assert "shot.png (not shown)" in stage.page.markdown


# --- every message ------------------------------------------------------------------------

_EVENTS: list[Callable[[int], list[Event]]] = [
    lambda n: [StepStarted(n)],
    lambda n: words(f"text {n} " * 40),
    lambda n: [TextAdded(f"para {n}\n\n" * 30)],
    lambda n: [ReasoningAdded(f"thought {n}")],
    lambda _: [ReplyDropped()],
    lambda n: [Retrying(f"overloaded {n}", 2, 4, 3.0)],
    lambda n: [ToolCallWritten(f"c{n}", "edit")],
    lambda n: [ToolStarted(f"c{n}", "bash", "make")],
    lambda n: [ToolStarted(f"c{n}", "bash", "make"), ToolProgressed(f"c{n}", "a\nb\nc\nd")],
    lambda n: [finished(f"c{n - 1}", "out\n" * 900), finished(f"c{n - 2}")],
    lambda n: [
        ToolStarted(f"i{n}", "view", "p"),
        ToolFinished(ToolResult(f"i{n}", "x", media=(PNG,)), 0.1),
    ],
    lambda n: [Notice(f"notice {n}")],
    lambda n: [StepFinished(Usage(), n)],
]


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(_EVENTS), st.sampled_from([0.0, 0.05, 0.2, 1.5]))),
    st.sampled_from(["finish", "interrupt", "fail"]),
)
@settings(max_examples=120, deadline=None)
def test_whatever_happens_the_outputs_end_static_and_the_live_slot_is_last(
    plays: list[tuple[Callable[[int], list[Event]], float]], end: str
) -> None:
    stage = Stage()
    for number, (events, pause) in enumerate(plays):
        stage.play(*events(number))
        stage.loop.advance(pause)
        pending = [output["metadata"] != {} for output in stage.page.outputs.values()]
        assert not any(pending[:-1])
    if end == "interrupt":
        stage.display.interrupted()
    elif end == "fail":
        stage.display.fail(Overloaded("It broke", hint="Wait"))
    shown = stage.finish()
    assert stage.page.last["data"]["text/markdown"].endswith("<sub>claude · 1.0 s</sub>")
    assert "running</sub>" not in shown
    assert "is thinking" not in shown
    assert all(
        set(content) == {"data", "metadata", "transient"} for _, _, content in stage.page.messages
    )
    assert all(
        "text/plain" in bundle or not bundle["text/markdown"] for bundle in stage.page.bundles
    )


_SAID = st.one_of(
    st.lists(
        st.sampled_from(
            [
                "word ",
                "\n",
                "\n\n",
                "\n\n\n\n",
                "- item\n",
                "1. item\n\n",
                "> quote\n\n",
                "    indented\n\n",
                "```py\nx\n\n\ny\n```\n",
                "```\n",
                "A paragraph of some words, long enough to be cut soon.\n\n" * 4,
                "<b>",
            ]
        ),
        max_size=30,
    ).map("".join),
    st.sampled_from(["A paragraph.\n\n" * 700, "line\n" * 900, "x " * 4000]),
)
_CALL = st.tuples(st.sampled_from(["", "out", "out\n" * 900]), st.booleans())
_STEPS = st.lists(st.tuples(_SAID, st.booleans(), st.lists(_CALL, max_size=3)), max_size=5)


def shown_at(draw: Callable[..., Any], steps: list[Any]) -> list[dict[str, Any]]:
    """Return what is left of a turn that was played at a speed and in deltas of some size."""
    stage = Stage(draw(st.sampled_from(["rich", "headless"])))
    pauses = st.sampled_from([0.0, 0.02, 0.11, 0.4])
    for number, (said, has_thought, calls) in enumerate(steps):
        stage.play(StepStarted(number), after_s=draw(pauses))
        if has_thought:
            stage.play(ReasoningAdded("One thought.\n\nAnother."), after_s=draw(pauses))
        deltas = words(said, 1 + len(said) // draw(st.sampled_from([1, 10, 100])))
        stage.play(*deltas, after_s=draw(pauses))
        stage.play(StepFinished(Usage(), number), after_s=draw(pauses))
        for place, (content, has_image) in enumerate(calls):
            call_id = f"c{number}.{place}"
            stage.play(ToolStarted(call_id, "bash", "make"), after_s=draw(pauses))
            result = ToolResult(call_id, content, media=(PNG,) if has_image else ())
            stage.play(ToolFinished(result, 0.1), after_s=draw(pauses))
    stage.finish()
    return list(stage.page.outputs.values())


@pytest.mark.slow
@given(_STEPS, st.data())
@settings(max_examples=25, deadline=None)
def test_how_fast_a_turn_went_cannot_be_seen_in_what_it_leaves(
    steps: list[Any], data: st.DataObject
) -> None:
    assert shown_at(data.draw, steps) == shown_at(data.draw, steps)


def test_nothing_is_sent_after_the_end() -> None:
    stage = Stage()
    stage.play(ToolStarted("c1", "bash", "sleep 9"), TextAdded("x"), after_s=0.3)
    stage.display.interrupted()
    stage.finish()
    count = len(stage.page.messages)
    stage.play(TextAdded("late"), finished(), after_s=2.0)
    stage.display.finish(FOOTER)
    stage.display.interrupted()
    stage.loop.advance(5.0)
    assert len(stage.page.messages) == count
    assert stage.loop.pending == 0


def test_an_interrupted_turn_keeps_its_text_and_says_what_was_cut_short() -> None:
    stage = Stage()
    stage.play(*words("Half a sent"), ToolStarted("c1", "bash", "sleep 9"), after_s=0.3)
    stage.display.interrupted()
    assert stage.finish() == (
        "Half a sent\n\n<sub><b>bash</b> sleep 9 · interrupted</sub>\n\n<sub>interrupted</sub>"
        "\n\n<sub>claude · 1.0 s</sub>"
    )


def test_a_failure_is_told_after_what_was_said() -> None:
    stage = Stage()
    stage.play(TextAdded("Well"))
    stage.display.fail(Overloaded("The provider is overloaded", hint="Try later"))
    assert stage.finish().startswith("Well\n\n**The provider is overloaded.** Try later.")


def test_a_turn_without_a_footer_ends_clean() -> None:
    stage = Stage()
    stage.display.finish()
    assert stage.page.markdown == ""


# --- headless -----------------------------------------------------------------------------


def test_headless_sends_little_and_shows_everything() -> None:
    stage = Stage("headless")
    assert stage.page.messages == []
    stage.play(StepStarted(1), *words(PARAGRAPHS[:4000]), after_s=0.001)
    stage.call(lasts_s=0.5)
    shown = stage.finish()
    assert PARAGRAPHS[:3900].split("\n\n")[-2] in shown
    assert "<b>bash</b>" in shown
    assert len(stage.page.messages) <= 4


@pytest.mark.anyio
async def test_headless_answers_at_once_by_policy() -> None:
    stage = Stage("headless")
    with anyio.fail_after(5):
        answer = await stage.display.ask(REQUEST)
    assert answer.kind == "deny"
    assert "nobody can be asked" in answer.reason


# --- permission ---------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_question_stands_in_the_live_slot_and_text_replaces_it() -> None:
    stage = LiveStage()
    stage.display.on_event(TextAdded("I will run it."))
    stage.display.on_event(ToolStarted("c1", "bash", "make"))
    answers: list[Answer] = []

    async def ask() -> None:
        answers.append(await stage.display.ask(REQUEST))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await until(has_card(stage.page))
        bundle = stage.page.last["data"]
        assert "<b>bash wants to run</b> · waiting for an answer" in bundle["text/markdown"]
        assert stage.page.last["metadata"] == {"crush": {"pending": True}}
        with_class("crush-allow-once")[0].click()
    assert answers == [Answer("once")]
    stage.display.on_event(PermissionSettled(REQUEST, is_allowed=True, rule="allowed once"))
    stage.display.on_event(finished())
    shown = stage.finish()
    assert "make · exit 0 · allowed once" in shown


@pytest.mark.anyio
async def test_a_withdrawn_question_leaves_no_widget() -> None:
    stage = LiveStage()
    stage.display.on_event(ToolStarted("c1", "bash", "make"))
    async with anyio.create_task_group() as group:
        group.start_soon(stage.display.ask, REQUEST)
        await until(has_card(stage.page))
        group.cancel_scope.cancel()
    stage.display.interrupted()
    assert "make · interrupted" in stage.finish()


def second(**fields: Any) -> PermissionRequest:  # noqa: ANN401 - any field
    return replace(REQUEST, call_id="c2", command="make two", **fields)


def press(css_class: str, command: str) -> None:
    """Press a button of the card that asks about `command`."""
    (card,) = (card for card in with_class("crush-card") if f">{command}</" in texts(card))
    (button,) = (each for each in with_class(css_class) if contains(card, each))
    button.click()


def contains(widget: Any, other: Any) -> bool:  # noqa: ANN401 - any widget
    return widget is other or any(
        contains(child, other) for child in getattr(widget, "children", ())
    )


def are_shown(count: int) -> Callable[[], bool]:
    return lambda: len(with_class("crush-card")) == count


@pytest.mark.anyio
async def test_many_questions_wait_together_and_are_answered_in_any_order() -> None:
    stage = LiveStage()
    answers: dict[str, Answer] = {}

    async def ask(request: PermissionRequest) -> None:
        answers[request.call_id] = await stage.display.ask(request)

    async with anyio.create_task_group() as group:
        group.start_soon(ask, REQUEST)
        group.start_soon(ask, second())
        await until(are_shown(2))
        press("crush-deny", "make two")
        await until(lambda: "c2" in answers)
        assert "c1" not in answers
        await anyio.sleep(REST_S)
        press("crush-allow-once", "make")
    assert answers == {"c1": Answer("once"), "c2": Answer("deny")}
    stage.finish()


@pytest.mark.anyio
async def test_a_double_click_answers_one_question_only() -> None:
    stage = LiveStage()
    answers: dict[str, Answer] = {}

    async def ask(request: PermissionRequest) -> None:
        answers[request.call_id] = await stage.display.ask(request)

    async with anyio.create_task_group() as group:
        group.start_soon(ask, REQUEST)
        group.start_soon(ask, second())
        await until(are_shown(2))
        press("crush-allow-once", "make")
        press("crush-allow-once", "make two")
        await until(lambda: bool(answers))
        began = anyio.current_time()
        group.start_soon(ask, replace(REQUEST, call_id="c3", command="make three"))
        await until(lambda: any("make three" in texts(each) for each in with_class("crush-card")))
        assert anyio.current_time() - began > REST_S / 2
        assert answers == {"c1": Answer("once")}
        group.cancel_scope.cancel()
    stage.finish()


@pytest.mark.anyio
async def test_an_answered_card_says_what_was_answered_and_goes_when_the_rest_is_over() -> None:
    before = open_models()
    stage = LiveStage()
    stage.display.on_event(ToolStarted("c1", "bash", "make"))

    async def ask() -> None:
        await stage.display.ask(REQUEST)

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await until(are_shown(1))
        press("crush-allow-once", "make")
        (card,) = with_class("crush-card")
        assert "allowed once · bash make" in texts(card)
    await until(are_shown(0))
    assert "running" in texts(with_class("crush-call")[0])
    stage.finish()
    assert open_models() == before


@pytest.mark.anyio
async def test_a_card_that_something_else_settles_is_dead_and_says_what_it_was() -> None:
    stage = LiveStage()
    async with anyio.create_task_group() as group:
        group.start_soon(stage.display.ask, REQUEST)
        await until(are_shown(1))
        group.cancel_scope.cancel()
    (once,) = with_class("crush-allow-once")
    settled = PermissionSettled(REQUEST, is_allowed=True, rule="yolo mode", by="mode")
    stage.display.on_event(settled)
    (card,) = with_class("crush-card")
    assert "no answer needed any more: yolo mode · bash make" in texts(card)
    assert once.disabled
    once.click()
    stage.finish()


@pytest.mark.anyio
async def test_the_end_of_the_turn_closes_an_open_question() -> None:
    before = open_models()
    stage = LiveStage()
    stage.display.on_event(ToolStarted("c1", "bash", "make"))
    async with anyio.create_task_group() as group:
        group.start_soon(stage.display.ask, REQUEST)
        await until(has_card(stage.page))
        stage.finish()
        group.cancel_scope.cancel()
    assert open_models() == before


# --- console ------------------------------------------------------------------------------


def console(line: str | None = None) -> tuple[TurnDisplay, FrontEnd, VirtualLoop, list[str]]:
    loop = VirtualLoop()
    page = FrontEnd(loop.time)
    prompts: list[str] = []

    async def read_line(prompt: str) -> str:
        prompts.append(prompt)
        if line is None:
            raise EOFError
        return line

    display = TurnDisplay(
        page.publish,
        loop=loop,
        front_end="console",
        model="claude",
        stop_tool=lambda _: None,
        read_line=read_line,
    )
    display.start()
    return display, page, loop, prompts


def test_a_console_reads_like_a_log() -> None:
    display, page, loop, _ = console()
    events = [
        StepStarted(1),
        *words("I look.\x1b[2J"),
        ToolStarted("c1", "bash", "make \u202e"),
        finished(),
        Notice("By the way."),
        Retrying("overloaded", 2, 4, 8.0),
        ReplyDropped(),
        TextAdded("Done."),
    ]
    for event in events:
        display.on_event(event)
        loop.advance(0.01)
    display.finish(FOOTER)
    assert page.stdout == (
        "I look.⟨U+001B⟩[2J\n"
        "● bash make ⟨U+202E⟩\n"
        "  └ bash · exit 0 · 0.10 s\n"
        "By the way.\n"
        "overloaded · next try in 8 s (2 of 4)\n"
        "[the reply broke off; it is made anew]\n"
        "Done.\n"
        "\nclaude · 1.0 s\n"
    )
    assert {kind for _, kind, _ in page.messages} == {"stream"}
    assert loop.pending == 0


@pytest.mark.parametrize("front_end", ["rich", "console"])
def test_a_name_that_a_model_made_up_cannot_steer_a_terminal(front_end: str) -> None:
    stage = Stage(front_end)
    name = "\x1b[2J\nroot# \u202e" + "x" * 1000
    stage.play(ToolCallWritten("c1", name), ToolStarted("c1", name, name), finished(), after_s=0.2)
    stage.finish() if front_end == "rich" else stage.display.finish()
    plain = stage.page.stdout or "\n".join(b["text/plain"] for b in stage.page.bundles)
    assert all(line.isprintable() and len(line) < 300 for line in plain.split("\n"))
    assert "\nroot#" not in plain


def test_a_console_is_not_flooded() -> None:
    display, page, loop, _ = console()
    for event in words("word " * 2000):
        display.on_event(event)
        loop.advance(0.001)
    display.finish()
    assert len(page.messages) < 60
    assert page.stdout == "word " * 2000 + "\n"


def test_a_console_shows_the_start_of_a_diff_and_the_end_of_the_turn() -> None:
    display, page, _, _ = console()
    diff = "".join(f"+{number}\n" for number in range(100))
    result = ToolResult("c1", "Edited.", metadata={"summary": "+100 −0", "diff": diff})
    display.on_event(ToolStarted("c1", "edit", "f.py"))
    display.on_event(PermissionSettled(REQUEST, is_allowed=True, rule="allowed once"))
    display.on_event(ToolFinished(result, 0.1))
    display.fail(Overloaded("It broke", hint="Wait"))
    display.interrupted()
    display.finish()
    assert "  └ edit · +100 −0 · allowed once · 0.10 s\n    +0\n    +1\n" in page.stdout
    assert "[… 60 more lines …]\nIt broke. Wait.\ninterrupted\n" in page.stdout


@pytest.mark.anyio
async def test_a_console_says_what_is_unusual_about_a_call() -> None:
    display, page, _, _ = console("y")
    request = PermissionRequest(
        "c1",
        "write",
        "write",
        "write /etc/hosts",
        paths=(Path("/etc/hosts"),),
        is_outside=True,
        cwd=Path("/srv"),
        diff="-a\n+b",
        notes=("needs root",),
    )
    with anyio.fail_after(5):
        assert await display.ask(request) == Answer("once")
    assert page.stdout == (
        "write wants to write /etc/hosts\n  -a\n  +b\n"
        "  outside the project\n  needs root\n  in /srv\n"
    )


class Keyboard:
    """Lines that are typed when the test says so."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.typed = anyio.Event()

    async def read_line(self, prompt: str) -> str:
        self.prompts.append(prompt)
        await self.typed.wait()
        return "y"


@pytest.mark.anyio
async def test_a_console_asks_one_question_at_a_time_and_none_that_is_settled() -> None:
    loop, keyboard, answers = VirtualLoop(), Keyboard(), dict[str, Answer]()
    page = FrontEnd(loop.time)
    display = TurnDisplay(
        page.publish,
        loop=loop,
        front_end="console",
        model="claude",
        stop_tool=lambda _: None,
        read_line=keyboard.read_line,
    )

    async def ask(request: PermissionRequest) -> None:
        answers[request.call_id] = await display.ask(request)

    async with anyio.create_task_group() as group, anyio.create_task_group() as settled:
        group.start_soon(ask, REQUEST)
        await until(lambda: len(keyboard.prompts) == 1)
        settled.start_soon(ask, second())
        group.start_soon(ask, replace(REQUEST, call_id="c3", command="make three"))
        await anyio.wait_all_tasks_blocked()
        assert len(keyboard.prompts) == 1
        settled.cancel_scope.cancel()
        keyboard.typed.set()
    assert answers == {"c1": Answer("once"), "c3": Answer("once")}
    assert "make two" not in page.stdout
    assert len(keyboard.prompts) == 2


@pytest.mark.anyio
async def test_a_console_says_what_has_settled_a_question_that_stands_there() -> None:
    loop, keyboard = VirtualLoop(), Keyboard()
    page = FrontEnd(loop.time)
    display = TurnDisplay(
        page.publish,
        loop=loop,
        front_end="console",
        model="claude",
        stop_tool=lambda _: None,
        read_line=keyboard.read_line,
    )
    async with anyio.create_task_group() as group:
        group.start_soon(display.ask, REQUEST)
        await until(lambda: len(keyboard.prompts) == 1)
        group.cancel_scope.cancel()
    display.on_event(PermissionSettled(REQUEST, is_allowed=True, rule="yolo mode", by="mode"))
    display.finish()
    assert "[no answer needed any more: yolo mode · bash make; the prompt above" in page.stdout


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("line", "answer"),
    [
        pytest.param("y", Answer("once"), id="yes"),
        pytest.param(" YES ", Answer("once"), id="spelled out"),
        pytest.param("s", Answer("session"), id="session"),
        pytest.param("n", Answer("deny"), id="no"),
        pytest.param("n use a branch", Answer("deny", "use a branch"), id="no with a reason"),
        pytest.param("use a branch", Answer("deny", "use a branch"), id="a reason"),
        pytest.param("yes but not now", Answer("deny", "yes but not now"), id="half a yes"),
        pytest.param("", Answer("deny"), id="nothing"),
        pytest.param(None, Answer("deny", "nobody answered"), id="end of input"),
    ],
)
async def test_a_console_asks_on_the_keyboard(line: str | None, answer: Answer) -> None:
    display, page, _, prompts = console(line)
    with anyio.fail_after(5):
        assert await display.ask(REQUEST) == answer
    assert page.stdout == f"bash wants to run\n  {UNREAD}\n  make\n"
    assert len(prompts) == 1
