"""The `notebook_edit` tool on real files, checked by nbformat and by a model of a list of cells."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# nbformat carries no types.

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, cast

import anyio
import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output, new_raw_cell

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.edit import EditArguments, edit_tool
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.notebook.splice import EMPTY, CellType, Splice
from crush_kernel.tools.notebook.text import NotebookText, listing, read_notebook
from crush_kernel.tools.notebook_edit import NotebookEditArguments, notebook_edit_tool
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.tracker import ReadTracker
from crush_kernel.tools.write import WriteArguments, write_tool
from tests.fakes.tool_context import FakeContext, tool_context

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


def three_cells(minor: int = 5) -> Json:
    """A notebook with a cell of each type, the code cell with outputs."""
    cells = [
        new_markdown_cell("# Prices"),
        new_code_cell(
            "price = 3\nprice",
            execution_count=7,
            outputs=[new_output("stream", name="stdout", text="3\n")],
        ),
        new_raw_cell("raw é"),
    ]
    for cell, name in zip(cells, ("head", "code-1", "tail"), strict=True):
        cell["id"] = name
        if minor < 5:
            del cell["id"]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}


def lists(notebook: Json) -> Json:
    """Return `notebook` with all sources as lists of lines."""
    cells = [
        cell | {"source": cell["source"].splitlines(keepends=True)} for cell in notebook["cells"]
    ]
    return notebook | {"cells": cells}


def as_jupyter(notebook: Json) -> str:
    """Return `notebook` as Jupyter writes it."""
    return json.dumps(lists(notebook), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


class Desk:
    """A project folder and the tools that share what the model has seen of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tracker = ReadTracker()
        paths = PathPolicy(root=folder, cwd=folder)
        names = count(1)

        def running() -> Path:
            return folder / "open.ipynb"

        files = Files(paths, self.tracker, notebook=running)
        self.tool = notebook_edit_tool(files, new_id=lambda: f"new{next(names)}")
        self.write = write_tool(files)
        self.edit = edit_tool(files)

    def put(self, text: str | bytes, name: str = "a.ipynb", *, is_viewed: bool = True) -> Path:
        path = self.folder / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(data)
        if is_viewed:
            self.tracker.record(path.resolve(), data)
        return path

    async def run(
        self, action: str, *, fake: FakeContext | None = None, **arguments: str
    ) -> ToolOutput:
        given = NotebookEditArguments.model_validate(
            {"file_path": "a.ipynb", "action": action, **arguments}
        )
        with anyio.fail_after(10):
            return await self.tool.run(given, (fake or tool_context()).context)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path.resolve())


def require_valid(text: str) -> Json:
    """Return the notebook `text`, which nbformat must find valid."""
    notebook = json.loads(text)
    nbformat.validate(nbformat.from_dict(notebook))
    return notebook


def sources(path: Path) -> list[str]:
    """Return the sources of a notebook that must be valid."""
    notebook = require_valid(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"]]


HEAD, CODE, TAIL = "# Prices", "price = 3\nprice", "raw é"


@pytest.mark.parametrize(
    ("action", "arguments", "expected", "report"),
    [
        pytest.param("insert", {"source": "x"}, ["x", HEAD, CODE, TAIL],
                     "inserted code cell 1 with the id new1", id="at the top"),
        pytest.param("insert", {"source": "x", "after": "tail", "cell_type": "markdown"},
                     [HEAD, CODE, TAIL, "x"], "inserted markdown cell 4", id="at the end"),
        pytest.param("insert", {"source": "", "after": "head"}, [HEAD, "", CODE, TAIL],
                     "inserted code cell 2", id="an empty one"),
        pytest.param("replace", {"cell_id": "code-1", "source": "a\nb\n"},
                     [HEAD, "a\nb\n", TAIL], "replaced cell code-1; its outputs were cleared",
                     id="the source"),
        pytest.param("replace", {"cell_id": "tail", "source": TAIL, "cell_type": "code"},
                     [HEAD, CODE, TAIL], "replaced cell tail", id="only the type"),
        pytest.param("delete", {"cell_id": "head"}, [CODE, TAIL], "2 are left", id="the first"),
        pytest.param("delete", {"cell_id": "tail"}, [HEAD, CODE], "2 are left", id="the last"),
        pytest.param("move", {"cell_id": "tail", "after": ""}, [TAIL, HEAD, CODE],
                     "which is cell 1 now", id="to the top"),
        pytest.param("move", {"cell_id": "head", "after": "tail"}, [CODE, TAIL, HEAD],
                     "which is cell 3 now", id="to the end"),
    ],
)  # fmt: skip
async def test_one_cell_is_changed(
    desk: Desk, action: str, arguments: dict[str, str], expected: list[str], report: str
) -> None:
    path = desk.put(as_jupyter(three_cells()))
    output = await desk.run(action, fake=None, **arguments)
    assert sources(path) == expected
    assert report in output.text


async def test_a_changed_code_cell_has_no_outputs_any_more(desk: Desk) -> None:
    path = desk.put(as_jupyter(three_cells()))
    await desk.run("replace", cell_id="code-1", source="new")
    cell = json.loads(path.read_text(encoding="utf-8"))["cells"][1]
    assert (cell["outputs"], cell["execution_count"], cell["id"]) == ([], None, "code-1")


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(as_jupyter, id="Jupyter"),
        pytest.param(lambda nb: as_jupyter(nb).replace("\n", "\r\n"), id="CRLF"),
        pytest.param(lambda nb: as_jupyter(nb).rstrip(), id="no newline at the end"),
        pytest.param(json.dumps, id="one line, sources as strings"),
        pytest.param(lambda nb: json.dumps(nb, separators=(",", ":")), id="no spaces"),
        pytest.param(lambda nb: json.dumps(lists(nb), indent=4), id="four spaces"),
        pytest.param(lambda nb: json.dumps(nb, indent="\t", ensure_ascii=False), id="tabs"),
        pytest.param(lambda nb: "\ufeff" + as_jupyter(nb), id="byte-order mark"),
    ],
)
async def test_all_else_stays_as_it_is_written(desk: Desk, written: Callable[[Json], str]) -> None:
    notebook = three_cells()
    text = written(notebook)
    path = desk.put(text)
    await desk.run("insert", source="a\nü", after="head")
    await desk.run("replace", cell_id="new1", source="b\nü")
    await desk.run("move", cell_id="new1", after="tail")
    notebook["cells"].append(cast("Json", new_code_cell("b\nü", id="new1")))
    order = ("cell_type", "execution_count", "id", "metadata", "outputs", "source")
    notebook["cells"][3] = {key: notebook["cells"][3][key] for key in order}
    assert path.read_bytes().decode() == written(notebook)
    await desk.run("delete", cell_id="new1")
    assert path.read_bytes().decode() == text


async def test_the_card_shows_sources_and_no_json(desk: Desk) -> None:
    desk.put(as_jupyter(three_cells()))
    fake = tool_context()
    output = await desk.run("replace", fake=fake, cell_id="code-1", source="price = 4\nprice")
    (request,) = fake.requests
    assert request.title == "replace a cell of a.ipynb"
    assert request.diff == output.diff
    assert (
        "\n-[code-1 · code · 1 output]\n-price = 3\n+[code-1 · code]\n+price = 4\n" in output.diff
    )
    assert '"' not in output.diff
    assert fake.versions[0][1] != fake.versions[0][2]


async def test_a_no_leaves_the_file_alone(desk: Desk) -> None:
    path = desk.put(text := as_jupyter(three_cells()))
    with pytest.raises(PermissionDenied):
        await desk.run("delete", cell_id="head", fake=tool_context(allow=False))
    assert path.read_text(encoding="utf-8") == text


async def test_what_is_there_already_is_nothing_to_do(desk: Desk) -> None:
    desk.put(as_jupyter(three_cells()))
    fake = tool_context()
    output = await desk.run("replace", fake=fake, cell_id="code-1", source=CODE)
    assert "nothing to do" in output.text
    assert not fake.requests


async def test_a_new_file_becomes_a_notebook(desk: Desk) -> None:
    fake = tool_context()
    output = await desk.run("insert", fake=fake, source="x = 1")
    assert sources(desk.folder / "a.ipynb") == ["x = 1"]
    assert fake.requests[0].title == "create a.ipynb"
    await desk.run("insert", source="x", after="new1")
    assert sources(desk.folder / "a.ipynb") == ["x = 1", "x"]
    assert "new1" in output.text


@pytest.mark.parametrize(
    ("action", "arguments", "said"),
    [
        pytest.param("delete", {"cell_id": "cod-1"},
                     r"no cell with the id 'cod-1'.* mean code-1 \(cell 2, code: price = 3\)",
                     id="unknown, something near"),
        pytest.param("delete", {"cell_id": "zzz"}, "View it for the ids of its 3 cells",
                     id="unknown, nothing near"),
        pytest.param("insert", {"source": "", "after": "x\n" * 99}, "no cell with the id",
                     id="unknown place"),
        pytest.param("delete", {}, "cell_id is missing", id="no cell"),
        pytest.param("insert", {"source": "", "cell_id": "head"}, "leave cell_id out",
                     id="an id for a new cell"),
        pytest.param("insert", {}, "source is missing", id="no source"),
        pytest.param("replace", {"cell_id": "head"}, "source is missing", id="no new source"),
        pytest.param("move", {"cell_id": "head"}, "after is missing", id="no place"),
        pytest.param("replace", {"cell_id": "head", "source": "\0"}, "NUL", id="NUL"),
        pytest.param("replace", {"cell_id": "head", "source": "\ud800"}, "surrogate",
                     id="half a character"),
        pytest.param("insert", {"source": "", "file_path": "a.txt"}, "no notebook",
                     id="another kind of file"),
        pytest.param("delete", {"cell_id": "x", "file_path": "b.ipynb"}, "does not exist",
                     id="no such file"),
        pytest.param("insert", {"source": "", "file_path": "open.ipynb"},
                     "notebook in which you run", id="the notebook that runs"),
    ],
)  # fmt: skip
async def test_what_cannot_be_done_is_told(
    desk: Desk, action: str, arguments: dict[str, str], said: str
) -> None:
    path = desk.put(text := as_jupyter(three_cells()))
    desk.put(text, "open.ipynb")
    desk.put("text", "a.txt")
    fake = tool_context()
    with pytest.raises(ToolError, match=said):
        await desk.run(action, fake=fake, **arguments)
    assert path.read_text(encoding="utf-8") == text
    assert not fake.requests


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("{", "no JSON", id="cut off"),
        pytest.param("[" * 100_000, "no JSON object", id="no object"),
        pytest.param('{"cells": ' + "[" * 100_000, "too deep", id="too deep"),
        pytest.param('{"cells": [], "nbformat": 4} {}', "follows its end", id="more behind it"),
        pytest.param('{"cells": [], "cells": [], "nbformat": 4}', "twice", id="cells twice"),
        pytest.param('{"cells": [3], "nbformat": 4}', "damaged", id="no cells"),
        pytest.param('{"cells": [{"cell_type": []}], "nbformat": 4}', "damaged", id="no type"),
        pytest.param('{"cells": {}, "nbformat": 4}', "no list of cells", id="no list"),
        pytest.param('{"cells": [], "nbformat": true}', "neither version", id="no version"),
        pytest.param('{"worksheets": [], "nbformat": 3}', "nbconvert", id="version 3"),
        pytest.param('{"nbformat": 4, "cells": [' + "[]," * 4_000_000 + "0]}", "too many values",
                     id="too many values"),
    ],
)  # fmt: skip
async def test_what_is_no_notebook_is_left_alone(desk: Desk, text: str, said: str) -> None:
    path = desk.put(text)
    with pytest.raises(ToolError, match=said):
        await desk.run("insert", source="x")
    assert path.read_text(encoding="utf-8") == text


async def test_a_notebook_must_be_viewed_before(desk: Desk) -> None:
    desk.put(as_jupyter(three_cells()), is_viewed=False)
    with pytest.raises(ToolError, match="View it first"):
        await desk.run("delete", cell_id="head")


async def test_what_others_changed_is_told_by_cells(desk: Desk) -> None:
    desk.put(as_jupyter(three_cells()))
    changed = three_cells()
    changed["cells"][0]["source"] = "# Costs"
    desk.put(as_jupyter(changed), is_viewed=False)
    with pytest.raises(ToolError, match=r"\n-# Prices\n\+# Costs\n") as told:
        await desk.run("delete", cell_id="head")
    assert '"' not in str(told.value)


@pytest.mark.parametrize("minor", [0, 4])
async def test_old_notebooks_get_no_ids(desk: Desk, minor: int) -> None:
    path = desk.put(as_jupyter(three_cells(minor)))
    output = await desk.run("insert", source="x", after="#1")
    assert "no id in this old version" in output.text
    await desk.run("delete", cell_id="#3")
    assert sources(path) == [HEAD, "x", TAIL]


async def test_cells_without_an_id_of_their_own_get_one(desk: Desk) -> None:
    notebook = three_cells()
    del notebook["cells"][0]["id"]
    notebook["cells"][1]["id"] = notebook["cells"][2]["id"] = "same"
    path = desk.put(json.dumps(notebook, indent=1))
    await desk.run("move", cell_id="#3", after="#1")
    assert sources(path) == [HEAD, TAIL, CODE]
    names = [cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    assert len(set(names)) == 3


async def test_text_tools_are_led_to_the_tool_for_notebooks(desk: Desk) -> None:
    path = desk.put(text := as_jupyter(three_cells()))
    context = tool_context().context
    edit = EditArguments(file_path="a.ipynb", old_string="price = 3", new_string="price = 4")
    with pytest.raises(ToolError, match="notebook_edit"):
        await desk.edit.run(edit, context)
    with pytest.raises(ToolError, match="notebook_edit"):
        await desk.write.run(WriteArguments(file_path="a.ipynb", content=EMPTY), context)
    assert path.read_text(encoding="utf-8") == text


async def test_a_damaged_notebook_can_be_mended_as_text(desk: Desk) -> None:
    text = as_jupyter(three_cells())
    path = desk.put(text.replace("{\n", "{\n<<<<<<< ours\n", 1))
    edit = EditArguments(file_path="a.ipynb", old_string="<<<<<<< ours\n", new_string="")
    await desk.edit.run(edit, tool_context().context)
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("content", "is_written"),
    [pytest.param(EMPTY, True, id="a notebook"), pytest.param("x = 1", False, id="anything else")],
)
async def test_write_makes_only_notebooks_under_such_a_name(
    desk: Desk, content: str, *, is_written: bool
) -> None:
    arguments = WriteArguments(file_path="new.IPYNB", content=content)
    if is_written:
        await desk.write.run(arguments, tool_context().context)
    else:
        with pytest.raises(ToolError, match="notebook_edit"):
            await desk.write.run(arguments, tool_context().context)
    assert (desk.folder / "new.IPYNB").exists() == is_written


# A model: a notebook is a list of cells, and an action does to the list what it says.

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
TYPES = st.sampled_from(["code", "markdown", "raw"])


@dataclass
class Model:
    """What a notebook must have become: types, sources and ids, and the rest untouched."""

    cells: list[Json] = field(default_factory=list[Json])

    def replaced(self, position: int, kind: str, source: str) -> None:
        """Do what replacing a cell must do."""
        self.cells[position] = {"type": kind, "source": source, "outputs": 0}


@st.composite
def notebooks(draw: st.DrawFn) -> Json:
    """Notebooks that are valid, of all minor versions."""
    minor = draw(st.sampled_from([0, 2, 4, 5]))
    makers: dict[str, Callable[..., Any]] = {
        "code": new_code_cell,
        "markdown": new_markdown_cell,
        "raw": new_raw_cell,
    }
    cells: list[Json] = []
    for number in range(draw(st.integers(0, 4))):
        kind = draw(TYPES)
        cell = cast("Json", makers[kind](draw(TEXT)))
        cell["metadata"] = draw(st.sampled_from([{}, {"tags": ["é"]}, {"x": 1.50}]))
        if kind == "code" and draw(st.booleans()):
            cell["outputs"] = [new_output("stream", text=draw(TEXT))]
        cell.pop("id", None)
        cells.append(cell | ({"id": f"c{number}"} if minor >= 5 else {}))
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}


WRITTEN = st.sampled_from([
    as_jupyter,
    json.dumps,
    lambda nb: json.dumps(nb, separators=(",", ":"), ensure_ascii=False),
    lambda nb: json.dumps(nb, indent=3).replace("\n", "\r\n"),
])  # fmt: skip


@given(notebooks(), WRITTEN, st.data())
def test_any_changes_do_to_a_notebook_what_they_do_to_a_list(
    notebook: Json, written: Callable[[Json], str], data: st.DataObject
) -> None:
    text, names = written(notebook), count()
    model = Model(
        [
            {
                "type": cell["cell_type"],
                "source": cell["source"],
                "outputs": len(cell.get("outputs", ())),
            }
            for cell in notebook["cells"]
        ]
    )
    for _ in range(data.draw(st.integers(1, 4))):
        splice = Splice(read_notebook(text), lambda: f"n{next(names)}")
        _change(splice, model, data)
        text = splice.text()
        read = read_notebook(text)
        require_valid(text)
        assert _told(read) == model.cells
        assert ("\r\n" in text) == ("\r\n" in written(notebook))
        assert listing(read).count("\n") >= len(read.cells)


def _change(splice: Splice, model: Model, data: st.DataObject) -> None:
    size = len(model.cells)
    actions = ["insert"] + (["replace", "delete", "move"] if size else [])
    kind = cast("CellType", data.draw(TYPES))
    source = data.draw(TEXT)
    place = data.draw(st.integers(0, max(size - 1, 0)))
    match data.draw(st.sampled_from(actions)):
        case "insert":
            place = data.draw(st.integers(0, size))
            splice.insert(place, kind, source)
            model.cells.insert(place, {"type": kind, "source": source, "outputs": 0})
        case "replace":
            splice.replace(place, kind, source)
            model.replaced(place, kind, source)
        case "delete":
            splice.delete(place)
            del model.cells[place]
        case _:
            to = data.draw(st.integers(0, size - 1))
            splice.move(place, to)
            model.cells.insert(to, model.cells.pop(place))


def _told(notebook: NotebookText) -> list[Json]:
    return [
        {"type": cell.type, "source": cell.source, "outputs": len(cell.outputs)}
        for cell in notebook.cells
    ]


@given(notebooks(), WRITTEN, st.data())
def test_what_was_not_changed_stands_there_byte_by_byte(
    notebook: Json, written: Callable[[Json], str], data: st.DataObject
) -> None:
    text = written(notebook)
    before = read_notebook(text)
    splice = Splice(before, lambda: "fresh")
    model = Model([{} for _ in before.cells])
    _change(splice, model, data)
    kept = [text[span.start : span.end] for span in before.array.items]
    after = read_notebook(splice.text())
    now = [after.text[span.start : span.end] for span in after.array.items]
    assert len([each for each in kept if each not in now]) <= 1
    assert after.text.startswith(text[: before.array.start])
    assert after.text.endswith(text[before.array.end :])
