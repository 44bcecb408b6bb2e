"""An open page in front of a real kernel: runs cells, keeps what it is told, saves a real file.

Speaks `crush.notebook` as the labextension does, treats outputs as JupyterLab does, and
writes the file as Jupyter's server does. A person sits at it, who answers cards and stops.
"""

import uuid
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crush_kernel.history.notebook import RECORD_MIME_TYPE
from tests.fakes import headless
from tests.fakes.clicks import Person, Press
from tests.fakes.headless import Notebook, nbformat
from tests.fakes.kernel import WAIT_S, Cell, Msg, RunningKernel

Stop = Callable[[Msg], bool]
"""Says of a message whether the person presses Stop when it has come."""


@dataclass
class OpenPage:
    """One notebook that is open in front of a kernel."""

    kernel: RunningKernel
    path: Path
    """Of the notebook."""
    told: list[Msg] = field(default_factory=list[Msg])
    """What the kernel has said over the comm, oldest first."""
    stale: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.notebook: Notebook = headless.read(self.path)
        self._comm = ""
        self._shown: dict[str, list[Any]] = {}
        """The outputs by their display id."""
        self._listed: tuple[str, ...] = ()

    # What a user does

    def open(self) -> "OpenPage":
        """Open the comm and wait until the kernel has told all that it knows."""
        self._comm = uuid.uuid4().hex
        data = {
            "version": 1,
            "path": str(self.path),
            "notebook": self.notebook.metadata.get("crush"),
            "cells": self._entries(),
            "is_headless": False,
        }
        self._send(
            "comm_open",
            {"comm_id": self._comm, "target_name": "crush.notebook", "data": data},
        )
        for _ in self._messages():
            if self.told and self.told[-1]["method"] == "ready":
                break
        return self

    def run(self, index: int, presses: Sequence[Press] = (), *, stop: Stop | None = None) -> Cell:
        """Run a cell to its end, answering its cards with `presses`, one each.

        Raises:
            AssertionError: there is a card too many or too few, or a widget is left behind.
        """
        cell = self.notebook.cells[index]
        self._tell_cells()
        cell.outputs, cell.execution_count = [], None
        request = self.kernel.execute(cell.source, cell_id=cell.id)
        person, left, messages = Person(self.kernel), list(presses), list[Msg]()
        for message in self._messages():
            is_ours = message["parent_header"].get("msg_id") == request
            if is_ours:
                messages.append(message)
                self._show(cell, message)
            if person.sees(message):
                assert left, f"nobody answers the card {person.texts[-6:]}"
                person.press(left.pop(0))
            if stop is not None and is_ours and stop(message):
                stop = None
                self.kernel.interrupt()
            if is_ours and _is_idle(message):
                break
        assert not left, f"no card came for {left}"
        assert stop is None, "there was nothing to stop"
        assert not person.models, f"widgets are left: {person.texts}"
        ended = Cell(self.kernel.reply(request), messages)
        cell.execution_count = ended.reply["content"]["execution_count"]
        return ended

    def edit(self, change: Callable[[list[Any]], object]) -> None:
        """Change the list of the cells."""
        change(self.notebook.cells)
        self._tell_cells()

    def save(self) -> Path:
        """Save the notebook, tell the kernel, and return where it is."""
        self._say({"method": "saving"})
        nbformat.validate(self.notebook)
        nbformat.write(self.notebook, self.path)
        self._say({"method": "saved"})
        return self.path

    # What the kernel says

    def _messages(self) -> Generator[Msg]:
        while True:
            message = self.kernel.client.get_iopub_msg(timeout=WAIT_S)
            content = message["content"]
            if message["msg_type"] == "comm_msg" and content["comm_id"] == self._comm:
                self._hear(content["data"])
            yield message

    def _hear(self, data: Msg) -> None:
        self.told.append(data)
        cells = {cell.id: cell for cell in self.notebook.cells}
        match data:
            case {"method": "turn", "cell_id": cell_id, "record": None}:
                cells[cell_id].metadata.pop("crush", None)
            case {"method": "turn", "cell_id": cell_id, "record": record}:
                cells[cell_id].metadata["crush"] = nbformat.from_dict(record)
                names = {"turn": record["turn"], "revision": record["revision"]}
                self._say({"method": "ack", "cell_id": cell_id, **names})
            case {"method": "session", "record": record, "revision": revision}:
                self.notebook.metadata["crush"] = nbformat.from_dict(record)
                self._say({"method": "ack", "session": revision})
            case {"method": "outputs", "cells": pictures}:
                for picture in pictures:
                    cell = cells[picture["cell_id"]]
                    cell.outputs = nbformat.from_dict(picture["outputs"])
                    cell.execution_count = picture["execution_count"]
            case {"method": "stale", "cells": stale}:
                self.stale = tuple(stale)
            case _:
                pass

    def _show(self, cell: Any, message: Msg) -> None:  # noqa: ANN401 - nbformat carries no types
        content, kind = message["content"], message["msg_type"]
        display_id = content.get("transient", {}).get("display_id", "")
        if kind in ("display_data", "stream", "error"):
            output = nbformat.v4.output_from_msg(message)
            cell.outputs.append(output)
            self._shown.setdefault(display_id, []).append(output)
        elif kind == "update_display_data":
            for output in self._shown[display_id]:
                output.data = nbformat.from_dict(content["data"])
                output.metadata = nbformat.from_dict(content["metadata"])
        elif kind == "clear_output":
            assert not content["wait"]
            cell.outputs = []

    # What it says

    def _entries(self) -> list[Msg]:
        entries = [self._entry(cell) for cell in self.notebook.cells]
        self._listed = tuple(cell.id for cell in self.notebook.cells)
        return entries

    def _entry(self, cell: Any) -> Msg:  # noqa: ANN401 - nbformat carries no types
        entry: Msg = {"id": cell.id, "type": cell.cell_type}
        if cell.id in self._listed or cell.cell_type != "code":
            return entry
        entry["execution_count"] = cell.execution_count
        if "crush" in cell.metadata:
            entry["crush"] = cell.metadata.crush
        datas = [output.get("data", {}) for output in cell.outputs]
        records = [data[RECORD_MIME_TYPE] for data in datas if RECORD_MIME_TYPE in data]
        return entry | ({"record": records[-1]} if records else {})

    def _tell_cells(self) -> None:
        if tuple(cell.id for cell in self.notebook.cells) != self._listed:
            self._say({"method": "cells", "cells": self._entries()})

    def _say(self, data: Msg) -> None:
        if self._comm:
            self.kernel.comm(self._comm, data)

    def _send(self, kind: str, content: Msg) -> None:
        message = self.kernel.client.session.msg(kind, content)
        self.kernel.client.shell_channel.send(message)


def shows(text: str) -> Stop:
    """Return a `Stop` for when a cell shows `text`."""
    return lambda message: text in str(message["content"].get("data", ""))


def _is_idle(message: Msg) -> bool:
    content = message["content"]
    return message["msg_type"] == "status" and content["execution_state"] == "idle"
