"""Change cells in the text of a notebook, and leave every other byte of it as it is.

A changed cell is written in the manner of the file: its indentation, its newlines, its
way with characters beyond ASCII, text as lists of lines or as strings.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from pydantic import JsonValue

from crush_kernel.tools.notebook.text import NotebookText

CellType = Literal["code", "markdown", "raw"]

NewId = Callable[[], str]
"""Gives an id of a cell, another one each time."""

EMPTY: Final = """{
 "cells": [],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"""

_OF_OUTPUTS: Final = ("collapsed", "execution", "format", "jupyter", "scrolled")
"""Metadata that means something for one type of cells only."""


class Splice:
    """A notebook of version 4 while cells in it are changed."""

    def __init__(self, notebook: NotebookText, new_id: NewId) -> None:
        """Begin with the notebook as it is; cells without an id of their own get one."""
        text, items = notebook.text, notebook.array.items
        self.notebook = notebook
        self._new_id = new_id
        self._style = _style_of(notebook)
        self._texts = [text[item.start : item.end] for item in items]
        self._gaps = [text[one.end : other.start] for one, other in pairwise(items)]
        self._ids = {cell.name for cell in self.notebook.cells}
        self._mend_ids()

    def insert(self, position: int, cell_type: CellType, source: str) -> str:
        """Put a new cell at `position` and return its id; nothing where cells have none."""
        cell: dict[str, JsonValue] = {"cell_type": cell_type, "metadata": {}}
        if cell_type == "code":
            cell |= {"execution_count": None, "outputs": []}
        if has_ids := self.notebook.has_ids:
            cell["id"] = self._fresh_id()
        cell["source"] = self._style.lines(source)
        self._put(position, self._style.written(dict(sorted(cell.items()))))
        return str(cell["id"]) if has_ids else ""

    def replace(self, position: int, cell_type: CellType, source: str) -> None:
        """Give the cell at `position` a source and a type; outputs of the former source go."""
        former = self._raw(position)
        cell = {**former, "cell_type": cell_type}
        is_list = isinstance(former.get("source"), list)
        cell["source"] = self._style.lines(source) if is_list else source
        if cell_type == "code":
            cell |= {"execution_count": None, "outputs": []}
            cell.pop("attachments", None)
        else:
            cell.pop("outputs", None)
            cell.pop("execution_count", None)
        metadata = former.get("metadata")
        if cell_type != former.get("cell_type") and isinstance(metadata, dict):
            kept = {name: value for name, value in metadata.items() if name not in _OF_OUTPUTS}
            cell["metadata"] = kept
        if list(former) == sorted(former):
            cell = dict(sorted(cell.items()))
        self._texts[position] = self._style.written(cell)

    def delete(self, position: int) -> None:
        """Take the cell at `position` away."""
        self._take(position)

    def move(self, position: int, to: int) -> None:
        """Take the cell at `position` away and put it, as it is, to `to` of those that stay."""
        self._put(to, self._take(position))

    def text(self) -> str:
        """Return the text of the whole notebook."""
        text, array = self.notebook.text, self.notebook.array
        if not self._texts:
            inner = ""
        elif array.items:
            start, end = array.items[0].start, array.items[-1].end
            middle = "".join(
                part for pair in zip(["", *self._gaps], self._texts, strict=True) for part in pair
            )
            inner = text[array.start + 1 : start] + middle + text[end : array.end - 1]
        else:
            before, after = self._style.around
            inner = before + f",{before or self._style.space}".join(self._texts) + after
        return f"{text[: array.start]}[{inner}]{text[array.end :]}"

    def _raw(self, position: int) -> Mapping[str, JsonValue]:
        cell = self.notebook.array.items[position].value
        return cell if isinstance(cell, dict) else {}

    def _put(self, position: int, text: str) -> None:
        self._texts.insert(position, text)
        if len(self._texts) > 1:
            self._gaps.insert(max(position - 1, 0), self._style.gap)

    def _take(self, position: int) -> str:
        if self._gaps:
            self._gaps.pop(max(position - 1, 0))
        return self._texts.pop(position)

    def _fresh_id(self) -> str:
        while (name := self._new_id()) in self._ids:
            pass
        self._ids.add(name)
        return name

    def _mend_ids(self) -> None:
        """Give an id to cells that need one of their own."""
        if not self.notebook.has_ids:
            return
        for position, cell in enumerate(self.notebook.cells):
            if cell.name.startswith("#"):
                mended = {**self._raw(position), "id": self._fresh_id()}
                self._texts[position] = self._style.written(mended)


@dataclass(frozen=True, slots=True)
class _Style:
    """The manner in which a notebook's file is written."""

    newline: str
    """What ends a line between values; empty if all is on one line."""
    base: str
    """What stands before a cell in its line."""
    unit: str
    """By how much each level is indented."""
    space: str
    """What comes after a comma on one line."""
    colon: str
    is_ascii: bool
    has_lists: bool
    """Whether text is a list of lines."""
    gap: str
    """What stands between two cells."""

    @property
    def around(self) -> tuple[str, str]:
        """What stands before the first cell and after the last of a list that was empty."""
        if not self.newline:
            return "", ""
        return self.newline + self.base, self.newline + self.base.removesuffix(self.unit)

    def lines(self, source: str) -> JsonValue:
        """Return a source as this file writes it."""
        return list[JsonValue](source.splitlines(keepends=True)) if self.has_lists else source

    def written(self, cell: Mapping[str, JsonValue]) -> str:
        """Return `cell` as this file writes it, without what stands before it."""
        separators = ("," if self.newline else f",{self.space}", self.colon)
        text = json.dumps(
            cell,
            indent=self.unit if self.newline else None,
            separators=separators,
            ensure_ascii=self.is_ascii or _has_halves(cell),
        )
        return text.replace("\n", self.newline + self.base) if self.newline else text


def _style_of(notebook: NotebookText) -> _Style:
    text, array, members = notebook.text, notebook.array, notebook.members
    top = text[text.index("{") + 1 : text.index('"')]
    newline, unit = _broken(top)
    base = unit * 2
    gap = ""
    if array.items:
        lead = text[array.start + 1 : array.items[0].start]
        inner_newline, base = _broken(lead)
        gap = f",{lead}"
        for one, other in pairwise(array.items[:2]):
            gap = text[one.end : other.start]
        start = array.items[0].start + 1
        own_newline, own = _broken(text[start : text.index('"', start)])
        newline = inner_newline and own_newline
        unit = own.removeprefix(base) or unit
    colons = [text[key.end : value.start] for key, value in members]
    commas = [text[value.end : key.start] for (_, value), (key, _) in pairwise(members)]
    space = " " if not newline and any(each == ", " for each in commas) else ""
    sources = [cell.value.get("source") for cell in array.items if isinstance(cell.value, dict)]
    return _Style(
        newline=newline,
        base=base,
        unit=unit,
        space=space,
        colon=": " if any(each == ": " for each in colons) else ":",
        is_ascii=text.isascii() and "\\u" in text,
        has_lists=not sources or any(isinstance(source, list) for source in sources),
        gap=gap or (f",{newline}{base}" if newline else f",{space}"),
    )


def _broken(space: str) -> tuple[str, str]:
    """Return the newline in `space` and what stands after it; nothing if there is none."""
    _, newline, indent = space.rpartition("\n")
    if not newline:
        return "", ""
    return ("\r\n" if "\r\n" in space else "\n"), indent


def _has_halves(cell: Mapping[str, JsonValue]) -> bool:
    """Return whether there is half a character in `cell`, which only an escape can write."""
    try:
        json.dumps(cell, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
