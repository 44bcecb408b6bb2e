"""What a reply's body is: a page, JSON, some other text, or nothing to read. Pure."""

import json
import re
from dataclasses import dataclass
from typing import Final, Literal

from crush_kernel.tools.web.charset import decode_page

Kind = Literal["html", "json", "text"]

_HTML: Final = frozenset(("text/html", "application/xhtml+xml"))
_JSON: Final = frozenset(("application/json", "text/json"))
_BINARY: Final = re.compile(
    r"(image|audio|video|font|model)/(?!svg\+xml).*|application/(pdf|zip|gzip|x-tar|wasm|msword)"
)
_LOOKS_LIKE_HTML: Final = re.compile(
    r"\s*(?:<!--(?:(?!-->).){0,2000}-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN: Final = re.compile(r"[\w.+!#$&^-]{1,100}/[\w.+!#$&^-]{1,100}", re.ASCII)
_CHARSET: Final = re.compile(r""";\s*charset\s*=\s*["']?([^\s;"']{1,40})""", re.IGNORECASE)

_MAX_JSON_CHARACTERS: Final = 2_000_000
"""What is indented; longer texts stay as they are."""


@dataclass(frozen=True, slots=True)
class MediaType:
    """A `Content-Type` header, read."""

    name: str
    """Such as `text/html`, in lower case; empty if the server says nothing of use."""
    charset: str = ""


@dataclass(frozen=True, slots=True)
class TextBody:
    """A body that can be read."""

    kind: Kind
    text: str
    encoding: str
    is_guess: bool
    """Whether the encoding is one."""


def media_type(header: str) -> MediaType:
    """Return what a `Content-Type` header says, however odd it is."""
    match = _TOKEN.match(header.strip())
    charset = _CHARSET.search(header)
    return MediaType(match[0].lower() if match else "", charset[1] if charset else "")


def is_surely_binary(declared: MediaType) -> bool:
    """Return whether the type alone says that there is nothing to read."""
    return _BINARY.fullmatch(declared.name) is not None


def read_body(data: bytes, declared: MediaType, *, is_cut: bool = False) -> TextBody | None:
    """Return the text of a body, `None` if it is no text.

    The type that the server declares is believed for text, and checked by a look at the
    bytes: what is sent as `application/octet-stream` may be a script, and what is sent as
    `text/plain` may be an archive.
    """
    if is_surely_binary(declared):
        return None
    is_html = declared.name in _HTML
    is_markup = is_html or declared.name in ("", "image/svg+xml") or declared.name.endswith("xml")
    decoded = decode_page(data, declared=declared.charset, is_markup=is_markup, is_cut=is_cut)
    if decoded is None:
        return None
    text, kind = decoded.text, _kind(declared, decoded.text)
    if kind == "json":
        text = pretty_json(text)
    return TextBody(kind, text, decoded.encoding, is_guess=decoded.is_guess)


def pretty_json(text: str) -> str:
    """Return JSON indented, anything else as it is; the order of keys stays."""
    if len(text) > _MAX_JSON_CHARACTERS:
        return text
    try:
        value = json.loads(text)
        pretty = json.dumps(value, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    # Half a surrogate pair may be written in JSON, but is nothing that can be sent on.
    return pretty.encode("utf-8", "replace").decode("utf-8")


def _kind(declared: MediaType, text: str) -> Kind:
    if declared.name in _HTML:
        return "html"
    if declared.name in _JSON or declared.name.endswith("+json"):
        return "json"
    if declared.name in ("", "application/octet-stream") and _LOOKS_LIKE_HTML.match(text):
        return "html"
    return "text"
