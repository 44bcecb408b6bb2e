"""The one way by which images and documents come into the conversation.

A provider refuses a request for a single file that it cannot read, and the file stays in
the conversation: so every file is decoded here before it is let in. What it is, its bytes
say and never its name. Images come as large as models look at them, and no larger.
"""

import base64
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Final

import anyio
import anyio.from_thread
import anyio.to_thread

from crush_kernel.errors import ToolError
from crush_kernel.messages import Media
from crush_kernel.tools.media.mediatype import DOCUMENT_TYPE, IMAGE_TYPES, media_type_of
from crush_kernel.wording import counted

MAX_FILE_BYTES: Final = 24_000_000
"""What is read of a file at all. Source: Anthropic, 32 MB a request, in Base64."""

MAX_EDGE: Final = 1_568
"""Pixels. Source: Anthropic, vision; larger ones are made smaller there, or refused."""

MAX_IMAGE_BYTES: Final = 1_100_000
"""Of an image that is sent, so that twenty of them fit in a request."""

MAX_DECODE_S: Final = 20.0
"""How long a file may take; a hostile one can take hours."""

DECODING: Final = Lock()
"""Held for one file at a time, which can take hundreds of megabytes."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A file that was let in."""

    media: Media
    facts: str
    """What the file is, on one line: its type, its pixels or pages, its bytes."""


async def admit(data: bytes, *, name: str) -> Admitted:
    """Let the file `data` in, which is called `name` in text, and may be made smaller.

    Works in a thread, which a cancelled caller does not wait for.

    Raises:
        ToolError: it cannot be let in; says why, as the second half of a sentence.
    """
    with anyio.move_on_after(MAX_DECODE_S):
        work = partial(_admit, data, name)
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    raise ToolError(f"it takes more than {MAX_DECODE_S:.0f} seconds to decode")


def _admit(data: bytes, name: str) -> Admitted:
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB")
    media_type = media_type_of(data)
    with DECODING:
        anyio.from_thread.check_cancelled()
        if media_type in IMAGE_TYPES:
            return _admit_image(data, media_type, name)
        if media_type == DOCUMENT_TYPE:
            return _admit_document(data, name)
    raise ToolError(f"it is neither an image nor a PDF ({media_type})")


def _admit_image(data: bytes, media_type: str, name: str) -> Admitted:
    from crush_kernel.pictures import BadPicture, fitted  # noqa: PLC0415 - loads Pillow

    try:
        picture = fitted(data, media_type=media_type, max_edge=MAX_EDGE, max_bytes=MAX_IMAGE_BYTES)
    except BadPicture as error:
        raise ToolError(str(error)) from error
    facts = f"{media_type}, {_pixels(picture.original_size)}, {len(data):,} bytes"
    if picture.data != data:
        facts += f"; shown as {picture.media_type}, {_pixels(picture.size)}"
    return Admitted(_media(picture.media_type, picture.data, name), facts)


def _admit_document(data: bytes, name: str) -> Admitted:
    from crush_kernel.tools.media.documents import BadDocument, count_pages  # noqa: PLC0415 - PDFium

    try:
        pages = count_pages(data)
    except BadDocument as error:
        raise ToolError(str(error)) from error
    facts = f"{DOCUMENT_TYPE}, {counted(pages, 'page')}, {len(data):,} bytes"
    return Admitted(_media(DOCUMENT_TYPE, data, name), facts)


def _pixels(size: tuple[int, int]) -> str:
    return f"{size[0]}×{size[1]} pixels"


def _media(media_type: str, data: bytes, name: str) -> Media:
    return Media(media_type, base64.b64encode(data).decode("ascii"), name=name)
