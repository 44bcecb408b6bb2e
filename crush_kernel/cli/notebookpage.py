"""The notebook as the kernel's other side sees it: what a page tells, and what it is told.

Pure of any transport, with one mutable owner: it speaks the comm `crush.notebook` for a
run without a browser. What the kernel sends is written into the notebook at once and
acknowledged; what makes no sense is passed over, since a later kernel may say more.

Source: the comm's protocol, see `kernel.pages.messages`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

from crush_kernel.cli.celledits import edit_cell, shown_cells
from crush_kernel.cli.notebookformat import nbformat
from crush_kernel.cli.records import KEY, Json, Notebook, shown_record

VERSION: Final = 1
OnTurn = Callable[[str, Json], None]
"""Takes a cell id and the record of its turn."""

OnNotice = Callable[[str], None]
"""Takes a sentence that the user should know."""

OnSaid = Callable[[str, int, list[Any]], None]
"""Takes a cell id and messages of its turn, which goes on, from the one of that index on."""


class NotebookPage:
    """One notebook that is open in front of the kernel."""

    def __init__(
        self,
        notebook: Notebook,
        path: Path,
        *,
        on_turn: OnTurn,
        on_said: OnSaid,
        on_notice: OnNotice,
    ) -> None:
        """Show `notebook`, which is saved at `path`.

        Args:
            notebook: changed in place by what the kernel tells.
            path: absolute.
            on_turn: is told of each record that comes, after it was written.
            on_said: is told what is said in a turn before there is a record.
            on_notice: is told what the user should know.
        """
        self._notebook = notebook
        self._path = path
        self._on_turn = on_turn
        self._on_said = on_said
        self._on_notice = on_notice
        self._index = self._numbered()
        self.running: str | None = None
        """The cell that runs; its outputs come with its own messages."""
        self.stale: frozenset[str] = frozenset()
        """The cells whose context has changed since they ran."""
        self.is_ready = False
        """Whether the kernel has told all that it had to tell at the opening."""
        self.repainted: list[int] = []
        """The places of cells whose outputs were exchanged; whoever reads it empties it."""
        self.written: set[str] = set()
        """The cells that a model has added, or whose text is a model's."""
        self.former: list[str] | None = None
        """The ids of the cells before some came, went or moved; whoever reads it empties it."""

    def opening(self) -> Json:
        """Return what is told when the comm is opened."""
        return {
            "version": VERSION,
            "path": str(self._path),
            "notebook": self._notebook["metadata"].get(KEY),
            "cells": [_listed(cell) for cell in self._notebook["cells"]],
            "is_headless": True,
            "edits": True,
        }

    def receive(self, data: Json) -> list[Json]:
        """Take in what the kernel says, and return what there is to say to it."""
        match data:
            case {"method": "turn", "cell_id": str() as cell_id, "record": record}:
                self._rewrite(cell_id, data.get("source"))
                return list(self._turn(cell_id, record))
            case {
                "method": "said",
                "cell_id": str() as cell_id,
                "index": int() as index,
                "messages": list(),
            }:
                self._on_said(cell_id, max(0, index), data["messages"])
            case {"method": "notice", "text": str() as text}:
                self._on_notice(text)
            case {"method": "session", "record": dict(), "revision": int() as revision}:
                self._notebook["metadata"][KEY] = data["record"]
                return [{"method": "ack", "session": revision}]
            case {"method": "outputs", "cells": list()}:
                for cell in data["cells"]:
                    self._repaint(cell)
            case {"method": "stale", "cells": list()}:
                self.stale = frozenset(cell for cell in data["cells"] if isinstance(cell, str))
            case {"method": "ready"}:
                self.is_ready = True
            case {"method": "look" | "edit", "id": str() as request}:
                return list(self._answers(request, data))
            case _:
                pass
        return []

    def _answers(self, request: str, asked: Json) -> Iterator[Json]:
        """Yield what there is to say to a question about the cells, or to a change of one."""
        if asked["method"] == "look":
            cells = shown_cells(self._notebook, self.running)
            yield {"method": "looked", "id": request, "cells": cells, "is_last": True}
            return
        before = self._order()
        refusal = edit_cell(self._notebook, asked, self.running)
        if refusal is None and asked["action"] in ("insert", "replace"):
            self.written.add(asked["cell_id"])
        if (after := self._order()) != before:
            self.former = [*self._index]
            self._index = self._numbered()
            yield {"method": "cells", "cells": list(self._rearranged(after))}
        yield {"method": "edited", "id": request, "refusal": refusal}

    def _order(self) -> list[Json]:
        return [{"id": cell["id"], "type": cell["cell_type"]} for cell in self._notebook["cells"]]

    def _rearranged(self, order: list[Json]) -> Iterator[Json]:
        """Yield what is told of the cells when their list has changed: of new ones, all."""
        known = set(self.former or ())
        for entry, cell in zip(order, self._notebook["cells"], strict=True):
            yield entry if entry["id"] in known else _listed(cell)

    def _numbered(self) -> dict[str, int]:
        return {cell["id"]: index for index, cell in enumerate(self._notebook["cells"])}

    def _turn(self, cell_id: str, record: object) -> Iterator[Json]:
        cell = self._cell(cell_id)
        match record:
            case _ if cell is None:
                pass
            case None:
                cell["metadata"].pop(KEY, None)
            case {"turn": str() as turn, "revision": int() as revision}:
                told = cast("Json", record)
                cell["metadata"][KEY] = told
                yield {"method": "ack", "cell_id": cell_id, "turn": turn, "revision": revision}
                self._on_turn(cell_id, told)
            case _:
                pass

    def _rewrite(self, cell_id: str, source: object) -> None:
        """Have a cell say `source`, if it is a text."""
        cell = self._cell(cell_id)
        if cell is not None and isinstance(source, str):
            cell["source"] = source

    def _repaint(self, told: Json) -> None:
        match told:
            case {"cell_id": str() as cell_id, "outputs": list()}:
                cell = self._cell(cell_id)
            case _:
                return
        if cell is None or cell["cell_type"] != "code" or cell_id == self.running:
            return
        cell["outputs"] = nbformat.from_dict(told["outputs"])
        cell["execution_count"] = told.get("execution_count")
        self.repainted.append(self._index[cell_id])

    def _cell(self, cell_id: str) -> Json | None:
        index = self._index.get(cell_id)
        return None if index is None else self._notebook["cells"][index]


def _listed(cell: Json) -> Json:
    """Return what is told of one cell."""
    told: Json = {"id": cell["id"], "type": cell["cell_type"]}
    if KEY in cell["metadata"]:
        told["crush"] = cell["metadata"][KEY]
    if cell["cell_type"] == "code":
        told["execution_count"] = cell["execution_count"]
        if (record := shown_record(cell)) is not None:
            told["record"] = record
    return told
