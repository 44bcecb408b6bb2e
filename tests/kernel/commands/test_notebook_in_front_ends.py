"""The commands about the notebook's own history, in a real kernel with a page."""

from itertools import count

import pytest

from tests.fakes.kernel import RunningKernel
from tests.fakes.provider.replies import say
from tests.fakes.provider.server import FakeProvider
from tests.fakes.tab import Tab
from tests.kernel.desk import Desk, kill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

numbers = count(1)


@pytest.fixture
def tab(office: tuple[Desk, RunningKernel], provider: FakeProvider) -> Tab:
    """A page with six cells, in the first two of which prompts have run."""
    desk, kernel = office
    name = f"cell{next(numbers)}"
    tab = desk.open(kernel, desk.page(*(f"{name}{letter}" for letter in "abcdef")))
    provider.play(say("Reply **one**."), say("Reply two."))
    for place, text in enumerate(("Ask one.", "Ask two.")):
        tab.run_told(tab.page.ids[place], text)
    return tab


# A cell that becomes a command


@pytest.mark.parametrize("command", ["/cost", "/nonsense"])
def test_what_a_cell_said_goes_when_it_becomes_a_command(
    office: tuple[Desk, RunningKernel], tab: Tab, provider: FakeProvider, command: str
) -> None:
    desk, kernel = office
    provider.play(say("Reply three."))
    first = tab.page.ids[0]
    tab.finish(tab.start(first, command))
    tab.settle()
    assert tab.page[first].turn is None
    tab.run_told(tab.page.ids[2], "Ask three.")
    assert "Ask one." not in desk.sent
    assert "Ask two." in desk.sent
    again = desk.open(kernel, tab.page.reloaded())
    again.settle()
    assert again.page[first].turn is None


# /new


def test_below_a_fresh_start_nothing_is_known_of_what_is_above(
    office: tuple[Desk, RunningKernel], tab: Tab
) -> None:
    desk, _ = office
    desk.provider.play(say("Reply three."), say("Reply four."))
    assert "know nothing of what is above" in tab.run_told(tab.page.ids[2], "/new").shown
    tab.run_told(tab.page.ids[3], "Ask three.")
    assert "Ask one." not in desk.sent
    tab.run_told(tab.page.ids[4], "Ask four.")
    assert "Reply three." in desk.sent
    assert tab.page.stale == []


def test_a_fresh_start_that_is_deleted_never_was(
    office: tuple[Desk, RunningKernel], tab: Tab
) -> None:
    desk, _ = office
    desk.provider.play(say("Reply three."), say("Reply four."))
    tab.run_told(tab.page.ids[2], "/new")
    tab.run_told(tab.page.ids[3], "Ask three.")
    later = tab.page.ids[3]
    tab.page.delete(tab.page.ids[2])
    tab.tell()
    tab.wait(lambda: tab.page.stale == [later])
    tab.run_told(tab.page.ids[2], "Ask three.")
    assert "Ask one." in desk.sent
    assert tab.page.stale == []


@pytest.mark.parametrize("arguments", ["now", "/new", "<b>"])
def test_a_fresh_start_takes_no_arguments(tab: Tab, arguments: str) -> None:
    assert "takes nothing" in tab.refused(tab.page.ids[2], f"/new {arguments}")
    assert tab.page[tab.page.ids[2]].turn is None


# /replay


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("/replay", "Reply two.", id="the one above"),
        pytest.param("/replay 1", "Reply **one**.", id="the first one"),
        pytest.param("/replay  2 ", "Reply two.", id="with blanks"),
    ],
)
def test_a_turn_is_shown_again(tab: Tab, code: str, expected: str) -> None:
    cell = tab.run_told(tab.page.ids[2], code)
    assert expected in cell.shown
    assert "again" in cell.shown
    assert cell.turn is None, "showing it makes no turn"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("/replay 3", "no such turn", id="more than there are"),
        pytest.param("/replay 0", "no such turn", id="zero"),
        pytest.param("/replay -1", "is no number", id="less than zero"),
        pytest.param("/replay two", "is no number", id="a word"),
        pytest.param("/replay ٣", "is no number", id="another digit"),
        pytest.param("/replay " + "9" * 5000, "no such turn", id="a very large number"),
        pytest.param("/replay <img src=x>", "is no number", id="markup"),
    ],
)
def test_a_turn_that_is_not_there_is_not_shown(tab: Tab, code: str, expected: str) -> None:
    shown = tab.refused(tab.page.ids[2], code)
    assert expected in shown
    assert "<img" not in shown
    assert tab.page[tab.page.ids[2]].turn is None


def test_at_the_top_there_is_nothing_to_show_again(
    office: tuple[Desk, RunningKernel],
) -> None:
    desk, kernel = office
    tab = desk.open(kernel, desk.page(f"top{next(numbers)}"))
    assert "no such turn" in tab.refused(tab.page.ids[0], "/replay")
    assert "no turn above" in tab.refused(tab.page.ids[0], "/versions")


# /versions


def test_earlier_runs_are_listed_and_come_back(
    office: tuple[Desk, RunningKernel], tab: Tab
) -> None:
    desk, _ = office
    desk.provider.play(say("Reply new."), say("Reply three."))
    tab.run_told(tab.page.ids[1], "Ask <two> | again.")
    cell = tab.page.ids[1]
    listed = tab.run_told(tab.page.ids[2], "/versions").shown
    assert [row.count("|") >= 4 for row in listed.splitlines()[2:4]] == [True, True]
    assert "Ask two." in listed
    assert "Reply two." in listed, "what tells runs of one prompt apart"
    assert "<two>" not in listed
    assert listed.count("the one above") == 1

    assert "Run 1" in tab.run_told(tab.page.ids[2], "/versions restore 1").shown
    tab.wait(lambda: tab.page.turns[cell] == f"{cell}.3")
    assert "Reply two." in tab.page[cell].shown
    assert "Reply new." not in tab.page[cell].shown
    assert tab.page[cell].source == "Ask two."
    tab.run_told(tab.page.ids[3], "Ask three.")
    assert "Reply two." in desk.sent
    assert "Reply new." not in desk.sent
    assert tab.page.stale == []
    listed = tab.run_told(tab.page.ids[4], "/versions").shown
    assert "Ask three." in listed
    assert "Ask two." not in listed, "of the cell above only"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("/versions restore 7", "It has: 1", id="a run that never was"),
        pytest.param("/versions restore", "Nothing is no number", id="no number"),
        pytest.param("/versions restore one", "is no number", id="a word"),
        pytest.param("/versions forget 1", "knows no", id="another word"),
        pytest.param("/versions <script>", "knows no", id="markup"),
    ],
)
def test_versions_says_what_it_does_not_know(tab: Tab, code: str, expected: str) -> None:
    shown = tab.refused(tab.page.ids[2], code)
    assert expected in shown
    assert "<script" not in shown


# After a restart


def test_what_was_shown_spent_and_run_is_known_to_the_next_kernel(desk: Desk) -> None:
    kernel = desk.start()
    tab = desk.open(kernel)
    desk.provider.play(say("Reply one."), say("Reply again."))
    tab.run_told(tab.page.ids[0], "Ask one.")
    tab.run_told(tab.page.ids[0], "Ask again.")
    spent = tab.run_told(tab.page.ids[1], "/cost").shown
    assert "20" in spent
    assert "10" in spent
    tab.save(desk.path)
    tab.run_told(tab.page.ids[1], "/cost")
    kill(kernel)

    page = tab.page.reloaded()
    again = desk.open(desk.start(), page)
    assert again.run_told(again.page.ids[1], "/cost").shown == spent
    assert "Reply again." in again.run_told(again.page.ids[1], "/replay").shown
    again.run_told(again.page.ids[1], "/versions restore 1")
    again.wait(lambda: again.page["a"].turn == "a.3")
    assert "Reply one." in again.page["a"].shown
    desk.provider.play(say("Reply two."))
    again.run_told(again.page.ids[2], "Ask two.")
    assert "Reply one." in desk.sent


def test_what_was_spent_is_known_also_without_a_page(desk: Desk) -> None:
    kernel = desk.start(JPY_SESSION_NAME=str(desk.path))
    tab = desk.tab(kernel, desk.page())
    desk.provider.play(say("Reply one."), say("Reply two."))
    tab.run("a", "Ask one.")
    kill(kernel)
    again = desk.tab(desk.start(JPY_SESSION_NAME=str(desk.path)), tab.page)
    assert "Reply one." in again.run("b", "/replay").shown
    again.run("b", "Ask two.")
    assert "20" in again.run("c", "/cost").shown
