"""The text of a PDF's pages, for models that cannot look at documents, and for long ones."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final

import anyio
import anyio.from_thread
import anyio.to_thread

from crush_kernel.errors import ToolError
from crush_kernel.files.textfile import shown
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.media.admission import DECODING, MAX_DECODE_S, MAX_FILE_BYTES
from crush_kernel.tools.pace import Pace
from crush_kernel.tools.paths import Target
from crush_kernel.wording import counted

MAX_CHARACTERS: Final = 60_000
"""What pages may come to together."""


async def show_pages(
    data: bytes, target: Target, *, offset: int, limit: int, progress: Callable[[str], None]
) -> ToolOutput:
    """Return the text of the pages `offset` to `offset + limit` of a PDF, as far as it fits.

    Raises:
        ToolError: it cannot be read, takes too long, or has no such pages.
    """
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(
            f"{target.shown} is larger than {MAX_FILE_BYTES // 1_000_000} MB. Get its text with "
            "a command such as pdftotext."
        )
    pace = Pace(progress)

    def tell(page: int) -> None:
        pace.step(lambda: f"page {page:,}")

    with anyio.move_on_after(MAX_DECODE_S):
        work = partial(_show_pages, data, target, offset, limit, tell)
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    raise ToolError(
        f"The text of {target.shown} takes more than {MAX_DECODE_S:.0f} seconds to read. Ask for "
        "fewer pages with limit."
    )


def _show_pages(
    data: bytes, target: Target, offset: int, limit: int, tell: Callable[[int], None]
) -> ToolOutput:
    from crush_kernel.tools.media.documents import BadDocument, read_pages  # noqa: PLC0415 - PDFium

    pages = count(offset + 1)

    def check() -> None:
        anyio.from_thread.check_cancelled()
        anyio.from_thread.run_sync(tell, next(pages))

    with DECODING:
        anyio.from_thread.check_cancelled()
        try:
            read = read_pages(
                data,
                offset=offset,
                limit=limit,
                max_characters=MAX_CHARACTERS,
                check=check,
            )
        except BadDocument as error:
            raise ToolError(f"[document {target.shown}] It cannot be read: {error}.") from error
    if not read.texts:
        total = counted(read.total, "page")
        raise ToolError(f"{target.shown} has only {total}; offset {offset} is past its end.")
    last = offset + len(read.texts)
    parts = [
        f"--- page {number} ---\n{text.strip() or '[no text: maybe it is a picture]'}"
        for number, text in enumerate(read.texts, start=offset + 1)
    ]
    more = "the end" if last >= read.total else f"go on with offset={last}"
    place = f"pages {offset + 1}-{last} of {read.total:,}; {more}"
    return ToolOutput(
        f"{shown(chr(10).join(parts))}\n\n[text of {target.shown}, {place}]",
        summary=f"pages {offset + 1}–{last} of {read.total:,}",
    )
