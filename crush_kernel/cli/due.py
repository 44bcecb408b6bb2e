"""Which cells of a notebook have to run, and why.

Pure. A cell is up to date if its record says that its turn ended well, with the text that
the cell has now, in the context that stands above it now, and that nothing was refused in it
only because nobody could be asked. Whether the context is the same only the kernel knows; it
tells by a list of stale cells.

A command such as `/model` leaves no record, and what it sets holds for one kernel only. So
commands run along whenever any other cell has to run, above it and below it, and alone only
if they never ran or failed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from crush_kernel.cli.records import Json, Notebook, kept_record, shown_record
from crush_kernel.cli.unasked import has_unasked
from crush_kernel.history.turn import VERSION, source_digest
from crush_kernel.kernel.cells import Command, parse_cell
from crush_kernel.messages import well_formed

SKIP_TAG = "skip-execution"
"""The tag of cells that are never run; nbclient's."""

Reason = Literal[
    "never run",
    "interrupted",
    "failed",
    "edited",
    "nobody to ask",
    "context changed",
    "record unreadable",
    "command",
    "asked for",
]


@dataclass(frozen=True, slots=True)
class CellState:
    """One code cell, as far as it matters here."""

    id: str
    source: str
    record: Mapping[str, object] | None = None
    """Its turn, from its metadata or else from its outputs."""
    has_run: bool = False
    """Whether it has an execution count."""
    has_failed: bool = False
    """Whether an `error` stands in its outputs."""


def states(notebook: Notebook) -> tuple[CellState, ...]:
    """Return the code cells of `notebook` that can run, in its order.

    Those without text and those tagged `skip-execution` cannot.
    """
    return tuple(_state(cell) for cell in notebook["cells"] if is_runnable(cell))


def is_runnable(cell: Json) -> bool:
    """Return whether `cell` is code that may be run."""
    tags = cell["metadata"].get("tags", ())
    return cell["cell_type"] == "code" and bool(cell["source"].strip()) and SKIP_TAG not in tags


def due(
    cells: Sequence[CellState],
    *,
    stale: Collection[str] = (),
    ran: Collection[str] = (),
    runs_all: bool = False,
) -> dict[str, Reason]:
    """Return the ids of the cells that have to run, in their order, with the reason.

    Args:
        cells: the cells that can run, from top to bottom.
        stale: the cells whose context has changed since they ran.
        ran: the cells that this kernel has run, well or not; they are not due again.
        runs_all: run cells that are up to date, too.
    """
    waiting = [cell for cell in cells if cell.id not in ran]
    reasons: dict[str, Reason | None] = {cell.id: _reason(cell, stale) for cell in waiting}
    does_anything_run = bool(ran) or any(reasons.values())
    for cell in waiting:
        if runs_all:
            reasons[cell.id] = reasons[cell.id] or "asked for"
        elif does_anything_run and _is_command(cell):
            reasons[cell.id] = reasons[cell.id] or "command"
    return {cell_id: reason for cell_id, reason in reasons.items() if reason}


def _reason(cell: CellState, stale: Collection[str]) -> Reason | None:
    record = cell.record
    if record is None:
        if not _is_command(cell) or not cell.has_run:
            return "never run"
        return "failed" if cell.has_failed else None
    if record.get("version") != VERSION:
        return "record unreadable"
    # As the kernel reads it: a turn that did not end in a way we know was cut short.
    if record.get("end") != "end_turn":
        return "failed" if record.get("end") == "error" else "interrupted"
    if record.get("source") not in ("", None, source_digest(cell.source)):
        return "edited"
    if has_unasked(record):
        return "nobody to ask"
    return "context changed" if cell.id in stale else None


def _is_command(cell: CellState) -> bool:
    """Return whether `cell` is a command that leaves no turn."""
    return cell.record is None and isinstance(parse_cell(cell.source), Command)


def _state(cell: Json) -> CellState:
    outputs = cell.get("outputs", ())
    return CellState(
        id=cell["id"],
        # As the kernel gets it: half a character does not go over the wire.
        source=well_formed(cell["source"]),
        record=kept_record(cell) or shown_record(cell),
        has_run=cell.get("execution_count") is not None,
        has_failed=any(output.get("output_type") == "error" for output in outputs),
    )
