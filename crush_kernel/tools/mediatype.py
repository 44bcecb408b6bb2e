"""The MIME type of bytes, from the bytes themselves."""

import filetype  # pyright: ignore[reportMissingTypeStubs] - it has none

IMAGE_TYPES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""The images that every provider with vision takes."""

_HEAD_BYTES = 8_192


def media_type_of(data: bytes) -> str:
    """Return the MIME type that `data` begins like, or `unknown type`."""
    found: object = filetype.guess_mime(data[:_HEAD_BYTES])  # pyright: ignore[reportUnknownMemberType]
    return found if isinstance(found, str) else "unknown type"
