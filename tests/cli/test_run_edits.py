"""A run whose model changes the notebook that is being run."""

import shutil
from pathlib import Path

import nbformat
import pytest

from tests.fakes import headless
from tests.fakes.offline import Step, turn, wants
from tests.fakes.runs import Done, Place

# A test takes a few seconds; on cores that many share, each of its processes takes ten.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def edit(action: str, **arguments: str) -> Step:
    return wants("notebook_edit", file_path="work.ipynb", action=action, **arguments)


TIDY = turn(
    "tidy up",
    wants("view", file_path="work.ipynb"),
    edit("insert", source="one more prompt", after=""),
    edit("insert", source="# Notes", cell_type="markdown", after="cell-1"),
    edit("replace", cell_id="cell-3", source="say bye, politely"),
    edit("delete", cell_id="cell-0"),
    edit("move", cell_id="cell-2", after=""),
    {"text": "It is tidy: {result}"},
)
HELLO = turn("say hello", {"text": "Hello."})
LOOK = turn("look", {"text": "I look."})
BYE = turn("say bye", {"text": "Bye."})
POLITE = turn("say bye, politely", {"text": "Farewell."})
MORE = turn("one more prompt", {"text": "More."})


@pytest.fixture(scope="module")
def tidied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Done, Done]:
    folder = tmp_path_factory.mktemp("tidied")
    place = Place(folder / "home", folder / "case")
    place.play(TIDY, HELLO, LOOK, BYE, POLITE, MORE)
    place.write("say hello", "tidy up", "look", "say bye")
    done = place.run("--permission-mode", "accept-edits")
    shutil.copy(place.path, place.folder / "first.ipynb")
    return place, done, place.run()


def test_cells_are_changed_and_what_ran_is_what_stood_there(
    tidied: tuple[Place, Done, Done],
) -> None:
    _, done, _ = tidied
    assert done.exit_code == 0, done.err
    assert done.ran == ["cell-0", "cell-1", "cell-2"]
    assert [each["summary"] for each in done.those("tool_answered")][:1] == ["4 cells"]
    assert [each["outcome"] for each in done.those("tool_answered")] == ["ok"] * 6
    (finished,) = done.those("finished")
    assert (finished["ran"], finished["written"], finished["up_to_date"]) == (3, 2, 0)


def test_the_next_run_runs_what_the_model_has_written(tidied: tuple[Place, Done, Done]) -> None:
    place, _, again = tidied
    notebook = place.notebook
    new = notebook.cells[1].id
    assert [cell.source for cell in notebook.cells] == [
        "look", "one more prompt", "tidy up", "# Notes", "say bye, politely",
    ]  # fmt: skip
    assert again.reasons[new] == again.reasons["cell-3"] == "never run"
    assert again.those("finished")[0]["written"] == 0
    assert notebook.cells[4].metadata["crush"]["turn"] == "cell-3.1"


def test_the_notebook_is_valid_and_its_outputs_are_where_they_belong(
    tidied: tuple[Place, Done, Done],
) -> None:
    place, _, _ = tidied
    notebook = headless.read(place.folder / "first.ipynb")
    nbformat.validate(notebook)  # pyright: ignore[reportUnknownMemberType] - it carries no types
    shown = {cell.source: str(cell.get("outputs")) for cell in notebook.cells}
    assert "I look." in shown["look"]
    assert "moved cell cell-2, which is cell 1 now, of 5." in shown["tidy up"]
    assert notebook.cells[2].metadata["crush"]["turn"].startswith("cell-1.")


def test_without_permission_nothing_is_changed(tmp_path: Path) -> None:
    place = Place(tmp_path / "home", tmp_path / "case")
    view, insert = wants("view", file_path="work.ipynb"), edit("insert", source="x", after="")
    place.play(turn("tidy up", view, insert, {"text": "As you like."}))
    place.write("tidy up")
    done = place.run()
    assert done.exit_code == 3
    assert [cell.source for cell in place.notebook.cells] == ["tidy up"]
    assert done.those("finished")[0]["written"] == 0
