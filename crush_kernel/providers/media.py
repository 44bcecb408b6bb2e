"""What kind of file an attachment is, by its bytes, before it is sent.

Pure. A file that the provider would refuse on sight must not go out: it would come again with
every later request.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

from crush_kernel.messages import Media
from crush_kernel.providers.base import ModelInfo

PDF: Final = "application/pdf"

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"RIFF", "image/webp"),
    (b"%PDF-", PDF),
)


@dataclass(frozen=True, slots=True)
class Content:
    """What is in an attachment."""

    media_type: str
    """One that models take, empty if it is no such file."""
    size: int
    """In bytes."""

    @property
    def is_image(self) -> bool:
        """Whether it is an image."""
        return self.media_type.startswith("image/")


def content_of(media: Media) -> Content | None:
    """Return what is in `media`, `None` if its data is damaged."""
    try:
        content = base64.b64decode(media.data, validate=True)
    except (binascii.Error, ValueError):
        return None
    media_type = next((kind for magic, kind in _MAGIC if content.startswith(magic)), "")
    return Content(media_type, len(content))


def sendable(
    media: Media, info: ModelInfo, *, max_image_bytes: int, max_document_bytes: int
) -> Content | str:
    """Return what is in a file that can be sent, else the words that stand for it.

    Args:
        media: the file.
        info: the model that is to look at it.
        max_image_bytes: what its API takes of an image.
        max_document_bytes: what its API takes of any other file.
    """
    content = content_of(media)
    if content is None:
        return left_out(media, "its data is damaged")
    is_taken = info.accepts_images if content.is_image else info.accepts_documents
    if not content.media_type or not is_taken:
        return left_out(media, "this model cannot read it")
    most = max_image_bytes if content.is_image else max_document_bytes
    return left_out(media, "it is too large") if content.size > most else content


def left_out(media: Media, reason: str) -> str:
    """Return the words that stand for `media` where it is not sent."""
    name = f" {media.name}" if media.name else ""
    return f"[The file{name} ({media.media_type or 'of unknown type'}) is left out: {reason}.]"
