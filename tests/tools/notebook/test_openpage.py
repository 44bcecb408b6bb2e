"""`view` and `notebook_edit` on the notebook whose cells run, which a page shows."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.notebook.change import NotebookEditArguments
from crush_kernel.tools.notebook.openpage import (
    Absence,
    CellDeleted,
    CellInserted,
    CellMoved,
    CellReplaced,
    NotebookDesk,
    PageCell,
    Refusal,
)
from crush_kernel.tools.notebook_edit import notebook_edit_tool
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.view import ViewArguments, view_tool
from crush_kernel.tools.write import WriteArguments, write_tool
from tests.fakes.opennotebook import FakeOpenPage
from tests.fakes.tool_context import FakeContext, tool_context

pytestmark = pytest.mark.anyio

SAVED = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'

CELLS = (
    PageCell("intro", "markdown", "# Prices"),
    PageCell("asked", "code", "Explain it.", execution_count=1, outputs=1, has_turn=True),
    PageCell("now", "code", "Tidy up.", outputs=2, is_busy=True, has_turn=True),
    PageCell("next", "code", "Go on."),
)


class Desk:
    """A folder with an open notebook, which was saved before anything was in it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "open.ipynb"
        self.path.write_text(SAVED, encoding="utf-8")
        self.page = FakeOpenPage([*CELLS])
        files = Files(
            PathPolicy(root=folder, cwd=folder),
            notebook=lambda: self.path,
            desk=NotebookDesk(self.page),
        )
        names = count(1)
        self.viewing = view_tool(files, accepts=lambda _: True)
        self.editing = notebook_edit_tool(files, new_id=lambda: f"new{next(names)}")
        self.writing = write_tool(files)

    async def view(self, **arguments: int) -> ToolOutput:
        given = ViewArguments.model_validate({"file_path": "open.ipynb", **arguments})
        with anyio.fail_after(10):
            return await self.viewing.run(given, tool_context().context)

    async def edit(self, action: str, **arguments: str) -> ToolOutput:
        return await self.ask(tool_context(), action, **arguments)

    async def ask(self, fake: FakeContext, action: str, **arguments: str) -> ToolOutput:
        given = NotebookEditArguments.model_validate(
            {"file_path": "open.ipynb", "action": action, **arguments}
        )
        with anyio.fail_after(10):
            return await self.editing.run(given, fake.context)

    async def refusal(self, action: str, **arguments: str) -> str:
        with pytest.raises(ToolError) as refused:
            await self.edit(action, **arguments)
        return str(refused.value)

    @property
    def sources(self) -> list[str]:
        return [cell.source for cell in self.page.shown]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path.resolve())


# Looking


async def test_the_cells_are_those_of_the_page_with_the_outputs_that_are_known(desk: Desk) -> None:
    output: Any = {"output_type": "stream", "name": "stdout", "text": "It is a list.\n"}
    desk.page.known["asked"] = [output]
    seen = await desk.view()
    assert seen.text == (
        "--- cell 1 · id intro · markdown ---\n"
        "     1|# Prices\n"
        "--- cell 2 · id asked · code · run 1 ---\n"
        "     1|Explain it.\n"
        "   out|It is a list.\n"
        "--- cell 3 · id now · code ---\n"
        "     1|Tidy up.\n"
        "   out|[it runs now, or waits to be run]\n"
        "--- cell 4 · id next · code ---\n"
        "     1|Go on.\n"
        "\n"
        "[whole notebook: 4 cells; the notebook in which you run, as it is in the page now]"
    )
    assert seen.summary == "4 cells"


async def test_outputs_that_only_the_page_has_are_named(desk: Desk) -> None:
    seen = await desk.view(offset=1, limit=1)
    assert "   out|[1 output, shown in the page only: the saved file has it]" in seen.text
    assert "cells 2-2 of 4; the notebook in which you run" in seen.text


async def test_an_offset_past_the_end_is_refused(desk: Desk) -> None:
    with pytest.raises(ToolError, match="has only 4 cells; offset 9"):
        await desk.view(offset=9)


@pytest.mark.parametrize("absence", ["nobody", "silent"])
async def test_without_a_page_the_file_is_shown_and_said_to_be_older(
    desk: Desk, absence: Absence
) -> None:
    desk.page.absence = absence
    seen = await desk.view()
    assert "a notebook without cells" in seen.text
    assert "as it was saved last: no page tells what it holds now" in seen.text


async def test_half_a_character_in_a_cell_is_no_reason_to_fail(desk: Desk) -> None:
    desk.page.shown = [PageCell("a", "code", "half \ud83d")]
    assert "half �" in (await desk.view()).text


# Changing


@pytest.mark.parametrize(
    ("action", "arguments", "sources", "report"),
    [
        pytest.param(
            "insert",
            {"source": "Ask more.", "after": "now"},
            ["# Prices", "Explain it.", "Tidy up.", "Ask more.", "Go on."],
            "open.ipynb: inserted code cell 4 with the id new1. It is a prompt to you; it was not "
            "run, that is for the user.",
            id="insert below the cell that runs",
        ),
        pytest.param(
            "insert",
            {"source": "# Title", "cell_type": "markdown"},
            ["# Title", "# Prices", "Explain it.", "Tidy up.", "Go on."],
            "open.ipynb: inserted markdown cell 1 with the id new1.",
            id="insert a text at the top",
        ),
        pytest.param(
            "replace",
            {"cell_id": "asked", "source": "Explain more."},
            ["# Prices", "Explain more.", "Tidy up.", "Go on."],
            "open.ipynb: replaced cell asked. What it shows is of its former source until the "
            "user runs it.",
            id="replace",
        ),
        pytest.param(
            "delete",
            {"cell_id": "asked"},
            ["# Prices", "Tidy up.", "Go on."],
            "open.ipynb: deleted cell asked, 3 are left. What was said in it is not part of the "
            "conversation any more.",
            id="delete",
        ),
        pytest.param(
            "move",
            {"cell_id": "next", "after": ""},
            ["Go on.", "# Prices", "Explain it.", "Tidy up."],
            "open.ipynb: moved cell next, which is cell 1 now, of 4.",
            id="move",
        ),
    ],
)
async def test_a_cell_is_changed_in_the_page_and_the_file_is_left_alone(
    desk: Desk, action: str, arguments: dict[str, str], sources: list[str], report: str
) -> None:
    await desk.view()
    output = await desk.edit(action, **arguments)
    assert output.text == report
    assert desk.sources == sources
    assert desk.path.read_text(encoding="utf-8") == SAVED


async def test_the_page_is_told_the_change_with_what_it_was_based_on(desk: Desk) -> None:
    await desk.view()
    await desk.edit("insert", source="x", after="now")
    await desk.edit("replace", cell_id="next", source="y", cell_type="raw")
    await desk.edit("move", cell_id="next", after="intro")
    await desk.edit("delete", cell_id="next")
    assert desk.page.changes == [
        CellInserted("new1", "code", "x", after="now"),
        CellReplaced("next", "raw", "y", former="Go on."),
        CellMoved("next", after="intro"),
        CellDeleted("next", former="y"),
    ]


@pytest.mark.parametrize(
    ("action", "arguments", "diff", "notes"),
    [
        pytest.param(
            "insert",
            {"source": "Ask more.", "after": "next"},
            ["+[new1 · code]", "+Ask more."],
            ("it becomes cell 5 of 5, a prompt; it is not run",),
            id="insert",
        ),
        pytest.param(
            "replace",
            {"cell_id": "asked", "source": "Explain more."},
            ["-Explain it.", "+Explain more."],
            ("cell 2 of 4", "what it shows and what was said in it stay until it is run again"),
            id="replace",
        ),
        pytest.param(
            "replace",
            {"cell_id": "asked", "source": "Explain it.", "cell_type": "markdown"},
            ["-[asked · code]", "+[asked · markdown]"],
            ("cell 2 of 4", "it becomes a markdown cell; what it shows goes"),
            id="another type",
        ),
        pytest.param(
            "delete",
            {"cell_id": "asked"},
            ["-[asked · code]", "-Explain it."],
            ("cell 2 of 4", "what was said in it goes with it"),
            id="delete",
        ),
        pytest.param(
            "move",
            {"cell_id": "next", "after": ""},
            ["+[next · code]", "+Go on.", "-[next · code]", "-Go on."],
            ("cell 4 of 4",),
            id="move",
        ),
    ],
)
async def test_the_user_is_asked_with_the_cells_that_change(
    desk: Desk, action: str, arguments: dict[str, str], diff: list[str], notes: tuple[str, ...]
) -> None:
    await desk.view()
    fake = tool_context(allow=False)
    with pytest.raises(PermissionDenied):
        await desk.ask(fake, action, **arguments)
    (request,) = fake.requests
    changed = [line for line in request.diff.splitlines()[2:] if line[0] in "+-" and line[1:]]
    assert changed == diff
    assert (request.action, request.paths, request.notes) == ("write", (desk.path,), notes)
    where = "into" if action == "insert" else "of"
    assert request.title == f"{action} a cell {where} open.ipynb"
    assert desk.page.changes == []


@pytest.mark.parametrize(
    ("action", "arguments", "said"),
    [
        pytest.param("replace", {"cell_id": "now", "source": "x"}, "runs now", id="replace"),
        pytest.param("delete", {"cell_id": "now"}, "runs now", id="delete"),
        pytest.param("move", {"cell_id": "now", "after": ""}, "runs now", id="move"),
        pytest.param("delete", {"cell_id": "nxt"}, "Did you mean next (cell 4, code: Go on.) or",
                     id="no such cell"),
        pytest.param("insert", {"source": "x", "after": "9"}, "no cell with the id '9'",
                     id="no cell to go below"),
    ],
)  # fmt: skip
async def test_a_cell_that_runs_or_is_not_there_is_left_alone_and_nobody_is_asked(
    desk: Desk, action: str, arguments: dict[str, str], said: str
) -> None:
    await desk.view()
    fake = tool_context()
    with pytest.raises(ToolError) as refused:
        await desk.ask(fake, action, **arguments)
    assert said in str(refused.value)
    assert (fake.requests, desk.page.changes) == ([], [])


async def test_a_cell_that_is_like_that_already_is_no_change(desk: Desk) -> None:
    await desk.view()
    assert (await desk.edit("replace", cell_id="next", source="Go on.")).summary == "unchanged"
    assert desk.page.changes == []


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        ("unknown", "is not there any more"),
        ("taken", "Repeat the call"),
        ("changed", "was changed in the page meanwhile"),
        ("busy", "runs now or waits"),
        ("locked", "The user has locked the cell"),
        ("read-only", "read-only"),
        ("gone", "gone before it answered"),
        ("silent", "It may still change the cell"),
    ],
)
async def test_why_a_page_did_nothing_is_told_and_the_cell_counts_as_it_was(
    desk: Desk, refusal: Refusal, said: str
) -> None:
    await desk.view()
    desk.page.refusal = refusal
    assert said in await desk.refusal("replace", cell_id="next", source="x")
    desk.page.refusal = None
    await desk.edit("replace", cell_id="next", source="y")
    assert desk.sources[-1] == "y"


@pytest.mark.parametrize(
    ("absence", "said"),
    [("nobody", "only JupyterLab and Notebook 7 with the Crush extension"), ("silent", "answer")],
)
async def test_without_a_page_nothing_is_changed_and_it_is_said_why(
    desk: Desk, absence: Absence, said: str
) -> None:
    await desk.view()
    desk.page.absence = absence
    refusal = await desk.refusal("delete", cell_id="next")
    assert "is the notebook in which you run" in refusal
    assert said in refusal
    assert "Say in your reply what the user should change" in refusal


async def test_other_tools_are_told_who_changes_it(desk: Desk) -> None:
    given = WriteArguments(file_path="open.ipynb", content="x")
    with pytest.raises(ToolError, match="notebook_edit changes its cells"):
        await desk.writing.run(given, tool_context().context)


# What the model has to know


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("insert", {"source": "x", "after": "now"}),
        ("replace", {"cell_id": "next", "source": "x"}),
        ("delete", {"cell_id": "next"}),
        ("move", {"cell_id": "next", "after": ""}),
    ],
)
async def test_a_notebook_that_was_not_viewed_is_left_alone(
    desk: Desk, action: str, arguments: dict[str, str]
) -> None:
    assert "was not viewed yet" in await desk.refusal(action, **arguments)
    assert desk.page.changes == []


async def test_a_cell_that_was_not_shown_is_left_alone(desk: Desk) -> None:
    await desk.view(limit=2)
    assert "You have not seen the cell next" in await desk.refusal("delete", cell_id="next")
    await desk.view(offset=2)
    await desk.edit("delete", cell_id="next")
    await desk.edit("delete", cell_id="asked")


async def test_a_cell_that_the_user_has_edited_since_is_told_and_then_known(desk: Desk) -> None:
    await desk.view()
    desk.page.shown[3] = replace(CELLS[3], source="Go on, slowly.")
    refusal = await desk.refusal("delete", cell_id="next")
    assert "has changed since you viewed it" in refusal
    assert refusal.endswith("Go on, slowly.")
    await desk.edit("delete", cell_id="next")


async def test_that_the_user_works_on_another_cell_is_no_obstacle(desk: Desk) -> None:
    await desk.view()
    desk.page.shown[1] = replace(CELLS[1], source="Explain it again.")
    desk.page.shown.append(PageCell("mine", "code", "And then?"))
    await desk.edit("replace", cell_id="next", source="x")
    assert desk.sources == ["# Prices", "Explain it again.", "Tidy up.", "x", "And then?"]


async def test_what_the_model_has_written_it_knows(desk: Desk) -> None:
    await desk.view()
    await desk.edit("insert", source="x", after="next")
    await desk.edit("replace", cell_id="new1", source="y")
    await desk.edit("move", cell_id="new1", after="")
    await desk.edit("delete", cell_id="new1")
    assert desk.sources == [cell.source for cell in CELLS]


async def test_the_saved_file_tells_what_cells_said_that_say_so_still(desk: Desk) -> None:
    desk.page.absence = "silent"
    cell = '{"cell_type": "code", "id": "next", "metadata": {}, "source": ["Go on."]}'
    desk.path.write_text(SAVED.replace("[]", f"[{cell}]"), encoding="utf-8")
    await desk.view()
    desk.page.absence = None
    await desk.edit("delete", cell_id="next")
    assert "You have not seen the cell asked" in await desk.refusal("delete", cell_id="asked")


async def test_cells_of_the_same_name_cannot_be_told_apart(desk: Desk) -> None:
    desk.page.shown = [PageCell("a", "code", "x"), PageCell("a", "code", "y")]
    assert "no id, call it #2" in (await desk.view()).text
    assert "has no id of its own" in await desk.refusal("delete", cell_id="#2")


names = st.sampled_from([cell.id for cell in CELLS])
steps_of_all_kinds = st.fixed_dictionaries({
    "action": st.sampled_from(["insert", "replace", "delete", "move"]),
    "cell_id": names,
    "after": names,
    "source": st.text(),
    "cell_type": st.sampled_from(["", "code", "markdown", "raw"]),
})  # fmt: skip


@given(steps=st.lists(steps_of_all_kinds, max_size=6))
async def test_what_the_user_is_asked_is_what_the_page_does(
    tmp_path_factory: pytest.TempPathFactory, steps: list[dict[str, str]]
) -> None:
    desk = Desk(tmp_path_factory.mktemp("law").resolve())
    for step in steps:
        given = step | {"cell_id": ""} if step["action"] == "insert" else step
        seen, fake = await desk.view(), tool_context()
        try:
            output = await desk.ask(fake, **given)
        except ToolError:
            assert (await desk.view()).text == seen.text
            continue
        assert [request.diff for request in fake.requests] == [output.diff] * len(fake.requests)
        assert bool(output.diff) == bool(fake.requests) == (output.summary != "unchanged")
        assert [cell for cell in desk.page.shown if cell.is_busy] == [CELLS[2]]
