"""The journal's file on disk: opened when it is needed, set aside when it cannot be used.

Whatever goes wrong with the disk ends here, as one sentence for the user. After a failed
write the file is left alone until the caller says that it is a good moment to try again,
so that a disk that hangs costs one wait a turn and not one an entry.

Not safe for threads: the journal has the lock.

Source: SQLite, "Write-Ahead Logging", "How To Corrupt An SQLite Database File".
"""

import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from crush_kernel.history.folder import make_folder, open_own, require_own
from crush_kernel.history.journal.migrations import MIGRATIONS, Migrations, NotOurs, prepare
from crush_kernel.history.ownership import alone

logger = logging.getLogger(__name__)

T = TypeVar("T")

BUSY_TIMEOUT_S: Final = 2.0
"""How long another kernel's write is waited for; one takes far less than a second."""

_COMPANIONS: Final = ("", "-wal", "-shm", "-journal")
"""What SQLite appends to the name of a database for the files beside it."""

_BROKEN: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_FAILURES: Final = (sqlite3.Error, OSError, NotOurs, UnicodeDecodeError)
"""What a file can make of reading and writing; the last where SQLite quotes damaged text."""

_REASONS: Final = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_BUSY: "another program has locked it",
    sqlite3.SQLITE_LOCKED: "another program has locked it",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_IOERR: "the disk has trouble",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_NOTADB: "it is damaged",
}


class Database:
    """One SQLite file, which does not exist before the first write."""

    def __init__(self, path: Path, *, mark: str = "", migrations: Migrations = MIGRATIONS) -> None:
        self._path = path
        self._mark = mark
        self._migrations = migrations
        self._connection: sqlite3.Connection | None = None
        self._file: os.stat_result | None = None
        """The file that is open, to tell whether it is still the one at the path."""
        self._notices: list[str] = []
        self._told: set[str] = set()
        self.is_failing = False
        """Whether the last attempt failed; then nothing is written until a fresh attempt."""

    @property
    def exists(self) -> bool:
        """Whether there is a file, of whatever kind."""
        return self._connection is not None or os.path.lexists(self._path)

    def take_notice(self) -> str:
        """Return what the user has not been told yet, or nothing; it counts as told."""
        notice = " ".join(self._notices)
        self._notices.clear()
        return notice

    def read(self, work: Callable[[sqlite3.Connection], T], default: T) -> T:
        """Return what `work` reads, `default` if there is no file or it cannot be read."""
        if self._connection is None and (self.is_failing or not self.exists):
            return default
        try:
            return work(self._connection or self._open())
        except _FAILURES as error:
            self._fail(error)
            return default

    def write(self, work: Callable[[sqlite3.Connection], None], *, is_fresh: bool = False) -> bool:
        """Do `work`, which is one transaction, and return whether it was done.

        Args:
            work: writes through the connection.
            is_fresh: whether what is written stands for itself, so that it is worth trying
                also if the last write failed.
        """
        if is_fresh:
            self._look_again()
        elif self.is_failing:
            return False
        try:
            work(self._connection or self._open())
        except _FAILURES as error:
            self._fail(error)
            return False
        self.is_failing = False
        return True

    def close(self) -> None:
        """Close the file, if it is open; a later write opens it again."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = self._file = None

    def _look_again(self) -> None:
        """Let go of a file that is no longer at its path."""
        if self._file is None:
            return
        try:
            is_there = os.path.samestat(self._path.lstat(), self._file)
        except OSError:
            is_there = False
        if not is_there:
            self.close()
            self._tell_removed()

    def _open(self) -> sqlite3.Connection:
        """Open the file, a new one if there is none or the one there cannot be used."""
        folder = self._path.parent
        make_folder(folder)
        for suffix in _COMPANIONS:
            require_own(self._path.with_name(self._path.name + suffix))
        # Two kernels that begin at once must not set aside what the other has just made.
        with alone(folder, "journal", wait_s=BUSY_TIMEOUT_S):
            try:
                return self._connect()
            except NotOurs as error:
                reason = str(error)
            except (sqlite3.Error, UnicodeDecodeError) as error:
                if not _is_broken(error):
                    raise
                reason = "it is damaged"
            self._set_aside(reason)
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        # Made here, since SQLite would let others read it. One that is there is not opened:
        # closing it again would take away the locks of other connections of this process.
        with suppress(FileExistsError):
            os.close(open_own(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        connection = sqlite3.connect(
            self._path,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
        )
        try:
            prepare(connection, mark=self._mark, migrations=self._migrations)
            self._file = self._path.lstat()
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _set_aside(self, reason: str) -> None:
        """Rename the file and those beside it, and tell so.

        Raises:
            OSError: it cannot be renamed.
        """
        number = 1
        while any(os.path.lexists(self._aside(number, suffix)) for suffix in _COMPANIONS):
            number += 1
        for suffix in _COMPANIONS:
            with suppress(FileNotFoundError):
                self._path.with_name(self._path.name + suffix).rename(self._aside(number, suffix))
        self._tell(
            f"The journal {self._name} cannot be used: {reason}. It was renamed to "
            f"{self._aside(number, '').name!r} and a new one is begun; what the notebook itself "
            "holds is not lost."
        )

    def _aside(self, number: int, suffix: str) -> Path:
        return self._path.with_name(f"{self._path.name}.broken-{number}{suffix}")

    def _fail(self, error: Exception) -> None:
        """Note that the file could not be used, and set it aside if it never can be."""
        logger.warning("the journal failed: %s", error)
        self.is_failing = True
        if self._file is not None and _is_broken(error) and self._give_up(self._file):
            return
        self._tell(
            f"The journal {self._name} is not kept: {_reason(error)}. Turns work as usual, but "
            "what the notebook does not hold yet is lost if the kernel is killed."
        )

    def _give_up(self, file: os.stat_result) -> bool:
        """Set aside the damaged `file` that is open, and return whether that was possible."""
        self.close()
        try:
            with alone(self._path.parent, "journal", wait_s=BUSY_TIMEOUT_S):
                if os.path.samestat(self._path.lstat(), file):
                    self._set_aside("it is damaged")
                else:  # another kernel has done so
                    self._tell_removed()
        except OSError:
            return False
        return True

    def _tell_removed(self) -> None:
        self._tell(
            f"The journal {self._name} was removed while it was in use, and a new one is begun."
        )

    def _tell(self, notice: str) -> None:
        """Keep `notice` for the user, unless it was told before."""
        if notice not in self._told:
            self._told.add(notice)
            self._notices.append(notice)

    @property
    def _name(self) -> str:
        return repr(str(self._path))


def _is_broken(error: Exception) -> bool:
    if isinstance(error, sqlite3.Error):
        return _code(error) in _BROKEN
    return isinstance(error, UnicodeDecodeError)


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code, `SQLITE_ERROR` where SQLite gave none."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _reason(error: Exception) -> str:
    match error:
        case sqlite3.Error():
            return _REASONS.get(_code(error)) or str(error)
        case OSError(strerror=str() as reason):
            return reason
        case _:
            return str(error)
