"""Change cells of a notebook in memory, as the kernel asks whose cells are being run.

Pure, but for the notebook, which is changed in place. Source: `kernel.pages.messages`; the
extension's `celledits.ts` does the same in a browser.
"""

from crush_kernel.cli.notebookformat import nbformat
from crush_kernel.cli.records import Json, Notebook

Refusal = str
"""Why a cell is not changed, in the words of the protocol."""

_KEPT = ("id", "metadata", "attachments")
"""What a cell keeps that becomes one of another type, as far as that type has it."""


def shown_cells(notebook: Notebook, running: str | None) -> list[Json]:
    """Return the cells from top to bottom, as a model is to see them."""
    return [
        {
            "id": cell["id"],
            "type": cell["cell_type"],
            "source": cell["source"],
            "outputs": len(cell.get("outputs", ())),
            "execution_count": cell.get("execution_count"),
            "is_busy": cell["id"] == running,
        }
        for cell in notebook["cells"]
    ]


def edit_cell(notebook: Notebook, edit: Json, running: str | None) -> Refusal | None:
    """Do one edit, and return why nothing was done.

    Args:
        notebook: with an id in each cell.
        edit: what the kernel has sent.
        running: the cell that runs, which stays as it is.
    """
    cells: list[Json] = notebook["cells"]
    places = {cell["id"]: place for place, cell in enumerate(cells)}
    match edit:
        case {
            "action": "insert",
            "cell_id": str() as name,
            "cell_type": "code" | "markdown" | "raw" as kind,
            "source": str() as source,
            "after": str() as after,
        }:
            if not name or name in places:
                return "taken"
            if after and after not in places:
                return "unknown"
            cells.insert(_below(places, after), _new_cell(kind, source, id=name))
            return None
        case {"cell_id": str() as name} if name in places:
            if name == running:
                return "busy"
            return _edit_known(cells, places, edit, places[name])
        case _:
            return "unknown"


def _edit_known(
    cells: list[Json], places: dict[str, int], edit: Json, place: int
) -> Refusal | None:
    cell = cells[place]
    match edit:
        case {"action": "move", "after": str() as after}:
            if after and after not in places:
                return "unknown"
            to = _below(places, after)
            cells.insert(to - (to > place), cells.pop(place))
        case {"former": str() as former} if former != cell["source"]:
            return "changed"
        case {
            "action": "replace",
            "cell_type": "code" | "markdown" | "raw" as kind,
            "source": str() as source,
        }:
            if cell["metadata"].get("editable") is False:
                return "locked"
            _replace(cells, place, kind, source)
        case {"action": "delete"}:
            if cell["metadata"].get("deletable") is False:
                return "locked"
            del cells[place]
        case _:
            return "unknown"
    return None


def _replace(cells: list[Json], place: int, kind: str, source: str) -> None:
    """Have a cell say something else; what it shows stays, as where somebody types."""
    cell = cells[place]
    if cell["cell_type"] == kind:
        cell["source"] = source
        return
    kept = {name: cell[name] for name in _KEPT if name in cell}
    if kind == "code":
        kept.pop("attachments", None)
    cells[place] = _new_cell(kind, source, **kept)


def _new_cell(kind: str, source: str, **fields: object) -> Json:
    cell: Json = {"cell_type": kind, "metadata": {}, "source": source, **fields}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return nbformat.from_dict(cell)


def _below(places: dict[str, int], after: str) -> int:
    return places[after] + 1 if after else 0
