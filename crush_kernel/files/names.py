"""Names of files and folders, and what of them people and models are shown."""

import re

_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(name: str) -> str:
    r"""Return `name` on one line, fit for UTF-8, with nothing in it that hides or reorders.

    Control and bidi characters become escapes such as `\x0a`, and so do undecodable bytes,
    which Python keeps as lone surrogates. A backslash is doubled only beside an escape.
    """
    if not _HIDDEN.search(name):
        return name
    return _HIDDEN.sub(_escape, name.replace("\\", "\\\\"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
