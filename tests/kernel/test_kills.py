"""Killed anywhere in a session, a kernel leaves one that goes on as if nothing had happened.

The kernel is killed when the page has received so many output messages, or when so many
entries are in the journal. Then the next kernel has to know and to show all that was shown,
and what is run again has to come to what an undisturbed session comes to.
"""

import re
import sqlite3
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from crush_kernel.history.journal.journal import FILE_NAME
from tests.fakes.kernel import RunningKernel, running_kernel
from tests.fakes.offline import offline_script, turn, wants
from tests.fakes.page import Page
from tests.fakes.tab import Tab, opened
from tests.kernel.desk import kill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

WORD = re.compile(r"word\d{3}|word\d{1,2}\b")


def words(first: int, last: int) -> str:
    return " ".join(f"word{number}" for number in range(first, last))


SCRIPT = (
    turn("Tell me.", {"text": words(0, 60), "pace_s": 0.01}),
    turn(
        "Look around.",
        {"text": words(200, 230), "pace_s": 0.01, **wants("ls", path=".")},
        wants("bash", command="echo word250; sleep 0.4; echo word251", description="wait"),
        {"text": words(260, 300), "pace_s": 0.01},
    ),
    turn(
        "Make it.",
        {"reasoning": words(300, 330), "text": words(330, 340), "pace_s": 0.01}
        | wants("bash", command="echo made > made.txt; echo word345", description="make"),
        {"text": words(350, 400), "pace_s": 0.01},
    ),
    turn("Once more.", {"text": words(500, 560), "pace_s": 0.01}),
)

CELLS = {
    "a": "Tell me.",
    "b": "Look around.",
    "c": "Make it.",
    "d": "!for i in 0 1 2 3; do echo word40$i; sleep 0.1; done",
    "e": "Once more.",
}


class Session:
    """A folder, and the tabs and kernels that are opened in it one after the other."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.home, self.cwd = folder / "home", folder / "cwd"
        self.path = self.cwd / "nb.ipynb"
        self._stack = stack
        for path in (self.home, self.cwd):
            path.mkdir()

    def open(self, page: Page) -> tuple[RunningKernel, Tab]:
        env = {**offline_script(self.home, *SCRIPT), "CRUSH_PERMISSION_MODE": "yolo"}
        kernel = self._stack.enter_context(running_kernel(cwd=self.cwd, home=self.home, env=env))
        tab = self._stack.enter_context(opened(kernel, page))
        tab.open()
        return kernel, tab

    def run(self, tab: Tab, *, until: Callable[[], bool] = lambda: False) -> bool:
        """Run what has not ended yet, saving after each cell; return whether all did."""
        for cell_id, code in CELLS.items():
            if end_of(tab.page, cell_id) == "end_turn":
                continue
            request = tab.start(cell_id, code)
            tab.wait(lambda request=request: until() or request in tab.idle)
            if until():
                return False
            tab.finish(request)
            tab.save(self.path)
        return True

    def has_kept(self, turns: int, entries: int) -> bool:
        """Return whether so many turns have ended, and the next has so many entries, or more."""
        path = self.cwd / ".crush" / FILE_NAME
        if not path.exists():
            return False
        count = "SELECT (SELECT count(*) FROM turns), (SELECT count(*) FROM entries)"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            try:
                return connection.execute(count).fetchone() >= (turns, entries)
            except sqlite3.OperationalError:  # its tables are being made
                return False


Moment = Callable[[Session, Tab, int], bool]
"""Tells from the session, the tab and the outputs of a whole session whether to kill now."""


def end_of(page: Page, cell_id: str) -> object:
    record = page[cell_id].crush
    return record["end"] if record else None


def said(page: Page) -> dict[str, Any]:
    """Return what was said in each cell; what that has used depends on the folder's name."""
    return {
        cell.id: [(each["role"], each["parts"]) for each in (cell.crush or {})["messages"]]
        for cell in page.cells
    }


def shown(page: Page) -> dict[str, str]:
    """Return what each cell shows, without times and tokens."""
    varies = r"\d+(\.\d+)? s\b|[\d.]+ k?\s?tokens|&#126;[\d.]+( k)?"
    return {cell.id: re.sub(varies, "…", cell.shown) for cell in page.cells}


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[tuple[Page, int]]:
    """The page after a whole session, and how many output messages it got."""
    with ExitStack() as stack:
        session = Session(tmp_path_factory.mktemp("undisturbed"), stack)
        _, tab = session.open(Page(*CELLS, path="nb.ipynb"))
        assert session.run(tab)
        tab.settle()
        yield tab.page, tab.outputs


def after_outputs(share: float) -> Moment:
    """Wait for a share of the output messages of the whole session."""
    return lambda _, tab, outputs: tab.outputs >= outputs * share


def after_entries(turns: int, entries: int) -> Moment:
    """Wait until so many turns have ended, and the next has so many entries in the journal."""
    return lambda session, _, __: session.has_kept(turns, entries)


@pytest.mark.parametrize(
    "moment",
    [
        *(
            pytest.param(after_outputs(share), id=f"after {share:.0%} of the outputs")
            for share in (0.02, 0.2, 0.4, 0.6, 0.8)
        ),
        *(
            pytest.param(after_entries(*counts), id="after {} turns, {} entries".format(*counts))
            for counts in ((0, 1), (0, 4), (1, 2), (1, 7), (2, 5), (2, 8), (3, 3), (4, 3))
        ),
    ],
)
def test_a_session_that_was_killed_comes_to_the_same(
    undisturbed: tuple[Page, int], tmp_path: Path, moment: Moment
) -> None:
    whole, outputs = undisturbed
    with ExitStack() as stack:
        session = Session(tmp_path, stack)
        kernel, tab = session.open(Page(*CELLS, path="nb.ipynb"))
        session.run(tab, until=lambda: moment(session, tab, outputs))
        kill(kernel)
        seen = {cell.id: {*WORD.findall(cell.shown)} for cell in tab.page.cells}

        _, again = session.open(tab.page.reloaded())
        for cell in again.page.cells:
            assert seen[cell.id] <= {*WORD.findall(cell.shown)}
            assert seen[cell.id] <= {*WORD.findall(str(cell.crush))}
            assert "widget" not in str(cell.outputs)
        assert session.run(again)
        again.settle()
        assert again.page.stale == []
        assert said(again.page) == said(whole)
        assert shown(again.page) == shown(whole)


def test_the_session_has_said_all_there_is_to_say(undisturbed: tuple[Page, int]) -> None:
    page, outputs = undisturbed
    assert [end_of(page, cell) for cell in CELLS] == ["end_turn"] * 5
    assert {*WORD.findall(str(said(page)))} >= {*words(0, 60).split(), *words(500, 560).split()}
    assert outputs > 30
