"""What is too large for a record, in files that are named by the hash of their content.

`blobs/ab/cdef…`: the same content is kept once, whoever keeps it, and a file that is not
what its name says counts as missing. Never raises for disk trouble.
"""

import os
import re
import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from crush_kernel.history.folder import make_folder, make_private, open_own

FOLDER_NAME: Final = "blobs"

MAX_BYTES: Final = 256_000_000
"""Of one file; nothing that is kept here is near it."""

_HASH = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """The files of one data directory; nothing is made before something is kept."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._folder = directory / FOLDER_NAME

    def keep(self, data: bytes) -> str:
        """Keep `data` and return its hash, empty if it cannot be kept."""
        name = sha256(data).hexdigest()
        try:
            if self.fetch(name) is None:
                path = self._path(name)
                self._make_folders(path)
                _write(path, data)
        except OSError:
            return ""
        return name

    def fetch(self, name: str) -> bytes | None:
        """Return what has the hash `name`, `None` if it is not there or not whole.

        Args:
            name: any text: it may come from a notebook.
        """
        if not _HASH.fullmatch(name):
            return None
        try:
            descriptor = open_own(self._path(name), os.O_RDONLY)
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError:
            return None
        return data if sha256(data).hexdigest() == name else None

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name[2:]

    def _make_folders(self, path: Path) -> None:
        make_folder(self._directory)
        make_private(self._folder)
        make_private(path.parent)


def _write(path: Path, data: bytes) -> None:
    """Write a file at once or not at all."""
    draft = path.with_name(f".{secrets.token_hex(8)}")
    try:
        descriptor = open_own(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
