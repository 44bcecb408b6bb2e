"""Which session a notebook is: its own, or a branch where that is another one's.

Source: design §§4, 5.
"""

import uuid
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from crush_kernel.history.journal.journal import Journal


@dataclass(frozen=True, slots=True)
class Claim:
    """A session that this kernel owns now."""

    session: str
    is_apart: bool = False
    """Whether it is a branch since another kernel has the notebook open."""


def claim(journal: Journal, wanted: str, notebook: Path | None) -> Claim:
    """Make this kernel the owner of the session `wanted`, or of a branch of it.

    A notebook that was copied branches off, while the other one is still there; one that was
    moved goes on.
    """
    path = "" if notebook is None else str(notebook)
    session, is_apart = wanted, False
    if path and _is_elsewhere(journal, session, path):
        session = journal.branch(session, path)
    while not journal.own(session):
        session, is_apart = journal.branch(session, path), True
    journal.adopt(session, path)
    return Claim(session, is_apart)


def _is_elsewhere(journal: Journal, session: str, path: str) -> bool:
    """Return whether the notebook of a session is still there, and not the one at `path`."""
    stored = journal.session(session)
    if stored is None or stored.path in ("", path):
        return False
    try:
        there = Path(stored.path)
        return there.exists() and not (Path(path).exists() and there.samefile(path))
    except (OSError, ValueError):
        return False


def new_id(cell_id: str) -> str:
    """Return the id of a session that begins in `cell_id`.

    It is the same each time, for a clean diff. Cells without a name are the same everywhere,
    so that what begins in one is a session of its own.
    """
    if not cell_id or cell_id.startswith("#"):
        return uuid.uuid4().hex
    return blake2b(cell_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
