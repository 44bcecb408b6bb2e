"""What a notebook's file is called, and what it holds."""

import os
from pathlib import Path

import pytest

from crush_kernel.history.notebook import NotebookContents
from crush_kernel.history.notebookfile import path_in, read_notebook_file


@pytest.mark.parametrize(
    ("cell_id", "path"),
    [
        pytest.param(
            "vscode-notebook-cell:/home/ada/plan.ipynb#W0sZmlsZQ%3D%3D",
            "/home/ada/plan.ipynb",
            id="plain",
        ),
        pytest.param(
            "vscode-notebook-cell:/home/ada/my%20plans/pl%C3%A4n.ipynb#W1",
            "/home/ada/my plans/plän.ipynb",
            id="quoted",
        ),
        pytest.param(
            "vscode-notebook-cell://ssh-remote%2Bhost/home/ada/plan.ipynb#W2",
            "/home/ada/plan.ipynb",
            id="on another host, where the kernel runs too",
        ),
        pytest.param("0f3a9c", None, id="an id of the notebook's own"),
        pytest.param("", None, id="none"),
        pytest.param("vscode-notebook-cell:Untitled-1.ipynb#W0", None, id="not saved yet"),
        pytest.param("vscode-notebook-cell:/etc/passwd#W0", None, id="no notebook"),
        pytest.param("vscode-notebook-cell:/a%00.ipynb#W0", None, id="no path"),
        pytest.param("vscode-notebook-cell://[/a.ipynb", None, id="no address"),
    ],
)
def test_a_cell_of_vs_code_names_its_notebook(cell_id: str, path: str | None) -> None:
    assert path_in(cell_id) == (None if path is None else Path(path))


def test_a_notebook_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read_notebook_file(tmp_path / "new.ipynb") == NotebookContents()


@pytest.mark.parametrize("name", ["a folder", "a pipe"])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    path = tmp_path / "work.ipynb"
    if name == "a folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    contents = read_notebook_file(path)
    assert contents.cells == ()
    assert contents.problems == ("The notebook cannot be read: it is no file.",)
