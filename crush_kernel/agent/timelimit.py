"""How long a call may take: its own time only, not that of the people it waits for."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf

import anyio
from anyio import CancelScope


@dataclass(slots=True)
class TimeLimit:
    """Cancels what runs under it when its seconds are used up. For one run."""

    seconds: float | None
    """`None` lets it run."""
    _scope: CancelScope = field(default_factory=CancelScope)
    _left_s: float = inf
    _waiting: int = 0

    @property
    def is_over(self) -> bool:
        """Return whether it has ended what ran under it."""
        return self._scope.cancelled_caught

    @contextmanager
    def running(self) -> Generator[None]:
        """Cancel the body when its time is up, and go on behind it."""
        if self.seconds is not None:
            self._scope.deadline = anyio.current_time() + self.seconds
        with self._scope:
            yield

    @contextmanager
    def paused(self) -> Generator[None]:
        """Let the clock stand still while the body runs, also beside others that do."""
        if not self._waiting:
            self._left_s = self._scope.deadline - anyio.current_time()
            self._scope.deadline = inf
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._scope.deadline = anyio.current_time() + self._left_s
