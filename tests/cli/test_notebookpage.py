"""The comm's other side: what is told of a notebook, and what is written into it."""

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat as untyped_nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.cli.notebookpage import NotebookPage
from crush_kernel.cli.records import Json
from crush_kernel.history.notebook import RECORD_MIME_TYPE

nbformat: Any = untyped_nbformat

PATH = Path("/home/me/work.ipynb")
RECORD: Json = {"version": 1, "turn": "one.1", "run": 1, "revision": 3, "end": "end_turn"}
HEADER: Json = {"version": 1, "id": "abc"}


@dataclass
class Desk:
    """A notebook of a code and a Markdown cell, with a page on it."""

    notebook: Any = field(default_factory=lambda: copy.deepcopy(NOTEBOOK))
    turns: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    notices: list[str] = field(default_factory=list[str])
    said: list[tuple[str, int, list[Any]]] = field(default_factory=list[tuple[str, int, list[Any]]])

    def __post_init__(self) -> None:
        self.page = NotebookPage(
            self.notebook,
            PATH,
            on_turn=self._on_turn,
            on_said=self._on_said,
            on_notice=self.notices.append,
        )

    def _on_said(self, cell_id: str, index: int, messages: list[Any]) -> None:
        self.said.append((cell_id, index, messages))

    def _on_turn(self, cell_id: str, record: Json) -> None:
        self.turns.append((cell_id, record))

    @property
    def code(self) -> Any:  # noqa: ANN401 - nbformat carries no types
        return self.notebook.cells[0]


NOTEBOOK = nbformat.v4.new_notebook(
    cells=[
        nbformat.v4.new_code_cell("say hello", id="one"),
        nbformat.v4.new_markdown_cell("# Title", id="two"),
    ]
)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def shown_record() -> Json:
    data = {"text/markdown": "Hello", RECORD_MIME_TYPE: RECORD}
    return nbformat.v4.new_output("display_data", data=data)


# What is told


def test_a_new_notebook_is_told_by_its_cells(desk: Desk) -> None:
    assert desk.page.opening() == {
        "version": 1,
        "path": "/home/me/work.ipynb",
        "notebook": None,
        "cells": [
            {"id": "one", "type": "code", "execution_count": None},
            {"id": "two", "type": "markdown"},
        ],
        "is_headless": True,
        "edits": True,
    }


def test_all_records_are_told_wherever_they_are(desk: Desk) -> None:
    desk.notebook.metadata["crush"] = HEADER
    desk.code.metadata["crush"] = RECORD
    desk.code.outputs = [shown_record(), nbformat.v4.new_output("stream", text="later")]
    desk.code.execution_count = 4

    told = desk.page.opening()

    assert told["notebook"] == HEADER
    assert told["cells"][0] == {
        "id": "one",
        "type": "code",
        "execution_count": 4,
        "crush": RECORD,
        "record": RECORD,
    }


# What is written


def test_a_turn_is_written_into_its_cell_and_acknowledged(desk: Desk) -> None:
    answers = desk.page.receive({"method": "turn", "cell_id": "one", "record": RECORD})

    assert desk.code.metadata["crush"] == RECORD
    assert answers == [{"method": "ack", "cell_id": "one", "turn": "one.1", "revision": 3}]
    assert desk.turns == [("one", RECORD)]
    nbformat.validate(desk.notebook)


def test_a_turn_that_is_no_more_is_taken_out(desk: Desk) -> None:
    desk.code.metadata["crush"] = RECORD

    assert desk.page.receive({"method": "turn", "cell_id": "one", "record": None}) == []

    assert "crush" not in desk.code.metadata


def test_the_header_is_written_and_acknowledged(desk: Desk) -> None:
    message = {"method": "session", "record": HEADER, "revision": 2}

    assert desk.page.receive(message) == [{"method": "ack", "session": 2}]
    assert desk.notebook.metadata["crush"] == HEADER


def repaint(**more: object) -> Json:
    outputs = [{"output_type": "stream", "name": "stdout", "text": "before the crash"}]
    cell = {"cell_id": "one", "outputs": outputs, "execution_count": 2, "is_running": False}
    return {"method": "outputs", "cells": [cell | more]}


def test_outputs_that_were_missed_are_shown(desk: Desk) -> None:
    desk.page.receive(repaint())

    assert desk.code.outputs[0].text == "before the crash"
    assert desk.code.execution_count == 2
    assert desk.page.repainted == [0]
    nbformat.validate(desk.notebook)


def test_the_running_cell_gets_its_outputs_on_its_own_way(desk: Desk) -> None:
    desk.page.running = "one"

    desk.page.receive(repaint())

    assert desk.code.outputs == []


def test_what_is_said_in_a_turn_that_goes_on_is_told_on(desk: Desk) -> None:
    message = {"method": "said", "cell_id": "one", "index": 1, "messages": [{"role": "user"}]}

    assert desk.page.receive(message) == []

    assert desk.said == [("one", 1, [{"role": "user"}])]
    assert desk.notebook == NOTEBOOK


def test_a_notice_is_told_on_and_leaves_the_notebook_alone(desk: Desk) -> None:
    message = {"method": "notice", "cell_id": "one", "text": "History from this file: 1 turn."}

    assert desk.page.receive(message) == []

    assert desk.notices == ["History from this file: 1 turn."]
    assert desk.notebook == NOTEBOOK


def test_a_cell_whose_earlier_run_comes_back_says_what_it_said_then(desk: Desk) -> None:
    told = {"method": "turn", "cell_id": "one", "record": RECORD, "source": "As it ran."}

    desk.page.receive(told)

    assert desk.code.source == "As it ran."


def test_the_last_list_of_stale_cells_counts(desk: Desk) -> None:
    desk.page.receive({"method": "stale", "cells": ["one", "two"]})
    desk.page.receive({"method": "stale", "cells": ["one"]})

    assert desk.page.stale == {"one"}


def test_the_page_is_ready_when_the_kernel_says_so(desk: Desk) -> None:
    assert not desk.page.is_ready

    desk.page.receive({"method": "ready", "kernel": "k1"})

    assert desk.page.is_ready


# Cells that are changed


def insert(**more: object) -> Json:
    edit = {
        "action": "insert",
        "cell_id": "new",
        "cell_type": "code",
        "source": "Ask.",
        "after": "",
    }
    return {"method": "edit", "id": "r1", **edit, **more}


def test_the_cells_are_told_as_they_are(desk: Desk) -> None:
    desk.page.running = "one"
    desk.code.execution_count = 4
    desk.code.outputs = [shown_record()]

    cell: Json = {"outputs": 0, "execution_count": None, "is_busy": False}
    (told,) = desk.page.receive({"method": "look", "id": "r1"})

    code = {"type": "code", "source": "say hello", "outputs": 1, "execution_count": 4}
    assert told == {
        "method": "looked",
        "id": "r1",
        "cells": [
            {"id": "one", **code, "is_busy": True},
            cell | {"id": "two", "type": "markdown", "source": "# Title"},
        ],
        "is_last": True,
    }


def test_a_new_cell_is_told_before_the_answer_and_is_the_models(desk: Desk) -> None:
    order, answer = desk.page.receive(insert())

    assert order == {
        "method": "cells",
        "cells": [
            {"id": "new", "type": "code", "execution_count": None},
            {"id": "one", "type": "code"},
            {"id": "two", "type": "markdown"},
        ],
    }
    assert answer == {"method": "edited", "id": "r1", "refusal": None}
    assert desk.page.written == {"new"}
    assert desk.page.former == ["one", "two"]
    nbformat.validate(desk.notebook)


def test_what_comes_later_is_written_where_the_cell_is_then(desk: Desk) -> None:
    desk.page.receive(insert())

    desk.page.receive(repaint())
    desk.page.receive({"method": "turn", "cell_id": "one", "record": RECORD})

    assert [cell.source for cell in desk.notebook.cells] == ["Ask.", "say hello", "# Title"]
    assert desk.notebook.cells[1].metadata["crush"] == RECORD
    assert desk.page.repainted == [1]


def test_a_cell_that_is_replaced_is_the_models_and_nothing_is_rearranged(desk: Desk) -> None:
    desk.code.metadata["crush"] = RECORD
    desk.code.outputs = [shown_record()]

    edit = insert(action="replace", cell_id="one", former="say hello")
    answers = desk.page.receive(edit)

    assert answers == [{"method": "edited", "id": "r1", "refusal": None}]
    assert desk.code.source == "Ask."
    assert desk.code.metadata["crush"] == RECORD
    assert desk.code.outputs == [shown_record()]
    assert desk.page.written == {"one"}
    assert desk.page.former is None


def test_the_cell_that_runs_stays_as_it_is(desk: Desk) -> None:
    desk.page.running = "one"

    for edit in (
        insert(action="replace", cell_id="one", former="say hello"),
        insert(action="delete", cell_id="one", former="say hello"),
        insert(action="move", cell_id="one", after="two"),
    ):
        assert desk.page.receive(edit) == [{"method": "edited", "id": "r1", "refusal": "busy"}]

    assert desk.notebook == NOTEBOOK
    assert desk.page.written == set()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"method": "dance"}, id="unknown method"),
        pytest.param({"method": 7}, id="no method"),
        pytest.param({"method": "turn"}, id="turn of no cell"),
        pytest.param({"method": "turn", "cell_id": "one", "record": 7}, id="turn that is none"),
        pytest.param({"method": "turn", "cell_id": "one", "record": {}}, id="empty turn"),
        pytest.param({"method": "turn", "cell_id": "nine", "record": RECORD}, id="unknown cell"),
        pytest.param({"method": "turn", "cell_id": "nine", "record": None}, id="unknown, no turn"),
        pytest.param({"method": "session", "record": [], "revision": 1}, id="header that is none"),
        pytest.param({"method": "session", "record": HEADER}, id="header without a revision"),
        pytest.param({"method": "outputs", "cells": 7}, id="outputs of no cells"),
        pytest.param({"method": "outputs", "cells": [7]}, id="outputs of no cell"),
        pytest.param(repaint(outputs=None), id="no outputs"),
        pytest.param(repaint(cell_id="two"), id="outputs of a text"),
        pytest.param({"method": "said", "cell_id": "one", "index": 1}, id="nothing said"),
        pytest.param({"method": "stale", "cells": "one"}, id="stale cells that are none"),
        pytest.param({"method": "notice", "cell_id": "one"}, id="notice without words"),
        pytest.param({"method": "look"}, id="question without a name"),
        pytest.param({"method": "edit", "action": "delete"}, id="edit without a name"),
    ],
)
def test_what_makes_no_sense_changes_nothing(desk: Desk, data: Json) -> None:
    assert desk.page.receive(data) == []
    assert desk.notebook == NOTEBOOK
    assert (desk.turns, desk.said) == ([], [])
    assert desk.page.stale == frozenset()


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["cell_id", "outputs", "turn", "revision", "x"]), inner)
    ),
    max_leaves=6,
)
fields = st.sampled_from(["cell_id", "record", "revision", "cells", "index", "messages"])
methods = st.sampled_from(["turn", "session", "outputs", "stale", "ready", "said"])


@given(method=methods, rest=st.dictionaries(fields, json | st.sampled_from(["one", "two"])))
def test_no_message_breaks_the_page(method: str, rest: Json) -> None:
    desk = Desk()

    for answer in desk.page.receive({**rest, "method": method}):
        assert answer["method"] == "ack"

    assert [cell.id for cell in desk.notebook.cells] == ["one", "two"]
