"""Pages that show a notebook, and the kernels that come and go behind it."""

import json
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from crush_kernel.history.notebook import RECORD_MIME_TYPE
from crush_kernel.history.outputs import WIDGET_VIEW
from tests.fakes.kernel import RunningKernel
from tests.fakes.page import PageCell
from tests.fakes.provider.replies import Hold, Reply, Say, call, say
from tests.fakes.provider.server import FakeProvider
from tests.fakes.tab import Tab, views
from tests.kernel.desk import Desk, kill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

WRITE = call("write", {"file_path": "new.txt", "content": "made\n"})

SLEEP = call(
    "bash", {"command": "touch out; printf 'be%s\\n' gun; sleep 641", "description": "wait"}
)


@pytest.fixture(scope="module")
def module_desk(
    tmp_path_factory: pytest.TempPathFactory, provider_server: FakeProvider
) -> Generator[tuple[Desk, RunningKernel]]:
    with ExitStack() as stack:
        desk = Desk(tmp_path_factory.mktemp("shared"), provider_server, stack)
        yield desk, desk.start()
    for log in desk.cwd.rglob("kernel.log"):
        assert "Traceback" not in log.read_text(encoding="utf-8")


@pytest.fixture
def shared(
    module_desk: tuple[Desk, RunningKernel],
    provider: FakeProvider,  # noqa: ARG001 - it begins anew
) -> Generator[tuple[Desk, RunningKernel]]:
    """A kernel for all tests that leave it alive, each with cells of its own."""
    desk, kernel = module_desk
    yield desk, kernel
    desk.close_tabs()
    (desk.cwd / "new.txt").unlink(missing_ok=True)


def shows(tab: Tab, cell_id: str, text: str) -> Callable[[], bool]:
    return lambda: text in tab.page[cell_id].shown


# The order of the document


def test_a_cell_sees_what_is_above_it(shared: tuple[Desk, RunningKernel]) -> None:
    desk, kernel = shared
    tab = desk.open(kernel, desk.fresh_page())
    a, b, c = tab.page.ids
    desk.provider.play(say("Reply one."), say("Reply two."), say("Reply three."))
    tab.run(a, "Ask one.")
    tab.run(c, "Ask three.")
    tab.run(b, "Ask two.")
    assert "Ask one." in desk.sent
    assert "Reply one." in desk.sent
    assert " three." not in desk.sent
    assert tab.page.stale == [c], "what is above it has changed since it ran"

    desk.provider.play(say("Reply again."))
    tab.page.cells.reverse()
    tab.run(a, "Ask again.")
    places = [desk.sent.index(text) for text in ("Ask three.", "Ask two.", "Ask again.")]
    assert places == sorted(places)
    assert "Ask one." not in desk.sent


def test_a_page_is_told_what_to_write_and_what_is_stale(shared: tuple[Desk, RunningKernel]) -> None:
    desk, kernel = shared
    tab = desk.open(kernel, desk.fresh_page())
    a, b, c = tab.page.ids
    desk.provider.play(say("One."), say("Two."), say("More."))
    tab.run(a, "Ask one.")
    tab.run(b, "Ask two.")
    tab.run(a, "Ask more.")

    assert tab.page.turns == {a: f"{a}.2", b: f"{b}.1", c: None}
    assert [(told["cell_id"], told["record"]["turn"]) for told in tab.said("turn")] == [
        (a, f"{a}.1"),
        (b, f"{b}.1"),
        (a, f"{a}.2"),
    ]
    assert tab.page.stale == [b]
    assert tab.page.crush
    assert tab.page.crush["totals"]["turns"] == 2
    assert tab.page[a].record is None, "it is kept in one place"
    record = tab.page[a].crush
    assert record
    assert (record["end"], record["model"]) == ("end_turn", "openai/gpt-5-mini")
    assert "Ask more." in json.dumps(record["messages"])

    cell = tab.page.delete(a)
    tab.tell()
    tab.wait(lambda: tab.page.crush is not None and tab.page.crush["totals"]["turns"] == 1)
    tab.page.insert(0, PageCell(cell.id, crush=cell.crush))
    tab.tell()
    tab.wait(lambda: tab.page.crush is not None and tab.page.crush["totals"]["turns"] == 2)
    tab.wait(lambda: tab.page.stale == [b])


def test_a_shell_command_and_a_fresh_start_are_turns_too(
    shared: tuple[Desk, RunningKernel],
) -> None:
    desk, kernel = shared
    tab = desk.open(kernel, desk.fresh_page())
    a, b, c = tab.page.ids
    desk.provider.play(say("One."), say("Two."))
    tab.run(a, "!echo hello")
    tab.run(b, "/new")
    tab.run(c, "Ask.")
    assert tab.page.turns == {a: f"{a}.1", b: f"{b}.1", c: f"{c}.1"}
    assert "hello" not in desk.sent
    tab.page.delete(b)
    tab.run(c, "Ask.")
    assert "hello" in desk.sent


def test_a_cell_that_is_stopped_as_it_begins_is_over(shared: tuple[Desk, RunningKernel]) -> None:
    desk, kernel = shared
    tab = desk.open(kernel, desk.fresh_page())
    a, b, _ = tab.page.ids
    desk.provider.play(lambda _: say("Done."))
    for _ in range(6):
        request = tab.start(a, "Ask one.")
        tab.interrupt()
        tab.finish(request)
    tab.run(a, "Ask again.")
    tab.run(b, "Ask two.")
    assert desk.sent.count("Ask again.") == 1
    assert "Ask one." not in desk.sent
    kept = tab.page[a].crush
    assert kept is not None
    assert kept["end"] == "end_turn"
    again = desk.open(kernel, tab.page.reloaded())
    assert again.page.turns == tab.page.turns


def test_a_restarted_kernel_goes_on_with_what_the_page_holds(desk: Desk) -> None:
    kernel = desk.start()
    tab = desk.open(kernel)
    desk.provider.play(say("Reply one."), say("Reply two."))
    tab.run("a", "Ask one.")
    first = tab.page.kernels
    kernel.manager.restart_kernel()
    again = desk.open(kernel, tab.page)
    assert again.said("turn") == again.said("outputs") == []
    again.run("b", "Ask two.")
    assert "Reply one." in desk.sent
    assert len({*first, *again.page.kernels}) == 2
    assert "History from this file" not in again.page["b"].shown


@pytest.mark.parametrize("knows_path", [False, True], ids=["without a file", "with its file"])
@pytest.mark.parametrize("is_late", [False, True], ids=["right after", "while the first one runs"])
def test_cells_that_are_run_before_the_page_has_told_anything_end_up_in_order(
    desk: Desk, *, is_late: bool, knows_path: bool
) -> None:
    kernel = desk.start(**({"JPY_SESSION_NAME": str(desk.path)} if knows_path else {}))
    tab = desk.open(kernel)
    desk.provider.play(*[say(f"Reply {cell}.") for cell in "abc"])
    for cell in "abc":
        tab.run(cell, f"Ask {cell}.")
    tab.save(desk.path)
    kernel.manager.restart_kernel()

    hold = Hold()
    desk.provider.play(Reply((Say(("Again", hold, " a.")),)), say("Again b."), say("Again c."))
    again = desk.tab(kernel, tab.page.reloaded())
    requests = [again.start(cell) for cell in "abc"]
    if is_late:
        again.wait(lambda: len(desk.provider.requests) == 4)
        assert "Reply" not in desk.sent
    again.open_comm()
    again.wait(lambda: bool(again.said("ready")))
    hold.release()
    for request in requests:
        assert again.finish(request)["status"] == "ok"

    assert "Again a." in desk.sent
    assert "Again b." in desk.sent
    assert "Reply" not in desk.sent
    again.wait(lambda: again.page["c"].turn == "c.2")
    assert again.page.turns == {"a": "a.2", "b": "b.2", "c": "c.2"}
    assert again.page.stale == []


# Pages that come and go


def streaming(desk: Desk, tab: Tab, cell_id: str = "a") -> tuple[str, Hold, Hold]:
    """Run a cell that has said one part of its reply, and waits for two holds to go on."""
    first, second = Hold(), Hold()
    desk.provider.play(Reply((Say(("Part one. ", first, "Part two. ", second, "Part three.")),)))
    request = tab.start(cell_id, "Ask one.")
    tab.wait(shows(tab, cell_id, "Part one."))
    return request, first, second


def test_a_page_that_is_reloaded_follows_the_running_cell(
    shared: tuple[Desk, RunningKernel],
) -> None:
    desk, kernel = shared
    tab = desk.open(kernel, desk.fresh_page())
    a, b, _ = tab.page.ids
    _, first, second = streaming(desk, tab, a)

    again = desk.open(kernel, tab.page.reloaded())
    (picture,) = again.pictures(a)
    assert picture["is_running"]
    assert picture["execution_count"] is None
    assert "Part one." in again.page[a].shown
    first.release()
    again.wait(shows(again, a, "Part two."))
    assert again.page[a].is_running
    assert "Part three." not in again.page[a].shown
    second.release()
    again.wait(lambda: not again.page[a].is_running)
    assert "Part three." in again.page[a].shown
    assert again.page[a].execution_count == tab.page[a].execution_count
    again.wait(lambda: again.page[a].turn == f"{a}.1")

    pictures = len(again.pictures(a))
    desk.provider.play(say("Reply two."))
    again.run(b, "Ask two.")
    assert "Part three." in desk.sent
    assert len(again.pictures(a)) == pictures
    assert again.pictures(b) == [], "it gets the outputs of its own requests"


def test_a_page_that_is_reloaded_follows_the_cells_that_wait(
    shared: tuple[Desk, RunningKernel],
) -> None:
    desk, kernel = shared
    tab = desk.open(kernel, desk.fresh_page())
    a, b, _ = tab.page.ids
    request, first, second = streaming(desk, tab, a)
    desk.provider.play(say("Reply two."))
    tab.start(b, "Ask two.")
    again = desk.open(kernel, tab.page.reloaded())
    for hold in (first, second):
        hold.release()
    again.wait(shows(again, b, "Reply two."))
    again.wait(lambda: not again.page[b].is_running and again.page[b].turn == f"{b}.1")
    assert tab.finish(request)["status"] == "ok"
    tab.wait(shows(tab, b, "Reply two."))
    assert again.page[b].execution_count == tab.page[b].execution_count
    assert tab.pictures(a) == tab.pictures(b) == []


def test_a_page_that_is_reloaded_shows_the_question_and_answers_it(
    shared: tuple[Desk, RunningKernel],
) -> None:
    desk, kernel = shared
    tab = desk.open(kernel, desk.fresh_page())
    a, *_ = tab.page.ids
    desk.provider.play(WRITE, say("It is made."))
    tab.start(a, "Make it.")
    button = tab.button("Allow once")

    again = desk.open(kernel, tab.page.reloaded())
    again.wait(lambda: bool(views(again.page[a])))
    assert not (desk.cwd / "new.txt").exists()
    again.click(button)
    again.wait(shows(again, a, "It is made."))
    again.wait(lambda: not again.page[a].is_running)
    assert (desk.cwd / "new.txt").read_text() == "made\n"
    assert views(again.page[a]) == []


def test_a_button_of_a_former_kernel_grants_nothing(desk: Desk) -> None:
    kernel = desk.start()
    tab = desk.open(kernel)
    desk.provider.play(WRITE)
    tab.start("a", "Make it.")
    button = tab.button("Allow once")
    kill(kernel)

    desk.provider.play(WRITE, say("As you like."))
    other = desk.open(desk.start(), tab.page)
    other.start("b", "Make it now.")
    other.button("Deny")
    other.click(button)
    other.settle()
    assert not (desk.cwd / "new.txt").exists()
    other.press("Deny")
    other.wait(shows(other, "b", "As you like."))
    assert not (desk.cwd / "new.txt").exists()


def test_two_pages_show_and_keep_the_same(shared: tuple[Desk, RunningKernel]) -> None:
    desk, kernel = shared
    one = desk.open(kernel, desk.fresh_page())
    a, b, _ = one.page.ids
    two = desk.open(kernel, one.page.reloaded())
    desk.provider.play(say("Reply one."), say("Reply two."))
    one.run(a, "Ask one.")
    two.wait(lambda: two.page[a].turn == f"{a}.1")
    two.wait(shows(two, a, "Reply one."))
    two.run(b, "Ask two.")
    assert "Reply one." in desk.sent
    one.wait(lambda: one.page.turns == two.page.turns and one.page.crush == two.page.crush)
    one.wait(shows(one, b, "Reply two."))
    assert one.page.turns == {**one.page.turns, a: f"{a}.1", b: f"{b}.1"}


def test_no_tool_writes_behind_the_back_of_a_page(desk: Desk) -> None:
    tab = desk.open(desk.start(CRUSH_PERMISSION_MODE="accept-edits"))
    tab.save(desk.path)
    before = desk.path.read_bytes()
    tab.say({"method": "path", "path": str(desk.path)})
    desk.provider.play(
        call("view", {"file_path": "nb.ipynb"}),
        call("write", {"file_path": "nb.ipynb", "content": "{}"}),
        say("Write this into the cell below."),
    )
    tab.run("a", "Change the notebook.")
    assert "is the notebook in which you run" in desk.sent
    assert desk.path.read_bytes() == before


def test_a_page_that_closes_its_comm_is_told_nothing_more(
    shared: tuple[Desk, RunningKernel],
) -> None:
    desk, kernel = shared
    tab = desk.open(kernel, desk.fresh_page())
    a, b, _ = tab.page.ids
    desk.provider.play(say("Reply one."), say("Reply two."))
    tab.run(a, "Ask one.")
    tab.wait(lambda: tab.page[a].turn is not None)
    tab.close_comm()
    tab.run(b, "Ask two.")
    assert "Reply one." in desk.sent
    assert [told["cell_id"] for told in tab.said("turn")] == [a]
    record = tab.page[b].record
    assert record, "where nobody writes metadata, the outputs hold the turn"
    assert record["turn"] == f"{b}.1"


def test_a_runner_gets_no_widgets(shared: tuple[Desk, RunningKernel]) -> None:
    desk, kernel = shared
    tab = desk.open(kernel, desk.fresh_page(is_headless=True))
    a, *_ = tab.page.ids
    desk.provider.play(WRITE, say("As you like."))
    tab.run(a, "Make it.")
    assert "As you like." in tab.page[a].shown
    assert tab.models == {}
    assert WIDGET_VIEW not in json.dumps(tab.page[a].outputs)
    assert not (desk.cwd / "new.txt").exists()


# Killed


def interrupted_stream(desk: Desk, tab: Tab) -> str:
    streaming(desk, tab)
    return "Part one."


def interrupted_tool(desk: Desk, tab: Tab) -> str:
    desk.provider.play(Reply((Say("I wait now."), *SLEEP.blocks)))
    tab.start("a", "Ask one.")
    tab.press("Allow once")
    tab.wait(lambda: "begun" in str(tab.models))
    tab.wait(shows(tab, "a", "I wait now."))
    return "I wait now."


def interrupted_question(desk: Desk, tab: Tab) -> str:
    desk.provider.play(Reply((Say("I make it."), *WRITE.blocks)))
    tab.start("a", "Ask one.")
    tab.button("Allow once")
    tab.wait(shows(tab, "a", "I make it."))
    return "I make it."


@pytest.mark.parametrize(
    ("moment", "shows_file"),
    [
        pytest.param(interrupted_stream, True, id="in a reply, the page is gone"),
        pytest.param(interrupted_tool, True, id="in a call, the page is gone"),
        pytest.param(interrupted_question, True, id="at a question, the page is gone"),
        # With a widget, which must not stay.
        pytest.param(interrupted_question, False, id="at a question, the page stays"),
    ],
)
def test_what_a_killed_kernel_has_shown_is_there_and_known(
    desk: Desk, moment: Callable[[Desk, Tab], str], *, shows_file: bool
) -> None:
    kernel = desk.start()
    tab = desk.open(kernel)
    desk.provider.play(say("Before."))
    tab.run("c", "Ask before.")
    tab.page.cells.reverse()
    tab.tell()
    tab.save(desk.path)
    said = moment(desk, tab)
    kill(kernel)

    page = tab.page.reloaded() if shows_file else tab.page
    again = desk.open(desk.start(), page)
    assert said in page["a"].shown
    assert views(page["a"]) == []
    assert "pending" not in json.dumps(page["a"].outputs)
    assert page["a"].crush
    assert page["a"].crush["end"] == "interrupted"
    desk.provider.play(say("Going on."))
    page.cells.append(PageCell("d"))
    again.run("d", "Go on.")
    for text in ("Before.", "Ask one.", said):
        assert text in desk.sent
    assert "Going on." in page["d"].shown
    assert page.turns == {"a": "a.1", "b": None, "c": "c.1", "d": "d.1"}
    assert not (desk.cwd / "new.txt").exists()


# Garbage


def deep(levels: int) -> Any:  # noqa: ANN401 - JSON
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


GARBAGE: dict[str, Any] = {
    "nothing": {},
    "a list": [1, 2],
    "a text": "cells",
    "null": None,
    "an unknown method": {"method": "__proto__", "__proto__": {"method": "cells"}},
    "a method that is no text": {"method": {"cells": []}},
    "cells that are none": {"method": "cells", "cells": "abc"},
    "no cells at all": {"method": "cells"},
    "cells of every kind": {
        "method": "cells",
        "cells": [None, 1, "a", [], {"id": 7}, {"id": None}],
    },
    "deep cells": {"method": "cells", "cells": deep(500)},
    "deep records": {
        "method": "cells",
        "cells": [{"id": "z", "type": "code", "crush": {"version": 1, "run": 1, "x": deep(500)}}],
    },
    "ten megabytes": {"method": "cells", "cells": [{"id": "z", "type": "x" * 10_000_000}]},
    "an acknowledgment of nothing": {"method": "ack"},
    "an acknowledgment of the wrong types": {"method": "ack", "cell_id": [], "turn": 1},
    "an acknowledgment of what never was": {
        "method": "ack",
        "cell_id": "__proto__",
        "turn": "constructor",
        "revision": 2**70,
    },
    "a path that is none": {"method": "path", "path": {"a": 1}},
    "a path elsewhere": {"method": "path", "path": "../../etc/passwd.ipynb\0"},
    "a save out of order": {"method": "saved"},
}


def test_garbage_from_a_page_changes_nothing(shared: tuple[Desk, RunningKernel]) -> None:
    desk, kernel = shared
    tab = desk.open(kernel, desk.fresh_page())
    a, b, c = tab.page.ids
    desk.provider.play(say("Reply one."), say("Reply two."))
    tab.run(a, "Ask one.")
    before = tab.page.stored()
    for data in GARBAGE.values():
        tab.say(data)
    tab.say({"method": "cells", "cells": [{"id": cell, "type": "code"} for cell in (a, b, c)]})
    tab.run(b, "Ask two.")
    assert "Reply one." in desk.sent
    assert tab.page.stored()["cells"][0] == before["cells"][0]
    assert tab.page.turns == {a: f"{a}.1", b: f"{b}.1", c: None}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=[*GARBAGE])
def test_a_comm_that_is_opened_with_garbage_does_no_harm(
    shared: tuple[Desk, RunningKernel], data: object
) -> None:
    desk, kernel = shared
    tab = desk.tab(kernel, desk.fresh_page())
    tab.open_comm(data)
    tab.wait(lambda: bool(tab.said("ready")))
    tab.close_comm()
    assert tab.run(tab.page.ids[0], "!echo alive").shown.count("alive") == 1


# Without our extension


def test_a_saved_file_is_the_history_of_the_next_kernel(desk: Desk) -> None:
    kernel = desk.start()
    tab = desk.tab(kernel, desk.page())
    desk.provider.play(say("Reply one."), say("Reply two."), say("Reply three."))
    tab.run("a", "Ask one.")
    tab.run("b", "Ask two.")
    assert [tab.page[cell].turn for cell in "ab"] == [None, None]
    assert tab.page["a"].record
    tab.page.save()
    desk.path.write_text(tab.page.ipynb, encoding="utf-8")
    kill(kernel)

    again = desk.tab(desk.start(JPY_SESSION_NAME=str(desk.path)), tab.page.reloaded())
    again.run("b", "Ask three.")
    assert "Reply one." in desk.sent
    assert "Ask two." not in desk.sent, "it is run again"
    assert again.page["b"].record
    assert again.page["b"].record["turn"] == "b.2"
    assert "History from this file" not in again.page["b"].shown


def test_a_notebook_that_was_never_saved_goes_on_from_the_journal(desk: Desk) -> None:
    kernel = desk.start(JPY_SESSION_NAME=str(desk.path))
    tab = desk.tab(kernel, desk.page())
    desk.provider.play(say("Reply one."))
    tab.run("a", "Ask one.")
    streaming(desk, tab, "b")
    kill(kernel)
    again = desk.tab(desk.start(JPY_SESSION_NAME=str(desk.path)), tab.page)
    desk.provider.play(say("Going on."))
    again.run("c", "Go on.")
    assert "Reply one." in desk.sent
    assert "Part one." in desk.sent


def test_a_notebook_that_nobody_knows_begins_anew(desk: Desk) -> None:
    kernel = desk.start()
    tab = desk.tab(kernel, desk.page())
    desk.provider.play(say("Reply one."), say("Reply two."))
    tab.run("a", "Ask one.")
    kill(kernel)
    again = desk.tab(desk.start(), desk.page())
    again.run("a", "Ask two.")
    assert "Ask one." not in desk.sent


def test_history_from_elsewhere_is_announced_before_it_is_used(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    elsewhere = Desk(tmp_path / "elsewhere", desk.provider, desk.stack)
    tab = desk.open(elsewhere.start())
    desk.provider.play(say("Reply one."), say("Reply two."))
    tab.run("a", "Ask one.")
    tab.page.save()
    again = desk.open(desk.start(), tab.page.reloaded())
    again.run("b", "Ask two.")
    assert "History from this file: 1 turn." in again.page["b"].shown
    assert "Reply one." in desk.sent
    assert RECORD_MIME_TYPE not in json.dumps(again.page.stored())
