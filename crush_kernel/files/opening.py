"""Open a file that was checked before, and nothing that was put in its place since."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def open_real(path: Path) -> int:
    """Open `path`, which has no links in it, for reading and return the descriptor.

    Between a check and its use anybody may put a link in the place of the file or of a
    folder above it: it is not followed. Nor is a pipe waited for: look at what was opened.

    Raises:
        OSError: it cannot be opened, or there is a link in it.
    """
    return _open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)


def is_real(path: Path) -> bool:
    """Return whether `path`, which is absolute, has no links in it now."""
    try:
        return os.path.realpath(path) == str(path)
    except OSError:  # what was a link is none any more: somebody is changing it
        return False


@contextmanager
def real_folder(path: Path, *, is_listed: bool = True) -> Generator[int]:
    """Hold the folder `path`, which has no links in it, open for the block.

    Whatever is put in its place meanwhile, the descriptor is that of the folder.

    Args:
        path: of the folder.
        is_listed: whether it is to be listed, for which one needs a right.

    Raises:
        OSError: it cannot be opened, is no folder, or there is a link in it.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    if sys.platform == "linux" and not is_listed:
        flags |= os.O_PATH
    descriptor = os.open(path, flags) if path.name == "" else _open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: Path, flags: int) -> int:
    if sys.platform == "darwin":
        return os.open(path, flags | os.O_NOFOLLOW_ANY)
    if sys.platform != "linux":
        return os.open(path, flags)
    # No right to list a folder is needed to go through it.
    through = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(path.anchor, through)
    try:
        for name in path.parts[1:-1]:
            outer, folder = folder, os.open(name, through, dir_fd=folder)
            os.close(outer)
        return os.open(path.name, flags, dir_fd=folder)
    finally:
        os.close(folder)
