"""What `notebook_edit` is asked to do, and what that makes of the cells of a notebook.

Pure.
"""

from typing import Literal

from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.tools.base import Arguments
from crush_kernel.tools.notebook.splice import CellType, Splice
from crush_kernel.tools.notebook.text import Cell, NotebookText

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

    @property
    def deed(self) -> str:
        """What is to be done, in words before the name of the notebook."""
        return f"{self.action} a cell {'into' if self.action == 'insert' else 'of'}"


def require_fitting(arguments: NotebookEditArguments) -> None:
    """Refuse what can only be a slip: an action without its cell or its source.

    Raises:
        ToolError: something is missing, or too much.
    """
    action, given = arguments.action, arguments.model_fields_set
    if action != "insert" and not arguments.cell_id:
        raise ToolError(f"cell_id is missing: say which cell to {action}.")
    if action == "insert" and arguments.cell_id:
        raise ToolError("A new cell gets its id here: leave cell_id out, and say after which.")
    if action in ("insert", "replace") and "source" not in given:
        raise ToolError(f"source is missing: say what the cell to {action} holds.")
    if action == "move" and "after" not in given:
        raise ToolError("after is missing: say below which cell to move it; empty for the top.")


def apply(
    splice: Splice, notebook: NotebookText, arguments: NotebookEditArguments, path: str
) -> str:
    """Do what `arguments` say and return what was done, to go after the path; else nothing.

    Raises:
        ToolError: there is no such cell.
    """
    if arguments.action == "insert":
        position = _below(notebook, arguments.after, path)
        kind = arguments.cell_type or "code"
        name = splice.insert(position, kind, arguments.source)
        named = f" with the id {name}" if name else ", which has no id in this old version"
        return f"inserted {kind} cell {position + 1}{named}"
    position = find(notebook, arguments.cell_id, path)
    cell = notebook.cells[position]
    match arguments.action:
        case "replace":
            kind = arguments.cell_type or type_of(cell)
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


def type_of(cell: Cell) -> CellType:
    """Return the type of `cell`; of one that is not known, raw."""
    return "code" if cell.type == "code" else "markdown" if cell.type == "markdown" else "raw"


def find(notebook: NotebookText, name: str, path: str) -> int:
    """Return the position of the cell called `name`, from 0.

    Raises:
        ToolError: there is none.
    """
    position = notebook.position_of(name)
    if position is None:
        raise ToolError(_unknown(notebook, name, path))
    return position


def _below(notebook: NotebookText, name: str, path: str) -> int:
    """Return the position below the cell called `name`, or the top."""
    return find(notebook, name, path) + 1 if name else 0


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
