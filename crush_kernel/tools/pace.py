"""How far a call is, told as often as people can follow."""

from collections.abc import Callable
from math import inf

import anyio

INTERVAL_S = 0.1
"""Between two words on the progress of a call."""


class Pace:
    """Tells how far a call is: at once, then at most every `INTERVAL_S`. For one event loop."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told_s = -inf

    def step(self, words: Callable[[], str]) -> None:
        """Tell `words`, which are made only if it is time for them."""
        now_s = anyio.current_time()
        if now_s - self._told_s >= INTERVAL_S:
            self._told_s = now_s
            self._tell(words())
