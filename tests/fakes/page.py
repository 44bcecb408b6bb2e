"""A page in miniature: an open notebook that speaks the comm `crush.notebook`.

It does what the front end does that has our extension: tells its cells, writes what it is
sent, acknowledges, saves and reverts. Of a cell it tells everything once, and again if
another one that holds another turn takes its place.
"""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from crush_kernel.history.notebook import RECORD_MIME_TYPE

Json = dict[str, Any]


@dataclass(eq=False)
class PageCell:
    """A cell; another object is another cell, even if it has the same id."""

    id: str
    source: str = ""
    type: str = "code"
    crush: Json | None = None
    outputs: list[Json] = field(default_factory=list[Json])
    execution_count: int | None = None
    is_running: bool = False

    @property
    def record(self) -> Json | None:
        """The turn among its outputs."""
        found = [output.get("data", {}).get(RECORD_MIME_TYPE) for output in self.outputs]
        return next((record for record in reversed(found) if record), None)

    @property
    def age(self) -> tuple[Any, Any] | None:
        kept = self.crush or self.record
        return (kept.get("turn"), kept.get("revision")) if kept else None

    @property
    def turn(self) -> str | None:
        """The id of the turn that it keeps."""
        return self.crush["turn"] if self.crush else None

    @property
    def entry(self) -> Json:
        """What is told of it in full."""
        told = {"id": self.id, "type": self.type, "execution_count": self.execution_count}
        if self.crush is not None:
            return {**told, "crush": self.crush}
        return {**told, "record": self.record} if self.record else told

    @property
    def looks(self) -> Json:
        """What is told of it when the kernel asks."""
        return {
            "id": self.id,
            "type": self.type,
            "source": self.source,
            "outputs": len(self.outputs),
            "execution_count": self.execution_count,
            "is_busy": self.is_running,
        }

    @property
    def shown(self) -> str:
        """All Markdown that it shows."""
        return "\n".join(
            output["data"].get("text/markdown", "") for output in self.outputs if "data" in output
        )


class Page:
    """An open notebook and its file."""

    def __init__(
        self, *cells: str, path: str | None = None, is_headless: bool = False, version: int = 1
    ) -> None:
        self.cells = [PageCell(cell) for cell in cells]
        self.path = path
        self.is_headless = is_headless
        self.version = version
        self.crush: Json | None = None
        """The notebook's metadata of ours."""
        self.edits = True
        """Whether it changes cells when it is asked."""
        self.refusal: str | None = None
        """Why it changes none."""
        self.stale: list[str] = []
        self.kernels: list[str] = []
        """Of each `ready`, which kernel said so."""
        self.file = self.stored()
        self._told: dict[str, tuple[PageCell, tuple[Any, Any] | None]] = {}
        self._order: list[str] = []

    def __getitem__(self, cell_id: str) -> PageCell:
        return next(cell for cell in self.cells if cell.id == cell_id)

    @property
    def ids(self) -> list[str]:
        return [cell.id for cell in self.cells]

    @property
    def turns(self) -> dict[str, str | None]:
        """The turns that the cells keep."""
        return {cell.id: cell.turn for cell in self.cells}

    # What it tells

    def opening(self) -> Json:
        """Return the data that the comm is opened with."""
        self._learn()
        return {
            "version": self.version,
            "path": self.path,
            "notebook": self.crush,
            "cells": [cell.entry for cell in self.cells],
            "is_headless": self.is_headless,
            "edits": self.edits,
        }

    def news(self) -> Json | None:
        """Return the message about a changed list of cells, `None` if there is nothing new."""
        former = dict(self._told), self._order
        self._learn()
        full = {
            cell.id
            for cell in self.cells
            if cell.id not in former[0]
            or (former[0][cell.id][0] is not cell and former[0][cell.id][1] != cell.age)
        }
        if not full and self._order == former[1]:
            return None
        plain = [{"id": cell.id, "type": cell.type} for cell in self.cells]
        cells = [
            cell.entry if cell.id in full else entry
            for cell, entry in zip(self.cells, plain, strict=True)
        ]
        return {"method": "cells", "cells": cells}

    def _learn(self) -> None:
        self._told = {cell.id: (cell, cell.age) for cell in self.cells}
        self._order = self.ids

    # What it is told

    def hear(self, data: Json) -> Iterator[Json]:
        """Take in what the kernel says and yield the answers."""
        match data["method"]:
            case "turn":
                if "source" in data and data["cell_id"] in self.ids:
                    self[data["cell_id"]].source = data["source"]
                yield from self._write(data["cell_id"], data["record"])
            case "session":
                self.crush = deepcopy(data["record"])
                yield {"method": "ack", "session": data["revision"]}
            case "outputs":
                for picture in data["cells"]:
                    self._paint(picture)
            case "stale":
                self.stale = data["cells"]
            case "ready":
                self.kernels.append(data["kernel"])
            case "look" | "edit":
                yield from self._answers(data)
            case _:
                pass

    def _answers(self, data: Json) -> Iterator[Json]:
        if data["method"] == "look":
            cells = [cell.looks for cell in self.cells]
            yield {"method": "looked", "id": data["id"], "cells": cells, "is_last": True}
            return
        refusal = self.refusal or self._edit(data)
        if news := self.news():
            yield news
        yield {"method": "edited", "id": data["id"], "refusal": refusal}

    def _edit(self, data: Json) -> str | None:
        """Change a cell as the kernel asks, and return why not."""
        cell_id, after = data["cell_id"], data.get("after")
        if after and after not in self.ids:
            return "unknown"
        if data["action"] == "insert":
            cell = PageCell(cell_id, data["source"], data["cell_type"])
            self.insert(self._below(after), cell)
            return None
        if cell_id not in self.ids:
            return "unknown"
        if "former" in data and self[cell_id].source != data["former"]:
            return "changed"
        match data["action"]:
            case "replace":
                self[cell_id].source, self[cell_id].type = data["source"], data["cell_type"]
            case "delete":
                self.delete(cell_id)
            case _ if after != cell_id:
                cell = self.delete(cell_id)
                self.insert(self._below(after), cell)
            case _:
                pass
        return None

    def _below(self, after: str | None) -> int:
        return self.ids.index(after) + 1 if after else 0

    def _write(self, cell_id: str, record: Json | None) -> Iterator[Json]:
        if cell_id not in self.ids:
            return
        cell = self[cell_id]
        cell.crush = deepcopy(record)
        self._told[cell_id] = cell, cell.age
        turn = record["turn"] if record else None
        revision = record["revision"] if record else None
        yield {"method": "ack", "cell_id": cell_id, "turn": turn, "revision": revision}

    def _paint(self, picture: Json) -> None:
        if picture["cell_id"] in self.ids:
            cell = self[picture["cell_id"]]
            cell.outputs = deepcopy(picture["outputs"])
            cell.execution_count = picture["execution_count"]
            cell.is_running = picture["is_running"]

    # What the user does

    def insert(self, place: int, cell: PageCell) -> None:
        self.cells.insert(place, cell)

    def delete(self, cell_id: str) -> PageCell:
        cell = self[cell_id]
        self.cells.remove(cell)
        return cell

    def save(self) -> None:
        self.file = self.stored()

    def revert(self) -> None:
        """Read the notebook from its file again, as far as the file knows."""
        self.crush = deepcopy(self.file["metadata"].get("crush"))
        self.cells = [_read(cell) for cell in self.file["cells"]]

    def reloaded(self) -> "Page":
        """Return the page that shows the file when this one is gone."""
        page = Page(path=self.path, is_headless=self.is_headless)
        page.edits = self.edits
        page.file = deepcopy(self.file)
        page.revert()
        return page

    def change_file(self, change: Callable[[Json], object]) -> None:
        """Change the file behind the back of the page."""
        change(self.file)

    @property
    def ipynb(self) -> str:
        """The text of the file."""
        return json.dumps(self.file)

    def stored(self) -> Json:
        """Return what a save would write."""
        metadata = {"crush": deepcopy(self.crush)} if getattr(self, "crush", None) else {}
        cells = [_written(cell) for cell in self.cells]
        return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}


def _written(cell: PageCell) -> Json:
    stored: Json = {
        "id": cell.id,
        "cell_type": cell.type,
        "metadata": {"crush": deepcopy(cell.crush)} if cell.crush else {},
        "source": cell.source,
    }
    if cell.type == "code":
        stored |= {"outputs": deepcopy(cell.outputs), "execution_count": cell.execution_count}
    return stored


def _read(stored: Json) -> PageCell:
    return PageCell(
        id=stored["id"],
        source=stored["source"],
        type=stored["cell_type"],
        crush=deepcopy(stored["metadata"].get("crush")),
        outputs=deepcopy(stored.get("outputs", [])),
        execution_count=stored.get("execution_count"),
    )
