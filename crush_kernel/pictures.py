"""Pictures: decoded within bounds and, where need be, turned upright, made smaller, encoded.

The only module that knows Pillow; import it where the first picture comes, not before. The
same bytes give the same bytes, and no metadata comes along in what is encoded here. Blocks
for as long as seconds: call it in a worker thread where anybody waits.
"""

import io
import math
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast

from PIL import Image, ImageOps

MAX_PIXELS: Final = 50_000_000
"""The largest picture that is decoded, in 200 MB of memory; a small file can claim far more."""

FORMATS: Final = {
    "image/png": "PNG",
    "image/apng": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/avif": "AVIF",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
    "image/x-icon": "ICO",
}
"""The decoder of each MIME type. No other decoder ever sees the bytes."""

_SENT_TYPES: Final = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif",
                      "WEBP": "image/webp"}  # fmt: skip
"""What every model that sees takes as it is."""

_SENT_MODES: Final = frozenset(("1", "L", "LA", "P", "PA", "RGB", "RGBA"))
"""Pixels that every model can be expected to read: no CMYK, no 16 or 32 bits."""

_FEW_COLORS: Final = 256
"""Up to here a picture is a drawing, which PNG keeps small and JPEG would blur."""

_JPEG_LADDER: Final = ((1, 88), (1, 75), (0.75, 65), (0.5, 55), (0.3, 45), (0.15, 40))
"""Shares of the largest edge, with qualities, tried in turn until the result is small enough."""

_ORIENTATION: Final = 0x0112
"""Source: Exif 2.3, tag 274; above 4, width and height change places."""

# Below twice its limit Pillow only warns, so the warning is made the error that is caught.
Image.MAX_IMAGE_PIXELS = MAX_PIXELS
warnings.simplefilter("error", Image.DecompressionBombWarning)

Size = tuple[int, int]
"""Width and height in pixels."""


class BadPicture(ValueError):
    """The picture cannot be used; says why, as the second half of a sentence."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that can be sent and shown."""

    media_type: str
    """PNG, JPEG, GIF or WebP, whatever it was before."""
    data: bytes
    size: Size
    original_size: Size
    """Its size before it was made smaller."""


def fitted(data: bytes, *, media_type: str, max_edge: int, max_bytes: int) -> Picture:
    """Return the picture `data` with edges of at most `max_edge` pixels, in `max_bytes` bytes.

    A picture that fits already is given back byte for byte. Of an animated one only the
    first frame is left.

    Raises:
        BadPicture: it is damaged, cut off, too large, or of a type without decoder here.
    """
    if media_type not in FORMATS:
        raise BadPicture(f"pictures of the type {media_type} are not read here")
    try:
        with Image.open(io.BytesIO(data), formats=[FORMATS[media_type]]) as image:
            return _fitted(image, data, max_edge=max_edge, max_bytes=max_bytes)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise BadPicture(f"it has more than {MAX_PIXELS // 1_000_000} million pixels") from error
    except BadPicture:
        raise
    except Exception as error:  # decoders raise whatever broken bytes lead to
        raise BadPicture("it cannot be decoded, so it is damaged or cut off") from error


def _fitted(image: Image.Image, data: bytes, *, max_edge: int, max_bytes: int) -> Picture:
    original, is_small = image.size, max(image.size) <= max_edge
    if not is_small:
        # JPEG can be decoded at a fraction of its size, in that fraction of the memory.
        image.draft(image.mode, _within(original, max_edge))
    image.load()
    if is_small and len(data) <= max_bytes and _can_be_sent(image):
        return Picture(_SENT_TYPES[image.format or ""], data, size=original, original_size=original)
    upright, is_turned = _upright(image)
    if is_turned:
        original = original[1], original[0]
    for encoded_type, encoded, size in _encodings(_plain(upright), max_edge):
        if len(encoded) <= max_bytes:
            return Picture(encoded_type, encoded, size=size, original_size=original)
    raise BadPicture(f"it cannot be brought below {max_bytes:,} bytes")


def _can_be_sent(image: Image.Image) -> bool:
    is_animated = bool(getattr(image, "is_animated", False))
    return image.format in _SENT_TYPES and image.mode in _SENT_MODES and not is_animated


def _within(size: Size, max_edge: float) -> Size:
    """Return `size`, or a smaller one of the same shape whose edges are within `max_edge`."""
    share = min(1.0, max_edge / max(size))
    return max(1, round(size[0] * share)), max(1, round(size[1] * share))


def _upright(image: Image.Image) -> tuple[Image.Image, bool]:
    """Return `image` as the camera was held, and whether width and height changed places."""
    with suppress(Exception):  # a picture with damaged metadata is still a picture
        orientation = image.getexif().get(_ORIENTATION, 1)
        if orientation == 1:
            return image, False
        return ImageOps.exif_transpose(image), orientation in (5, 6, 7, 8)
    return image, False


def _plain(image: Image.Image) -> Image.Image:
    """Return `image` in 8 bits, gray, colored or, if anything is transparent, `RGBA`."""
    if image.mode.startswith(("I", "F")):
        image = _stretched(image)
    elif image.has_transparency_data:
        image = image.convert("RGBA")
        if image.getchannel("A").getextrema() == (255, 255):
            image = image.convert("RGB")
    elif image.mode not in ("L", "RGB"):
        image = image.convert("L" if image.mode == "1" else "RGB")
    image.info.clear()
    return image


def _stretched(image: Image.Image) -> Image.Image:
    """Return deep pixels, as instruments give them, in gray from their darkest to brightest."""
    image = image.convert("F")
    low, high = cast("tuple[float, float]", image.getextrema())  # one band, so one pair
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return image.convert("L")
    scale = 255 / (high - low)
    stretched = image.point(  # pyright: ignore[reportUnknownMemberType] - NumPy, not here
        lambda value: value * scale - low * scale
    )
    return stretched.convert("L")


def _encodings(image: Image.Image, max_edge: int) -> Iterator[tuple[str, bytes, Size]]:
    """Yield `image` as type, bytes and size: the best that may be first, then ever smaller."""
    is_transparent = image.mode == "RGBA"
    if is_transparent or image.getcolors(_FEW_COLORS) is not None:
        small = _resized(image, max_edge)
        yield "image/png", _encoded(small, "PNG"), small.size
    if is_transparent:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image).convert("RGB")
    for share, quality in _JPEG_LADDER:
        small = _resized(image, max_edge * share)
        yield "image/jpeg", _encoded(small, "JPEG", quality=quality), small.size


def _resized(image: Image.Image, max_edge: float) -> Image.Image:
    size = _within(image.size, max_edge)
    if size == image.size:
        return image
    return image.resize(  # pyright: ignore[reportUnknownMemberType] - NumPy, not here
        size, Image.Resampling.LANCZOS, reducing_gap=3.0
    )


def _encoded(image: Image.Image, encoder: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, encoder, **options)
    return buffer.getvalue()
