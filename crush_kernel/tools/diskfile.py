"""Whole files on disk: read with bounds, replaced atomically.

A replacement is written beside the file, made durable and renamed over it, so that whatever
happens there is either the old content or the new, and nothing else is left behind. All
functions block; call them in a worker thread, which a cancelled caller lets finish.
"""

import contextlib
import os
import secrets
import stat
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.opening import open_real, real_folder
from crush_kernel.tools.paths import kind_of, reason
from crush_kernel.tools.tracker import Stamp

MAX_EDIT_BYTES = 10_000_000
"""The largest file that is edited: its text and its diff are held in memory several times."""


@dataclass(frozen=True, slots=True)
class DiskFile:
    """A regular file as it was at one moment."""

    data: bytes
    hard_links: int
    """How many names the file has; a replacement takes this one away from the others."""
    stamp: Stamp
    """From before it was read."""


def read_file(path: Path, *, max_bytes: int = MAX_EDIT_BYTES) -> DiskFile | None:
    """Return the content of the regular file `path`, or `None` if there is nothing.

    Raises:
        ToolError: it is no regular file, too large, or cannot be read.
    """
    try:
        _refuse_special(path, path.stat())
        descriptor = open_real(path)
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            _refuse_special(path, facts)
            # Room for more than there is costs time; but some files have no size beforehand.
            data = file.read(min(facts.st_size, max_bytes) + 1)
            if facts.st_size < len(data) <= max_bytes:
                data += file.read(max_bytes + 1 - len(data))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ToolError(f"{_name(path)} cannot be read: {_reason(error)}.") from error
    if len(data) > max_bytes:
        raise ToolError(
            f"{_name(path)} is larger than {max_bytes // 1_000_000} MB, too large to edit here; "
            "change it with a command such as sed."
        )
    return DiskFile(data, hard_links=facts.st_nlink, stamp=Stamp.of(facts))


def require_writable(path: Path) -> None:
    """Fail now rather than after a person was asked, if `path` can clearly not be replaced.

    Raises:
        ToolError: the file or its nearest existing folder is read-only, or no folder.
    """
    try:
        folder = path.parent
        while not folder.exists():
            folder = folder.parent
        is_read_only = path.exists() and not _may(path, os.W_OK)
        is_closed = not _may(folder, os.W_OK | os.X_OK)
    except (OSError, ValueError) as error:
        raise ToolError(f"{_name(path)} cannot be written: {_reason(error)}.") from error
    if not folder.is_dir():
        raise ToolError(f"{_name(path)} cannot be written: {_name(folder)} is not a directory.")
    if is_read_only or is_closed:
        raise ToolError(f"{_name(path if is_read_only else folder)} is read-only.")


def replace_file(path: Path, data: bytes, *, rights: int | None = None) -> None:
    """Make `data` the content of `path`, all or nothing; missing parents are made.

    Mode, extended attributes and, where allowed, owner stay. `path` must have no symbolic
    links in it: a link at its end would be replaced rather than followed.

    Args:
        path: of the file.
        data: all of it.
        rights: the permission bits that it has from the first moment; by default those of the
            file that is there, else of a new one.

    Raises:
        ToolError: nothing was written, and everything is as it was.
    """
    try:
        with _folders(path.parent):
            _replace(path, data, rights)
    except (OSError, ValueError) as error:
        raise ToolError(f"{_name(path)} was not written: {_reason(error)}.") from error


@contextlib.contextmanager
def _folders(folder: Path) -> Generator[None]:
    """Make `folder` and its missing parents; unmake them if the block fails."""
    made: list[Path] = []
    try:
        for parent in reversed(tuple(_missing(folder))):
            parent.mkdir()
            made.append(parent)
        yield
    except BaseException:
        for parent in reversed(made):
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def _missing(folder: Path) -> Iterator[Path]:
    while not folder.exists():
        yield folder
        folder = folder.parent


def _replace(path: Path, data: bytes, rights: int | None) -> None:
    like = path if path.exists() else None
    temporary = f".{secrets.token_hex(8)}.crush-tmp"
    # By the folder's handle: a link may be put in its place at any moment.
    with real_folder(path.parent, is_listed=False) as folder:
        try:
            _write_new(temporary, data, folder=folder, like=like, rights=rights)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
    _sync_folder(path.parent)


def _write_new(
    name: str, data: bytes, *, folder: int, like: Path | None, rights: int | None
) -> None:
    # Private until it has the mode of the file it stands for, which may be a secret one.
    mode = 0o666 if like is None and rights is None else 0o600
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, mode, dir_fd=folder), "wb") as file:
        file.write(data)
        file.flush()
        if like:
            _copy_attributes(like, file.fileno())
            rights = stat.S_IMODE(like.stat().st_mode) if rights is None else rights
        if rights is not None:
            # Changing the owner drops set-user-id bits, so the mode comes last.
            with contextlib.suppress(OSError):
                os.fchmod(file.fileno(), rights)
        os.fsync(file.fileno())


def _copy_attributes(source: Path, descriptor: int) -> None:
    facts = source.stat()
    with contextlib.suppress(OSError):
        os.fchown(descriptor, facts.st_uid, facts.st_gid)
    if sys.platform == "linux":
        # Not every file system has attributes, nor may everyone set each of them.
        with contextlib.suppress(OSError):
            for name in os.listxattr(source):
                with contextlib.suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(source, name))


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _refuse_special(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise ToolError(f"{_name(path)} is a {kind_of(facts)}, not a regular file.")


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _name(path: Path) -> str:
    return printable(str(path))


def _reason(error: OSError | ValueError) -> str:
    return reason(error) if isinstance(error, OSError) else str(error)
