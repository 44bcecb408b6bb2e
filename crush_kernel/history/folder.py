"""The folder of a project's data, which a stranger's repository may have brought along.

A repository can hold links and special files in the places where we write. Nothing is ever
written through a link, no pipe is waited for, and what we make is for its owner only.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

_IGNORE_ALL = "*\n"


def make_folder(folder: Path) -> None:
    """Make the data directory `folder` if it is missing, and have git ignore what is in it.

    Its parents are not made: a project that was deleted stays deleted.

    Raises:
        OSError: it cannot be made, or is a link.
    """
    make_private(folder)
    ignore = folder / ".gitignore"
    with suppress(FileExistsError), ignore.open("x", encoding="utf-8") as file:
        file.write(_IGNORE_ALL)


def make_private(folder: Path) -> None:
    """Make `folder`, for its owner only, if it is missing.

    Raises:
        OSError: it cannot be made, or is a link.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink():
        raise OSError(f"{folder.name!r} is a link to somewhere else")


def open_own(path: Path, flags: int) -> int:
    """Open a regular file that has no other name, and return its descriptor.

    Links are not followed, pipes not waited for. A new file is for its owner only.

    Raises:
        OSError: it cannot be opened, or is something else.
    """
    require_own(path)
    safe = flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, safe, 0o600)
    if not _is_own(os.fstat(descriptor)):
        os.close(descriptor)
        raise OSError(f"{path.name!r} is no file of its own")
    return descriptor


def require_own(path: Path) -> None:
    """Accept `path` if nothing is there, or a regular file that has no other name.

    Raises:
        OSError: it is a link, a folder or the like, or cannot be looked at.
    """
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return
    if not _is_own(facts):
        raise OSError(f"{path.name!r} is no file of its own")


def _is_own(facts: os.stat_result) -> bool:
    return stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1
