"""What a notebook holds of its session: the turn of each cell, and the header.

Read from what a page tells, or from the text of an `.ipynb` file. Whatever a file holds,
reading it raises nothing: what cannot be read is left out, and said in a sentence.

A cell may hold several records: the one in its metadata, and those among its outputs that
a front end without a writer kept. The newest counts, except that a record of the cell's
own goes before one that was copied from another cell.

Source: design §5; the notebook format, version 4.
"""

import gc
import json
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from pydantic import JsonValue

from crush_kernel.history.plainjson import Budget
from crush_kernel.history.record import (
    MAX_NAME,
    BadRecord,
    SessionHeader,
    examine_turn,
    is_count,
    read_header,
)
from crush_kernel.history.turn import Turn
from crush_kernel.messages import JsonObject

RECORD_MIME_TYPE: Final = "application/vnd.crush.turn.v1+json"
"""Of the turn's record among the outputs of its cell."""

MAX_NOTEBOOK_BYTES: Final = 100_000_000
"""Twice the largest notebook that is still of any use in a browser."""

MAX_WEIGHT: Final = 10_000_000
"""Of what a notebook is made of; see `weight_of_json`. The time of a parser, a second or two."""

MAX_CELLS: Final = 20_000
"""More than any front end can show."""

MAX_PROBLEMS: Final = 20

MAX_SHOWN_ID: Final = 40

_STRINGS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)
"""Strings in JSON. Never looks at a character twice, not even where a string has no end."""

CellType = Literal["code", "markdown", "raw"]


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A cell as far as the session is concerned."""

    id: str
    """Empty if it has none; of cells with the same id, all but the first get another one."""
    type: CellType = "code"
    turn: Turn | None = None
    """What was said in it; `None` if nothing was, and unless it is a code cell."""
    execution_count: int | None = None


@dataclass(frozen=True, slots=True)
class NotebookContents:
    """All cells from top to bottom, and what is known about the whole notebook."""

    cells: tuple[NotebookCell, ...] = ()
    header: SessionHeader | None = None
    problems: tuple[str, ...] = ()
    """What could not be read: a sentence each, and no more of them than anybody reads."""


def read_cells(cells: JsonValue, *, notebook: JsonValue = None) -> NotebookContents:
    """Return what a page tells about its notebook.

    Args:
        cells: a list of objects with `id` and `type`, and maybe `execution_count`, `crush`
            (from the cell's metadata) and `record` (from its outputs).
        notebook: the notebook's own metadata of ours, if it has some.
    """
    reading = _Reading()
    with _no_collection():
        for cell in reading.cells_among(cells):
            records = [cell.get("crush"), cell.get("record")]
            reading.add(cell.get("id"), cell.get("type"), cell.get("execution_count"), records)
    return reading.contents(notebook)


def read_ipynb(data: bytes | str) -> NotebookContents:
    """Return what the text of a notebook file holds; an empty file is an empty notebook."""
    if len(data) > MAX_NOTEBOOK_BYTES:
        return _unreadable(f"it has more than {MAX_NOTEBOOK_BYTES // 1_000_000} MB")
    try:
        text = data if isinstance(data, str) else data.decode()
        text = text.removeprefix("\ufeff")
        if weight_of_json(text) > MAX_WEIGHT:
            return _unreadable("it has too many values")
        with _no_collection():
            notebook: object = json.loads(text, parse_constant=_no_number) if text.strip() else None
    except (ValueError, RecursionError):
        return _unreadable("it is no JSON text")
    if notebook is None:
        return NotebookContents()
    if not isinstance(notebook, dict):
        return _unreadable("it is no JSON object")
    return _from_notebook(cast("dict[str, JsonValue]", notebook))


def _from_notebook(notebook: JsonObject) -> NotebookContents:
    version = notebook.get("nbformat")
    if version != 4 or isinstance(version, bool):
        return _unreadable("it has not version 4 of the notebook format")
    reading = _Reading()
    with _no_collection():
        for cell in reading.cells_among(notebook.get("cells")):
            metadata = _object(cell.get("metadata"))
            records = [metadata.get("crush"), *_records_among(cell.get("outputs"))]
            count = cell.get("execution_count")
            reading.add(cell.get("id"), cell.get("cell_type"), count, records)
    return reading.contents(_object(notebook.get("metadata")).get("crush"))


@contextmanager
def _no_collection() -> Generator[None]:
    """Keep the garbage collector from looking through all that is being read, again and again.

    Nothing of it is garbage; a pass over a long history takes longer than reading it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _records_among(outputs: JsonValue) -> Iterator[JsonValue]:
    for output in _objects(outputs):
        yield _object(output.get("data")).get(RECORD_MIME_TYPE)


@dataclass(slots=True)
class _Reading:
    """A notebook while it is being read, cell by cell."""

    budget: Budget = field(default_factory=Budget)
    cells: list[NotebookCell] = field(default_factory=list[NotebookCell])
    problems: list[str] = field(default_factory=list[str])
    ids: dict[str, int] = field(default_factory=dict[str, int])
    """The ids so far, with the last number that was given to a cell of the same id."""
    digests: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The digests of the turns by turn id."""

    def cells_among(self, cells: JsonValue) -> list[dict[str, JsonValue]]:
        """Return what can be a cell."""
        listed = cells if isinstance(cells, list) else []
        found = _objects(listed[:MAX_CELLS])
        if len(listed) > MAX_CELLS:
            self.problems.append(f"Only the first {MAX_CELLS:,} cells are read.")
        elif listed is not cells or len(listed) > len(found):
            self.problems.append("The list of the cells is damaged.")
        return found

    def add(
        self,
        cell_id: JsonValue,
        cell_type: JsonValue,
        execution_count: JsonValue,
        records: Iterable[JsonValue],
    ) -> None:
        """Add the next cell."""
        kind = _cell_type(cell_type)
        name = self._named(_id(cell_id))
        turn = self._turn(name, records) if kind == "code" else None
        count = execution_count if is_count(execution_count, least=0) else None
        self.cells.append(NotebookCell(name, kind, turn, count))

    def contents(self, header: JsonValue) -> NotebookContents:
        """Return everything that was read."""
        read: SessionHeader | None = None
        try:
            read = None if header is None else read_header(header)
        except BadRecord as error:
            self.problems.append(f"What the notebook says of its session cannot be read: {error}.")
        return NotebookContents(tuple(self.cells), read, _bounded(self.problems))

    @property
    def _place(self) -> str:
        return f"Cell {len(self.cells) + 1}"

    def _named(self, cell_id: str) -> str:
        """Return `cell_id`, or one made of it if another cell has it."""
        if not cell_id:
            return ""
        name, number = cell_id, self.ids.get(cell_id, 1)
        while name in self.ids:
            number += 1
            name = f"{cell_id}#{number}"
        self.ids[cell_id] = number
        self.ids.setdefault(name, 1)
        if name != cell_id:
            self.problems.append(f"{self._place} has the id of another one, {_short(cell_id)}.")
        return name

    def _turn(self, cell_id: str, records: Iterable[JsonValue]) -> Turn | None:
        """Return the turn that counts among `records`."""
        owner = cell_id or f"#{len(self.cells) + 1}"
        read = [turn for each in records if (turn := self._read(each, owner)) is not None]
        chosen = max(read, key=lambda turn: (turn.cell_id == owner, turn.age), default=None)
        if chosen is not None:
            self._compare(chosen)
        return chosen

    def _read(self, record: JsonValue, owner: str) -> Turn | None:
        if record is None:
            return None
        try:
            read = examine_turn(record, cell_id=owner, budget=self.budget)
        except BadRecord as error:
            self.problems.append(f"{self._place} has history that cannot be read: {error}.")
            return None
        self.problems += (f"{self._place} has damaged history: {each}." for each in read.problems)
        return read.turn

    def _compare(self, turn: Turn) -> None:
        """Note if another cell has another turn of the same name, as after a merge."""
        known = self.digests.setdefault(turn.id, set())
        if known and turn.digest not in known:
            self.problems.append(
                f"{self._place} has another turn than another cell under the same name, "
                f"{_short(turn.id)}; both are kept."
            )
        known.add(turn.digest)


def _unreadable(reason: str) -> NotebookContents:
    return NotebookContents(problems=(f"The notebook cannot be read: {reason}.",))


def _bounded(problems: list[str]) -> tuple[str, ...]:
    if len(problems) <= MAX_PROBLEMS:
        return tuple(problems)
    more = len(problems) - MAX_PROBLEMS + 1
    return (*problems[: MAX_PROBLEMS - 1], f"{more} more things in it cannot be used as they are.")


def weight_of_json(text: str) -> int:
    """Return how long a parser will take over `text`, in items of a list.

    Text costs next to nothing; the weights of the marks are what was measured.
    """
    if (weight := _weight_of_marks(text)) > MAX_WEIGHT:
        weight = _weight_of_marks(_STRINGS.sub("", text))
    return weight


def _weight_of_marks(text: str) -> int:
    costly = text.count("[") + text.count("{") + text.count(":")
    return 4 * costly + text.count(",")


def _no_number(_name: str) -> None:
    """Read `NaN` and the infinities, which Python writes into notebooks, as null."""


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def _id(value: JsonValue) -> str:
    if isinstance(value, str) and len(value) <= MAX_NAME and value.isprintable():
        return value
    return ""


def _cell_type(value: JsonValue) -> CellType:
    return "code" if value == "code" else "markdown" if value == "markdown" else "raw"


def _short(name: str) -> str:
    """Return enough of an id to find it, with nothing in it that could mean anything."""
    return re.sub(r"[^A-Za-z0-9_.-]", "?", name[:MAX_SHOWN_ID])
