"""The notebook that runs the kernel, looked at and changed through the pages that show it."""

import json
from typing import Any

import pytest

from tests.fakes.kernel import RunningKernel
from tests.fakes.page import PageCell
from tests.fakes.provider.replies import Call, Hold, Reply, Say, call, say
from tests.fakes.tab import Tab
from tests.kernel.desk import Desk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

FREELY = {"CRUSH_PERMISSION_MODE": "accept-edits"}

VIEW = call("view", {"file_path": "nb.ipynb"})


def edit(action: str, **arguments: str) -> Any:  # noqa: ANN401 - an answer of the provider
    return call("notebook_edit", {"file_path": "nb.ipynb", "action": action, **arguments})


def results(desk: Desk, request: int = -1) -> list[str]:
    """Return what the tools have told the model by a request, the last one."""
    body = json.loads(desk.provider.requests[request].raw)
    return [m["content"] for m in body["messages"] if m["role"] == "tool"]


def prompts(desk: Desk) -> list[str]:
    """Return what the user has said, as the model was told last."""
    said = [m["content"] for m in json.loads(desk.sent)["messages"] if m["role"] == "user"]
    return [text if isinstance(text, str) else text[0]["text"] for text in said]


def notebook(desk: Desk, tab: Tab) -> None:
    """Put the notebook on the disk, as it is when it is opened, and something in its cells."""
    desk.path.write_text(tab.page.ipynb, encoding="utf-8")
    for cell in tab.page.cells:
        cell.source = f"Prompt of {cell.id}."


def opened(desk: Desk, kernel: RunningKernel) -> Tab:
    tab = desk.open(kernel)
    notebook(desk, tab)
    return tab


def test_a_turn_changes_the_notebook_in_which_it_runs(desk: Desk) -> None:
    tab = opened(desk, desk.start(**FREELY))
    desk.provider.play(
        say("One."),
        VIEW,
        edit("insert", source="Ask more.", after="b"),
        edit("replace", cell_id="a", source="Ask one, differently."),
        edit("move", cell_id="c", after=""),
        say("Done."),
        say("Later."),
    )
    tab.run("a", "Ask one.")
    tab.run("b", "Tidy up.")

    viewed, inserted, replaced, moved = results(desk)
    assert "cell 1 · id a · code · run 1" in viewed
    assert "     1|Tidy up." in viewed
    assert "One." in viewed.split("cell 2")[0], "what it shows is known"
    assert "It is a prompt to you; it was not run" in inserted
    assert "until the user runs it" in replaced
    assert "moved cell c, which is cell 1 now" in moved
    order = tab.page.ids
    assert order[:3] == ["c", "a", "b"]
    new = tab.page[order[3]]
    assert (new.source, new.type, new.crush) == ("Ask more.", "code", None)
    assert tab.page["a"].source == "Ask one, differently."
    assert tab.page["a"].turn == "a.1"
    assert "[a1" not in tab.page["b"].shown

    tab.run("c", "What do you know?")
    assert "Ask one." not in desk.sent, "it stands above all by now"
    tab.wait(lambda: tab.page.stale == ["a", "b"])


def test_a_cell_that_was_deleted_is_not_part_of_the_conversation(desk: Desk) -> None:
    tab = opened(desk, desk.start(**FREELY))
    desk.provider.play(say("One."), VIEW, edit("delete", cell_id="a"), say("Done."), say("Later."))
    tab.run("a", "Ask one.")
    tab.run("b", "Tidy up.")
    assert tab.page.ids == ["b", "c"]
    assert "What was said in it is not part of the conversation any more" in results(desk)[-1]

    tab.run("c", "Go on.")
    assert [prompt in prompts(desk) for prompt in ("Ask one.", "Tidy up.")] == [False, True]
    assert tab.page.crush is not None
    assert tab.page.crush["totals"]["turns"] == 2


def test_the_user_allows_it_with_the_diff_of_the_cell(desk: Desk) -> None:
    tab = opened(desk, desk.start())
    desk.provider.play(VIEW, edit("replace", cell_id="c", source="Better."), say("Done."))
    request = tab.start("a", "Tidy up.")
    tab.wait(lambda: "Better." in tab.page["a"].shown)
    shown = tab.page["a"].shown
    assert "-Prompt of c." in shown
    assert "replace a cell of nb.ipynb" in shown
    assert tab.page["c"].source == "Prompt of c."
    tab.press("Allow once")
    tab.finish(request)
    assert tab.page["c"].source == "Better."


@pytest.mark.parametrize("action", ["replace", "delete", "move"])
def test_cells_that_run_or_wait_are_left_alone(desk: Desk, action: str) -> None:
    tab = opened(desk, desk.start(**FREELY))
    hold = Hold()
    desk.provider.play(
        VIEW,
        Reply((Say(("Now. ", hold)), *_calls(action, "a", "b"))),
        say("Done."),
        say("Two."),
    )
    request = tab.start("a", "Tidy up.")
    tab.wait(lambda: len(desk.provider.requests) == 2)
    queued = tab.start("b", "Ask two.")
    tab.page["b"].is_running = False
    tab.settle()
    hold.release()
    tab.finish(request)
    tab.finish(queued)

    refused = results(desk, 2)[1:]
    assert ["cell a runs now or waits" in refused[0], "cell b runs now" in refused[1]] == [True] * 2
    assert tab.page.ids == ["a", "b", "c"]
    assert tab.page["b"].turn == "b.1"


def _calls(action: str, *cells: str) -> list[Call]:
    given = {"file_path": "nb.ipynb", "action": action, "source": "x", "after": ""}
    if action == "delete":
        given = {"file_path": "nb.ipynb", "action": action}
    return [Call("notebook_edit", {**given, "cell_id": cell}) for cell in cells]


def test_the_page_says_why_it_changes_nothing(desk: Desk) -> None:
    tab = opened(desk, desk.start(**FREELY))
    tab.page.refusal = "read-only"
    desk.provider.play(VIEW, edit("delete", cell_id="c"), say("Done."))
    tab.run("a", "Tidy up.")
    assert "shows the notebook read-only" in results(desk)[-1]
    assert tab.page.ids == ["a", "b", "c"]


def test_an_older_page_is_not_asked(desk: Desk) -> None:
    kernel = desk.start(**FREELY)
    page = desk.page()
    page.edits = False
    tab = desk.open(kernel, page)
    notebook(desk, tab)
    desk.provider.play(VIEW, edit("delete", cell_id="c"), say("Done."))
    tab.run("a", "Tidy up.")
    viewed, refused = results(desk)
    assert "as it was saved last" in viewed
    assert "no page is there that could change it" in refused
    assert tab.said("look") == tab.said("edit") == []


def test_a_front_end_without_a_page_is_told_so(desk: Desk) -> None:
    kernel = desk.start(**FREELY, JPY_SESSION_NAME=str(desk.path))
    tab = desk.tab(kernel, desk.page())
    notebook(desk, tab)
    desk.provider.play(VIEW, edit("delete", cell_id="c"), say("Done."))
    tab.run("a", "Tidy up.")
    assert "no page is there that could change it" in results(desk)[-1]


def test_of_several_pages_the_one_that_runs_the_cell_does_it(desk: Desk) -> None:
    kernel = desk.start(**FREELY)
    other = opened(desk, kernel)
    tab = opened(desk, kernel)
    desk.provider.play(VIEW, edit("insert", source="More.", after="a"), say("Done."))
    tab.run("a", "Tidy up.")
    assert len(tab.page.cells) == 4
    other.settle()
    other.take_in(0.1)
    assert other.said("look") == []
    assert other.page.ids == ["a", "b", "c"]


def test_where_that_one_does_not_answer_another_one_does_it(desk: Desk) -> None:
    kernel = desk.start(**FREELY)
    other, tab = opened(desk, kernel), opened(desk, kernel)
    tab.acknowledges = False
    desk.provider.play(VIEW, edit("insert", source="More.", after="a"), say("Done."))
    request = tab.start("a", "Tidy up.")
    other.wait(lambda: len(other.page.cells) == 4)
    tab.finish(request)
    assert [len(each.said("edit")) for each in (other, tab)] == [1, 0]


def test_a_page_of_another_notebook_is_not_asked(desk: Desk) -> None:
    kernel = desk.start(**FREELY, JPY_SESSION_NAME=str(desk.path))
    tab = opened(desk, kernel)
    stranger = desk.page("x", "y")
    stranger.path = None
    strange = desk.open(kernel, stranger)
    desk.provider.play(VIEW, edit("insert", source="More.", after="a"), say("Done."))
    tab.run("a", "Tidy up.")
    assert len(tab.page.cells) == 4
    strange.settle()
    assert strange.said("look") == []


def test_a_page_that_is_closed_while_it_is_asked_is_not_waited_for(desk: Desk) -> None:
    tab = opened(desk, desk.start(**FREELY))
    desk.provider.play(VIEW, edit("delete", cell_id="c"), say("Done."))
    request = tab.start("a", "Tidy up.")
    tab.wait(lambda: bool(tab.said("look")))
    tab.acknowledges = False
    tab.wait(lambda: len(tab.said("look")) == 2)
    tab.close_comm()
    tab.finish(request)
    assert "does not answer" in results(desk)[-1]


def test_stop_ends_the_wait_for_a_page(desk: Desk) -> None:
    tab = opened(desk, desk.start(**FREELY))
    desk.provider.play(VIEW, edit("delete", cell_id="c"), say("Here."))
    request = tab.start("a", "Tidy up.")
    tab.wait(lambda: bool(tab.said("look")))
    tab.acknowledges = False
    tab.wait(lambda: len(tab.said("look")) == 2)
    tab.interrupt()
    assert tab.finish(request)["ename"] == "Interrupted"
    tab.acknowledges = True
    tab.run("b", "Are you there?")
    assert "Here." in tab.page["b"].shown


def test_what_a_page_tells_that_makes_no_sense_is_left_out(desk: Desk) -> None:
    tab = opened(desk, desk.start(**FREELY))
    tab.acknowledges = False
    desk.provider.play(VIEW, say("Done."))
    request = tab.start("a", "Tidy up.")
    tab.wait(lambda: bool(tab.said("look")))
    name = tab.said("look")[0]["id"]
    good = {"id": "c", "type": "code", "source": 7, "outputs": "x", "execution_count": True}
    tab.say({"method": "looked", "id": "another", "cells": [], "is_last": True})
    tab.say({"method": "looked", "id": name, "cells": "none"})
    tab.say({"method": "looked", "id": name, "cells": [7, {}, {"id": "b", "type": "sql"}, good]})
    tab.say({"method": "looked", "id": name, "cells": [], "is_last": True})
    tab.say({"method": "looked", "id": name, "cells": [], "is_last": True})
    tab.finish(request)
    (viewed,) = results(desk)
    assert viewed.startswith("--- cell 1 · id c · code ---\n\n[whole notebook: 1 cell;")


def test_a_cell_that_the_user_edits_meanwhile_is_left_alone(desk: Desk) -> None:
    tab = opened(desk, desk.start())
    desk.provider.play(VIEW, edit("replace", cell_id="c", source="Better."), say("Done."))
    request = tab.start("a", "Tidy up.")
    tab.button("Allow once")
    tab.page["c"].source = "Mine."
    tab.page.insert(3, PageCell("d", "Mine, too."))
    tab.press("Allow once")
    tab.finish(request)
    assert tab.page["c"].source == "Mine."
    assert "was changed in the page meanwhile" in results(desk)[-1]
