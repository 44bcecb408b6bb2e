"""What of images and documents comes into the conversation, and in which form."""

import base64
import subprocess
import sys
from functools import partial

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from crush_kernel import pictures
from crush_kernel.errors import ToolError
from crush_kernel.messages import Media
from crush_kernel.tools.media import admission as media
from crush_kernel.tools.media.admission import MAX_EDGE, MAX_IMAGE_BYTES, Admitted, admit
from crush_kernel.tools.media.documents import MAX_PAGES
from crush_kernel.tools.media.mediatype import IMAGE_TYPES, UNKNOWN, media_type_of
from tests.fakes.media import (
    decoded,
    drawing,
    encoded,
    encrypted_pdf,
    icon_of,
    noise,
    pdf,
    photo,
    png_head,
)

PHOTO = photo((60, 40))
FRAMES = [drawing((60, 40)), PHOTO]
PNG = encoded(PHOTO, "PNG")
SENT = {
    "png": PNG,
    "jpeg": encoded(PHOTO, "JPEG"),
    "gif": encoded(PHOTO, "GIF"),
    "webp": encoded(PHOTO, "WEBP"),
}
SIDES = b"\xff" * 4
GRAY_DEPTHS = b"".join((1_000 + n % 60).to_bytes(2, "little") for n in range(2_400))
DEEP = Image.frombytes("I;16", (60, 40), GRAY_DEPTHS)


def let_in(data: bytes, name: str = "file") -> Admitted:
    return anyio.run(partial(admit, data, name=name))


def refusal(data: bytes) -> str:
    with pytest.raises(ToolError) as refused:
        let_in(data)
    return str(refused.value)


def bytes_of(admitted: Admitted) -> bytes:
    return base64.b64decode(admitted.media.data, validate=True)


@pytest.mark.parametrize("kind", SENT)
def test_an_image_that_every_model_takes_comes_byte_for_byte(kind: str) -> None:
    data = SENT[kind]
    admitted = let_in(data, "the/file")
    assert admitted.media == Media(f"image/{kind}", base64.b64encode(data).decode(), "the/file")
    assert admitted.facts == f"image/{kind}, 60×40 pixels, {len(data):,} bytes"


@pytest.mark.parametrize("name", ["logo.png", "logo.pdf", "logo.txt", "logo"])
def test_the_type_is_that_of_the_bytes_whatever_the_name_says(name: str) -> None:
    assert let_in(SENT["jpeg"], name).media.media_type == "image/jpeg"
    assert let_in(pdf(), name).media.media_type == "application/pdf"


@pytest.mark.parametrize(
    ("data", "original", "shown"),
    [
        pytest.param(encoded(FRAMES[0], "BMP"), "image/bmp", "image/png", id="BMP"),
        pytest.param(encoded(PHOTO, "TIFF"), "image/tiff", "image/jpeg", id="TIFF"),
        pytest.param(encoded(PHOTO.convert("1"), "TIFF", compression="group4"), "image/tiff",
                     "image/png", id="fax"),
        pytest.param(encoded(DEEP, "TIFF"), "image/tiff", "image/png", id="TIFF of 16 bits"),
        pytest.param(encoded(DEEP.convert("F"), "TIFF"), "image/tiff", "image/png",
                     id="TIFF of floats"),
        pytest.param(encoded(DEEP, "PNG"), "image/png", "image/png", id="PNG of 16 bits"),
        pytest.param(encoded(FRAMES[0], "ICO"), "image/x-icon", "image/png", id="icon"),
        pytest.param(encoded(PHOTO, "AVIF"), "image/avif", "image/jpeg", id="AVIF"),
        pytest.param(encoded(PHOTO.convert("CMYK"), "JPEG"), "image/jpeg", "image/jpeg",
                     id="printing colors"),
        pytest.param(encoded(FRAMES[0], "GIF", save_all=True, append_images=FRAMES), "image/gif",
                     "image/png", id="animated GIF"),
        pytest.param(encoded(FRAMES[1], "WEBP", save_all=True, append_images=FRAMES),
                     "image/webp", "image/jpeg", id="animated WebP"),
        pytest.param(encoded(FRAMES[0], "PNG", save_all=True, append_images=FRAMES), "image/apng",
                     "image/png", id="animated PNG"),
    ],
)  # fmt: skip
def test_what_some_model_does_not_take_is_converted(data: bytes, original: str, shown: str) -> None:
    admitted = let_in(data)
    assert admitted.media.media_type == media_type_of(bytes_of(admitted)) == shown
    assert admitted.facts.startswith(f"{original}, ")
    assert f"; shown as {shown}, " in admitted.facts
    image = decoded(bytes_of(admitted))
    assert getattr(image, "n_frames", 1) == 1
    assert image.mode in ("L", "RGB", "RGBA")


def test_deep_pixels_are_shown_from_their_darkest_to_their_brightest() -> None:
    image = decoded(bytes_of(let_in(encoded(DEEP, "TIFF"))))
    assert image.getextrema() == (0, 255)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        pytest.param((1_568, 32), (1_568, 32), id="as large as may be"),
        pytest.param((1_569, 32), (1_568, 32), id="a pixel more"),
        pytest.param((1_080, 2_412), (702, 1_568), id="a telephone's screen"),
        pytest.param((16_000, 4), (1_568, 1), id="a line"),
    ],
)
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_large_image_becomes_as_large_as_models_look_at_it(
    size: tuple[int, int], shown: tuple[int, int], kind: str
) -> None:
    data = encoded(photo(size), kind)
    admitted = let_in(data)
    assert decoded(bytes_of(admitted)).size == shown
    assert f"{size[0]}×{size[1]} pixels" in admitted.facts
    is_smaller = f"; shown as image/jpeg, {shown[0]}×{shown[1]} pixels" in admitted.facts
    assert is_smaller is (size != shown)


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        pytest.param(drawing((1_600, 400)), "image/png", id="a few colors"),
        pytest.param(photo((1_600, 400)), "image/jpeg", id="a photograph"),
        pytest.param(photo((1_600, 400), "L"), "image/png", id="grays"),
        pytest.param(photo((1_600, 400)).rotate(5, expand=True).convert("RGBA"), "image/jpeg",
                     id="opaque"),
        pytest.param(photo((1_600, 400), "RGBA").rotate(5, expand=True), "image/png",
                     id="transparent"),
    ],
)  # fmt: skip
def test_what_is_encoded_anew_is_png_for_drawings_and_transparency_else_jpeg(
    image: Image.Image, kind: str
) -> None:
    assert let_in(encoded(image, "PNG")).media.media_type == kind


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(encoded(noise((1_500, 1_500)), "PNG"), id="noise"),
        pytest.param(encoded(noise((1_500, 1_000)).convert("RGBA").rotate(3), "PNG"),
                     id="transparent noise"),
        pytest.param(encoded(noise((1_500, 1_500)), "JPEG", quality=95), id="JPEG"),
        pytest.param(PNG + bytes(2_000_000), id="with something behind it"),
    ],
)  # fmt: skip
def test_an_image_of_too_many_bytes_is_encoded_in_fewer(data: bytes) -> None:
    assert len(data) > MAX_IMAGE_BYTES
    admitted = let_in(data)
    assert len(bytes_of(admitted)) <= MAX_IMAGE_BYTES
    assert admitted.media.media_type == "image/jpeg"


@pytest.mark.slow
def test_the_same_image_gives_the_same_bytes() -> None:
    data = encoded(photo((2_000, 1_500)), "PNG")
    assert let_in(data) == let_in(data)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_that_is_encoded_anew_stands_upright(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    upright = drawing((2_000, 1_200))
    turned = upright.transpose(Image.Transpose.ROTATE_90) if orientation == 6 else upright
    admitted = let_in(encoded(turned, "JPEG", exif=exif))
    image = decoded(bytes_of(admitted))
    is_tall = orientation in (5, 7, 8)
    assert image.size == ((941, 1_568) if is_tall else (1_568, 941))
    assert (f"{'1200×2000' if is_tall else '2000×1200'} pixels") in admitted.facts
    if orientation in (1, 6):
        color = image.convert("RGB").getpixel((588, 353))
        assert isinstance(color, tuple)
        assert color[2] > color[0] + 80, "the blue square is where it was"


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_no_metadata_comes_along_in_what_is_encoded_anew(kind: str) -> None:
    exif = Image.Exif()
    exif[0x010F] = "my secret camera"
    image = photo((1_700, 900))
    data = encoded(image, kind, exif=exif, icc_profile=b"my secret profile" * 9)
    assert b"my secret" in data
    assert b"my secret" not in bytes_of(let_in(data))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "it is neither an image nor a PDF", id="nothing"),
        pytest.param(b"<svg/>", "it is neither an image nor a PDF", id="text"),
        pytest.param(b"\x7fELF\2\1\1" + bytes(99), "it is neither an image nor a PDF", id="ELF"),
        *(pytest.param(data[: len(data) // 2], "it cannot be decoded", id=f"half a {kind}")
          for kind, data in SENT.items()),
        *(pytest.param(data[:16], "it cannot be decoded", id=f"the head of a {kind}")
          for kind, data in SENT.items()),
        pytest.param(bytes.fromhex("ffd8ffe000104a4649460001"), "it cannot be decoded",
                     id="a23"),
        pytest.param(encoded(PHOTO, "BMP")[:900], "it cannot be decoded", id="half a BMP"),
        pytest.param(encoded(PHOTO, "TIFF")[:200], "it cannot be decoded", id="half a TIFF"),
        pytest.param(png_head((50_000, 50_000)), "it has more than 50 million pixels", id="bomb"),
        pytest.param(png_head((8_000, 8_000)), "it has more than 50 million pixels",
                     id="a smaller bomb"),
        pytest.param(icon_of(png_head((50_000, 50_000))), "it has more than 50 million pixels",
                     id="a bomb that looks like an icon"),
        pytest.param(icon_of(png_head((8_000, 8_000))), "it has more than 50 million pixels",
                     id="a smaller bomb that looks like an icon"),
        pytest.param(b"GIF89a" + SIDES + b"\0\0\0," + bytes(4) + SIDES + bytes(99),
                     "it has more than 50 million pixels", id="a bomb of few bytes"),
        pytest.param(PNG + bytes(24_000_000), "it is larger than 24 MB", id="huge"),
        pytest.param(b"%PDF-1.4 not really a pdf\n", "its end is missing", id="a25"),
        pytest.param(b"%PDF-1.4\n%%EOF\n", "it cannot be opened", id="a PDF without content"),
        pytest.param(pdf(9)[:900], "its end is missing", id="half a PDF"),
        pytest.param(b"%PDF-1.7\n" + bytes(999) + pdf()[300:], "it cannot be opened",
                     id="half a PDF, the other one"),
        pytest.param(pdf(MAX_PAGES + 1), "it has 101 pages, and 1 to 100", id="too many pages"),
        pytest.param(pdf().replace(b"/Count 1", b"/Count 7"), "it cannot be opened",
                     id="fewer pages than it says"),
        pytest.param(encrypted_pdf(b"secret"), "it is encrypted", id="PDF with a password"),
        pytest.param(encrypted_pdf(), "it is encrypted", id="PDF with an empty password"),
    ],
)  # fmt: skip
def test_what_a_provider_would_refuse_is_refused_here(data: bytes, reason: str) -> None:
    assert refusal(data).startswith(reason)


def test_a_document_comes_byte_for_byte() -> None:
    data = pdf(MAX_PAGES)
    admitted = let_in(data, "paper.pdf")
    encoded_data = base64.b64encode(data).decode()
    assert admitted.media == Media("application/pdf", encoded_data, name="paper.pdf")
    assert admitted.facts == f"application/pdf, 100 pages, {len(data):,} bytes"


FILES = (*SENT.values(), encoded(FRAMES[0], "BMP"), encoded(PHOTO, "TIFF"), encoded(PHOTO, "AVIF"),
         encoded(FRAMES[0], "ICO"), encoded(FRAMES[0], "GIF", save_all=True, append_images=FRAMES),
         pdf(3), encrypted_pdf())  # fmt: skip


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(st.data())
def test_a_damaged_file_is_let_in_or_refused_and_never_anything_else(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(FILES))
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for place in data.draw(st.lists(st.integers(0, max(0, len(damaged) - 1)), max_size=8)):
        damaged[place : place + 1] = data.draw(st.binary(max_size=3))
    try:
        admitted = let_in(bytes(damaged))
    except ToolError:
        return
    again = bytes_of(admitted)
    assert media_type_of(again) in {admitted.media.media_type, "image/apng"}
    assert let_in(again).media.media_type == admitted.media.media_type


@pytest.mark.slow
def test_21_screenshots_fit_in_one_request_of_many_images() -> None:
    shot = encoded(noise((1_080, 2_412), grain=9), "PNG")
    images = [let_in(shot).media for _ in range(21)]
    assert all(max(decoded(base64.b64decode(i.data)).size) <= MAX_EDGE for i in images)
    assert sum(len(image.data) for image in images) < 32_000_000


@pytest.mark.anyio
async def test_nobody_waits_for_a_file_that_cannot_be_decoded_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(media, "MAX_DECODE_S", 0.05)
    is_late = pytest.raises(ToolError, match="it takes more than")
    with anyio.fail_after(5), media.DECODING, is_late:
        await admit(PNG, name="file")
    with anyio.fail_after(5):
        assert (await admit(PNG, name="file")).media.media_type == "image/png"


@pytest.mark.anyio
async def test_a_cancelled_caller_does_not_wait_for_the_decoder() -> None:
    with anyio.fail_after(5), media.DECODING:
        async with anyio.create_task_group() as group:
            group.start_soon(partial(admit, PNG, name="file"))
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(b"BM: a bitmap of two letters", UNKNOWN, id="BM"),
        pytest.param(b"GIF is a format", UNKNOWN, id="GIF"),
        pytest.param(b"<svg xmlns='http://www.w3.org/2000/svg'/>", UNKNOWN, id="SVG"),
        pytest.param(b"RIFF\0\0\0\0WEBP", UNKNOWN, id="a WebP that ends too early"),
        pytest.param(b"", UNKNOWN, id="nothing"),
    ],
)
def test_a_text_that_begins_like_a_picture_is_none(data: bytes, kind: str) -> None:
    assert media_type_of(data) == kind


def test_every_type_that_is_told_has_a_decoder() -> None:
    assert frozenset(pictures.FORMATS) == IMAGE_TYPES


@pytest.mark.slow
def test_no_decoder_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, crush_kernel.runtime;"
        "sys.exit(', '.join({'PIL', 'pypdfium2'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
