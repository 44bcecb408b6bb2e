"""What the user says to a turn that is running, and the title that the notebook gets meanwhile."""

import json
import time

import pytest
from pydantic import JsonValue

from tests.fakes.provider.replies import Hold, HttpReply, Reply, Say, call, say
from tests.fakes.tab import Tab
from tests.kernel.desk import Desk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

KEY = "ghp_" + "Ab1" * 12

REFUSED = HttpReply(500, {"error": {"message": "no"}})


def steering(tab: Tab) -> list[tuple[str, bool]]:
    """Return what the page was told about a box to say something in."""
    return [(told["cell_id"], told["is_open"]) for told in tab.said("steering")]


def steer(tab: Tab, cell_id: str, text: str) -> None:
    tab.say({"method": "say", "cell_id": cell_id, "text": text})


def title_of(tab: Tab) -> str:
    assert tab.page.crush is not None
    return tab.page.crush.get("title", "")


# Steering


def test_what_is_said_to_a_long_turn_is_read_with_the_next_request(desk: Desk) -> None:
    hold = Hold()
    desk.provider.play(Reply((Say(("I look. ", hold, "Done.")),)), say("On a branch, then."))
    tab = desk.open(desk.start())
    request = tab.start("a", "Change it.")
    tab.wait(lambda: steering(tab) == [("a", True)])
    steer(tab, "a", f" Use a <b>branch</b>, not {KEY}. ")
    tab.wait(lambda: "queued for the next step: Use a &lt;b&gt;branch" in tab.page["a"].shown)
    hold.release()
    tab.finish(request)

    shown = tab.page["a"].shown
    assert "> <b>You:</b> Use a &lt;b&gt;branch" in shown
    assert shown.index("Done.") < shown.index("You:") < shown.index("On a branch, then.")
    assert "queued" not in shown
    assert "Use a <b>branch</b>" in desk.sent
    assert KEY not in desk.sent + json.dumps(tab.page["a"].crush) + shown
    assert "Use a <b>branch</b>" in json.dumps(tab.page["a"].crush), "it is part of the turn"
    assert steering(tab) == [("a", True), ("a", False)]

    steer(tab, "a", "Thank you.")
    tab.settle()
    desk.provider.play(say("Welcome."))
    tab.run("b", "And now?")
    assert "came when it was over, and was not sent: Thank you." in tab.page["b"].shown
    assert "Thank you." not in desk.sent


def test_a_page_that_comes_late_can_steer_too(desk: Desk) -> None:
    hold = Hold()
    desk.provider.play(Reply((Say(("Working. ", hold, "Done.")),)), say("As you like."))
    kernel = desk.start()
    first = desk.open(kernel)
    request = first.start("a", "Work.")
    first.wait(lambda: bool(steering(first)))
    second = desk.open(kernel)
    second.wait(lambda: steering(second) == [("a", True)])
    steer(second, "a", "Hurry.")
    first.wait(lambda: "queued for the next step: Hurry." in first.page["a"].shown)
    hold.release()
    first.finish(request)
    assert "Hurry." in desk.sent


def test_a_short_turn_stays_quiet_and_so_does_a_run_of_a_program(desk: Desk) -> None:
    hold = Hold()
    desk.provider.play(say("Quick."), Reply((Say(("Slow. ", hold, "Done.")),)))
    kernel = desk.start()
    tab = desk.open(kernel)
    tab.run("a", "Be quick.")
    assert steering(tab) == []
    tab.close_comm()
    runner = desk.open(kernel, desk.page(is_headless=True))
    request = runner.start("b", "Be slow.")
    desk.provider.wait_requests(2)
    deadline = time.monotonic() + 2.5
    while time.monotonic() < deadline:
        runner.take_in(0.2)
    hold.release()
    runner.finish(request)
    assert steering(runner) == []


def test_what_nobody_takes_is_told_when_the_turn_is_stopped(desk: Desk) -> None:
    hold = Hold()
    desk.provider.play(Reply((Say(("Working. ", hold)),)))
    tab = desk.open(desk.start())
    request = tab.start("a", "Work.")
    tab.wait(lambda: bool(steering(tab)))
    steer(tab, "a", "Wait for me.")
    tab.wait(lambda: "queued for the next step" in tab.page["a"].shown)
    tab.interrupt()
    tab.finish(request)
    assert "not sent, the turn was over (the next one reads it): Wait" in tab.page["a"].shown
    desk.provider.play(say("Here I am."))
    tab.run("b", "Go on.")
    assert "Wait for me." in desk.sent


# Todos, all the way


def test_the_list_of_a_turn_is_in_its_outputs_and_in_the_header(desk: Desk) -> None:
    todo: dict[str, JsonValue] = {"content": "Look", "status": "in_progress"}
    todo["active_form"] = "Looking"
    desk.provider.play(call("todos", {"todos": [todo]}), say("More later."))
    tab = desk.open(desk.start())
    tab.run("a", "Plan it.")
    assert "◐ <b>Looking</b>" in tab.page["a"].shown
    assert tab.page.crush
    assert tab.page.crush["todos"] == [todo]


# Titles


def test_the_first_turn_gives_the_notebook_a_title(desk: Desk) -> None:
    desk.provider.title = say('"Fix the <b>price</b>"')
    desk.provider.play(say("One."), say("Two."))
    tab = desk.open(desk.start())
    tab.run("a", f"Fix the price with {KEY}.")
    tab.wait(lambda: title_of(tab) == "Fix the <b>price</b>")
    tab.run("b", "Go on.")
    assert len(desk.provider.titles) == 1
    assert KEY not in desk.provider.titles[0].raw.decode()
    assert [each.refusal for each in desk.provider.titles] == [""]
    tab.run("c", "/status")
    assert "| title | Fix the &lt;b&gt;price&lt;/b&gt; |" in tab.page["c"].shown
    assert tab.page.crush
    used = tab.page.crush["totals"]["usage_by_model"]
    record = tab.page["b"].crush
    assert record
    assert sum(each["input_tokens"] for each in used.values()) > record["usage"]["input_tokens"]


def test_a_title_that_cannot_be_had_is_the_first_line(desk: Desk) -> None:
    desk.provider.title = REFUSED
    desk.provider.play(say("One."))
    tab = desk.open(desk.start())
    tab.run("a", "\nFix the price.\nIt is wrong.")
    tab.wait(lambda: title_of(tab) == "Fix the price.")
    assert len(desk.provider.titles) == 1


@pytest.mark.parametrize("code", ["/notes", "/notes on the price"])
def test_a_cell_that_calls_a_skill_is_named_by_its_text(desk: Desk, code: str) -> None:
    skill = desk.cwd / ".crush/skills/notes"
    skill.mkdir(parents=True)
    header = "---\nname: notes\ndescription: Writes.\nuser-invocable: true\n---\nSecret body.\n"
    (skill / "SKILL.md").write_text(header, encoding="utf-8")
    desk.provider.title = REFUSED
    desk.provider.play(say("One."))
    tab = desk.open(desk.start())
    tab.run("a", code)
    tab.wait(lambda: title_of(tab) == code)
    assert "Secret body." not in desk.provider.titles[0].raw.decode()


def test_the_turn_does_not_wait_for_its_title(desk: Desk) -> None:
    hold = Hold()
    desk.provider.title = Reply((Say((hold, "Late")),))
    desk.provider.play(say("One."), say("Two."))
    tab = desk.open(desk.start())
    tab.run("a", "Fix it.")
    tab.run("b", "Go on.")
    assert title_of(tab) == ""
    assert len(desk.provider.titles) == 1, "it is asked for once"
    hold.release()
    tab.wait(lambda: title_of(tab) == "Late")


def test_a_run_of_a_program_asks_for_no_title(desk: Desk) -> None:
    desk.provider.play(say("One."))
    runner = desk.open(desk.start(), desk.page(is_headless=True))
    runner.run("a", "Fix the price.")
    assert title_of(runner) == "Fix the price."
    assert desk.provider.titles == []
