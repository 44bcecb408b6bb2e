"""A file that arrives piece by piece, and is there only when it is there in full.

It is written beside its place under a name of its own, made durable, and renamed over what
is there. All methods block; call them in a worker thread.
"""

import contextlib
import os
import secrets
import stat
from pathlib import Path

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.opening import real_folder
from crush_kernel.tools.paths import reason


class Incoming:
    """One arriving file; end with `commit` or `discard`, which may follow each other."""

    def __init__(self, path: Path) -> None:
        """Make room for `path`, which has no links in it, and for its missing folders.

        Raises:
            ToolError: there is no room; nothing is left behind.
        """
        self.size = 0
        self._path = path
        self._made: list[Path] = []
        self._temporary = f".{secrets.token_hex(8)}.crush-tmp"
        self._held = contextlib.ExitStack()
        try:
            self._make_folders()
            # By its handle: a link may be put in the folder's place while the file comes in.
            self._folder = self._held.enter_context(real_folder(path.parent, is_listed=False))
            # Private until it has the mode of the file it stands for.
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            mode = 0o600 if path.exists() else 0o666
            self._file = os.fdopen(
                os.open(self._temporary, flags, mode, dir_fd=self._folder), "w+b"
            )
        except OSError as error:
            self._held.close()
            self._remove_folders()
            raise self._failed(error) from error
        self._is_open = True

    def write(self, data: bytes) -> None:
        """Add `data` at the end.

        Raises:
            ToolError: the disk is full, or worse.
        """
        try:
            self._file.write(data)
        except OSError as error:
            raise self._failed(error) from error
        self.size += len(data)

    def content(self) -> bytes:
        """Return everything that has come; for files that are known to be small."""
        self._file.seek(0)
        data = self._file.read()
        self._file.seek(0, os.SEEK_END)
        return data

    def commit(self) -> None:
        """Put the file in its place, with the mode of the one that was there.

        Raises:
            ToolError: it cannot be; what was there still is.
        """
        try:
            self._file.flush()
            if self._path.exists():
                with contextlib.suppress(OSError):
                    os.fchmod(self._file.fileno(), stat.S_IMODE(self._path.stat().st_mode))
            os.fsync(self._file.fileno())
            folder = self._folder
            os.replace(self._temporary, self._path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            raise self._failed(error) from error
        self._made.clear()
        self._close()

    def discard(self) -> None:
        """Take away what has come, and the folders made for it; nothing after `commit`."""
        if not self._is_open:
            return
        with contextlib.suppress(OSError):
            os.unlink(self._temporary, dir_fd=self._folder)
        self._close()
        self._remove_folders()

    def _close(self) -> None:
        self._is_open = False
        with contextlib.suppress(OSError):  # a full disk tells once more
            self._file.close()
        self._held.close()

    def _make_folders(self) -> None:
        missing: list[Path] = []
        folder = self._path.parent
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for each in reversed(missing):
            each.mkdir()
            self._made.append(each)

    def _remove_folders(self) -> None:
        for each in reversed(self._made):
            with contextlib.suppress(OSError):
                each.rmdir()
        self._made.clear()

    def _failed(self, error: OSError) -> ToolError:
        return ToolError(f"{printable(str(self._path))} was not saved: {reason(error)}.")
