"""What the kernel and the pages say to each other over comm `crush.notebook`.

A page opens the comm with `{version, path, notebook, cells, is_headless}`. Each message
then has a `method`; what is not known is ignored by both sides. The other ends are
`cli.notebookpage` and the extension's `protocol.ts`; one list of examples is held against
all three.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from crush_kernel.history.outputs import saved_outputs
from crush_kernel.kernel.mirror import CellOutputs

if TYPE_CHECKING:
    # These cost a quarter of a second to import, and no page waits before `kernel_info`.
    from crush_kernel.history.notebook import NotebookContents
    from crush_kernel.history.session import CellUpdate, Session

TARGET: Final = "crush.notebook"

Message = Mapping[str, Any]

_TOLD: Final = frozenset(("crush", "record", "execution_count"))
"""What is told of a cell in full, as pages do once."""


# What pages say


def data_of(message: Message) -> Message:
    """Return what `message` of a comm says, nothing if it is no object."""
    data: object = message["content"].get("data")
    return cast("Message", data) if isinstance(data, Mapping) else {}


def client_of(message: Message) -> str:
    """Return the session of the client that has sent `message`."""
    header = cast("Mapping[str, object]", message.get("header") or {})
    return str(header.get("session", ""))


def contents_of(data: Message) -> "NotebookContents":
    """Return what a page tells of its notebook; takes long for a large one."""
    from crush_kernel.history.notebook import read_cells  # noqa: PLC0415 - see above

    return read_cells(data.get("cells"), notebook=data.get("notebook"))


def told_in_full(data: Message) -> Collection[str]:
    """Return the cells that a page tells everything of, not only that they are still there."""
    cells: object = data.get("cells")
    listed = cast("list[object]", cells) if isinstance(cells, list) else []
    entries = [cast("Mapping[str, object]", cell) for cell in listed if isinstance(cell, Mapping)]
    return {str(cell.get("id")) for cell in entries if not _TOLD.isdisjoint(cell)}


# What pages are told


def turn_message(cell_id: str, record: Message | None, source: str | None = None) -> Message:
    """Have a cell keep a turn, or none, and say `source` if there is one."""
    message = {"method": "turn", "cell_id": cell_id, "record": record}
    return message if source is None else {**message, "source": source}


def turn_messages(updates: "Iterable[CellUpdate]") -> list[Message]:
    """Have cells keep what `updates` say."""
    return [turn_message(each.cell_id, each.record, each.source) for each in updates]


def session_messages(session: "Session") -> list[Message]:
    """Have the notebook keep its header, and mark the cells that are stale."""
    header = {
        "method": "session",
        "record": session.header(),
        "revision": len(session.conversation.turns),
    }
    return [header, {"method": "stale", "cells": list(session.conversation.stale())}]


def outputs_message(cells: Sequence[CellOutputs]) -> Message:
    """Have cells show what they show here."""
    return {"method": "outputs", "cells": [_picture(cell) for cell in cells]}


def _picture(shown: CellOutputs) -> Message:
    return {
        "cell_id": shown.cell_id,
        "outputs": saved_outputs(shown.outputs),
        "execution_count": None if shown.is_running else shown.execution_count,
        "is_running": shown.is_running,
    }


def said_message(cell_id: str, index: int, messages: Sequence[Any]) -> Message:
    """Tell what was said in a turn that goes on, from its message `index` on."""
    return {"method": "said", "cell_id": cell_id, "index": index, "messages": messages}


def notice_message(cell_id: str, text: str) -> Message:
    """Tell something that the user should know: one sentence."""
    return {"method": "notice", "cell_id": cell_id, "text": text}


def steering_message(cell_id: str, *, is_open: bool) -> Message:
    """Tell whether the turn of a cell that runs takes messages from now on."""
    return {"method": "steering", "cell_id": cell_id, "is_open": is_open}


def look_message(request: str) -> Message:
    """Have a page tell its cells and what they say; its answer names `request`."""
    return {"method": "look", "id": request}


def edit_message(request: str, change: Message) -> Message:
    """Have a page change one cell; its answer names `request`."""
    return {"method": "edit", "id": request, **change}


def ready_message(kernel: str) -> Message:
    """Answer the opening, after all that followed from it.

    Args:
        kernel: names the kernel process.
    """
    return {"method": "ready", "kernel": kernel}
