"""Cells of a notebook in memory, changed as a kernel asks."""

import copy
from typing import Any

import nbformat as untyped_nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.cli.celledits import edit_cell
from crush_kernel.cli.records import Json

nbformat: Any = untyped_nbformat

RECORD: Json = {"version": 1, "turn": "a.1", "run": 1, "revision": 3}


def three_cells() -> Any:  # noqa: ANN401 - nbformat carries no types
    v4 = nbformat.v4
    output = v4.new_output("stream", text="said")
    return v4.new_notebook(
        cells=[
            v4.new_code_cell(
                "ask a", id="a", outputs=[output], execution_count=1, metadata={"crush": RECORD}
            ),
            v4.new_markdown_cell(
                "# Title", id="text", attachments={"x.png": {"image/png": "aGk="}}
            ),
            v4.new_code_cell("ask b", id="b"),
        ]
    )


def insert(**more: object) -> Json:
    return {
        "action": "insert", "cell_id": "new", "cell_type": "code", "source": "new", "after": "a",
        **more,
    }  # fmt: skip


def replace(**more: object) -> Json:
    edit = {"action": "replace", "cell_id": "a", "cell_type": "code", "source": "new"}
    return {**edit, "former": "ask a", **more}


def move(cell_id: str, after: str) -> Json:
    return {"action": "move", "cell_id": cell_id, "after": after}


DELETE: Json = {"action": "delete", "cell_id": "a", "former": "ask a"}


@pytest.mark.parametrize(
    ("edit", "order"),
    [
        pytest.param(insert(), "a new text b", id="insert below a cell"),
        pytest.param(insert(after=""), "new a text b", id="insert at the top"),
        pytest.param(insert(after="b", cell_type="raw"), "a text b new", id="insert at the end"),
        pytest.param(replace(), "a text b", id="replace"),
        pytest.param(replace(cell_type="markdown"), "a text b", id="make it a text"),
        pytest.param(DELETE, "text b", id="delete"),
        pytest.param(move("a", "b"), "text b a", id="move to the end"),
        pytest.param(move("b", ""), "b a text", id="move to the top"),
        pytest.param(move("b", "a"), "a b text", id="move up"),
        pytest.param(move("a", "a"), "a text b", id="move below itself"),
    ],
)
def test_a_cell_is_changed_and_the_others_stay(edit: Json, order: str) -> None:
    notebook, before = three_cells(), three_cells()

    assert edit_cell(notebook, edit, None) is None

    assert [cell.id for cell in notebook.cells] == order.split()
    nbformat.validate(notebook)
    others = [cell for cell in notebook.cells if cell.id != edit["cell_id"]]
    assert others == [
        c for name in order.split() for c in before.cells if c.id == name != edit["cell_id"]
    ]


@pytest.mark.parametrize(
    ("edit", "refusal"),
    [
        pytest.param(insert(cell_id="b"), "taken", id="another cell has the id"),
        pytest.param(insert(after="x"), "unknown", id="no cell to go below"),
        pytest.param(replace(cell_id="x"), "unknown", id="no cell to replace"),
        pytest.param(DELETE | {"cell_id": "x"}, "unknown", id="no cell to delete"),
        pytest.param(move("x", "a"), "unknown", id="no cell to move"),
        pytest.param(move("a", "x"), "unknown", id="no cell to move below"),
        pytest.param(replace(former="x"), "changed", id="it says something else"),
        pytest.param(DELETE | {"former": "x"}, "changed", id="it says something else by now"),
        pytest.param(replace(cell_type="sql"), "unknown", id="no type of cells"),
        pytest.param({"action": "fold", "cell_id": "a"}, "unknown", id="no action"),
    ],
)
def test_what_cannot_be_done_changes_nothing(edit: Json, refusal: str) -> None:
    notebook = three_cells()

    assert edit_cell(notebook, edit, None) == refusal

    assert notebook == three_cells()


@pytest.mark.parametrize(("lock", "edit"), [("editable", replace()), ("deletable", DELETE)])
def test_a_locked_cell_stays(lock: str, edit: Json) -> None:
    notebook = three_cells()
    notebook.cells[0].metadata[lock] = False

    assert edit_cell(notebook, edit, None) == "locked"


def test_a_prompt_that_is_rewritten_keeps_what_it_shows_and_its_turn() -> None:
    notebook = three_cells()

    edit_cell(notebook, replace(), None)

    assert notebook.cells[0] == {**three_cells().cells[0], "source": "new"}


def test_a_cell_of_another_type_keeps_what_that_type_has() -> None:
    notebook = three_cells()

    edit_cell(notebook, replace(cell_type="markdown"), None)
    edit_cell(notebook, replace(cell_id="text", former="# Title"), None)

    assert notebook.cells[0].metadata["crush"] == RECORD
    assert "outputs" not in notebook.cells[0]
    assert "attachments" not in notebook.cells[1]
    nbformat.validate(notebook)


names = st.sampled_from(["a", "text", "b", "new", "", "x"])
edits = st.fixed_dictionaries(
    {"action": st.sampled_from(["insert", "replace", "delete", "move"]), "cell_id": names},
    optional={
        "after": names,
        "cell_type": st.sampled_from(["code", "markdown", "raw", "x"]) | st.none(),
        "source": st.text(max_size=3) | st.none(),
        "former": st.sampled_from(["ask a", "# Title", "ask b"]) | st.none(),
    },
)


@given(edits=st.lists(edits, max_size=8), running=st.sampled_from(["a", "b", None]))
def test_whatever_is_asked_the_notebook_stays_valid_and_what_runs_as_it_was(
    edits: list[Json], running: str | None
) -> None:
    notebook = three_cells()
    (before,) = [c for c in three_cells().cells if c.id == running] or [None]

    for edit in edits:
        former = copy.deepcopy(notebook)
        if edit_cell(notebook, edit, running) is not None:
            assert notebook == former

    assert [cell for cell in notebook.cells if cell.id == running] == [before] * bool(running)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    nbformat.validate(notebook)
