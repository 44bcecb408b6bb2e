"""Which cells of a notebook have to run: every reason, and what it takes to be up to date."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.cli.due import CellState, Reason, due, states
from crush_kernel.history.notebook import RECORD_MIME_TYPE
from crush_kernel.history.turn import source_digest


def cell(cell_id: str, text: str = "say hello", /, **record: object) -> CellState:
    """Return a cell that ran well with the text it has, changed by `record`."""
    well = {"version": 1, "end": "end_turn", "source": source_digest(text)}
    return CellState(cell_id, text, record={**well, **record}, has_run=True)


def new(cell_id: str, source: str = "say hello") -> CellState:
    return CellState(cell_id, source)


@pytest.mark.parametrize(
    ("state", "stale", "reason"),
    [
        pytest.param(cell("a"), (), None, id="up to date"),
        pytest.param(new("a"), (), "never run", id="never run"),
        pytest.param(
            CellState("a", "say hello", has_run=True), (), "never run", id="ran without a record"
        ),
        pytest.param(cell("a", end="interrupted"), (), "interrupted", id="interrupted"),
        pytest.param(cell("a", end="running"), (), "interrupted", id="killed while it ran"),
        pytest.param(cell("a", end="error"), (), "failed", id="failed"),
        pytest.param(replace(cell("a"), source="say bye"), (), "edited", id="edited"),
        pytest.param(
            replace(cell("a"), source="\n say hello \n"), (), None, id="edited in white space only"
        ),
        pytest.param(cell("a"), ("a",), "context changed", id="stale"),
        pytest.param(cell("a"), ("b",), None, id="another one is stale"),
        pytest.param(cell("a", end="error"), ("a",), "failed", id="failed before stale"),
        pytest.param(cell("a", source=""), (), None, id="record without a digest"),
        pytest.param(cell("a", version=2), (), "record unreadable", id="a later version"),
        pytest.param(cell("a", end="slept"), (), "interrupted", id="unknown end"),
        pytest.param(cell("a", end=["x"]), (), "interrupted", id="no end"),
        pytest.param(
            CellState("a", "x", record={"hello": 1}),
            (),
            "record unreadable",
            id="no record of ours",
        ),
        pytest.param(cell("a", source=7), (), "edited", id="a digest that is none"),
        pytest.param(cell("a", "!make"), (), None, id="shell command up to date"),
        pytest.param(new("a", "!make"), (), "never run", id="shell command never run"),
        pytest.param(new("a", "/model x"), (), "never run", id="command never run"),
        pytest.param(
            CellState("a", "/model x", has_run=True), (), None, id="command alone that has run"
        ),
        pytest.param(
            CellState("a", "/mdel x", has_run=True, has_failed=True),
            (),
            "failed",
            id="command that has failed",
        ),
        pytest.param(cell("a", "/new"), (), None, id="command with a turn"),
        pytest.param(
            replace(cell("a", "/new"), source="/status"), (), "edited", id="turn became a command"
        ),
    ],
)
def test_one_cell(state: CellState, stale: tuple[str, ...], reason: Reason | None) -> None:
    assert due([state], stale=stale) == ({"a": reason} if reason else {})


def command(cell_id: str) -> CellState:
    return CellState(cell_id, "/model x", has_run=True)


@pytest.mark.parametrize(
    ("cells", "ran", "expected"),
    [
        pytest.param(
            [command("a"), cell("b"), new("c"), command("d")],
            (),
            {"a": "command", "c": "never run", "d": "command"},
            id="above and below a cell that runs",
        ),
        pytest.param([command("a"), cell("b"), command("c")], (), {}, id="nothing else runs"),
        pytest.param(
            [command("a"), cell("b"), command("c")],
            ("a", "b"),
            {"c": "command"},
            id="below the last cell that ran",
        ),
        pytest.param(
            [command("a"), new("b", "/status")],
            (),
            {"a": "command", "b": "never run"},
            id="another command runs",
        ),
    ],
)
def test_commands_run_along_with_any_other_cell(
    cells: list[CellState], ran: tuple[str, ...], expected: dict[str, Reason]
) -> None:
    assert due(cells, ran=ran) == expected


def test_a_cell_that_ran_is_not_due_again_however_it_ended() -> None:
    cells = [cell("a", end="error"), cell("b", end="interrupted"), new("c")]

    assert due(cells, ran=("a", "b")) == {"c": "never run"}
    assert due(cells, ran=("a", "b", "c"), runs_all=True) == {}


def test_all_are_due_when_asked_for_each_with_its_own_reason() -> None:
    cells = [cell("a"), new("b"), command("c"), cell("d", end="error")]

    assert due(cells, runs_all=True) == {
        "a": "asked for",
        "b": "never run",
        "c": "asked for",
        "d": "failed",
    }


some_cells = st.lists(st.sampled_from(["well", "new", "failed", "command"]), max_size=8).map(
    lambda kinds: [_of(kind, f"c{index}") for index, kind in enumerate(kinds)]
)


def _of(kind: str, cell_id: str) -> CellState:
    return {
        "well": cell(cell_id),
        "new": new(cell_id),
        "failed": cell(cell_id, end="error"),
        "command": command(cell_id),
    }[kind]


@given(cells=some_cells)
def test_running_what_is_due_one_by_one_ends_with_nothing_due(cells: list[CellState]) -> None:
    ran: list[str] = []
    first = due(cells)
    while waiting := due(cells, ran=ran):
        ran.append(next(iter(waiting)))

    assert ran == list(first), "what is due does not depend on how far the run is"


@given(cells=some_cells, stale=st.sets(st.sampled_from([f"c{n}" for n in range(8)])))
def test_what_is_due_keeps_the_order_and_grows_with_what_is_stale(
    cells: list[CellState], stale: set[str]
) -> None:
    order = [state.id for state in cells]
    fewer, more = due(cells), due(cells, stale=stale)

    assert list(more) == [cell_id for cell_id in order if cell_id in more]
    assert fewer.keys() <= more.keys() <= due(cells, runs_all=True).keys()


def raw_cell(**fields: object) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "id": "a",
        "cell_type": "code",
        "source": "say hello",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    return {**plain, **fields}


RECORD = {"version": 1, "end": "end_turn"}
OTHER = {"version": 1, "end": "error"}
SHOWN = {"output_type": "display_data", "metadata": {}, "data": {RECORD_MIME_TYPE: RECORD}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, [CellState("a", "say hello")], id="a new cell"),
        pytest.param(
            {"source": "h\ud800llo"}, [CellState("a", "h\ufffdllo")], id="half a character"
        ),
        pytest.param({"source": " \n"}, [], id="without text"),
        pytest.param({"cell_type": "markdown"}, [], id="markdown"),
        pytest.param(
            {"metadata": {"tags": ["x", "skip-execution"]}}, [], id="tagged to be skipped"
        ),
        pytest.param(
            {"metadata": {"crush": RECORD}},
            [CellState("a", "say hello", record=RECORD)],
            id="record in the metadata",
        ),
        pytest.param(
            {"outputs": [SHOWN]},
            [CellState("a", "say hello", record=RECORD)],
            id="record in an output",
        ),
        pytest.param(
            {"metadata": {"crush": OTHER}, "outputs": [SHOWN]},
            [CellState("a", "say hello", record=OTHER)],
            id="the metadata come first",
        ),
        pytest.param(
            {"metadata": {"crush": "?"}}, [CellState("a", "say hello")], id="metadata of no record"
        ),
        pytest.param(
            {"execution_count": 3, "outputs": [{"output_type": "error", "ename": "X"}]},
            [CellState("a", "say hello", has_run=True, has_failed=True)],
            id="failed",
        ),
    ],
)
def test_a_cell_is_read_from_the_notebook(
    fields: dict[str, object], expected: list[CellState]
) -> None:
    assert list(states({"cells": [raw_cell(**fields)]})) == expected
