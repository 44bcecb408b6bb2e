"""Text files: bytes to text and back without loss.

`detect` looks at the bytes and names a `TextFormat`; `decode` and `encode` under that format
are inverses, whatever the bytes are, so that an edit changes the bytes it means to change
and no others. Bytes that are not text in the format become lone surrogates (PEP 383) and go
back as they came. What no format explains is binary.
"""

import codecs
import re
from dataclasses import dataclass, replace
from typing import Literal

Newline = Literal["\n", "\r\n", "\r"]


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a file spells its text in bytes."""

    encoding: str = "utf-8"
    """A Python codec name, never one that writes a byte-order mark itself."""
    bom: bytes = b""
    """The byte-order mark, which is not part of the text."""
    newline: Newline = "\n"
    """The newline that most lines end with; new lines far from others get it."""
    is_certain: bool = True
    """Whether the encoding is known rather than the best guess."""

    @property
    def label(self) -> str:
        """Return the name of the encoding for people: `cp1252`, `utf-8 with BOM`."""
        return f"{self.encoding} with BOM" if self.bom else self.encoding


@dataclass(frozen=True, slots=True)
class Decoded:
    """What the bytes of a text file say, and how."""

    format: TextFormat
    text: str
    """Without the byte-order mark, newlines as they are."""


NEW_FILE = TextFormat()
"""How a file that does not exist yet is written."""

# The UTF-32 mark in little-endian order begins with the UTF-16 one, so it is tried first.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8", 1),
    (codecs.BOM_UTF32_LE, "utf-32-le", 4),
    (codecs.BOM_UTF32_BE, "utf-32-be", 4),
    (codecs.BOM_UTF16_LE, "utf-16-le", 2),
    (codecs.BOM_UTF16_BE, "utf-16-be", 2),
)

# All but \b \t \n \v \f \r and escape, which text files do hold.
_CONTROLS = bytes([*range(8), *range(14, 27), *range(28, 32), 127])
_CONTROL_BYTES = 1 << 20
"""How far they are counted: what is binary is so from its start, or nearly."""

_MAX_CONTROLS_UTF8 = 0.10
_MAX_CONTROLS_LEGACY = 0.02
"""Compressed or random bytes have about 0.11; legacy text has next to none."""

_LEGACY = [
    *("cp1252", "cp1250", "cp1251", "koi8_r", "cp1253"),
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
]
_MULTIBYTE = frozenset(("cp932", "euc_jp", "gb18030", "big5", "cp949"))
_SAMPLE_BYTES = 65_536

_CJK = re.compile("[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]")
_NOT_ASCII_BYTES = bytes(range(128, 256))
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def detect(data: bytes, *, is_head: bool = False) -> TextFormat | None:
    """Return how `data` spells its text, or `None` if it is binary.

    Args:
        data: a whole file, or its first bytes.
        is_head: whether `data` may end in the middle of a character. `decode` takes such a
            head too, if its length is a multiple of four.
    """
    decoded = _decoded(data, is_head=is_head)
    return None if decoded is None else decoded.format


def detect_and_decode(data: bytes) -> Decoded | None:
    """Return what `detect` and `decode` make of a whole file, or `None` if it is binary.

    It takes half the time of both, which counts where a file is large.
    """
    return _decoded(data, is_head=False)


def _decoded(data: bytes, *, is_head: bool) -> Decoded | None:
    for mark, encoding, width in _MARKS:
        if data.startswith(mark):
            text_format = TextFormat(encoding=encoding, bom=mark)
            body = data[: len(data) - len(data) % width] if is_head else data
            if (found := _checked(body, text_format)) or encoding != "utf-32-le":
                return found
    if b"\0" in data or data.startswith(b"%PDF-"):
        return None
    start = data[:_CONTROL_BYTES]
    controls = (len(start) - len(start.translate(None, _CONTROLS))) / max(1, len(start))
    if _is_utf8(data, is_head=is_head):
        return _checked(data, NEW_FILE) if controls <= _MAX_CONTROLS_UTF8 else None
    return _checked(data, _legacy(data)) if controls <= _MAX_CONTROLS_LEGACY else None


def decode(data: bytes, text_format: TextFormat) -> str:
    """Return the text of `data` without its byte-order mark, newlines as they are."""
    return data[len(text_format.bom) :].decode(text_format.encoding, _errors(text_format))


def encode(text: str, text_format: TextFormat) -> bytes:
    """Return `text` in that format, byte-order mark included.

    Raises:
        UnicodeEncodeError: a character does not exist in the encoding.
    """
    return text_format.bom + text.encode(text_format.encoding, _errors(text_format))


def shown(text: str) -> str:
    """Return `text` with every lone surrogate as U+FFFD: fit for people, models and JSON."""
    return _SURROGATE.sub("\ufffd", text) if has_undecoded_bytes(text) else text


def has_undecoded_bytes(text: str) -> bool:
    """Return whether decoded `text` stands for bytes that its encoding does not explain."""
    if text.isascii():
        return False
    # Sixty times as fast as a search: only lone surrogates have no UTF-8.
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def newline_of(text: str) -> Newline:
    """Return the newline that most lines of `text` end with; LF if there is none.

    A lone CR counts only where no LF is: elsewhere it is a progress bar, not a line end.
    """
    if "\r" not in text:
        return "\n"
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    if crlf == lf == 0:
        return "\r"
    return "\r\n" if crlf > lf else "\n"


def _errors(text_format: TextFormat) -> str:
    is_wide = text_format.encoding.startswith(("utf-16", "utf-32"))
    return "surrogatepass" if is_wide else "surrogateescape"


def _checked(data: bytes, text_format: TextFormat) -> Decoded | None:
    """Return what `data` says in that format, `None` if it would lose or invent bytes."""
    try:
        text = decode(data, text_format)
        # In UTF-8, ASCII can only be written as it is.
        is_plain = text_format is NEW_FILE and text.isascii()
        is_lossless = is_plain or encode(text, text_format) == data
    except UnicodeError:
        return None
    if not is_lossless or "\0" in text:
        return None
    return Decoded(replace(text_format, newline=newline_of(text)), text)


def _is_utf8(data: bytes, *, is_head: bool) -> bool:
    """Return whether `data` is UTF-8, or was before a few of its bytes were damaged."""
    if data.isascii():
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=not is_head)
    except UnicodeDecodeError:
        valid = len(data.decode("utf-8", "ignore"))
        damaged = len(data.decode("utf-8", "surrogateescape")) - valid
        return valid - len(data.translate(None, _NOT_ASCII_BYTES)) > damaged
    return True


def _legacy(data: bytes) -> TextFormat:
    """Return the likeliest format of text from before UTF-8.

    Only a reading with clear signs of its language is believed; else it is Windows-1252,
    which has a character for all but five bytes.
    """
    from charset_normalizer import from_bytes  # noqa: PLC0415 - 60 ms that few files need

    sample = _telling_lines(data)
    matches = list(from_bytes(sample, cp_isolation=_LEGACY))
    western = sample.decode("cp1252", "surrogateescape")
    western_coherence = max((m.coherence for m in matches if m.encoding == "cp1252"), default=-1.0)
    for match in matches:
        if match.encoding == "cp1252" or str(match) == western:
            break
        if match.encoding in _MULTIBYTE:
            is_clear = _is_cjk(str(match))
        else:
            is_clear = match.chaos <= 0.1 and match.coherence >= max(0.25, western_coherence + 0.01)
        if is_clear and _checked(data, TextFormat(match.encoding)):
            return TextFormat(match.encoding)
    return TextFormat("cp1252", is_certain=western_coherence >= 0.5)


def _telling_lines(data: bytes) -> bytes:
    """Return the lines of `data` that are not plain ASCII, up to a sample's size."""
    lines: list[bytes] = []
    size = 0
    for line in data.splitlines(keepends=True):
        if not line.isascii():
            size += len(line)
            if lines and size > _SAMPLE_BYTES:
                break
            lines.append(line)
    # The last line of a head may end in half a character.
    if len(lines) > 1 and not lines[-1].endswith((b"\n", b"\r")):
        lines.pop()
    return b"".join(lines)[:_SAMPLE_BYTES]


def _is_cjk(text: str) -> bool:
    foreign = len(_NOT_ASCII.findall(text))
    return foreign >= 4 and len(_CJK.findall(text)) >= 0.9 * foreign
