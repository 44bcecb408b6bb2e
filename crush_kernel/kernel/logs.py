"""The kernel's log: a rotating file in the project's data directory.

It is for developers: one line a request, a tool call and a failure, never a prompt, a key
or the content of a file. Nothing is created before there is something to say, and where
nothing can be written the kernel goes on without a log.
"""

import logging
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s %(message)s"
MAX_BYTES = 1_000_000
BACKUPS = 2


class DataDirectoryHandler(RotatingFileHandler):
    """Writes to `logs/kernel.log` of a data directory, which it makes when it is needed."""

    def __init__(self, data_directory: Path) -> None:
        self._data_directory = data_directory
        path = data_directory / "logs" / "kernel.log"
        super().__init__(
            path, maxBytes=MAX_BYTES, backupCount=BACKUPS, encoding="utf-8", delay=True
        )
        self.setFormatter(logging.Formatter(FORMAT))

    def _open(self) -> TextIOWrapper:
        self._data_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = self._data_directory / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        Path(self.baseFilename).parent.mkdir(exist_ok=True)
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Give up on the log, not on the turn: a full disk must not print into the server."""


def attach_log(data_directory: Path) -> None:
    """Send what the package logs to a file in `data_directory`; once per process."""
    logger = logging.getLogger("crush_kernel")
    if not any(isinstance(handler, DataDirectoryHandler) for handler in logger.handlers):
        logger.addHandler(DataDirectoryHandler(data_directory))
        logger.setLevel(logging.INFO)
        logger.propagate = False
