"""One run of a cell: where it came from, where its outputs go, and what is kept of it."""

from dataclasses import dataclass
from typing import Any

from crush_kernel.history.conversation import CellRun
from crush_kernel.history.notebook import RECORD_MIME_TYPE
from crush_kernel.kernel.display import FrontEnd
from crush_kernel.kernel.keeping import CellKeeper
from crush_kernel.kernel.outlet import Outlet
from crush_kernel.kernel.render import Rendered
from crush_kernel.messages import JsonObject


@dataclass(slots=True)
class RunningCell:
    """One run of a cell, and what it needs."""

    code: str
    cell_id: str
    outlet: Outlet
    front_end: FrontEnd
    keeper: CellKeeper
    place: CellRun | None = None
    """Of its turn, once that has begun."""


def front_end_of(cell_id: str, *, allow_stdin: bool, is_headless: bool = False) -> FrontEnd:
    """Return what kind of front end sent a cell, by what its request tells (design §7).

    Args:
        cell_id: the id that the front end gave.
        allow_stdin: whether it has a keyboard.
        is_headless: whether it said that nobody is there to press a button.
    """
    if cell_id and not is_headless:
        return "rich"
    if is_headless:
        return "headless"
    return "console" if allow_stdin else "headless"


def show(what: Rendered, cell: RunningCell, record: JsonObject | None = None) -> None:
    """Show something that will not change any more, with the turn that is kept beside it."""
    if cell.front_end == "console":
        cell.outlet.publish("stream", {"name": "stdout", "text": f"{what.plain}\n"})
        return
    data: dict[str, Any] = {**what.bundle()}
    if record is not None:
        data[RECORD_MIME_TYPE] = record
    cell.outlet.publish("display_data", {"data": data, "metadata": {}, "transient": {}})
