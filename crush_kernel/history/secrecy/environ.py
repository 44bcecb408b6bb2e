"""Secrets that the environment holds: which variables, and how their values may appear.

A value is looked for as it is, with any of its characters written as an entity, a JSON
escape or percent-encoded, and inside of Base64.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from crush_kernel.history.secrecy.search import encodable
from crush_kernel.history.secrecy.span import GAP, Span

MIN_CHARS: Final = 8
MAX_CHARS: Final = 20_000
MAX_VALUES: Final = 300
GUARD_CHARS: Final = 64
MAX_LABEL_CHARS: Final = 64


_CHUNK = re.compile(f"(?s:.)+?(?:{GAP}|\\Z)")
"""Up to where a text may be taken apart."""
_NAMES = re.compile(
    r"(?:.*[_.-])?(?:(?:[A-Z0-9]*(?:API|ACCESS|SECRET|PRIVATE|AUTH))?KEY|[A-Z0-9]*TOKEN"
    r"|[A-Z0-9]*SECRET|[A-Z0-9]*PASSWORD|[A-Z0-9]*PASSWD|PASSPHRASE|PASS|[A-Z0-9]+PWD|PWD"
    r"|[A-Z0-9]*CREDENTIALS?|PAT|(?:SECRET|API|ACCESS|PRIVATE)_?KEY_[A-Z0-9_]+"
    r"|(?:PASSWORD|SECRET|TOKEN)_[A-Z0-9_]+|CONNECTION_STRING)S?(?:_?[0-9]{1,3})?\Z",
)
_OTHER_NAMES = re.compile(
    r"(?:.*[_.-])?(?:PWD|OLDPWD|[A-Z]*MONKEY|HOTKEY|PUBLIC_?KEY"
    r"|.*_(?:ID|NAME|FILE|PATH|DIR|STORE|URL|URI|ENDPOINT|TYPE|LIMIT|TTL|EXPIRY|EXPIRES|AGE"
    r"|ALGORITHM|LENGTH|SIZE|COUNT|REGION|HOST|PORT|USER|SOCK|MANAGER|BACKEND))\Z"
)
_LABEL = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{MAX_LABEL_CHARS - 1}}}")
_COMMON_WORD = re.compile(r"[A-Za-z]{1,12}")
_FEW_CHARS = 3
"""A value of fewer different characters is a mask."""
_NUMBER = re.compile(r"[+-]?[0-9][0-9_.,:eE+-]*")
_PATH = re.compile(r"(?:~?/|\.{1,2}/|[A-Za-z]:[\\/]|file:)")
_PLAIN_NAME = re.compile(r"[^0-9]*[0-9]{0,4}[^0-9]*\Z")
_URL_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:(\S+)@[^\s@]+")
_IN_BASE64_CHARS: Final = 10
"""Fewer characters of Base64 could stand anywhere."""


@dataclass(frozen=True, slots=True)
class Value:
    """A secret value, and the variable that it is called after."""

    label: str
    text: str


def secret_values(environ: Mapping[str, str]) -> tuple[Value, ...]:
    """Return the values in `environ` that are secret, each once, longest first.

    Of several variables with the same value the first by name gives the label. The lines
    of a value count each by itself, too: tools print them with something before each.
    """
    found: dict[str, str] = {}
    for name in sorted(environ):
        for value in _values_of(name, encodable(environ[name])):
            found.setdefault(value, _label(name))
    values = sorted(found, key=lambda value: (-len(value), value))
    return tuple(Value(found[value], value) for value in values[:MAX_VALUES])


def guard_of(values: tuple[Value, ...]) -> str:
    """Return an expression without look-around that matches where one of `values` appears.

    Of a long value its beginning does: no text has the one without the other.
    """
    return "|".join(_expression(value.text[:GUARD_CHARS]) for value in values)


class ValueSearch:
    """Finds secret values in a text."""

    def __init__(self, values: tuple[Value, ...]) -> None:
        self._patterns = [(value.label, re.compile(_expression(value.text))) for value in values]
        self._chunks = [
            [re.compile(_forms_of_all(chunk)) for chunk in chunks]
            for value in values
            if len(chunks := _CHUNK.findall(value.text)) > 1
        ]

    def spans(self, text: str) -> Iterator[Span]:
        """Yield where `text` has one of the values, in any form."""
        for label, pattern in self._patterns:
            for found in pattern.finditer(text):
                yield Span(found.start(), found.end(), label)

    def open_at(self, text: str) -> int:
        """Return where in `text` a value begins that may go on after it; its length if none."""
        if not self._chunks:
            return len(text)
        starts = (
            found.start()
            for chunks in self._chunks
            for found in chunks[0].finditer(text)
            if _runs_out(text, found.end(), chunks[1:])
        )
        return min(starts, default=len(text))


def _runs_out(text: str, position: int, chunks: list[re.Pattern[str]]) -> bool:
    """Tell whether `text` ends before one of the `chunks` that go on at `position`."""
    for chunk in chunks:
        if position == len(text):
            return True
        found = chunk.match(text, position)
        if found is None:
            return False
        position = found.end()
    return False


def _values_of(name: str, raw: str) -> Iterator[str]:
    value = raw.strip()
    if len(value) > MAX_CHARS:
        return
    if found := _URL_PASSWORD.fullmatch(value):
        if len(found[1]) >= MIN_CHARS and _is_secret(found[1]):
            yield found[1]
    elif is_secret_name(name) and _is_secret(value):
        yield value
        lines = value.split("\n") if "\n" in value else []
        yield from (line.strip() for line in lines if _is_secret_line(line.strip()))


def is_secret_name(name: str) -> bool:
    """Tell whether a variable of this name holds something to keep secret."""
    upper = name.upper()
    return _NAMES.match(upper) is not None and _OTHER_NAMES.match(upper) is None


def _is_secret(value: str) -> bool:
    return not (
        len(value) < MIN_CHARS
        or len(set(value)) < _FEW_CHARS
        or _COMMON_WORD.fullmatch(value)
        or _NUMBER.fullmatch(value)
        or _is_path(value)
        or "://" in value
    )


def _is_secret_line(line: str) -> bool:
    return len(line) >= 24 and " " not in line and _is_secret(line)


def _is_path(value: str) -> bool:
    """Tell whether `value` is a path: keys in Base64 may begin with a slash as well."""
    if _PATH.match(value) is None:
        return False
    return all(_PLAIN_NAME.match(part) for part in re.split(r"[\\/]", value))


def _label(name: str) -> str:
    return name if _LABEL.fullmatch(name) else "environment variable"


def _expression(value: str) -> str:
    """Return an expression for all forms of `value`, in the syntax that both engines share."""
    forms = [_forms_of_all(value)]
    forms += map(re.escape, _in_base64(value))
    return f"(?:{'|'.join(forms)})"


def _forms_of_all(value: str) -> str:
    return "".join(map(_forms_of, value))


def _forms_of(char: str) -> str:
    if char.isascii() and char.isalnum():
        return char
    code = ord(char)
    percent = "".join(f"%(?i:{byte:02X})" for byte in char.encode("utf-8", "replace"))
    forms = [
        re.escape(char),
        f"&#0{{0,4}}{code};",
        f"&#[xX]0{{0,4}}(?i:{code:X});",
        percent,
        rf"\\u(?i:{code:04X})",
        *_SPECIAL_FORMS.get(char, ()),
    ]
    return f"(?:{'|'.join(forms)})"


_SPECIAL_FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "&": ("&amp;",),
    "<": ("&lt;",),
    ">": ("&gt;",),
    '"': ("&quot;", r"\\\""),
    "'": ("&apos;", r"\\'"),
    "\\": (r"\\\\",),
    "/": (r"\\/",),
    " ": (r"\+",),
    "\t": (r"\\t",),
    "\n": (r"\r\n", r"\\n", r"\\r\\n", " "),
}


def _in_base64(value: str) -> Iterator[str]:
    """Yield what every Base64 text has in it that `value` was encoded in, wherever it stood."""
    data = value.encode("utf-8", "replace")
    for before in range(3):
        encoded = b64encode(b"\0" * before + data).decode()
        # Bits that are shared with what stands before or after are not known.
        first = (0, 2, 3)[before]
        known = encoded[first : (before + len(data)) * 8 // 6]
        if len(known) >= _IN_BASE64_CHARS:
            yield known
            if not known.isalnum():
                yield known.translate(_URL_SAFE)


_URL_SAFE = str.maketrans("+/", "-_")
