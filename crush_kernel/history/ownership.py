"""Who may write: one kernel per session, one process at a time where two would be in the way.

A session belongs to the process that holds the lock on a file made for it. The operating
system lets go of the lock when the process dies, however it dies, so nothing has to be
cleaned up before the next kernel can go on. Where there are no locks, as on some network
file systems, everybody owns everything: better than nobody.

Source: flock(2); Microsoft C runtime, `_locking`.
"""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

from crush_kernel.history.folder import make_folder, make_private

LOCKS_NAME: Final = "locks"

_POLL_S = 0.01


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        """Lock the first byte; raises `OSError` if another process has."""
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        """Lock the whole file; raises `BlockingIOError` if another process has."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@dataclass(slots=True)
class FileLock:
    """A lock that this process holds until it releases it or dies."""

    path: Path
    descriptor: int | None
    """`None` where there are no locks; then another process may hold it too."""

    @property
    def is_enforced(self) -> bool:
        """Whether no other process can hold the same lock."""
        return self.descriptor is not None

    def release(self) -> None:
        """Let go of the lock and remove its file; safe to repeat."""
        if self.descriptor is None:
            return
        # The file goes first: whoever opened it meanwhile sees that it is no longer there.
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        os.close(self.descriptor)
        self.descriptor = None


def own_session(directory: Path, session_id: str) -> FileLock | None:
    """Return the lock of a session, `None` if another kernel holds it. Never raises.

    Args:
        directory: the project's data directory; made if it is missing.
        session_id: any text: it may come from a notebook.
    """
    name = blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    path = directory / LOCKS_NAME / f"{name}.lock"
    try:
        make_folder(directory)
        make_private(path.parent)
        return _try(path)
    except OSError:
        return FileLock(path, None)


@contextmanager
def alone(directory: Path, name: str, *, wait_s: float) -> Generator[None]:
    """Run the block while no other process runs one of the same `name` in `directory`.

    Waits at most `wait_s` seconds; after that, and where there are no locks, the block
    runs all the same. Blocks the thread.
    """
    path = directory / LOCKS_NAME / f"{name}.lock"
    deadline = time.monotonic() + wait_s
    lock: FileLock | None = None
    with suppress(OSError):
        make_private(path.parent)
        while (lock := _try(path)) is None and time.monotonic() < deadline:
            time.sleep(_POLL_S)  # noqa: TID251 - blocks a thread on purpose
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def _try(path: Path) -> FileLock | None:
    """Return the lock on `path`, `None` if another process holds it.

    Raises:
        OSError: there are no locks here.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        descriptor = os.open(path, flags, 0o600)
        try:
            _lock(descriptor)
            if _is_at(path, descriptor):
                return FileLock(path, descriptor)
        except (BlockingIOError, PermissionError):
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        # Its former holder removed it between our opening and our locking.
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))
