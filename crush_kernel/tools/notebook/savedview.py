"""A notebook on disk, looked into for the model: read, shown by cells, its images let in."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.from_thread
import anyio.to_thread

from crush_kernel.errors import ToolError
from crush_kernel.files.opening import open_real
from crush_kernel.files.textfile import decode, detect
from crush_kernel.messages import Media
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.filechange import MAX_NOTEBOOK_BYTES
from crush_kernel.tools.filecontent import chunks_of, require_regular
from crush_kernel.tools.media.admission import MAX_DECODE_S, admit
from crush_kernel.tools.notebook.digest import CellImage, Page, show_cells
from crush_kernel.tools.notebook.text import NoNotebook, NotebookText, read_notebook
from crush_kernel.tools.paths import Target, reason
from crush_kernel.wording import counted


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of looking into a notebook."""

    output: ToolOutput | None
    """Its cells; `None` if it is no notebook and should be shown as what it is."""
    data: bytes = b""
    damage: str = ""
    """Why it is none."""


async def look_into_notebook(
    target: Target, *, offset: int, limit: int, accepts: Callable[[str], bool]
) -> Looked:
    """Return the cells `offset` to `offset + limit` of the notebook at `target`.

    Args:
        target: may be read.
        offset: cells to skip.
        limit: how many cells, at most.
        accepts: whether the model can look at files of a MIME type.

    Raises:
        ToolError: it cannot be read, is too large, or has no such cells.
    """
    data = await anyio.to_thread.run_sync(_read, target, abandon_on_cancel=True)
    work = partial(_show, data, target, offset, limit)
    try:
        notebook, page = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except NoNotebook as error:
        return Looked(None, damage=str(error))
    about = _about(notebook, len(data))
    return Looked(await cells_shown(notebook, page, about=about, accepts=accepts), data)


async def cells_shown(
    notebook: NotebookText, page: Page, *, about: str, accepts: Callable[[str], bool]
) -> ToolOutput:
    """Return `page` with the images in it that can be let in, and where in `notebook` it is.

    Args:
        notebook: the whole of it.
        page: some of its cells.
        about: what kind of notebook it is, to go behind their place.
        accepts: whether the model can look at files of a MIME type.
    """
    media, notes = await _let_in(page.images, accepts)
    text = "\n".join((page.text, "", f"[{_place(notebook, page, about)}]", *notes)).lstrip("\n")
    total = len(notebook.cells)
    is_whole = page.first == 0 and page.end == total
    summary = f"{total} cells" if is_whole else f"cells {page.first + 1}–{page.end} of {total}"
    return ToolOutput(text, media=media, summary=summary)


def page_of(notebook: NotebookText, target: Target, *, offset: int, limit: int) -> Page:
    """Return the cells `offset` to `offset + limit`, as far as there is room for them.

    Raises:
        ToolError: there are no such cells.
    """
    total = len(notebook.cells)
    if offset and offset >= total:
        raise ToolError(f"{target.shown} has only {total} cells; offset {offset} is past its end.")
    return show_cells(notebook, offset=offset, limit=limit)


def _read(target: Target) -> bytes:
    try:
        descriptor = open_real(target.path)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            status = os.fstat(descriptor)
            require_regular(target, status)
            data = bytearray()
            for chunk in chunks_of(file.read):
                data += chunk
                if len(data) > MAX_NOTEBOOK_BYTES:
                    break
    except OSError as error:
        raise ToolError(f"{target.shown} cannot be read: {reason(error)}.") from error
    if len(data) > MAX_NOTEBOOK_BYTES:
        raise ToolError(
            f"{target.shown} is larger than {MAX_NOTEBOOK_BYTES // 1_000_000} MB, too large to be "
            "shown by its cells. Look into it with a command such as jq."
        )
    return bytes(data)


def _show(data: bytes, target: Target, offset: int, limit: int) -> tuple[NotebookText, Page]:
    text_format = detect(data)
    if text_format is None:
        raise NoNotebook("it is no text")
    notebook = read_notebook(decode(data, text_format))
    anyio.from_thread.check_cancelled()
    return notebook, page_of(notebook, target, offset=offset, limit=limit)


async def _let_in(
    images: tuple[CellImage, ...], accepts: Callable[[str], bool]
) -> tuple[tuple[Media, ...], list[str]]:
    """Return the images that the model can look at, and what to say of all of them."""
    if not images:
        return (), []
    if not accepts("image/png"):
        return (), ["[the current model cannot look at images]"]
    media: list[Media] = []
    notes: list[str] = []
    with anyio.move_on_after(MAX_DECODE_S):
        for image in images:
            try:
                admitted = await admit(image.data(), name=image.name)
            except (ToolError, ValueError) as error:
                notes.append(f"[{image.name} cannot be shown: {error}]")
                continue
            media.append(admitted.media)
            notes.append(f"[{image.name}: {admitted.facts}]")
    return tuple(media), notes


def _about(notebook: NotebookText, size: int) -> str:
    version = f"{notebook.version}.{notebook.minor}" if notebook.version > 3 else "3"
    return ", ".join(filter(None, (notebook.language, f"format {version}", f"{size:,} bytes")))


def _place(notebook: NotebookText, page: Page, about: str) -> str:
    total = len(notebook.cells)
    if total == 0:
        return f"a notebook without cells; {about}"
    if page.first == 0 and page.end == total:
        return f"whole notebook: {counted(total, 'cell')}; {about}"
    more = "the end" if page.end == total else f"go on with offset={page.end}"
    cut = ", as many as fit" if page.is_cut else ""
    return f"cells {page.first + 1}-{page.end} of {total}{cut}; {about}; {more}"
