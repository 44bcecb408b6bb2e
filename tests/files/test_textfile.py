"""Text files keep every byte that an edit does not mean."""

import codecs
import hashlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crush_kernel.files.textfile import (
    NEW_FILE,
    TextFormat,
    decode,
    detect,
    encode,
    has_undecoded_bytes,
    newline_of,
    shown,
)
from crush_kernel.tools.text.newlines import Edit, apply_edits

POLISH = "Zażółć gęślą jaźń, proszę państwa. Książka leży na półce obok okna.\n" * 4
RUSSIAN = "Привет, мир! Это проверка кодировки текста в старом файле.\n" * 3
FRENCH = "// résumé des données, très élégant\nint a; // ça marche déjà\n"
GREEK = "Αυτό είναι ένα κείμενο στα ελληνικά.\n" * 3
JAPANESE = "int main() { return 0; } // メイン関数の説明です\n" * 3
CHINESE = "这是一个中文文本文件,用来测试编码检测。\n" * 3
KOREAN = "이것은 한국어 텍스트 파일입니다.\n" * 3

MARKS = [b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE]
ENCODINGS = ["utf-8", "utf-8", "utf-16-le", "utf-16-be", "utf-32-le"]

NOISE = hashlib.shake_256(b"seed").digest(999).replace(b"\0", b"\1")
"""Bytes like those of a compressed file, but without a NUL."""

text_bytes = st.binary(max_size=60) | st.lists(
    st.sampled_from([b"word ", b"\r\n", b"\n", b"\r", b"\xe9", b"\x99", "é→".encode(), b"\x81"]),
    max_size=40,
).map(b"".join)


def format_of(data: bytes, *, is_head: bool = False) -> TextFormat:
    """Return the format of `data`, which is text."""
    text_format = detect(data, is_head=is_head)
    assert text_format is not None
    return text_format


@given(st.sampled_from(MARKS), text_bytes)
def test_encoding_is_the_inverse_of_decoding(mark: bytes, body: bytes) -> None:
    data = mark + body
    text_format = detect(data)
    assume(text_format is not None)
    assert text_format is not None
    assert encode(decode(data, text_format), text_format) == data


@given(text_bytes, text_bytes)
def test_bytes_outside_an_edit_stay_whatever_they_are(before: bytes, after: bytes) -> None:
    data = before + b" NEEDLE " + after
    text_format = detect(data)
    assume(text_format is not None)
    assert text_format is not None
    text = decode(data, text_format)
    assume(text.count("NEEDLE") == 1)
    start = text.replace("\r\n", "\n").index("NEEDLE")
    changed = apply_edits(text, [Edit(start, start + len("NEEDLE"), "thread")])
    assert encode(changed, text_format) == before + b" thread " + after


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        pytest.param(FRENCH, "cp1252", id="French"),
        pytest.param(POLISH, "cp1250", id="Polish"),
        pytest.param(RUSSIAN, "cp1251", id="Russian, Windows"),
        pytest.param(RUSSIAN, "koi8_r", id="Russian, Unix"),
        pytest.param(GREEK, "cp1253", id="Greek"),
        pytest.param(JAPANESE, "cp932", id="Japanese, Shift JIS"),
        pytest.param(JAPANESE, "euc_jp", id="Japanese, EUC"),
        pytest.param(CHINESE, "gb18030", id="Chinese"),
        pytest.param(KOREAN, "cp949", id="Korean"),
        pytest.param(RUSSIAN * 500, "cp1251", id="Russian, a lot"),
        pytest.param(RUSSIAN, "utf-8", id="UTF-8"),
        pytest.param("plain\n", "utf-8", id="ASCII"),
        pytest.param("", "utf-8", id="nothing"),
        pytest.param("\x1b[31mred\x1b[0m\n", "utf-8", id="colors of a terminal"),
    ],
)
def test_text_with_clear_signs_is_read_in_its_encoding(text: str, encoding: str) -> None:
    data = text.encode(encoding)
    text_format = format_of(data)
    assert text_format == TextFormat(encoding)
    assert decode(data, text_format) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(b"beta \x99 gamma\n", "beta ™ gamma\n", id="one trademark sign"),
        pytest.param(b"# Ren\xe9\n", "# René\n", id="one accent"),
        pytest.param(b"price: \xa3 5\n", "price: £ 5\n", id="one pound"),
        pytest.param(b"odd \x81 byte\n", "odd \udc81 byte\n", id="a byte without a meaning"),
    ],
)
def test_too_little_to_tell_is_read_as_western_and_said_to_be_a_guess(
    data: bytes, text: str
) -> None:
    text_format = format_of(data)
    assert text_format == TextFormat("cp1252", is_certain=False)
    assert decode(data, text_format) == text


def test_utf8_with_a_few_damaged_bytes_stays_utf8() -> None:
    data = "äöü → ñ\n".encode() + b"\x99\n"
    text_format = format_of(data)
    assert text_format == NEW_FILE
    text = decode(data, text_format)
    assert has_undecoded_bytes(text)
    assert shown(text) == "äöü → ñ\n\ufffd\n"


@pytest.mark.parametrize("mark", MARKS[1:])
def test_a_byte_order_mark_is_kept_apart_from_the_text(mark: bytes) -> None:
    encoding = dict(zip(MARKS, ENCODINGS, strict=True))[mark]
    data = mark + "première\r\nligne\r\n".encode(encoding)
    text_format = format_of(data)
    assert text_format == TextFormat(encoding, mark, "\r\n")
    assert decode(data, text_format) == "première\r\nligne\r\n"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(bytes.fromhex("7f454c46020101000000000000000000"), id="a shared library"),
        pytest.param(b"text\0text", id="a NUL"),
        pytest.param(b"%PDF-1.7\nplain so far", id="a PDF"),
        pytest.param(NOISE, id="random bytes"),
        pytest.param(bytes(range(1, 32)), id="control characters only"),
        pytest.param(codecs.BOM_UTF16_LE + b"odd", id="UTF-16 with half a character"),
        pytest.param(codecs.BOM_UTF16_LE + b"a\0\0\0", id="UTF-16 with a NUL"),
        pytest.param(codecs.BOM_UTF8 + b"a\0b", id="a marked file with a NUL"),
    ],
)
def test_what_is_not_text_is_binary(data: bytes) -> None:
    assert detect(data) is None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp932"])
def test_the_head_of_a_file_is_read_like_the_file(encoding: str) -> None:
    data = (JAPANESE * 40).encode(encoding)
    whole = detect(data)
    for size in range(4000, 4040, 4):
        head = data[:size]
        text_format = format_of(head, is_head=True)
        assert text_format == whole
        assert decode(head, text_format)[:1000] == (JAPANESE * 40)[:1000]


@pytest.mark.parametrize(
    ("text", "newline"),
    [
        pytest.param("no line end", "\n", id="none"),
        pytest.param("a\nb\n", "\n", id="LF"),
        pytest.param("a\r\nb\r\nc\n", "\r\n", id="mostly CRLF"),
        pytest.param("a\r\nb\nc\n", "\n", id="mostly LF"),
        pytest.param("a\rb\r", "\r", id="CR alone"),
        pytest.param("10%\r20%\r30%\r\ndone\n", "\n", id="a progress bar is no line end"),
    ],
)
def test_the_newline_of_a_file_is_that_of_most_lines(text: str, newline: str) -> None:
    assert newline_of(text) == newline


def test_the_label_says_what_a_person_would_say() -> None:
    assert TextFormat("utf-8", codecs.BOM_UTF8).label == "utf-8 with BOM"
    assert TextFormat("cp1252").label == "cp1252"
