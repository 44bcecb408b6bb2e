"""`notebook_edit`: insert, replace, delete or move one cell of a notebook."""

import secrets
from typing import Literal

from anyio.to_thread import run_sync
from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.textfile import has_undecoded_bytes
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.filechange import (
    NOTEBOOK_TOOL,
    AfterWrite,
    Files,
    OpenNotebook,
    Proposal,
    Snapshot,
    is_called_notebook,
    no_notebook,
    require_text,
    say_nothing,
)
from crush_kernel.tools.notebooksplice import EMPTY, CellType, NewId, Splice
from crush_kernel.tools.notebooktext import (
    Cell,
    NoNotebook,
    NotebookText,
    listing,
    read_notebook,
)
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.tracker import ReadTracker

Action = Literal["insert", "replace", "delete", "move"]

MAX_NEAR_IDS = 4
MIN_LIKENESS = 50.0
"""Of 100: below it, ids have hardly a letter in common."""

PREVIEW_CHARS = 40


class NotebookEditArguments(Arguments):
    """What `notebook_edit` is asked to do."""

    file_path: str = Field(description="The notebook, relative to the working directory.")
    action: Action = Field(description="What to do with the cell.")
    cell_id: str = Field(
        default="", description="The cell to replace, delete or move, by the id that `view` shows."
    )
    after: str = Field(
        default="",
        description="For insert and move: the id of the cell to go below. Empty for the top.",
    )
    source: str = Field(
        default="", description="For insert and replace: the whole source of the cell."
    )
    cell_type: Literal["", CellType] = Field(
        default="",
        description="For insert and replace. Empty for a code cell, or for the type that it has.",
    )


def random_id() -> str:
    """Return an id as Jupyter makes them."""
    return secrets.token_hex(4)


def notebook_edit_tool(
    paths: PathPolicy,
    tracker: ReadTracker,
    *,
    after_write: AfterWrite = say_nothing,
    notebook: OpenNotebook = no_notebook,
    new_id: NewId = random_id,
) -> Tool[NotebookEditArguments]:
    """Return the tool.

    Args:
        paths: where it may write.
        tracker: the one that `view` uses, too.
        after_write: is told of what was written.
        notebook: which one runs, and is left alone.
        new_id: gives ids of new cells.
    """
    files = Files(paths, tracker, after_write, notebook)

    async def run(arguments: NotebookEditArguments, context: ToolContext) -> ToolOutput:
        require_text("source", arguments.source)
        _require_fitting(arguments)
        before = await files.load(arguments.file_path, by_cells=True)
        _require_named_notebook(before)
        files.require_seen(before)
        proposal = await run_sync(_propose, before, arguments, new_id, abandon_on_cancel=True)
        if before.data is not None and proposal.text == before.text:
            return ToolOutput(
                f"{before.target.shown} is like that already; there is nothing to do.",
                summary="unchanged",
            )
        return await files.change(before, proposal, context, tool=NOTEBOOK_TOOL)

    def describe(arguments: NotebookEditArguments) -> str:
        cell = f" {printable(arguments.cell_id)}" if arguments.cell_id else ""
        return f"{files.describe(arguments.file_path)} {arguments.action}{cell}"

    return Tool(
        name=NOTEBOOK_TOOL,
        description=description_of(NOTEBOOK_TOOL),
        arguments=NotebookEditArguments,
        run=run,
        describe=describe,
        timeout_s=QUICK_S,
    )


def _require_fitting(arguments: NotebookEditArguments) -> None:
    """Refuse what can only be a slip: an action without its cell or its source."""
    action, given = arguments.action, arguments.model_fields_set
    if action != "insert" and not arguments.cell_id:
        raise ToolError(f"cell_id is missing: say which cell to {action}.")
    if action == "insert" and arguments.cell_id:
        raise ToolError("A new cell gets its id here: leave cell_id out, and say after which.")
    if action in ("insert", "replace") and "source" not in given:
        raise ToolError(f"source is missing: say what the cell to {action} holds.")
    if action == "move" and "after" not in given:
        raise ToolError("after is missing: say below which cell to move it; empty for the top.")


def _require_named_notebook(before: Snapshot) -> None:
    if not is_called_notebook(before.target):
        raise ToolError(f"{before.target.shown} is no notebook. Change text with edit.")


def _propose(before: Snapshot, arguments: NotebookEditArguments, new_id: NewId) -> Proposal:
    """Return what `arguments` make of the notebook `before`.

    Raises:
        ToolError: it is none that can be changed, or has no such cell.
    """
    if before.data is None and arguments.action != "insert":
        raise ToolError(f"{before.target.shown} does not exist. Check the path.")
    is_empty = not before.text.strip()
    notebook = _read(before, EMPTY if is_empty else before.text)
    splice = Splice(notebook, new_id)
    report = _apply(splice, notebook, arguments, before.target.shown)
    text = splice.text() if report else before.text
    former = None if before.data is None else "" if is_empty else listing(notebook)
    return Proposal(
        text,
        verb="create" if before.data is None else f"{arguments.action} a cell of",
        report=report,
        compared=(former, listing(read_notebook(text))),
    )


def _read(before: Snapshot, text: str) -> NotebookText:
    name = before.target.shown
    try:
        notebook = read_notebook(text)
    except NoNotebook as error:
        raise ToolError(
            f"{name} cannot be changed by cells: {error}. Mend its text with edit."
        ) from error
    if notebook.version != 4:
        raise ToolError(
            f"{name} is of version 3 of the notebook format, which is read only here. Convert "
            f"it with: jupyter nbconvert --to notebook --nbformat 4 --inplace {name}"
        )
    if has_undecoded_bytes(text):
        raise ToolError(f"{name} has bytes that are no text. Mend them with a command first.")
    return notebook


def _apply(
    splice: Splice, notebook: NotebookText, arguments: NotebookEditArguments, path: str
) -> str:
    """Do what `arguments` say and return what was done, to go after the path; else nothing."""
    if arguments.action == "insert":
        position = _below(notebook, arguments.after, path)
        kind = arguments.cell_type or "code"
        name = splice.insert(position, kind, arguments.source)
        named = f" with the id {name}" if name else ", which has no id in this old version"
        return f"inserted {kind} cell {position + 1}{named}"
    position = _find(notebook, arguments.cell_id, path)
    cell = notebook.cells[position]
    match arguments.action:
        case "replace":
            kind = arguments.cell_type or _type_of(cell)
            if cell.source == arguments.source and kind == cell.type:
                return ""
            splice.replace(position, kind, arguments.source)
            cleared = "; its outputs were cleared, since they were those of the former source"
            return f"replaced cell {arguments.cell_id}{cleared if cell.outputs else ''}"
        case "delete":
            splice.delete(position)
            return f"deleted cell {arguments.cell_id}, {len(notebook.cells) - 1} are left"
        case "move":
            to = _below(notebook, arguments.after, path)
            to -= to > position
            splice.move(position, to)
            return f"moved cell {arguments.cell_id}, which is cell {to + 1} now"


def _type_of(cell: Cell) -> CellType:
    return "code" if cell.type == "code" else "markdown" if cell.type == "markdown" else "raw"


def _below(notebook: NotebookText, name: str, path: str) -> int:
    """Return the position below the cell called `name`, or the top."""
    return _find(notebook, name, path) + 1 if name else 0


def _find(notebook: NotebookText, name: str, path: str) -> int:
    position = notebook.position_of(name)
    if position is None:
        raise ToolError(_unknown(notebook, name, path))
    return position


def _unknown(notebook: NotebookText, name: str, path: str) -> str:
    """Return that there is no cell called `name`, with those that may be meant."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - 25 ms that only a miss needs

    said = f"{path} has no cell with the id '{printable(name[:80])}', so nothing was written."
    if not notebook.cells:
        return f"{said} It has no cells at all."
    names = [cell.name for cell in notebook.cells]
    found = process.extract(
        name[:80], names, scorer=fuzz.ratio, limit=MAX_NEAR_IDS, score_cutoff=MIN_LIKENESS
    )
    near = [f"{each} ({_preview(notebook, place)})" for each, _, place in found]
    if not near:
        return f"{said} View it for the ids of its {len(names)} cells."
    return f"{said} Did you mean {' or '.join(near)}?"


def _preview(notebook: NotebookText, position: int) -> str:
    cell = notebook.cells[position]
    line = next((line for line in cell.source.splitlines() if line.strip()), "")
    start = f": {printable(line.strip()[:PREVIEW_CHARS])}" if line else ""
    return f"cell {position + 1}, {cell.type}{start}"
