"""A notebook's file as text: its cells, and where in the text each of them stands.

Whatever the text is, reading it takes a second or two at most. `nbformat` is not used: it
would have the whole file be written anew, and takes longer to load than a kernel to start.
Source: the notebook format, versions 3 and 4.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json.decoder import JSONDecoder
from typing import Final

from pydantic import JsonValue

from crush_kernel.history.notebook import MAX_WEIGHT, weight_of_json
from crush_kernel.messages import JsonObject
from crush_kernel.wording import counted

ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Source: nbformat 4.5."""

SUFFIX: Final = ".ipynb"

_SPACE: Final = re.compile(r"[ \t\n\r]*")

_DECODER: Final = JSONDecoder()

_CELL_TYPES: Final = ("code", "markdown", "raw")


class NoNotebook(ValueError):
    """The text is no notebook; says why, as the second half of a sentence."""


@dataclass(frozen=True, slots=True)
class Span:
    """A value and where it stands in the text."""

    start: int
    end: int
    value: JsonValue
    items: tuple["Span", ...] = ()
    """Of the list of the cells, what is in it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, as it is talked about."""

    name: str
    """Its id; `#3` for the third cell if it has none, or none that could name only it."""
    type: str
    source: str
    outputs: tuple[JsonObject, ...] = ()
    execution_count: int | None = None

    @property
    def title(self) -> str:
        """Return what stands above it in a listing, beside its place: `a1 · code`."""
        return f"{self.name} · {self.type}"


@dataclass(frozen=True, slots=True)
class NotebookText:
    """The text of a notebook that has been read."""

    text: str
    version: int
    minor: int
    language: str
    """What its code is written in, as far as it says so."""
    cells: tuple[Cell, ...]
    members: tuple[tuple[Span, Span], ...]
    """The keys and values of the outermost object."""
    array: Span
    """Of version 4, the list of the cells, brackets included."""

    def position_of(self, name: str) -> int | None:
        """Return which cell is called `name`, from 0; `None` if none is."""
        return next((n for n, cell in enumerate(self.cells) if cell.name == name), None)

    @property
    def has_ids(self) -> bool:
        """Whether cells of this version have ids."""
        return (self.version, self.minor) >= (4, 5)


def read_notebook(text: str) -> NotebookText:
    """Read the text of a notebook of version 3 or 4.

    Raises:
        NoNotebook: it is none, or too large to be read in a moment.
    """
    if weight_of_json(text) > MAX_WEIGHT:
        raise NoNotebook("it has too many values")
    start = _after_space(text, 1 if text.startswith("\ufeff") else 0)
    try:
        members = tuple(_members(text, start))
    except NoNotebook:
        raise
    except json.JSONDecodeError as error:
        raise NoNotebook(f"it is no JSON text ({error.msg}, line {error.lineno})") from error
    except (ValueError, RecursionError) as error:
        raise NoNotebook("it has numbers too long or values too deep to be read") from error
    return _read(text, members)


def _read(text: str, members: tuple[tuple[Span, Span], ...]) -> NotebookText:
    array = next((value for key, value in members if key.value == "cells"), Span(0, 0, None))
    notebook = {str(key.value): value.value for key, value in members}
    if len(notebook) < len(members):
        raise NoNotebook("it says something twice")
    version, minor = notebook.get("nbformat"), notebook.get("nbformat_minor")
    if type(version) is not int or version not in (3, 4):
        raise NoNotebook("it has neither version 3 nor 4 of the notebook format")
    raw = array.value if version == 4 else list(_old_cells(notebook))
    if not isinstance(raw, list):
        raise NoNotebook("it has no list of cells")
    if not all(isinstance(cell, dict) and _type_of(cell) for cell in raw):
        raise NoNotebook("the list of its cells is damaged")
    cells = [cell for cell in raw if isinstance(cell, dict)]
    ids = Counter(_id_of(cell) for cell in cells)
    return NotebookText(
        text=text,
        version=version,
        minor=minor if type(minor) is int else 0,
        language=_language(_object(notebook.get("metadata"))),
        cells=tuple(
            _cell(cell, name if (name := _id_of(cell)) and ids[name] == 1 else f"#{n}")
            for n, cell in enumerate(cells, start=1)
        ),
        members=members,
        array=array,
    )


def joined(value: JsonValue) -> str:
    """Return text that may be written as a list of its lines; whatever else it is, nothing."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def listing(notebook: NotebookText) -> str:
    """Return the cells as text, to be compared line by line."""
    lines: list[str] = []
    for cell in notebook.cells:
        outputs = f" · {counted(len(cell.outputs), 'output')}" if cell.outputs else ""
        lines += (f"[{cell.title}{outputs}]", *cell.source.split("\n"), "")
    return "\n".join(lines)


def _members(text: str, start: int) -> Iterator[tuple[Span, Span]]:
    """Yield the keys and values of the object that begins at `start`."""
    if not text.startswith("{", start):
        raise NoNotebook("it is no JSON object")
    position = _after_space(text, start + 1)
    if text.startswith("}", position):
        raise NoNotebook("it is empty")
    while True:
        key = _value(text, position)
        if not isinstance(key.value, str):
            raise NoNotebook("it is no JSON text")
        position = _after(text, key.end, ":")
        if key.value == "cells" and text.startswith("[", position):
            items = tuple(_items(text, position))
            end = _after_space(text, items[-1].end if items else position + 1) + 1
            value = Span(position, end, [item.value for item in items], items)
        else:
            value = _value(text, position)
        yield key, value
        position = _after_space(text, value.end)
        if text.startswith("}", position):
            if _after_space(text, position + 1) < len(text):
                raise NoNotebook("something follows its end")
            return
        position = _after(text, position, ",")


def _items(text: str, start: int) -> Iterator[Span]:
    """Yield the values of the list that begins at `start`."""
    position = _after_space(text, start + 1)
    if text.startswith("]", position):
        return
    while True:
        item = _value(text, position)
        yield item
        position = _after_space(text, item.end)
        if text.startswith("]", position):
            return
        position = _after(text, position, ",")


def _value(text: str, start: int) -> Span:
    value, end = _DECODER.raw_decode(text, start)
    return Span(start, end, value)


def _after(text: str, position: int, mark: str) -> int:
    """Return what comes after `mark`, which must come next."""
    position = _after_space(text, position)
    if not text.startswith(mark, position):
        raise NoNotebook(f"it is no JSON text (no '{mark}' at character {position})")
    return _after_space(text, position + 1)


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _cell(cell: Mapping[str, JsonValue], name: str) -> Cell:
    kind = _type_of(cell)
    count = cell.get("execution_count", cell.get("prompt_number"))
    outputs = cell.get("outputs")
    listed = outputs if isinstance(outputs, list) and kind == "code" else []
    source = joined(cell.get("source", cell.get("input")))
    level = cell.get("level")
    if cell.get("cell_type") == "heading":
        source = f"{'#' * (level if type(level) is int and 0 < level < 7 else 1)} {source}"
    return Cell(
        name=name,
        type=kind,
        source=source,
        outputs=tuple(each for each in listed if isinstance(each, dict)),
        execution_count=count if type(count) is int else None,
    )


def _old_cells(notebook: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    """Yield the cells of version 3, which are in sheets."""
    sheets = notebook.get("worksheets")
    for sheet in sheets if isinstance(sheets, list) else []:
        cells = _object(sheet).get("cells")
        yield from cells if isinstance(cells, list) else []


def _type_of(cell: Mapping[str, JsonValue]) -> str:
    """Return the type of a cell, or nothing if it is none that is known."""
    kind = cell.get("cell_type")
    if kind in ("heading", "html"):  # of version 3
        return "markdown"
    return kind if isinstance(kind, str) and kind in _CELL_TYPES else ""


def _id_of(cell: Mapping[str, JsonValue]) -> str:
    name = cell.get("id")
    return name if isinstance(name, str) and ID.fullmatch(name) else ""


def _language(metadata: JsonObject) -> str:
    names = (
        _object(metadata.get("language_info")).get("name"),
        _object(metadata.get("kernelspec")).get("display_name"),
        _object(metadata.get("kernelspec")).get("name"),
    )
    return next((name[:40] for name in names if isinstance(name, str) and name), "")


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}
