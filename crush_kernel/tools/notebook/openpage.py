"""The notebook whose cells run now, as the page has it that shows it.

Its file lags behind the page, and what is written to the file is lost when the page saves.
So the page is asked for its cells, and for each change of one.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from pydantic import JsonValue

from crush_kernel.messages import JsonObject
from crush_kernel.tools.notebook.splice import CellType
from crush_kernel.tools.notebook.text import NoNotebook, NotebookText, read_notebook
from crush_kernel.wording import counted

Refusal = Literal[
    "unknown",
    "taken",
    "changed",
    "busy",
    "locked",
    "read-only",
    "gone",
    "silent",
]
"""Why a page did not change a cell; after `silent` it may still do it."""

Absence = Literal["nobody", "silent"]
"""Why there is no page: none can show the cells, or none has answered."""

_UNKNOWN_OUTPUTS: Final = "shown in the page only: the saved file has it"


class NoPage(Exception):
    """No page tells what the notebook holds."""

    def __init__(self, absence: Absence) -> None:
        super().__init__(absence)
        self.absence: Absence = absence


@dataclass(frozen=True, slots=True)
class PageCell:
    """A cell as the page has it."""

    id: str
    type: CellType
    source: str
    execution_count: int | None = None
    outputs: int = 0
    """How many it shows."""
    is_busy: bool = False
    """Whether it runs or waits to be run."""
    has_turn: bool = False
    """Whether something was said in it."""


@dataclass(frozen=True, slots=True)
class CellInserted:
    """Put a new cell below another one."""

    cell_id: str
    cell_type: CellType
    source: str
    after: str
    """The cell above it; empty for the top."""
    action: Literal["insert"] = "insert"


@dataclass(frozen=True, slots=True)
class CellReplaced:
    """Have a cell say something else."""

    cell_id: str
    cell_type: CellType
    source: str
    former: str
    """What it must say for that."""
    action: Literal["replace"] = "replace"


@dataclass(frozen=True, slots=True)
class CellDeleted:
    """Take a cell away."""

    cell_id: str
    former: str
    """What it must say for that."""
    action: Literal["delete"] = "delete"


@dataclass(frozen=True, slots=True)
class CellMoved:
    """Put a cell below another one."""

    cell_id: str
    after: str
    """The cell above its new place; empty for the top."""
    action: Literal["move"] = "move"


CellChange = CellInserted | CellReplaced | CellDeleted | CellMoved


class OpenNotebookPage(Protocol):
    """The page that shows the notebook."""

    async def cells(self) -> tuple[PageCell, ...]:
        """Return the cells from top to bottom.

        Raises:
            NoPage: nobody tells.
        """
        ...

    def outputs(self, cell_id: str) -> Sequence[JsonObject]:
        """Return what a cell shows, as far as the kernel knows."""
        ...

    async def edit(self, change: CellChange) -> Refusal | None:
        """Have the page that told the cells last change one, and return why it did not."""
        ...


@dataclass(slots=True)
class NotebookDesk:
    """Where the page stands that shows the notebook, once somebody has put it there."""

    page: OpenNotebookPage | None = None

    async def cells(self) -> tuple[PageCell, ...]:
        """Return the cells of the open notebook from top to bottom.

        Raises:
            NoPage: nobody tells.
        """
        if self.page is None:
            raise NoPage("nobody")
        return await self.page.cells()


def text_of(
    cells: Iterable[PageCell], outputs: Mapping[str, Sequence[JsonObject]] | None = None
) -> NotebookText:
    """Return `cells` as a notebook, with those `outputs`, by cells, that are given.

    Raises:
        NoNotebook: there is too much in them.
    """
    known = outputs or {}
    notebook: JsonObject = {
        "cells": [_written(cell, known.get(cell.id, ())) for cell in cells],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    try:
        # In ASCII: half a character, too, is only an escape in it.
        return read_notebook(json.dumps(notebook, indent=1))
    except RecursionError as error:
        raise NoNotebook("its outputs are nested too deeply") from error


def outputs_of(
    cells: Iterable[PageCell], page: OpenNotebookPage
) -> dict[str, Sequence[JsonObject]]:
    """Return what is known of the outputs of `cells`, by cells, with a note where it is nothing."""
    return {cell.id: _outputs(cell, page) for cell in cells if cell.outputs}


def _outputs(cell: PageCell, page: OpenNotebookPage) -> Sequence[JsonObject]:
    if cell.is_busy:
        return (_note("[it runs now, or waits to be run]"),)
    if known := page.outputs(cell.id):
        return known
    return (_note(f"[{counted(cell.outputs, 'output')}, {_UNKNOWN_OUTPUTS}]"),)


def _note(text: str) -> JsonObject:
    return {"output_type": "stream", "name": "stdout", "text": text}


def _written(cell: PageCell, outputs: Sequence[JsonObject]) -> dict[str, JsonValue]:
    written: dict[str, JsonValue] = {
        "cell_type": cell.type,
        "id": cell.id,
        "metadata": {},
        "source": cell.source,
    }
    if cell.type == "code":
        written["execution_count"] = cell.execution_count
        written["outputs"] = [dict(output) for output in outputs]
    return written
