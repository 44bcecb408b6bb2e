"""Read a project's journal without touching it, for programs that are no kernel.

Nothing is made, migrated or set aside: a journal that is not the user's own, that is damaged, or
that a later version has written, has nothing to say, and why is said.
"""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from crush_kernel.history.decisions import DecisionRecord, read_decision
from crush_kernel.history.journal import rows
from crush_kernel.history.journal.journal import FILE_NAME
from crush_kernel.history.journal.migrations import NotOurs, examine
from crush_kernel.messages import well_formed

_BUSY_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class JournalDecisions:
    """The decisions of one session."""

    path: Path
    """Of the journal's file."""
    decisions: tuple[tuple[str, DecisionRecord], ...] = ()
    """With their turns, oldest first."""
    trouble: str = ""
    """Why there are none, in a clause; empty if they were read."""


def read_decisions(directory: Path, session: str, *, mark: str) -> JournalDecisions:
    """Return what the journal in `directory` knows of a session; never raises.

    Args:
        directory: the project's data directory.
        session: the session's id.
        mark: the user's, by which the journal must be marked; see `usermark.user_mark`.
    """
    path = directory / FILE_NAME
    try:
        if not path.is_file():
            return JournalDecisions(path, trouble="there is none")
        with _opened(path, mark) as connection:
            found = rows.decisions_of(connection, well_formed(session))
    except NotOurs as error:
        return JournalDecisions(path, trouble=str(error))
    except (sqlite3.Error, OSError, UnicodeError, ValueError) as error:
        return JournalDecisions(path, trouble=f"it cannot be read: {error}")
    return JournalDecisions(path, tuple((turn, read_decision(facts)) for turn, facts in found))


@contextmanager
def _opened(path: Path, mark: str) -> Generator[sqlite3.Connection]:
    if not mark:
        raise NotOurs("it cannot be told whose it is")
    # Files beside it are there while a kernel has it open; where none are, none are left behind.
    is_in_use = path.with_name(f"{path.name}-wal").exists()
    uri = f"{path.absolute().as_uri()}?{'mode=ro' if is_in_use else 'immutable=1'}"
    with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S)) as connection:
        examine(connection, mark=mark)
        yield connection
