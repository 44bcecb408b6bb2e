"""The MIME type of bytes, from the bytes themselves."""

from typing import Final

import filetype  # pyright: ignore[reportMissingTypeStubs] - it has none

UNKNOWN: Final = "unknown type"

DOCUMENT_TYPE: Final = "application/pdf"

IMAGE_TYPES: Final = frozenset((
    "image/png", "image/apng", "image/jpeg", "image/gif", "image/webp", "image/avif",
    "image/bmp", "image/tiff", "image/x-icon",
))  # fmt: skip
"""The images that can be decoded here. SVG is text, and read as such."""

MEDIA_TYPES: Final = IMAGE_TYPES | {DOCUMENT_TYPE}

_HEAD_BYTES: Final = 8_192

_GIF_HEADS: Final = (b"GIF87a", b"GIF89a")


def media_type_of(data: bytes) -> str:
    """Return the MIME type that `data` begins like, or `UNKNOWN`."""
    head = data[:_HEAD_BYTES]
    found: object = filetype.guess_mime(head)  # pyright: ignore[reportUnknownMemberType]
    return found if isinstance(found, str) and _is_credible(found, head) else UNKNOWN


def _is_credible(media_type: str, head: bytes) -> bool:
    """Return whether more than two or three letters speak for it, which a text begins with too."""
    match media_type:
        case "image/gif":
            return head.startswith(_GIF_HEADS)
        case "image/bmp":
            return head[6:10] == bytes(4)  # reserved
        case _:
            return True
