"""What the cells of this kernel show, as a front end that missed nothing holds it.

A page that is opened again gets from here what it has missed. Outputs are kept as long as
they are not too many; those of older cells are in the journal.

Main loop.
"""

from dataclasses import dataclass, field
from typing import Any

from crush_kernel.history.outputs import apply_output

MAX_CHARS = 16_000_000
"""Of all outputs together, roughly; the cell that runs is always kept."""


@dataclass(slots=True)
class CellOutputs:
    """One run of a cell, as far as it has come."""

    cell_id: str
    execution_count: int | None
    outputs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    is_running: bool = True
    changes: int = 0
    """How many messages have changed the outputs."""

    def apply(self, msg_type: str, content: dict[str, Any]) -> None:
        """Take in one output message."""
        apply_output(self.outputs, msg_type, content)
        self.changes += 1


class Mirror:
    """The outputs of the cells by their ids, the latest run of each."""

    def __init__(self) -> None:
        self._cells: dict[str, CellOutputs] = {}
        self._sizes: dict[str, int] = {}

    def begin(self, cell_id: str, execution_count: int | None) -> CellOutputs:
        """Have `cell_id` show nothing and run; cells without an id are not kept."""
        run = CellOutputs(cell_id, execution_count)
        if cell_id:
            self._cells.pop(cell_id, None)
            self._sizes.pop(cell_id, None)
            self._cells[cell_id] = run
        return run

    def end(self, run: CellOutputs) -> None:
        """Note that `run` is over, and let go of the oldest outputs where there are too many."""
        run.is_running = False
        if self._cells.get(run.cell_id) is not run:
            return
        self._sizes[run.cell_id] = _size(run.outputs)
        total = sum(self._sizes.values())
        for cell_id in [cell for cell in self._sizes if cell != run.cell_id]:
            if total <= MAX_CHARS:
                break
            total -= self._sizes.pop(cell_id)
            del self._cells[cell_id]

    def get(self, cell_id: str) -> CellOutputs | None:
        """Return the latest run of `cell_id`, `None` if it did not run or was let go."""
        return self._cells.get(cell_id)

    def restore(
        self, cell_id: str, outputs: list[dict[str, Any]], execution_count: int | None
    ) -> CellOutputs:
        """Have `cell_id` show `outputs`, which it showed before."""
        run = self.begin(cell_id, execution_count)
        run.outputs = outputs
        self.end(run)
        return run


def _size(value: object) -> int:
    match value:
        case str():
            return len(value)
        case dict():
            return sum(map(_size, value.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        case list():
            return sum(map(_size, value))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return 0
