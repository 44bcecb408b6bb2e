"""What text the bytes of a page are: by mark, by header, by the page's own word, by a look. Pure.

The order is that of browsers, save one thing: bytes that are UTF-8 beyond ASCII are UTF-8,
whatever old encoding the header claims, since servers claim their default for every file.

Source: WHATWG Encoding, "names and labels"; HTML, "determining the character encoding".
"""

import codecs
import re
from dataclasses import dataclass
from typing import Final

from crush_kernel.files.textfile import detect

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_PRESCAN_BYTES: Final = 4_096
"""Where a page says its encoding; browsers look at the first 1,024 bytes."""

_SAMPLE_BYTES: Final = 262_144

_META: Final = re.compile(
    rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE
)
_XML: Final = re.compile(rb"""\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_:.-]{1,40})""")
_COMMENT: Final = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)

# Labels that mean a larger encoding than the one they name.
_WIDER: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "hz": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
    "utf_8_sig": "utf-8",
}

# Python has codecs that are no encodings of text, and some that run wild.
_TEXT: Final = re.compile(
    r"utf-(8|16-[lb]e)|cp\d+|iso8859-\d+|koi8-[rut]|mac-\w+|gb18030|big5\w*|euc_\w+|iso2022_jp\w*|johab"
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text, and how sure it is."""

    text: str
    """Without a mark; U+FFFD stands for what the encoding does not explain."""
    encoding: str
    """A Python codec's name."""
    is_guess: bool = False


def codec_of(label: str) -> str:
    """Return Python's name for the encoding that the web calls `label`; empty if none is."""
    label = label.strip().strip("\"'").lower()
    label = {"ks_c_5601-1987": "euc_kr", "x-sjis": "shift_jis", "windows-31j": "cp932"}.get(
        label, label
    )
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return ""
    name = _WIDER.get(name, name)
    return name if _TEXT.fullmatch(name) else ""


def decode_page(
    data: bytes, *, declared: str = "", is_markup: bool = False, is_cut: bool = False
) -> Decoded | None:
    """Return the text of `data`, `None` if it is no text.

    Args:
        data: the bytes.
        declared: the label in the header, if there is one.
        is_markup: whether the page itself may name its encoding.
        is_cut: whether the bytes may end in the middle of a character, which is left out.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], encoding, is_cut=is_cut)
    named = codec_of(declared) or (_named_inside(data) if is_markup else "")
    if named.startswith("utf-16"):
        return _decoded(data, named, is_cut=is_cut)
    if _is_utf8(data, is_cut=is_cut) and not (data.isascii() and named.startswith("iso2022")):
        return (
            None
            if detect(data[:_SAMPLE_BYTES], is_head=is_cut or len(data) > _SAMPLE_BYTES) is None
            else _decoded(data, "utf-8", is_cut=is_cut)
        )
    if named:
        return None if b"\0" in data else _decoded(data, named, is_cut=is_cut)
    found = detect(data[:_SAMPLE_BYTES], is_head=is_cut or len(data) > _SAMPLE_BYTES)
    if found is None:
        return None
    return _decoded(
        data[len(found.bom) :], found.encoding, is_cut=is_cut, is_guess=not found.is_certain
    )


def _named_inside(data: bytes) -> str:
    """Return the encoding that the page names; one that it cannot be in means UTF-8."""
    head = _COMMENT.sub(b"", data[:_PRESCAN_BYTES])
    match = _XML.search(head) or _META.search(head)
    name = codec_of(match[1].decode("ascii")) if match else ""
    return "utf-8" if name.startswith("utf-16") else name


def _is_utf8(data: bytes, *, is_cut: bool) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=not is_cut)
    except UnicodeDecodeError:
        return False
    return True


def _decoded(data: bytes, encoding: str, *, is_cut: bool, is_guess: bool = False) -> Decoded:
    text = codecs.getincrementaldecoder(encoding)("replace").decode(data, final=not is_cut)
    return Decoded(text, encoding, is_guess=is_guess)
