"""A file of JSON in which the program keeps what it is to remember.

Several kernels may write to it at once: a change is read, made and written under a lock, and the
file is replaced at once or not at all. A file that cannot be read is never overwritten, and one
that others share keeps what they wrote.

Source: flock(2), rename(2).
"""

import errno
import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, cast

from crush_kernel.errors import ConfigError
from crush_kernel.messages import JsonObject

MAX_BYTES: Final = 4_000_000
"""A state file is a few kilobytes; a larger one is not ours to load."""

LOCK_WAIT_S: Final = 5.0
"""A change takes milliseconds, also for others."""

_POLL_S: Final = 0.01

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)

if sys.platform == "win32":

    def _lock(descriptor: int) -> None:
        """Do nothing: folders cannot be locked there."""
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        """Lock a folder; raises `BlockingIOError` if somebody else has."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class StateFile:
    """One such file.

    Args:
        path: of the file; it and its folder need not exist.
        loss: what comes of it if the file cannot be used, to end a sentence.
        hint: what to do then, one sentence.
    """

    def __init__(self, path: Path, *, loss: str, hint: str) -> None:
        self.path = path
        self._loss = loss
        self._hint = hint

    def read(self) -> JsonObject:
        """Return what is in the file, nothing if there is no file yet. Blocks.

        Raises:
            ConfigError: it cannot be read.
        """
        try:
            data = _content(self.path)
        except FileNotFoundError:
            return {}
        except _NotOursError as error:
            raise self.trouble("cannot be used", str(error)) from error
        except OSError as error:
            raise self.trouble("cannot be read", error.strerror or str(error)) from error
        if len(data) > MAX_BYTES:
            raise self.trouble("is too large", f"more than {MAX_BYTES} bytes")
        try:
            document: object = json.loads(data) if data.strip() else {}
        except (ValueError, RecursionError) as error:
            raise self.trouble("is not valid JSON", str(error)) from error
        if not isinstance(document, dict):
            raise self.trouble("is not a JSON object")
        return cast("JsonObject", document)

    def change(self, changed: Callable[[JsonObject], JsonObject]) -> JsonObject:
        """Replace what is in the file by what `changed` makes of it, and return that.

        Nobody else's change comes between. Blocks until it is on disk.

        Raises:
            ConfigError: the file cannot be read or written; it is as it was.
        """
        # Through a link, so that a file that is kept elsewhere stays where it is.
        target = Path(os.path.realpath(self.path))
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _alone(target.parent):
                document = changed(self.read())
                _replace(target, json.dumps(document, indent=2) + "\n")
        except OSError as error:
            raise self.trouble("cannot be written", error.strerror or str(error)) from error
        return document

    def trouble(self, what: str, why: str = "") -> ConfigError:
        """Return what to raise if `what`, a clause, is wrong with the file."""
        reason = f" ({why})" if why else ""
        return ConfigError(
            f"the state file {str(self.path)!r} {what}{reason}, so {self._loss}",
            path=self.path,
            hint=self._hint,
        )


class _NotOursError(Exception):
    """A state file is none, or not the user's; says which."""


def _content(path: Path) -> bytes:
    """Return what is in a file, and one byte too many if it is too large; waits for nobody.

    Raises:
        OSError: it cannot be read.
        _NotOursError: it is no file, or that of somebody else who has put it there.
    """
    with os.fdopen(os.open(path, _FLAGS), "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise _NotOursError("it is no regular file")
        # Whose the folder is could have put anything there, and so could root.
        if os.name != "nt" and facts.st_uid not in (os.getuid(), path.parent.stat().st_uid, 0):
            raise _NotOursError("it belongs to another user")
        return file.read(MAX_BYTES + 1)


def _replace(target: Path, text: str) -> None:
    """Put a file with `text` in the place of `target`; readable by its owner only."""
    draft: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        draft = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError:
        if draft is not None:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        raise


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Run the block while nobody else changes a state file in `folder`.

    The folder itself is locked, so that nothing is left beside the files. Where there are no
    locks, as on some network file systems, the block runs all the same.

    Raises:
        OSError: somebody else holds the lock for too long.
    """
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _wait_for_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int) -> None:
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            return _lock(descriptor)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise OSError(errno.EBUSY, "another kernel holds it") from error
        except OSError:
            return None
        time.sleep(_POLL_S)  # noqa: TID251 - blocks a thread on purpose
