"""Read one configuration file: JSON, comments and trailing commas forgiven.

The file may be a stranger's: nothing is waited for, size and depth have bounds, and whatever is
wrong with it becomes one sentence.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from pydantic import JsonValue

from crush_kernel.errors import ConfigError
from crush_kernel.files.names import printable
from crush_kernel.messages import JsonObject

MAX_BYTES: Final = 500_000
MAX_DEPTH: Final = 64

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)

# A string comes first, so that what looks like a comment in one stays. What has no end goes to the
# end of the text, for nobody shall look for it again and again. json5 would read more than this,
# but takes a second for 40 kB.
_COMMENT: Final = re.compile(r'("(?:[^"\\\n]|\\.)*"?)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMA: Final = re.compile(r'("(?:[^"\\\n]|\\.)*"?)|,(?=[ \t\r\n]*[]}])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was when it was read, once."""

    text: str
    digest: str
    """SHA-256 of its bytes, in hexadecimal."""


def read_source(path: Path, *, owners: Collection[int] = ()) -> Source | None:
    """Return what the regular file `path` holds, `None` if there is nothing of ours.

    Args:
        path: of the file; links are followed.
        owners: user ids of whom the file must be, if there are any; one of others is passed over.

    Raises:
        ConfigError: it cannot be read, or is no text file of a sensible size.
    """
    try:
        data = _read(path, owners)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise _trouble(path, f"cannot be read: {_reason(error)}") from error
    if data is None:
        return None
    if len(data) > MAX_BYTES:
        raise _trouble(path, f"is larger than {MAX_BYTES // 1000} kB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _trouble(path, "is not UTF-8 text") from error
    return Source(text, hashlib.sha256(data).hexdigest())


def parse_document(text: str, path: Path) -> JsonObject:
    """Return the object that `text` is; nothing at all is an empty one.

    Raises:
        ConfigError: it is no object, or too deep.
    """
    try:
        value: object = _parsed(text) if text.strip() else {}
    except RecursionError as error:
        raise _trouble(path, "is nested too deeply") from error
    except ValueError as error:
        raise _trouble(path, f"is not valid JSON: {printable(str(error)[:200])}") from error
    if not isinstance(value, dict):
        raise _trouble(path, "is not a JSON object")
    document = cast("dict[str, JsonValue]", value)
    if not _is_shallow(document):
        raise _trouble(path, "is nested too deeply")
    return document


def _read(path: Path, owners: Collection[int]) -> bytes | None:
    # A device can do something as soon as it is opened.
    _require_regular(path.stat())
    with os.fdopen(os.open(path, _FLAGS), "rb") as file:
        facts = os.fstat(file.fileno())
        _require_regular(facts)
        if owners and facts.st_uid not in owners:
            return None
        return file.read(MAX_BYTES + 1)


def _require_regular(facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise ValueError("it is no regular file")


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        bare = _COMMENT.sub(_kept, text)
        return json.loads(_LAST_COMMA.sub(_kept, bare))


def _kept(match: re.Match[str]) -> str:
    """Keep a string; of a comment leave a space, so that it parts what it parted."""
    return match[1] or " "


def _is_shallow(document: JsonValue) -> bool:
    level = [document]
    for _ in range(MAX_DEPTH):
        inner = [
            value.values() if isinstance(value, dict) else value
            for value in level
            if isinstance(value, dict | list)
        ]
        level = [value for values in inner for value in values]
        if not level:
            return True
    return False


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _trouble(path: Path, what: str) -> ConfigError:
    return ConfigError(
        f"{printable(str(path))} {what}; it is passed over",
        path=path,
        hint="Mend or remove the file.",
    )
