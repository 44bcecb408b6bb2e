"""Open a file that was checked before, and nothing that was put in its place since."""

import os
import sys
from pathlib import Path


def open_real(path: Path) -> int:
    """Open `path`, which has no links in it, for reading and return the descriptor.

    Between a check and its use anybody may put a link in the place of the file or of a
    folder above it: it is not followed. Nor is a pipe waited for: look at what was opened.

    Raises:
        OSError: it cannot be opened, or there is a link in it.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
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
