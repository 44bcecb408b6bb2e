"""Base64 in the output of tools: long runs of it are left out, since no model reads them.

What a `data:` URL names as such is Base64, and what has the alphabet, the mix and the
length of it, in one line or wrapped as encoders wrap it. Hashes, tokens, keys and
certificates are far shorter; hexadecimal digits and sequences of genes have another mix.
Pure, and linear in the length of the text.
"""

import re
from typing import Final

MIN_CHARACTERS: Final = 1_000
"""Of a run in one line; a small picture in a style sheet stays."""

MIN_LINES: Final = 64
"""Of a wrapped run: more than a certificate or a private key of 4,096 bits has."""

KEPT_CHARACTERS: Final = 16
"""The begin of a run shows what kind of file it is."""

_MIN_DISTINCT: Final = 24
"""Different characters in a long run of Base64, even of a file with few different bytes."""

_MARKER: Final = ";base64,"

_RUN: Final = re.compile(
    rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{MIN_CHARACTERS},}}+={{0,2}}", re.ASCII
)
_NUMBER: Final = r"(?:[ ]*\d+[|:])?[ ]*"
"""What stands before a line of a file that is viewed, or an indented one."""

_WRAPPED: Final = re.compile(
    rf"""
    ^ (?P<start> {_NUMBER} )
    (?P<run>
        (?: [A-Za-z0-9+/_-]{{60,80}} \n {_NUMBER} ){{{MIN_LINES - 1},}}
        [A-Za-z0-9+/_-]{{1,80}} ={{0,2}}
    ) $
    """,
    re.VERBOSE | re.MULTILINE | re.ASCII,
)
_BREAK: Final = re.compile(rf"\n{_NUMBER}", re.ASCII)


def without_base64(text: str) -> str:
    """Return `text` with a note in the place of every long run of Base64. Idempotent."""
    if len(text) < MIN_CHARACTERS:
        return text
    return _WRAPPED.sub(_unwrapped, _RUN.sub(_shortened, text))


def _shortened(match: re.Match[str]) -> str:
    run = match[0]
    is_named = match.string.startswith(_MARKER, match.start() - len(_MARKER))
    return _noted(run) if is_named or _has_the_mix(run) else run


def _unwrapped(match: re.Match[str]) -> str:
    lines = _BREAK.split(match["run"])
    run = "".join(lines)
    has_one_width = len({len(line) for line in lines[:-1]}) == 1
    return match["start"] + _noted(run) if has_one_width and _has_the_mix(run) else match[0]


def _has_the_mix(run: str) -> bool:
    characters = "".join(set(run))
    kinds = (str.isupper, str.islower, str.isdigit)
    return len(characters) >= _MIN_DISTINCT and all(any(map(kind, characters)) for kind in kinds)


def _noted(run: str) -> str:
    count = len(run) - KEPT_CHARACTERS
    return f"{run[:KEPT_CHARACTERS]}[… {count:,} characters of Base64 left out …]"
