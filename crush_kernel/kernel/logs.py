"""The kernel's log: a rotating file in the project's data directory.

It is for developers: one line a request, a tool call and a failure, never a prompt, a key
or the content of a file. Nothing is created before there is something to say, and where
nothing can be written the kernel goes on without a log. A project may come from a stranger
with links in the place of the log: nothing is ever written through one. Secrets that an
error's message brings along are taken out of every line.
"""

import logging
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from crush_kernel.config.directories import log_file
from crush_kernel.files.names import printable

FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s:%(lineno)d %(message)s"
MAX_BYTES = 1_000_000
BACKUPS = 2


class DataDirectoryHandler(RotatingFileHandler):
    """Writes to `logs/kernel.log` of a data directory, which it makes when it is needed.

    Args:
        data_directory: where `logs/` is, or will be.
        redact: returns a text without the secrets in it.
    """

    def __init__(self, data_directory: Path, *, redact: Callable[[str], str]) -> None:
        self._data_directory = data_directory
        self._ignore_file = data_directory / ".gitignore"
        path = log_file(data_directory)
        super().__init__(
            path, maxBytes=MAX_BYTES, backupCount=BACKUPS, encoding="utf-8", delay=True
        )
        self.setFormatter(OneLineFormatter(FORMAT, redact))

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        for folder in (self._data_directory, path.parent):
            # Not its parents: a project that was deleted stays deleted.
            folder.mkdir(mode=0o700, exist_ok=True)
            if folder.is_symlink():
                raise OSError("the log would be written somewhere else")
        with suppress(FileExistsError), self._ignore_file.open("x", encoding="utf-8") as ignore:
            ignore.write("*\n")
        return open(path, "a", encoding="utf-8", opener=_open_own_file)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Give up on the log, not on the turn: a full disk must not print into the server."""


class OneLineFormatter(logging.Formatter):
    """Keeps a record on its line, whatever names a model has made up, and free of secrets."""

    def __init__(self, line_format: str, redact: Callable[[str], str]) -> None:
        super().__init__(line_format)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of `record` and what tells of its exception."""
        return self._redact(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line of `record`."""
        # Before line ends become escapes: a secret may have some.
        return printable(self._redact(super().formatMessage(record)))


def _open_own_file(path: str, flags: int) -> int:
    """Open a regular file that has no other name, and neither follow nor wait for anything."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
        os.close(descriptor)
        raise OSError("the log is no file of its own")
    return descriptor


def attach_log(data_directory: Path, *, redact: Callable[[str], str]) -> None:
    """Send what the package logs to a file in `data_directory`; once per process.

    Args:
        data_directory: of the project.
        redact: returns a text without the secrets in it.
    """
    logger = logging.getLogger("crush_kernel")
    if not any(isinstance(handler, DataDirectoryHandler) for handler in logger.handlers):
        logger.addHandler(DataDirectoryHandler(data_directory, redact=redact))
        logger.setLevel(logging.INFO)
        logger.propagate = False
