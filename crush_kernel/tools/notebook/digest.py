"""What the model reads of a notebook: its cells, with what came of them in short.

Never the JSON of the file. Each line says by its start whether it is source or output, so
that no text in a notebook can pass for something else.
"""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from crush_kernel.files.textfile import shown
from crush_kernel.history.notebook import RECORD_MIME_TYPE
from crush_kernel.messages import JsonObject
from crush_kernel.shell.output import OutputBuffer
from crush_kernel.tools.media.admission import MAX_FILE_BYTES
from crush_kernel.tools.notebook.text import Cell, NotebookText, joined
from crush_kernel.tools.text.encoded import without_base64

MAX_TEXT_BYTES: Final = 60_000
"""What a section of several cells may come to."""

MAX_SOURCE_LINES: Final = 200
MAX_OUTPUT_BYTES: Final = 2_000
"""Of all outputs of one cell among several."""

MAX_ALONE_BYTES: Final = 100_000
"""Of the source of a cell that is viewed alone."""

MAX_ALONE_OUTPUT_BYTES: Final = 20_000

MAX_LINE_CHARACTERS: Final = 2_000

MAX_OUTPUTS: Final = 200
"""Of one cell that are looked at; a loop can make thousands."""

MAX_IMAGES: Final = 6

_IMAGES: Final = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
"""Types of images, with what version 3 calls them."""

_TEXTS: Final = {
    "text/plain": "text",
    "text/markdown": "markdown",
    "text/latex": "latex",
    "text/html": "html",
    "application/javascript": "javascript",
    "image/svg+xml": "svg",
}
"""Types of text, the ones first that are read best, with what version 3 calls them."""


@dataclass(frozen=True, slots=True)
class CellImage:
    """An image among the outputs of a cell."""

    name: str
    """What it is called in the text."""
    encoded: str
    """In Base64, or whatever stands in its place."""

    def data(self) -> bytes:
        """Return the bytes of the image.

        Raises:
            ValueError: they cannot be decoded, or are too many; the text fits "it …".
        """
        if len(self.encoded) > MAX_FILE_BYTES * 4 // 3 + 4:
            raise ValueError("is too large")
        try:
            return base64.b64decode(self.encoded)
        except binascii.Error as error:
            raise ValueError("is damaged") from error


@dataclass(frozen=True, slots=True)
class Page:
    """Some cells of a notebook, as they are shown."""

    text: str
    first: int
    """The first cell that is shown, from 0."""
    end: int
    """The cell after the last that is shown."""
    is_cut: bool
    """Whether there was no room for all that were asked for."""
    images: tuple[CellImage, ...]
    """The first of them."""


def show_cells(notebook: NotebookText, *, offset: int, limit: int) -> Page:
    """Return the cells `offset` to `offset + limit`, as many as there is room for; at least one."""
    cells = notebook.cells[offset : offset + limit]
    is_alone = len(cells) == 1
    parts: list[str] = []
    images: list[CellImage] = []
    room = MAX_TEXT_BYTES
    for number, cell in enumerate(cells, start=offset + 1):
        outputs = _Outputs(MAX_ALONE_OUTPUT_BYTES if is_alone else MAX_OUTPUT_BYTES)
        outputs.read(cell)
        text = "\n".join((
            f"--- cell {number} · {_title(cell)} ---",
            *_source_lines(cell, is_alone=is_alone),
            *outputs.lines(),
        ))  # fmt: skip
        room -= len(text.encode("utf-8", "replace"))
        if room < 0 and parts:
            break
        parts.append(text)
        images += outputs.images
    return Page(
        text=shown("\n".join(parts)),
        first=offset,
        end=offset + len(parts),
        is_cut=len(parts) < len(cells),
        images=tuple(images[:MAX_IMAGES]),
    )


def _title(cell: Cell) -> str:
    run = "" if cell.execution_count is None else f" · run {cell.execution_count}"
    name = f"id {cell.name}" if not cell.name.startswith("#") else f"no id, call it {cell.name}"
    return f"{name} · {cell.type}{run}"


def _source_lines(cell: Cell, *, is_alone: bool) -> Iterator[str]:
    lines = cell.source.split("\n") if cell.source else []
    room = MAX_ALONE_BYTES if is_alone else MAX_TEXT_BYTES // 3
    for number, line in enumerate(lines, start=1):
        room -= len(line) + 8
        if room < 0 and number > 1:
            yield _rest(len(lines) - number + 1, is_alone=is_alone)
            return
        if not is_alone and number > MAX_SOURCE_LINES:
            yield _rest(len(lines) - number + 1, is_alone=is_alone)
            return
        yield f"{number:6d}|{_short(line)}"


def _rest(count: int, *, is_alone: bool) -> str:
    way = "read it with a command such as jq" if is_alone else "view this cell alone, limit=1"
    return f"       [… {count:,} more lines; {way} …]"


def _short(line: str) -> str:
    line = line.removesuffix("\r").replace("\r", "␍")
    if len(line) <= MAX_LINE_CHARACTERS:
        return line
    return f"{line[:MAX_LINE_CHARACTERS]}… [cut; the line has {len(line):,} characters]"


class _Outputs:
    """What came of a cell: text in short, images by name."""

    def __init__(self, max_bytes: int) -> None:
        self.images: list[CellImage] = []
        self._buffer = OutputBuffer(max_bytes=max_bytes)
        self._max_bytes = max_bytes
        self._is_empty = True

    def read(self, cell: Cell) -> None:
        """Take in the outputs of `cell`."""
        for output in cell.outputs[:MAX_OUTPUTS]:
            match output.get("output_type"):
                case "stream":
                    self._add(joined(output.get("text")))
                case "error" | "pyerr":
                    self._add(_error(output))
                case _:
                    self._read_data(cell, output)
        if len(cell.outputs) > MAX_OUTPUTS:
            self._add(f"[{len(cell.outputs) - MAX_OUTPUTS:,} more outputs]")

    def lines(self) -> Iterator[str]:
        """Yield what is shown of them, a line each."""
        self._buffer.finish()
        if self._is_empty:
            return
        text = without_base64(self._buffer.text()).rstrip("\n")
        for line in text.split("\n"):
            yield f"   out|{_short(line)}"

    def _read_data(self, cell: Cell, output: JsonObject) -> None:
        data = output.get("data", output)
        bundle = data if isinstance(data, dict) else {}
        if set(bundle) == {RECORD_MIME_TYPE}:
            return
        for media_type, old in _IMAGES.items():
            encoded = joined(bundle.get(media_type, bundle.get(old)))
            if encoded:
                name = f"image {len(self.images) + 1} of {cell.name}"
                self.images.append(CellImage(name, encoded))
                self._add(f"[{name}: {media_type}, {len(encoded) * 3 // 4:,} bytes]")
                return
        text = next(
            (text for kind, old in _TEXTS.items() if (text := _text_of(bundle, kind, old))), ""
        )
        if text:
            self._add(text)
        elif kinds := [str(kind)[:60] for kind in bundle if "/" in str(kind)]:
            self._add(f"[{', '.join(kinds[:4])}]")

    def _add(self, text: str) -> None:
        if not text:
            return
        self._is_empty = False
        # Of a long text, only its ends can be kept; what is between takes time for nothing.
        if len(text) > 8 * self._max_bytes:
            half = 4 * self._max_bytes
            left_out = len(text) - 2 * half
            text = f"{text[:half]}\n[… {left_out:,} characters left out …]\n{text[-half:]}"
        self._buffer.feed(text.encode("utf-8", "replace"))
        if not text.endswith("\n"):
            self._buffer.feed(b"\n")


def _text_of(bundle: JsonObject, kind: str, old: str) -> str:
    text = joined(bundle.get(kind, bundle.get(old)))
    return text if not text or kind in ("text/plain", "text/markdown") else f"[{kind}]\n{text}"


def _error(output: JsonObject) -> str:
    lines: JsonValue = output.get("traceback")
    named = f"{_name(output.get('ename'))}: {_name(output.get('evalue'))}"
    told = [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
    return "\n".join(told) or named


def _name(value: JsonValue) -> str:
    return value[:500] if isinstance(value, str) else "error"
