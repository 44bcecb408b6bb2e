"""What providers check of an attached file."""

import base64
import binascii
from typing import Final

_MAGIC: Final = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "application/pdf": (b"%PDF-",),
}


def check_media(media_type: str, data: str) -> str:
    """Return what is wrong with a Base64 file that is said to be `media_type`, or nothing."""
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return "invalid base64 data"
    magic = _MAGIC.get(media_type)
    if magic is None:
        return f"unsupported media type {media_type}"
    if not content.startswith(magic):
        return f"the file does not match the provided media type {media_type}"
    return ""
