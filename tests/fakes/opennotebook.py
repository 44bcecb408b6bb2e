"""The page of the open notebook, in memory: what it is asked to do it does, or says why not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from crush_kernel.messages import JsonObject
from crush_kernel.tools.notebook.openpage import (
    Absence,
    CellChange,
    CellDeleted,
    CellInserted,
    CellMoved,
    CellReplaced,
    NoPage,
    PageCell,
    Refusal,
)


@dataclass
class FakeOpenPage:
    """Shows `shown`."""

    shown: list[PageCell]
    known: dict[str, Sequence[JsonObject]] = field(default_factory=dict[str, Sequence[JsonObject]])
    """What the kernel knows of outputs."""
    absence: Absence | None = None
    refusal: Refusal | None = None
    changes: list[CellChange] = field(default_factory=list[CellChange])
    looked: Callable[[], None] = lambda: None
    """Called each time the cells are asked for."""

    async def cells(self) -> tuple[PageCell, ...]:
        self.looked()
        if self.absence is not None:
            raise NoPage(self.absence)
        return tuple(self.shown)

    def outputs(self, cell_id: str) -> Sequence[JsonObject]:
        return self.known.get(cell_id, ())

    async def edit(self, change: CellChange) -> Refusal | None:
        self.changes.append(change)
        if self.refusal is None:
            self._apply(change)
        return self.refusal

    def _apply(self, change: CellChange) -> None:
        places = {cell.id: place for place, cell in enumerate(self.shown)}
        match change:
            case CellInserted():
                cell = PageCell(change.cell_id, change.cell_type, change.source)
                self.shown.insert(places.get(change.after, -1) + 1, cell)
            case CellReplaced():
                place = places[change.cell_id]
                former = self.shown[place]
                self.shown[place] = replace(former, type=change.cell_type, source=change.source)
            case CellDeleted():
                del self.shown[places[change.cell_id]]
            case CellMoved():
                assert change.after != change.cell_id, "a move to where it is"
                cell = self.shown.pop(places[change.cell_id])
                left = [each.id for each in self.shown]
                self.shown.insert(left.index(change.after) + 1 if change.after else 0, cell)
