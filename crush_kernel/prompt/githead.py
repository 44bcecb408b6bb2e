"""Where the `HEAD` of a repository leads, as its files say: to know without git that it stayed.

What cannot be told by a look at two small files is not told: then git is asked.

Source: gitrepository-layout.
"""

import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from crush_kernel.files.opening import open_real

Head: TypeAlias = tuple[object, ...]
"""Equal to another one if both lead to the same commits."""

_MAX_BYTES: Final = 4_096
_COMMIT: Final = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REFERENCE: Final = re.compile(rb"ref: (refs/heads/[^\0\n]+)")

_TICK_NS: Final = 2_000_000_000
"""What was changed that long ago will not be changed again within the same time stamp."""


def read_head(root: Path) -> Head | None:
    """Return where `HEAD` leads in the repository of the work tree `root`; blocks shortly.

    `None` if that cannot be said: the repository lies elsewhere, has no commit, keeps its
    references in another way, or was changed a moment ago.
    """
    folder = root / ".git"
    head = _content(folder / "HEAD")
    # What else the history depends on: how much of it is there, and what stands in for what.
    others = tuple(_stamp(folder / name) for name in ("shallow", "refs/replace", "info/grafts"))
    if _is_young(others):
        return None
    if _COMMIT.fullmatch(head):
        return head, *others
    if not (leads := _REFERENCE.fullmatch(head)) or b".." in leads[1]:
        return None
    commit = _content(folder / os.fsdecode(leads[1]))
    if _COMMIT.fullmatch(commit):
        return head, commit, *others
    packed = _stamp(folder / "packed-refs")
    if commit or packed is None or _is_young((packed,)):
        return None
    return head, packed, *others


def _content(path: Path) -> bytes:
    """Return what a small file says, without its newline; empty if there is none."""
    with suppress(OSError, ValueError), os.fdopen(open_real(path), "rb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file.read(_MAX_BYTES).rstrip(b"\n")
    return b""


def _stamp(path: Path) -> tuple[int, int, int] | None:
    with suppress(OSError, ValueError):
        facts = path.lstat()
        return facts.st_ino, facts.st_size, facts.st_ctime_ns
    return None


def _is_young(stamps: tuple[tuple[int, int, int] | None, ...]) -> bool:
    newest_ns = max((stamp[2] for stamp in stamps if stamp), default=0)
    return newest_ns + _TICK_NS > time.time_ns()
