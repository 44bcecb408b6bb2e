"""The user's mark: what is marked by it is the user's own and came with no repository."""

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from crush_kernel.history.folder import open_own

MARK_NAME: Final = "journal-mark"

_MARK: Final = re.compile(r"[0-9a-f]{32}")


def user_mark(directory: Path) -> str:
    """Return what tells this user's journals from those that a repository brings along.

    A random text, the same in all kernels of the user; empty if none can be kept. Never
    raises.

    Args:
        directory: the user's own data directory; made if it is missing.
    """
    path = directory / MARK_NAME
    with suppress(OSError, UnicodeError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _write_mark(path)
        text = path.read_text(encoding="ascii")[:64].strip()
        return text if _MARK.fullmatch(text) else ""
    return ""


def _write_mark(path: Path) -> None:
    """Write a new mark, unless another kernel is faster."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = open_own(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_hex(16)}\n")
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)
