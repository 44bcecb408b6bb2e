"""A page read into memory, with bounds, and made into text for the model."""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import anyio
import anyio.to_thread

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.tools.web.content import TextBody, is_surely_binary, read_body
from crush_kernel.tools.web.inquiry import Answer
from crush_kernel.tools.web.markdown import convert_html

MAX_BODY_BYTES: Final = 5 * 1024 * 1024
"""Of a page, decompressed; what follows is left out."""

_REPORT_EVERY_S: Final = 0.2

PageFormat = Literal["text", "markdown", "html"]


@dataclass(frozen=True, slots=True)
class Page:
    """Something of the web that was read."""

    url: str
    """Where it was found in the end."""
    text: str
    size: int
    """Bytes that were read."""
    is_cut: bool
    """Whether the body was longer than `MAX_BODY_BYTES`."""
    media_type: str
    encoding: str
    is_guess: bool
    """Whether the encoding is one."""


class Meter:
    """Tells how much has come, not too often."""

    def __init__(self, progress: Callable[[str], None], expected: int | None) -> None:
        self._progress = progress
        self._of = f" of {expected:,}" if expected is not None else ""
        self._told_at = 0.0
        self.size = 0

    def add(self, count: int) -> None:
        """Note that `count` more bytes have come."""
        self.size += count
        now = anyio.current_time()
        if now - self._told_at >= _REPORT_EVERY_S:
            self._told_at = now
            self._progress(f"{self.size:,}{self._of} bytes")


async def read_page(answer: Answer, *, form: PageFormat, progress: Callable[[str], None]) -> Page:
    """Return the page that `answer` is.

    Raises:
        ToolError: it is no text, or it is empty.
    """
    if is_surely_binary(answer.media_type):
        raise _not_text(answer, answer.media_type.name)
    data, is_cut = await read_bytes(answer, progress=progress)
    make = partial(_page, data, answer, is_cut=is_cut, form=form)
    return await anyio.to_thread.run_sync(make, abandon_on_cancel=True)


async def read_bytes(
    answer: Answer, *, progress: Callable[[str], None], max_bytes: int = MAX_BODY_BYTES
) -> tuple[bytes, bool]:
    """Return the first `max_bytes` of the body, and whether there are more."""
    meter = Meter(progress, answer.size)
    data = bytearray()
    async with aclosing(answer.body()) as body:
        async for chunk in body:
            meter.add(len(chunk))
            data += chunk
            if len(data) > max_bytes:
                return bytes(data[:max_bytes]), True
    return bytes(data), False


def _page(data: bytes, answer: Answer, *, is_cut: bool, form: PageFormat) -> Page:
    body = read_body(data, answer.media_type, is_cut=is_cut)
    if body is None:
        raise _not_text(answer, answer.media_type.name)
    text = _formed(body, str(answer.url), form)
    if not text.strip():
        raise ToolError(_nothing(answer, body, form))
    return Page(
        url=str(answer.url),
        text=text,
        size=len(data),
        is_cut=is_cut,
        media_type=answer.media_type.name or "no type",
        encoding=body.encoding,
        is_guess=body.is_guess,
    )


def _formed(body: TextBody, url: str, form: PageFormat) -> str:
    if body.kind != "html" or form == "html":
        return body.text
    return convert_html(body.text, base_url=url, to=form)


def _nothing(answer: Answer, body: TextBody, form: PageFormat) -> str:
    url = printable(str(answer.url))
    if body.kind == "html" and form != "html" and body.text.strip():
        return (
            f"{url} has no text in its HTML; scripts may write it in a browser. Look at it with "
            "format=html."
        )
    return f"{url} is empty."


def _not_text(answer: Answer, media_type: str) -> ToolError:
    kind = f" ({printable(media_type)})" if media_type else ""
    return ToolError(
        f"{printable(str(answer.url))} is not text{kind}. Save it with download, then look at "
        "the file."
    )
