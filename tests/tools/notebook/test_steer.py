"""What is said of commands that write to notebooks."""

import json
import subprocess
from pathlib import Path

import pytest

from crush_kernel.messages import JsonObject
from crush_kernel.tools.notebook.steer import named_notebooks, states_of, steering_notes

CELL: JsonObject = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "old"}
NOTEBOOK = json.dumps({"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.mark.parametrize(
    ("command", "names"),
    [
        pytest.param("ls", (), id="none"),
        pytest.param("sed -i s/a/b/ nb.ipynb", ("nb.ipynb",), id="a word"),
        pytest.param("jq . ./a/nb.ipynb > b.ipynb", ("./a/nb.ipynb", "b.ipynb"), id="two"),
        pytest.param("cat nb.ipynb>nb.ipynb;ls", ("nb.ipynb",), id="the same twice"),
        pytest.param("cat 'my nb.ipynb' \"b b.ipynb\"", ("my nb.ipynb", "b b.ipynb"), id="quoted"),
        pytest.param("python -c \"open('nb.ipynb', 'w')\"", ("nb.ipynb",), id="within quotes"),
        pytest.param("rm *.ipynb $x.ipynb {a,b}.ipynb", (), id="what the shell expands"),
        pytest.param("cat nb.ipynb.bak nb.ipynbx", (), id="other names"),
        pytest.param("cat " + " ".join(f"{n}.ipynb" for n in range(20)),
                     tuple(f"{n}.ipynb" for n in range(8)), id="many"),
    ],
)  # fmt: skip
def test_the_notebooks_are_found_that_a_command_names(command: str, names: tuple[str, ...]) -> None:
    assert named_notebooks(command) == names


HINT = "[nb.ipynb is a notebook: next time change its cells with notebook_edit"
LOST = "[nb.ipynb is the notebook in which you run. Its page overwrites the file"
BROKEN = "[nb.ipynb cannot be opened as a notebook now: "


@pytest.mark.parametrize(
    ("command", "is_running", "said"),
    [
        pytest.param("sed -i s/old/new/ nb.ipynb", False, HINT, id="changed in place"),
        pytest.param("sed s/old/new/ nb.ipynb > b; cat b > nb.ipynb", False, HINT, id="redirected"),
        pytest.param("python3 -c 'p = \"nb.ipynb\"; t = open(p).read(); "
                     "open(p, \"w\").write(t.replace(\"old\", \"new\"))'",
                     False, HINT, id="Python"),
        pytest.param("echo oops > nb.ipynb", False, BROKEN, id="broken"),
        pytest.param("sed -i 's/\"cells\"/\"cell\"/' nb.ipynb", False, BROKEN, id="without cells"),
        pytest.param("sed -i s/old/new/ nb.ipynb", True, LOST, id="the one that runs"),
        pytest.param("cat nb.ipynb; sed -n p nb.ipynb >/dev/null", False, "", id="only read"),
        pytest.param("touch nb.ipynb", False, "", id="only touched"),
        pytest.param("sed -i s/none/new/ nb.ipynb", False, "", id="nothing to change"),
        pytest.param("rm nb.ipynb", False, "", id="removed"),
        pytest.param("cp nb.ipynb other.ipynb; git --version; sed -i s/old/new/ nb.ipynb", False,
                     "", id="with Git"),
        pytest.param("cd .. && sed -i s/old/new/ */nb.ipynb", False, "", id="not to be known"),
    ],
)  # fmt: skip
def test_a_command_that_writes_to_a_notebook_is_told_of_the_tool(
    tmp_path: Path,
    command: str,
    is_running: bool,  # noqa: FBT001
    said: str,
) -> None:
    path = tmp_path / "nb.ipynb"
    path.write_text(NOTEBOOK)
    before = states_of(named_notebooks(command), tmp_path)
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, capture_output=True)
    notes = list(steering_notes(command, before, tmp_path, path if is_running else None))
    assert [note.startswith(said) for note in notes] == ([True] if said else [])


def test_a_page_that_saves_while_its_notebook_is_read_is_not_the_command(tmp_path: Path) -> None:
    path = tmp_path / "nb.ipynb"
    path.write_text(NOTEBOOK)
    command = "grep old nb.ipynb | wc -l"
    before = states_of(named_notebooks(command), tmp_path)
    path.write_text(NOTEBOOK.replace("old", "saved"))
    assert not list(steering_notes(command, before, tmp_path, path))


def test_what_is_no_readable_file_is_let_be(tmp_path: Path) -> None:
    (tmp_path / "folder.ipynb").mkdir()
    names = ("folder.ipynb", "missing.ipynb", "~nobody-has-this-name/a.ipynb")
    before = states_of(names, tmp_path)
    assert set(before.values()) == {None}
    assert not list(steering_notes("tee folder.ipynb", before, tmp_path, None))
