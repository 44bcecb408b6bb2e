"""What `view` shows of notebooks and of the text of PDFs."""

# pyright: reportUnknownArgumentType=false
# Empty lists and objects of JSON have no type.

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.errors import ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.notebook.digest import MAX_IMAGES, MAX_TEXT_BYTES, show_cells
from crush_kernel.tools.notebook.text import NoNotebook, read_notebook
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.tracker import ReadTracker
from crush_kernel.tools.view import ViewArguments, view_tool
from tests.fakes.media import encoded, encrypted_pdf, pdf, pdf_of, photo
from tests.fakes.tool_context import tool_context

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

PNG = base64.b64encode(encoded(photo((30, 20)), "PNG")).decode()


class Project:
    """A folder, and `view` in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tracker = ReadTracker()
        self.can_see = True
        paths = PathPolicy(root=root, cwd=root)
        self.tool = view_tool(Files(paths, self.tracker), accepts=lambda _: self.can_see)

    def write(self, name: str, data: bytes | str | Json) -> Path:
        path = self.root / name
        text = data if isinstance(data, str | bytes) else json.dumps(data, indent=1)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    async def view(self, name: str = "a.ipynb", **arguments: int) -> ToolOutput:
        given = ViewArguments.model_validate({"file_path": name, **arguments})
        with anyio.fail_after(20):
            return await self.tool.run(given, tool_context().context)

    async def refusal(self, name: str = "a.ipynb", **arguments: int) -> str:
        with pytest.raises(ToolError) as refused:
            await self.view(name, **arguments)
        return str(refused.value)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path.resolve())


def code(source: str = "x", *outputs: Json, name: str = "a1", count: int | None = None) -> Json:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "execution_count": count,
        "outputs": list(outputs),
        "source": source.splitlines(keepends=True),
    }


def notebook(*cells: Json, **more: object) -> Json:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}


def stream(text: str) -> Json:
    return {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}


def data(**bundle: object) -> Json:
    kinds = {"plain": "text/plain", "html": "text/html", "png": "image/png", "md": "text/markdown"}
    named = {kinds.get(name, name): value for name, value in bundle.items()}
    return {"output_type": "display_data", "data": named, "metadata": {}}


ERROR: Json = {
    "output_type": "error",
    "ename": "KeyError",
    "evalue": "'x'",
    "traceback": ["\x1b[31mKeyError\x1b[0m: 'x'"],
}


async def test_a_notebook_is_its_cells(project: Project) -> None:
    text: Json = {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "# Prices"}
    cell = code("price = 3\nprice", stream("3\n"), data(plain="'3'"), count=7)
    more: Json = {"metadata": {"language_info": {"name": "python"}}}
    path = project.write("a.ipynb", notebook(text, cell, **more))
    output = await project.view()
    assert output.text == (
        "--- cell 1 · id m · markdown ---\n"
        "     1|# Prices\n"
        "--- cell 2 · id a1 · code · run 7 ---\n"
        "     1|price = 3\n"
        "     2|price\n"
        "   out|3\n"
        "   out|'3'\n"
        "\n"
        f"[whole notebook: 2 cells; python, format 4.5, {path.stat().st_size:,} bytes]"
    )
    assert output.summary == "2 cells"
    assert project.tracker.knowledge(path, path.read_bytes()).state == "fresh"


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        pytest.param(stream("a\rb\n"), "   out|b", id="a progress bar in its last state"),
        pytest.param(ERROR, "   out|KeyError: 'x'", id="a traceback without colours"),
        pytest.param(ERROR | {"traceback": []}, "   out|KeyError: 'x'", id="a bare error"),
        pytest.param(data(html="<b>x</b>", plain="x"), "   out|x", id="plain before HTML"),
        pytest.param(data(md="**x**"), "   out|**x**", id="Markdown"),
        pytest.param(data(html="<b>x</b>"), "   out|[text/html]\n   out|<b>x</b>", id="HTML"),
        pytest.param(data(**{"application/x.y": {}}), "   out|[application/x.y]", id="unknown"),
        pytest.param(data(plain=3), "   out|[text/plain]", id="a number for a text"),
        pytest.param({"output_type": 3}, "", id="no type"),
        pytest.param({"output_type": "stream", "text": {}}, "", id="no text"),
        pytest.param(stream("x\n--- cell 9 · id z · code ---"), "   out|--- cell 9",
                     id="what looks like a cell"),
        pytest.param(data(plain="x" * 3_000), "[cut; the line has", id="a long line"),
        pytest.param(data(plain=PNG * 9), "Base64", id="encoded data"),
    ],
)  # fmt: skip
async def test_outputs_are_told_as_text(project: Project, output: Json, shown: str) -> None:
    project.write("a.ipynb", notebook(code("x", output)))
    text = (await project.view()).text
    assert shown.lower() in text.lower()
    assert "\x1b" not in text
    assert '"' not in text


async def test_images_come_along_where_the_model_takes_them(project: Project) -> None:
    project.write("a.ipynb", notebook(code("x", data(png=PNG, plain="<Figure>"))))
    output = await project.view()
    assert [media.media_type for media in output.media] == ["image/png"]
    assert output.media[0].name == "image 1 of a1"
    assert "   out|[image 1 of a1: image/png, " in output.text
    project.can_see = False
    output = await project.view()
    assert not output.media
    assert "[the current model cannot look at images]" in output.text


async def test_only_the_first_images_come_along(project: Project) -> None:
    project.write("a.ipynb", notebook(*[code("x", data(png=PNG))] * (MAX_IMAGES + 3)))
    assert len((await project.view()).media) == MAX_IMAGES


@pytest.mark.parametrize(
    "bad", [pytest.param("%%%", id="no Base64"), pytest.param("aGVsbG8=", id="no image")]
)
async def test_an_image_that_is_none_is_told(project: Project, bad: str) -> None:
    project.write("a.ipynb", notebook(code("x", data(png=bad))))
    output = await project.view()
    assert not output.media
    assert "[image 1 of a1 cannot be shown: " in output.text


async def test_offsets_count_cells(project: Project) -> None:
    cells = [code(f"cell({n})", name=f"c{n}") for n in range(1, 6)]
    project.write("a.ipynb", notebook(*cells))
    output = await project.view(offset=1, limit=2)
    assert "cell(2)" in output.text
    assert "cell(3)" in output.text
    assert "cell(1)" not in output.text
    assert "cell(4)" not in output.text
    assert "[cells 2-3 of 5; format 4.5, " in output.text
    assert "go on with offset=3]" in output.text
    assert "has only 5 cells" in await project.refusal(offset=5)


async def test_a_cell_alone_shows_more(project: Project) -> None:
    lines = "".join(f"{n}\n" for n in range(1_000))
    project.write("a.ipynb", notebook(code(lines, stream(lines)), code(name="b")))
    among = (await project.view()).text
    assert "more lines; view this cell alone, limit=1" in among
    alone = (await project.view(limit=1)).text
    assert "  1000|999\n" in alone
    assert "   out|999\n" in alone
    assert "   out|500\n" in alone
    assert "   out|500\n" not in among


async def test_many_cells_come_in_parts(project: Project) -> None:
    project.write("a.ipynb", notebook(*(code("x" * 1_900, name=f"c{n}") for n in range(90))))
    seen, offset = 0, 0
    while offset < 90:
        output = await project.view(offset=offset)
        assert len(output.text.encode()) < MAX_TEXT_BYTES + 1_000
        shown = output.text.count("--- cell ")
        assert shown
        seen, offset = seen + shown, offset + shown
    assert seen == 90


OLD: Json = {
    "metadata": {"name": ""},
    "nbformat": 3,
    "nbformat_minor": 0,
    "worksheets": [{
        "cells": [
            {"cell_type": "heading", "level": 2, "source": ["Old"]},
            {"cell_type": "code", "input": ["print 1"], "language": "python", "prompt_number": 4,
             "outputs": [{"output_type": "stream", "stream": "stdout", "text": ["1\n"]},
                         {"output_type": "pyout", "text": ["2"]},
                         {"output_type": "pyerr", "ename": "E", "evalue": "v", "traceback": []}]},
        ]
    }],
}  # fmt: skip


async def test_notebooks_of_version_3_can_be_read(project: Project) -> None:
    project.write("a.ipynb", OLD)
    text = (await project.view()).text
    assert text.startswith(
        "--- cell 1 · no id, call it #1 · markdown ---\n"
        "     1|## Old\n"
        "--- cell 2 · no id, call it #2 · code · run 4 ---\n"
        "     1|print 1\n"
        "   out|1\n   out|2\n   out|E: v\n"
    )
    assert "format 3" in text


async def test_cells_of_the_same_id_are_told_apart(project: Project) -> None:
    project.write("a.ipynb", notebook(code(), code(), code(name="<b>\n")))
    text = (await project.view()).text
    assert [f"call it #{n} " in text for n in (1, 2, 3)] == [True] * 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param('{\n<<<<<<< ours\n"cells": []}', "no JSON", id="a merge that failed"),
        pytest.param("", "is empty", id="nothing"),
        pytest.param("[" * 50_000, "no JSON object", id="no object"),
        pytest.param('{"nbformat": 4, "cells": ' + "[" * 50_000, "too deep", id="too deep"),
        pytest.param('{"nbformat": ' + "9" * 5_000 + "}", "too long", id="an endless number"),
        pytest.param('{"nbformat": 5, "cells": []}', "neither version", id="a version to come"),
    ],
)
async def test_what_is_no_notebook_is_shown_as_the_text_it_is(
    project: Project, content: str, said: str
) -> None:
    project.write("a.ipynb", content)
    text = (await project.view()).text
    assert said in text
    assert content.split("\n", maxsplit=1)[0][:20] in text


async def test_a_notebook_without_cells_says_so(project: Project) -> None:
    project.write("a.ipynb", notebook())
    assert "a notebook without cells" in (await project.view()).text


async def test_a_huge_notebook_is_refused_with_a_way_out(project: Project) -> None:
    path = project.write("a.ipynb", notebook())
    with path.open("r+b") as file:
        file.truncate(10**9)
    assert "jq" in await project.refusal()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["data", "text", "output_type", "text/plain", "image/png", "traceback"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"cell_type": st.sampled_from(["code", "markdown", "raw"])},
            optional={
                "id": VALUES,
                "source": VALUES,
                "outputs": st.lists(VALUES) | VALUES,
                "execution_count": VALUES,
                "metadata": VALUES,
            },
        ),
        max_size=4,
    ),
    st.integers(0, 3),
)
def test_whatever_is_in_the_cells_they_can_be_shown(cells: list[Json], offset: int) -> None:
    read = read_notebook(json.dumps(notebook(*cells)))
    page = show_cells(read, offset=offset, limit=2)
    assert page.end - page.first == max(0, min(2, len(cells) - offset))
    for line in page.text.split("\n") if page.text else []:
        assert line.startswith(("--- cell ", "   out|")) or line[:7].strip(" |").isdigit()


@given(st.text(alphabet='{}[]:,"\\ 4a', max_size=40) | st.text(max_size=20))
def test_reading_any_text_gives_a_notebook_or_says_why_not(text: str) -> None:
    try:
        read = read_notebook(text)
    except NoNotebook:
        return
    assert json.loads(read.text)["nbformat"] in (3, 4)


def test_no_library_of_notebooks_is_loaded() -> None:
    code = "import sys, crush_kernel.runtime; print([m for m in sys.modules if 'nbformat' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def test_a_model_without_eyes_reads_the_text_of_a_document(project: Project) -> None:
    project.can_see = False
    project.write("a.pdf", pdf_of("first page", "second page"))
    output = await project.view("a.pdf")
    assert output.text == (
        "--- page 1 ---\nfirst page\n--- page 2 ---\nsecond page\n\n"
        "[text of a.pdf, pages 1-2 of 2; the end]"
    )
    assert not output.media


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        pytest.param(pdf_of("a", "b", "c"), {"offset": 1, "limit": 1},
                     "--- page 2 ---\nb\n\n[text of a.pdf, pages 2-2 of 3; go on with offset=2]",
                     id="some pages"),
        pytest.param(pdf_of(*["x"] * 120), {}, "pages 1-120 of 120; the end",
                     id="too long to send"),
        pytest.param(pdf(), {"limit": 1}, "[no text: maybe it is a picture]", id="no text"),
    ],
)  # fmt: skip
async def test_pages_of_a_document_come_as_text(
    project: Project, content: bytes, arguments: dict[str, int], said: str
) -> None:
    project.write("a.pdf", content)
    output = await project.view("a.pdf", **arguments)
    assert said in output.text
    assert not output.media


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(pdf_of("a"), "has only 1 page; offset 7 is past its end", id="past the end"),
        pytest.param(b"%PDF-1.4 no more", "damaged or no PDF", id="no document"),
        pytest.param(encrypted_pdf(b"secret"), "it is encrypted", id="encrypted"),
    ],
)
async def test_what_has_no_such_pages_is_told(project: Project, content: bytes, said: str) -> None:
    project.write("a.pdf", content)
    assert said in await project.refusal("a.pdf", offset=7)
