"""What stands in a turn besides replies and calls: todos, summaries, and what is said meanwhile."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from crush_kernel.agent.events import (
    Event,
    Retrying,
    Steered,
    StepFinished,
    StepStarted,
    SummaryFinished,
    SummaryStarted,
    TextAdded,
    TodosChanged,
    ToolFinished,
    ToolStarted,
)
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.todos import Todo, write_todos
from crush_kernel.kernel.redactedevent import redacted_event
from crush_kernel.kernel.widgets import SteeringBox
from crush_kernel.messages import ToolResult, Usage
from tests.kernel.front_end import WIDGET_VIEW
from tests.kernel.stage import Stage, finished
from tests.kernel.widget_models import open_models, send, texts, with_class

READ = Todo("Read the code", "completed", "Reading the code")
TEST = Todo("Run the tests", "in_progress", "Running the tests")
DOCS = Todo("Write the docs", "pending", "Writing the docs")
DONE = tuple(Todo(each.content, "completed", each.active_form) for each in (READ, TEST, DOCS))

LIST = "☑ Read the code<br>\n◐ <b>Running the tests</b><br>\n☐ Write the docs"

KEY = "ghp_" + "Ab1" * 12


@pytest.fixture(autouse=True)
def no_model_stays_open() -> Iterator[None]:
    before = open_models()
    yield
    assert open_models() == before


def sets(*todos: Todo, call_id: str = "t1") -> list[Event]:
    """Return what happens when the model sets its list."""
    done = sum(todo.status == "completed" for todo in todos)
    metadata: Any = {"summary": f"{done} of {len(todos)} done", "todos": write_todos(todos)}
    return [
        ToolStarted(call_id, "todos", "Running the tests"),
        ToolFinished(ToolResult(call_id, "The list is set.", metadata=metadata), 0.0),
        TodosChanged(todos),
    ]


# Todos


def test_an_open_list_stands_below_everything_while_the_turn_runs() -> None:
    stage = Stage()
    stage.play(StepStarted(1), *sets(READ, TEST, DOCS), TextAdded("Now."), after_s=0.2)
    shown = stage.page.markdown
    assert shown.endswith(f"Now.\n\n{LIST}")
    assert shown.count("Read the code") == 1
    stage.finish()


def test_it_stands_on_the_card_of_running_calls_too() -> None:
    stage = Stage()
    stage.play(*sets(READ, TEST, Todo("<b>x</b>\u202e", "pending")))
    stage.play(ToolStarted("c1", "bash", "sleep 9"), after_s=0.3)
    assert WIDGET_VIEW in stage.page.last["data"]
    card = texts(with_class("crush-live")[0])
    assert "☑ Read the code" in card
    assert "◐ <b>Running the tests</b>" in card
    assert "☐ &lt;b&gt;x&lt;/b&gt;⟨U+202E⟩" in card
    stage.play(finished())
    stage.finish()


@pytest.mark.parametrize("front_end", ["rich", "headless"])
def test_in_the_end_the_list_stands_once_where_it_was_set_last(front_end: str) -> None:
    stage = Stage(front_end)
    stage.play(TextAdded("First."), *sets(READ, TEST), after_s=0.2)
    stage.call("c1", lasts_s=0.5)
    stage.play(TextAdded("Then."), *sets(READ, TEST, DOCS, call_id="t2"), after_s=0.2)
    stage.call("c2")
    stage.play(TextAdded("Last."))
    shown = stage.finish()
    assert shown.count("Reading") == 0
    assert shown.count("☑ Read the code") == 1
    assert "<sub><b>todos</b> Running the tests · 1 of 2 done</sub>" in shown
    assert (
        "<details open><summary><b>todos</b> Running the tests · 1 of 3 done</summary>\n\n"
        f"{LIST}\n\n</details>"
    ) in shown
    places = [shown.index(text) for text in ("First.", "Then.", LIST, "make c2", "Last.")]
    assert places == sorted(places)


def test_a_list_that_is_done_settles_at_once_and_goes_from_below() -> None:
    stage = Stage()
    stage.play(*sets(READ, TEST, DOCS), after_s=0.2)
    stage.play(*sets(*DONE, call_id="t2"), StepStarted(2), TextAdded("All done."), after_s=0.2)
    shown = stage.page.markdown
    assert shown.count("☑ Run the tests") == 1
    assert shown.index("☑ Run the tests") < shown.index("All done.")
    assert stage.finish().count("☑ Run the tests") == 1


def test_a_list_that_is_set_anew_moves() -> None:
    stage = Stage()
    stage.play(*sets(*DONE), after_s=0.2)
    stage.call("c1", lasts_s=0.5)
    stage.play(*sets(*DONE, call_id="t2"), after_s=0.2)
    assert stage.page.markdown.count("☑ Run the tests") == 1
    shown = stage.finish()
    assert shown.count("☑ Run the tests") == 1
    assert shown.index("make c1") < shown.index("☑ Run the tests")


def test_the_same_turn_makes_the_same_outputs_however_fast_it_is() -> None:
    def outputs(pause_s: float) -> list[Any]:
        stage = Stage()
        for number in range(6):
            todos = DONE if number == 3 else (READ, TEST, DOCS)
            stage.play(StepStarted(number), TextAdded("word " * 300), after_s=pause_s)
            stage.play(*sets(*todos, call_id=f"t{number}"), after_s=pause_s)
            stage.call(f"c{number}", content="line\n" * 300)
        stage.finish()
        return stage.page.bundles

    assert outputs(0.0) == outputs(0.7)


def test_a_long_list_is_shown_in_short_and_folded_in_the_end() -> None:
    stage = Stage()
    done = [Todo(f"Old {number}", "completed") for number in range(5)]
    left = [Todo(f"New {number}", "pending") for number in range(20)]
    stage.play(*sets(*done, *left), after_s=0.2)
    live = stage.page.markdown
    assert "☑ 5 done<br>" in live
    assert "New 7" in live
    assert "… 12 more" in live
    assert "New 8" not in live
    shown = stage.finish()
    assert "<details><summary><b>todos</b>" in shown
    assert "☑ Old 4<br>" in shown
    assert "☐ New 19" in shown


def test_an_emptied_list_is_no_list() -> None:
    stage = Stage()
    stage.play(*sets(TEST), *sets(call_id="t2"), after_s=0.2)
    assert "◐" not in stage.page.markdown
    assert "◐" not in stage.finish()


def test_what_a_list_says_is_made_safe() -> None:
    stage = Stage()
    hostile = Todo("<img src=x onerror=alert(1)> [a](javascript:b) `x\n\n# y\u202e", "pending")
    stage.play(*sets(hostile), after_s=0.2)
    for shown in (stage.page.markdown, stage.finish()):
        assert "<img" not in shown
        assert "](" not in shown
        assert "\u202e" not in shown
        assert "\n# y" not in shown


def test_a_console_writes_the_list_out_once_and_then_what_changes() -> None:
    stage = Stage("console")
    stage.play(*sets(Todo("Read the code", "in_progress", "Reading the code"), DOCS))
    stage.play(*sets(READ, Todo("Write the docs", "in_progress"), call_id="t2"))
    stage.play(*sets(READ, DOCS, TEST, call_id="t3"))
    stage.loop.advance(1.0)
    lines = [line.strip() for line in stage.page.stdout.splitlines() if line[2:3] in "☐◐☑"]
    assert lines == [
        "◐ Reading the code",
        "☐ Write the docs",
        "☑ Read the code",
        "◐ Write the docs",
        "☑ Read the code",
        "☐ Write the docs",
        "◐ Running the tests",
    ]


# Summaries

SUMMARY = SummaryFinished("# State\n<script>alert(1)</script></details>\n- go on", 182_000, 9_200)


def test_a_summary_in_the_making_tells_how_long_it_takes() -> None:
    stage = Stage()
    stage.play(SummaryStarted(), after_s=0.2)
    assert stage.page.markdown == "<sub>Summarizing the conversation… 0 s</sub>"
    stage.loop.advance(3.0)
    assert stage.page.markdown == "<sub>Summarizing the conversation… 3 s</sub>"
    stage.play(Retrying("overloaded", 2, 4, 8.0), after_s=0.2)
    assert "next try in 8 s" in stage.page.markdown
    stage.finish()


@pytest.mark.parametrize("front_end", ["rich", "headless"])
def test_a_summary_stands_folded_where_it_was_made(front_end: str) -> None:
    stage = Stage(front_end)
    stage.play(StepStarted(1), TextAdded("Before."), StepFinished(Usage(), 1), after_s=0.2)
    stage.play(SummaryStarted(), SUMMARY, StepStarted(2), TextAdded("After."), after_s=0.2)
    shown = stage.finish()
    title = "The conversation so far was summarized: 182 k → 9.2 k tokens"
    assert f"<details><summary>{title}</summary>\n\n# State\n" in shown
    assert shown.index("Before.") < shown.index(title) < shown.index("After.")
    assert "Summarizing" not in shown
    assert "<script" not in shown
    assert shown.count("</details>") == 1


def test_a_summary_that_fails_leaves_nothing() -> None:
    stage = Stage()
    stage.play(SummaryStarted(), after_s=0.2)
    assert "Summarizing" not in stage.finish()


def test_a_console_tells_of_a_summary_in_a_line() -> None:
    stage = Stage("console")
    stage.play(SummaryStarted(), SUMMARY, after_s=0.2)
    assert stage.page.stdout == (
        "[summarizing the conversation…]\n"
        "[The conversation so far was summarized: 182 k → 9.2 k tokens]\n"
    )


# What is said meanwhile


def test_what_is_said_is_queued_until_the_turn_takes_it() -> None:
    stage = Stage()
    stage.play(StepStarted(1), TextAdded("Working."), after_s=0.2)
    stage.display.say("Use a <b>branch</b>.\nPlease.", is_heard=True)
    stage.loop.advance(0.2)
    waiting = "<sub>queued for the next step: Use a &lt;b&gt;branch&lt;/b&gt;.<br>Please.</sub>"
    assert stage.page.markdown == f"Working.\n\n{waiting}"
    stage.play(Steered("Use a <b>branch</b>.\nPlease."), StepStarted(2), after_s=0.2)
    quoted = "> <b>You:</b> Use a &lt;b&gt;branch&lt;/b&gt;.<br>Please."
    assert stage.page.markdown.startswith(f"Working.\n\n{quoted}")
    stage.play(TextAdded("Yes."))
    shown = stage.finish()
    assert shown.startswith(f"Working.\n\n{quoted}\n\nYes.")
    assert "queued" not in shown


def test_it_is_queued_on_the_card_of_running_calls_too() -> None:
    stage = Stage()
    stage.play(ToolStarted("c1", "bash", "sleep 9"), after_s=0.3)
    stage.display.say("<b>Stop</b>", is_heard=True)
    stage.loop.advance(0.2)
    card = texts(with_class("crush-live")[0])
    assert "queued for the next step: &lt;b&gt;Stop&lt;/b&gt;" in card
    stage.play(finished())
    stage.finish()


def test_what_was_never_taken_is_told() -> None:
    stage = Stage()
    stage.play(StepStarted(1), TextAdded("Done."), after_s=0.2)
    stage.display.say("One more thing", is_heard=True)
    stage.display.say("Too late", is_heard=False)
    shown = stage.finish()
    assert "not sent, the turn was over (the next one reads it): One more thing" in shown
    assert "<sub>not sent: Too late</sub>" in shown
    assert "queued" not in shown


def test_what_was_not_taken_is_told_before_the_interruption() -> None:
    stage = Stage()
    stage.display.say("Wait", is_heard=True)
    stage.display.interrupted()
    shown = stage.finish()
    assert shown.index("Wait") < shown.index("interrupted")


def test_a_box_stands_beside_running_calls_where_no_page_has_one() -> None:
    stage = Stage(offers_steering=True)
    stage.play(ToolStarted("c1", "bash", "sleep 9"), after_s=0.3)
    (box,) = with_class("crush-steer")
    box.value = "  half a "
    stage.play(finished(), TextAdded("Between."), after_s=0.2)
    stage.play(ToolStarted("c2", "bash", "sleep 9"), after_s=0.3)
    assert with_class("crush-steer") == [box]
    assert box.value == "  half a ", "it is kept from card to card"
    send(box, {"event": "submit"})
    send(box, {"event": "submit"})
    assert stage.said == ["half a"]
    assert box.value == ""
    stage.play(finished("c2"))
    stage.finish()


def test_the_button_sends_the_letters_that_come_behind_the_click() -> None:
    async def main() -> str:
        said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        box = SteeringBox(said.set_result)
        (line,), (button,) = with_class("crush-steer"), with_class("crush-steer-send")
        line.value = "use a branc"
        button.click()
        line.value = "use a branch"
        try:
            return await asyncio.wait_for(said, 5)
        finally:
            box.close()

    assert asyncio.run(main()) == "use a branch"


@pytest.mark.parametrize("front_end", ["rich", "console", "headless"])
def test_there_is_no_box_where_it_is_not_wanted(front_end: str) -> None:
    stage = Stage(front_end, offers_steering=front_end != "rich")
    stage.play(ToolStarted("c1", "bash", "sleep 9"), after_s=9.0)
    assert with_class("crush-steer") == []
    stage.play(finished())
    stage.display.finish()


def test_a_short_call_brings_no_box() -> None:
    stage = Stage(offers_steering=True)
    stage.call(lasts_s=0.1)
    assert with_class("crush-steer") == []
    stage.finish()


# Secrets


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(SummaryFinished(f"use {KEY}", 1, 1), id="summary"),
        pytest.param(Steered(f"use {KEY}"), id="what is said"),
        pytest.param(TodosChanged((Todo(f"use {KEY}", "pending", f"using {KEY}"),)), id="todos"),
        pytest.param(sets(Todo(f"use {KEY}", "pending"))[1], id="the call that sets them"),
    ],
)
def test_no_secret_is_shown(event: Event) -> None:
    clean = redacted_event(event, Redactor({}))
    assert KEY in repr(event)
    assert KEY not in repr(clean)
    assert "secret: " in repr(clean)
