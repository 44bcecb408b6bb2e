"""Images and documents as `view` shows them: to models that can look at them, else in words."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from crush_kernel.errors import ToolError
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.filecontent import MediaContent
from crush_kernel.tools.media.admission import admit
from crush_kernel.tools.media.mediatype import DOCUMENT_TYPE
from crush_kernel.tools.media.pages import show_pages
from crush_kernel.tools.paths import Target


@dataclass(frozen=True, slots=True)
class Sight:
    """What is to be looked at, and by whom."""

    target: Target
    offset: int
    limit: int
    is_plain: bool
    """Whether all of it is wanted, as far as it goes."""
    accepts: Callable[[str], bool]
    """Whether the model can look at files of a MIME type."""
    progress: Callable[[str], None]


async def show_media(sight: Sight, content: MediaContent) -> ToolOutput:
    """Return `content` for the model.

    Raises:
        ToolError: the model cannot look at it, or nobody can.
    """
    return await _SHOWN.get(content.media_type, _show_image)(sight, content)


async def _show_image(sight: Sight, content: MediaContent) -> ToolOutput:
    return await _show_itself(sight, content, kind="image")


async def _show_document(sight: Sight, content: MediaContent) -> ToolOutput:
    """Show a document as it is if the model takes it and wants all of it, else its text."""
    as_text = partial(
        show_pages,
        content.data,
        sight.target,
        offset=sight.offset,
        limit=sight.limit,
        progress=sight.progress,
    )
    if not sight.is_plain or not sight.accepts(content.media_type):
        return await as_text()
    try:
        return await _show_itself(sight, content, kind="document")
    except ToolError as refusal:
        # Too long to be sent, it may still be read.
        try:
            return await as_text()
        except ToolError:
            raise refusal from None


_SHOWN: Final[dict[str, Callable[[Sight, MediaContent], Awaitable[ToolOutput]]]] = {
    DOCUMENT_TYPE: _show_document
}
"""How media are shown that are no images, by their types."""


async def _show_itself(sight: Sight, content: MediaContent, *, kind: str) -> ToolOutput:
    shown = sight.target.shown
    name = f"[{kind} {shown}: {content.media_type}, {content.size:,} bytes]"
    if not sight.accepts(content.media_type):
        raise ToolError(f"{name} The current model cannot look at {kind}s.")
    try:
        admitted = await admit(content.data, name=shown)
    except ToolError as error:
        raise ToolError(f"{name} It cannot be shown: {error}.") from error
    text = f"[{kind} {shown}: {admitted.facts}]"
    return ToolOutput(text, media=(admitted.media,), summary=admitted.media.media_type)
