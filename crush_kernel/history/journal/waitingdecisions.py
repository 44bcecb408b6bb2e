"""Decisions on their way into the journal; those that are always allowed wait for a while.

What is always allowed stands on the way to the next request, and the result of its call tells
it, too. So it is written together with the next decision of another kind, or when the turn ends.
"""

import logging
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from crush_kernel.history.decisions import bounded, is_routine
from crush_kernel.history.journal.entries import Clean, to_bytes
from crush_kernel.messages import JsonObject, well_formed

logger = logging.getLogger(__name__)

_MAX_WAITING: Final = 20
"""So many are lost if the kernel is killed; writing them takes two milliseconds."""

DecisionRow: TypeAlias = tuple[str, str, bytes]
"""Session, turn, and facts as they are stored."""


@dataclass(slots=True)
class WaitingDecisions:
    """What is to be written, oldest first; the journal has the lock."""

    clean: Clean
    _waiting: list[tuple[str, str, JsonObject]] = field(
        default_factory=list[tuple[str, str, JsonObject]]
    )

    def add(self, session: str, turn_id: str, facts: JsonObject) -> bool:
        """Add a decision and return whether all are to be written now."""
        self._waiting.append((well_formed(session), well_formed(turn_id), facts))
        return not is_routine(facts) or len(self._waiting) >= _MAX_WAITING

    def take(self) -> list[DecisionRow]:
        """Return what is to be written, clean and bounded; it waits no more."""
        waiting, self._waiting = self._waiting, []
        coded = ((session, turn, self._coded(facts)) for session, turn, facts in waiting)
        return [decision for decision in coded if decision[-1]]

    def _coded(self, facts: JsonObject) -> bytes:
        """Return `facts` as they are stored; nothing if there is no JSON for them.

        The turn goes on; what is missing is missing.
        """
        try:
            clean = self.clean(dict(facts))
            return to_bytes(dict(bounded(clean)) if isinstance(clean, dict) else clean)
        except (ValueError, RecursionError):
            logger.exception("a decision was not kept")
            return b""
