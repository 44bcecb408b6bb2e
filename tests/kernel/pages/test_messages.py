"""The two ends of comm `crush.notebook` say the same: ours is held against the examples.

The extension's tests hold the page of the browser against the same list.
"""

import asyncio
import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import nbformat as untyped_nbformat
import pytest

from crush_kernel.cli.notebookpage import NotebookPage
from crush_kernel.history.session import CellUpdate
from crush_kernel.kernel.mirror import Mirror
from crush_kernel.kernel.pages.opennotebook import OpenPages
from crush_kernel.kernel.pages.pages import LATE, Pages
from crush_kernel.tools.notebook.openpage import (
    CellChange,
    CellDeleted,
    CellInserted,
    CellMoved,
    CellReplaced,
)
from crush_kernel.tools.notebook.openpage import (
    PageCell as ShownCell,
)
from tests.fakes.page import Page, PageCell
from tests.kernel.pages.office import WAIT_S, FakeComm, Office

nbformat: Any = untyped_nbformat

Json = dict[str, Any]

FILE = Path(__file__).parents[3] / "labextension" / "src" / "__tests__" / "messages.json"
MESSAGES: Json = json.loads(FILE.read_text(encoding="utf-8"))
ASKED: list[Json] = MESSAGES["asked"]
FROM_KERNEL: list[Json] = [*MESSAGES["fromKernel"], *MESSAGES["fromKernelToRunners"]]

OPAQUE = frozenset(("record", "notebook", "crush", "outputs", "messages"))
"""What the comm carries and does not look into."""


def shape(value: object, key: str = "") -> Any:  # noqa: ANN401 - JSON
    """Return the names and types in a message, as far as the comm looks into it."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value).items()
        return "{}" if key in OPAQUE else {name: shape(each, name) for name, each in fields}
    if isinstance(value, (list, tuple)):
        items = cast("list[object]", value)
        return "[]" if key in OPAQUE else [shape(item) for item in items]
    return type(value).__name__


def distinct(messages: list[Json]) -> list[Any]:
    """Return the shapes of `messages`, each once, in an order of their own."""
    return sorted({json.dumps(shape(message), sort_keys=True) for message in messages})


def test_the_kernel_says_what_pages_expect(tmp_path: Path) -> None:
    async def main() -> list[Json]:
        office = Office(tmp_path)
        runner = await office.open("a", "b", is_headless=True)
        await office.run("a", "one")
        await office.run("b", "two")
        office.pages.said("a", 1, [{"role": "assistant"}])
        await office.run("a", "again")
        office.pages.noticed("a", "History from this file: 1 turn.")
        office.pages.tell_turns([CellUpdate("b", None)], office.live.session)
        record = office.live.session.conversation.turns["a"].record
        restored = CellUpdate("b", record, source="What it said when it ran.")
        office.pages.tell_turns([restored], office.live.session)
        office.pages.show([Mirror().restore("a", [], 3)])
        await office.settle()
        return runner.heard

    heard = asyncio.run(asyncio.wait_for(main(), WAIT_S))

    some = [message for message in heard if message.get("cells") != []]
    assert distinct(some) == distinct(FROM_KERNEL)


class Recorder:
    """A session that notes what it is asked for."""

    id = ""
    notebook = None

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def load(self, contents: Any, path: Path) -> list[CellUpdate]:  # noqa: ANN401 - what was read
        turns = [cell.turn and cell.turn.id for cell in contents.cells]
        self.calls.append(("load", contents.header.id, turns, path.name))
        return []

    def rearrange(self, cells: Any, *, told: Any) -> list[CellUpdate]:  # noqa: ANN401 - the same
        self.calls.append(("rearrange", [cell.id for cell in cells], told))
        return []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any other method
        def note(*arguments: object) -> None:
            self.calls.append((name, *arguments))

        return note


def test_the_kernel_understands_what_pages_say() -> None:
    recorder = Recorder()

    async def session() -> Any:  # noqa: ANN401 - in the place of a session
        return recorder

    async def main() -> None:
        pages = Pages(session, lambda work: work(), Mirror())
        comm = FakeComm(Page())
        pages.on_open(comm, {"content": {"data": MESSAGES["opening"]}})
        for message in MESSAGES["fromPage"]:
            comm.say(message)
        await pages.settled(has_page=False)

    asyncio.run(asyncio.wait_for(main(), WAIT_S))

    assert recorder.calls == [
        ("load", "s1", ["a.1", None], "notebook.ipynb"),
        ("acknowledged", "a", "a.2", 3),
        ("acknowledged", "b", "b.1", 1),
        ("rearrange", ["a", "b", "c"], {"c"}),
        ("saving",),
        ("saved",),
        ("moved", Path.cwd() / "other.ipynb"),
        ("note", f"{LATE} Use a branch."),
    ]


def test_pages_are_told_which_turn_takes_messages_and_are_heard(tmp_path: Path) -> None:
    said: list[str] = []

    async def main() -> tuple[list[Json], list[Json], list[Json]]:
        office = Office(tmp_path)
        early, runner = await office.open("a", "b"), await office.open("a", "b", is_headless=True)
        office.pages.offer_steering("b", said.append)
        late = await office.open("a", "b")
        for cell in "ab":
            late.say({"method": "say", "cell_id": cell, "text": f"to {cell}"})
        await office.settle()
        office.pages.end_steering()
        office.pages.end_steering()
        return early.heard, late.heard, runner.heard

    heard = asyncio.run(asyncio.wait_for(main(), WAIT_S))

    (opened,) = MESSAGES["fromKernelToPages"]
    told = [[each for each in one if each["method"] == "steering"] for one in heard]
    assert told == [[opened, opened | {"is_open": False}]] * 2 + [[]]
    assert said == ["to b"]


class Runner:
    """The page of a run, on a notebook with the cells of the examples."""

    def __init__(self) -> None:
        self.notebook: Any = nbformat.v4.new_notebook(
            metadata={"crush": MESSAGES["opening"]["notebook"]},
            cells=[
                nbformat.v4.new_code_cell(id=name, metadata={"crush": {"turn": f"{name}.1"}})
                for name in ("a", "b")
            ],
        )
        self.told: list[Any] = []
        self.page = NotebookPage(
            self.notebook,
            Path("/home/me/work.ipynb"),
            on_turn=self._note,
            on_said=self._note,
            on_notice=self._note,
        )

    def _note(self, *told: object) -> None:
        self.told.append(told)

    @property
    def state(self) -> Any:  # noqa: ANN401 - all that can be seen of it
        page = self.page
        return copy.deepcopy((self.notebook, self.told, page.stale, page.is_ready, page.repainted))


@pytest.mark.parametrize("message", FROM_KERNEL, ids=lambda message: message["method"])
def test_a_runner_understands_what_the_kernel_says(message: Json) -> None:
    runner = Runner()
    before = runner.state

    answers = runner.page.receive(copy.deepcopy(message))

    assert runner.state != before
    assert {*distinct(answers)} <= {*distinct(MESSAGES["fromPage"])}


def test_what_a_runner_opens_the_comm_with_is_what_a_page_does() -> None:
    opening = Runner().page.opening()

    assert opening.keys() == MESSAGES["opening"].keys()
    known = {name for cell in MESSAGES["opening"]["cells"] for name in cell}
    assert {name for cell in opening["cells"] for name in cell} == known


def test_the_page_of_the_tests_says_what_a_page_does() -> None:
    page = Page(path="folder/notebook.ipynb")
    told = MESSAGES["opening"]
    page.crush = told["notebook"]
    page.cells = [
        PageCell(cell["id"], crush=cell.get("crush"), execution_count=cell["execution_count"])
        for cell in told["cells"]
    ]
    assert page.opening() == told

    answers = [answer for message in MESSAGES["fromKernel"] for answer in page.hear(message)]
    page.cells.append(PageCell("c"))
    assert [*answers, page.news()] == MESSAGES["fromPage"][:5]


def test_the_page_of_the_tests_answers_what_a_page_does() -> None:
    page = Page(path="folder/notebook.ipynb")
    page.cells = [
        PageCell("a", "prompt of a", execution_count=1),
        PageCell("b", "prompt of b"),
    ]
    page.opening()

    assert [[*page.hear(asked["question"])] for asked in ASKED] == [
        asked["answers"] for asked in ASKED
    ]


CHANGES: list[CellChange] = [
    CellInserted("c", "code", "prompt of c", after="a"),
    CellReplaced("b", "code", "another prompt of b", former="prompt of b"),
    CellMoved("b", after=""),
    CellDeleted("b", former="prompt of b"),
    CellDeleted("b", former="another prompt of b"),
]


def test_the_kernel_asks_what_pages_expect_and_understands_their_answers(tmp_path: Path) -> None:
    async def main() -> list[Any]:
        office = Office(tmp_path)
        comm = await office.open("a", "b")
        page = comm.page
        page["a"].source, page["b"].source = "prompt of a", "prompt of b"
        office.pages.began(Mirror().begin("a", 1), "client")
        open_pages = OpenPages(
            office.pages,
            Mirror(),
            office.live.session,
            loop=asyncio.get_running_loop(),
            busy=lambda: ["a"],
        )
        comm.heard.clear()
        told = await open_pages.cells()
        assert told == (
            ShownCell("a", "code", "prompt of a", is_busy=True),
            ShownCell("b", "code", "prompt of b"),
        )
        refusals = [await open_pages.edit(change) for change in CHANGES]
        heard = [message for message in comm.heard if message["method"] in ("look", "edit")]
        return [refusals, [{**message, "id": ""} for message in heard]]

    refusals, asked = asyncio.run(asyncio.wait_for(main(), WAIT_S))

    edits = [each for each in ASKED if each["question"]["method"] == "edit"]
    assert refusals == [each["answers"][-1]["refusal"] for each in edits]
    assert asked == [{**each["question"], "id": ""} for each in ASKED]
