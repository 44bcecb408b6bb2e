"""Lets one press through at a time, so that a double click does not answer two questions."""

from collections.abc import Callable
from dataclasses import dataclass

REST_S = 0.5
"""How long after an answer no other question can be answered."""


@dataclass(slots=True)
class Debounce:
    """Stands before the buttons of all questions of one turn."""

    clock: Callable[[], float]
    """Seconds that only grow."""
    _opens: float = float("-inf")

    def admit(self) -> bool:
        """Return whether a press counts now; if it does, none counts for `REST_S`."""
        if self.rest_s > 0:
            return False
        self._opens = self.clock() + REST_S
        return True

    @property
    def rest_s(self) -> float:
        """Return for how many seconds no press counts."""
        return max(0.0, self._opens - self.clock())
