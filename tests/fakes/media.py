"""Images and documents, made when a test needs them; the same ones each time."""

import io
import struct
import zlib
from collections.abc import Sequence
from hashlib import md5, shake_128

import pypdfium2 as pdfium  # pyright: ignore[reportMissingTypeStubs] - it has none
from PIL import Image

Size = tuple[int, int]


def photo(size: Size, mode: str = "RGB") -> Image.Image:
    """Return soft blots in all colors, as a photograph has them."""
    cells = Image.frombytes("RGB", (16, 12), shake_128().digest(16 * 12 * 3))
    return cells.resize(size, Image.Resampling.BICUBIC).convert(mode)  # pyright: ignore[reportUnknownMemberType]


def noise(size: Size, *, grain: int = 1) -> Image.Image:
    """Return what no encoder can make small, in squares of `grain` pixels."""
    width, height = size[0] // grain, size[1] // grain
    image = Image.frombytes("RGB", (width, height), shake_128().digest(width * height * 3))
    return image.resize(size, Image.Resampling.NEAREST)  # pyright: ignore[reportUnknownMemberType]


def drawing(size: Size) -> Image.Image:
    """Return a few colors with sharp edges."""
    image = Image.new("RGB", size, "white")
    image.paste("navy", (size[0] // 4, size[1] // 4, size[0] // 2, size[1] // 2))
    return image


def encoded(image: Image.Image, encoder: str, **options: object) -> bytes:
    """Return `image` as a file of the format `encoder`, as Pillow calls it."""
    if encoder == "PNG":
        options = {"compress_level": 1, **options}  # which takes far less time
    buffer = io.BytesIO()
    image.save(buffer, encoder, **options)
    return buffer.getvalue()


def decoded(data: bytes) -> Image.Image:
    """Return the image in the file `data`."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def png_head(size: Size) -> bytes:
    """Return the begin of a PNG file that claims to have `size`, and little data."""
    header = struct.pack(">IIBBBBB", *size, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(1_000))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels)


def _chunk(name: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)


def icon_of(png: bytes) -> bytes:
    """Return an icon file that says that `png`, which it holds, has 16 × 16 pixels."""
    return struct.pack("<HHHBBBBHHII", 0, 1, 1, 16, 16, 0, 0, 1, 32, len(png), 22) + png


def pdf(pages: int = 1) -> bytes:
    """Return a PDF of empty pages."""
    buffer = io.BytesIO()
    with pdfium.PdfDocument.new() as document:
        for _ in range(pages):
            document.new_page(200, 100)  # pyright: ignore[reportUnknownMemberType]
        document.save(buffer)  # pyright: ignore[reportUnknownMemberType]
    return buffer.getvalue()


def pdf_of(*texts: str) -> bytes:
    """Return a PDF of pages that say `texts`, in letters that need no escape."""
    count = len(texts)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%b]>>"
        % (count, b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(count))),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, text in enumerate(texts):
        content = b"BT /F1 12 Tf 9 50 Td (%b) Tj ET" % text.encode()
        objects += (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 99]/Contents %d 0 R"
            b"/Resources<</Font<</F1 3 0 R>>>>>>" % (5 + 2 * number),
            b"<</Length %d>>stream\n%b\nendstream" % (len(content), content),
        )
    return _with_table(objects, b"")


def _with_table(objects: Sequence[bytes], trailer: bytes) -> bytes:
    """Return a PDF of `objects`, the first of which is its catalog."""
    body, places = b"%PDF-1.4\n", list[int]()
    for number, value in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, value)
    size = len(objects) + 1
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return (
        body
        + b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
        + b"trailer\n<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF\n"
        % (size, trailer, len(body))
    )


_PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
"""Source: ISO 32000-1, 7.6.3.3, algorithm 2: what fills up a short password."""


def encrypted_pdf(password: bytes = b"") -> bytes:
    """Return a PDF that opens with `password`; by RC4 with 40 bits, as of old."""
    owner, rights, name = bytes(range(32)), -4, b"0123456789abcdef"
    padded = (password + _PADDING)[:32]
    digest = md5(padded + owner + struct.pack("<i", rights) + name, usedforsecurity=False)
    user = _rc4(digest.digest()[:5], _PADDING)
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
        b"<</Filter/Standard/V 1/R 2/O<%b>/U<%b>/P %d>>"
        % (owner.hex().encode(), user.hex().encode(), rights),
    )
    identity = b"/Encrypt 4 0 R/ID[<%b><%b>]" % ((name.hex().encode(),) * 2)
    return _with_table(objects, identity)


def _rc4(key: bytes, data: bytes) -> bytes:
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
