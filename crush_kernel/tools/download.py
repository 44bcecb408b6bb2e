"""`download`: save something of the web as a file, whatever it is."""

import os
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import anyio
from anyio.to_thread import run_sync
from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.opening import is_real
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.diskfile import MAX_EDIT_BYTES, read_file, require_writable
from crush_kernel.tools.filechange import OpenNotebook, no_notebook
from crush_kernel.tools.incoming import Incoming
from crush_kernel.tools.inrange import IN_RANGE
from crush_kernel.tools.paths import PathPolicy, Target, kind_of
from crush_kernel.tools.web.inquiry import Answer, Inquiry, Web
from crush_kernel.tools.web.leave import ask_leave
from crush_kernel.tools.web.reading import Meter
from crush_kernel.tools.web.urls import parse_url

DEFAULT_TIMEOUT_S: Final = 300
MAX_TIMEOUT_S: Final = 600
MAX_BYTES: Final = 1_000_000_000

_CLEAN_UP_S: Final = 5.0
"""For taking away a file that did not come in full; a network drive can be slow."""


class DownloadArguments(Arguments):
    """What to save, and where."""

    url: str = Field(description="The full URL, http:// or https://.")
    file_path: str = Field(description="The file to save to, relative to the working directory.")
    timeout: Annotated[int, Field(ge=1, le=MAX_TIMEOUT_S), IN_RANGE] = Field(
        default=DEFAULT_TIMEOUT_S, description="When to give up, seconds."
    )


@dataclass(frozen=True, slots=True)
class _Saved:
    url: str
    size: int
    media_type: str
    is_kept: bool
    """Whether the file was small enough for its versions to be kept."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the file goes, and what was there before anybody was asked."""

    target: Target
    stamp: tuple[int, ...] | None
    """What changes when the file does; `None` if there is none."""
    notes: tuple[str, ...]


def download_tool(
    web: Web,
    paths: PathPolicy,
    *,
    notebook: OpenNotebook = no_notebook,
    max_bytes: int = MAX_BYTES,
) -> Tool[DownloadArguments]:
    """Return the tool; it writes under `paths`, never more than `max_bytes`."""

    async def run(arguments: DownloadArguments, context: ToolContext) -> ToolOutput:
        url = parse_url(arguments.url)
        place = await run_sync(
            _place, paths, arguments.file_path, notebook(), abandon_on_cancel=True
        )
        shown = place.target.shown
        leave = ask_leave(
            context,
            tool="download",
            verb="download",
            suffix=f" to {shown}",
            paths=(place.target.path,),
            is_outside=place.target.is_outside,
            dangers=paths.dangers(place.target),
            notes=place.notes,
        )
        read = partial(_save, place=place, context=context, max_bytes=max_bytes)
        inquiry = Inquiry(
            url=url,
            leave=leave,
            read=read,
            timeout_s=arguments.timeout,
            # The file itself is wanted, not a compressed form of it.
            headers={"Accept-Encoding": "identity"},
        )
        saved = await web.ask(inquiry)
        undo = "" if saved.is_kept else " It is too large for its versions to be kept for undo."
        return ToolOutput(
            f"{shown}: {saved.size:,} bytes of {saved.media_type or 'no declared type'} "
            f"from {printable(saved.url)}.{undo}",
            summary=f"{saved.size:,} bytes",
            metadata={"url": saved.url, "media_type": saved.media_type, "bytes": saved.size},
        )

    return Tool(
        name="download",
        description=description_of(
            "download", {"megabytes": f"{max_bytes / 1e6:,.0f}", "seconds": DEFAULT_TIMEOUT_S}
        ),
        arguments=DownloadArguments,
        run=run,
        describe=lambda arguments: printable(f"{arguments.url} → {arguments.file_path}"),
        timeout_s=MAX_TIMEOUT_S + QUICK_S,
    )


def _place(paths: PathPolicy, text: str, notebook: Path | None) -> _Place:
    """Return where `text` leads, if a file can be saved there."""
    target = paths.resolve(text)
    if notebook is not None and os.path.realpath(notebook) == str(target.path):
        raise ToolError(f"{target.shown} is the notebook in which you run. Save to another file.")
    try:
        status = target.path.stat()
    except OSError:
        status = None
    if status is not None and not target.path.is_file():
        raise ToolError(f"{target.shown} is a {kind_of(status)}. Name a file to save to.")
    require_writable(target.path)
    notes = () if status is None else (f"replaces the file of {status.st_size:,} bytes there",)
    return _Place(target, _stamp(target.path), notes)


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


async def _save(answer: Answer, *, place: _Place, context: ToolContext, max_bytes: int) -> _Saved:
    """Write the body beside the file, then put it in its place at once."""
    if answer.size is not None and answer.size > max_bytes:
        raise _too_large(answer, max_bytes)
    incoming = await run_sync(Incoming, place.target.path)
    try:
        size = await _receive(answer, incoming, context.progress, max_bytes=max_bytes)
        # Once begun it is finished, whoever has lost interest.
        is_kept = await run_sync(_commit, incoming, place, context)
    finally:
        with anyio.move_on_after(_CLEAN_UP_S, shield=True):
            await run_sync(incoming.discard)
    return _Saved(str(answer.url), size, answer.media_type.name, is_kept)


async def _receive(
    answer: Answer, incoming: Incoming, progress: Callable[[str], None], *, max_bytes: int
) -> int:
    meter = Meter(progress, answer.size)
    async with aclosing(answer.body()) as body:
        async for chunk in body:
            meter.add(len(chunk))
            if meter.size > max_bytes:
                raise _too_large(answer, max_bytes)
            await run_sync(incoming.write, chunk)
    return meter.size


def _commit(incoming: Incoming, place: _Place, context: ToolContext) -> bool:
    """Replace the file if nothing else has; return whether its versions were kept."""
    path = place.target.path
    if _stamp(path) != place.stamp or not is_real(path):
        raise ToolError(
            f"{place.target.shown} was changed by something else in the meantime, so nothing was "
            "saved. Repeat the call if it should be replaced all the same."
        )
    if max(incoming.size, place.stamp[2] if place.stamp else 0) > MAX_EDIT_BYTES:
        incoming.commit()
        return False
    file = read_file(path)
    before, after = file.data if file else None, incoming.content()
    context.keep_version(path, before, after)
    try:
        incoming.commit()
    except BaseException:
        context.keep_version(path, after, before)  # it is as it was
        raise
    return True


def _too_large(answer: Answer, max_bytes: int) -> ToolError:
    return ToolError(
        f"{printable(str(answer.url))} is larger than {max_bytes / 1e6:,.0f} MB, so nothing was "
        "saved. The user can fetch it with a command such as curl."
    )
