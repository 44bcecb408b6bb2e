"""What the user says to a turn that is running, until the turn takes it in."""

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Steering:
    """A queue between whoever hears the user and the turn. Any thread, each method."""

    _said: deque[str] = field(default_factory=deque[str])

    def say(self, text: str) -> None:
        """Have `text` said to the model with its next request."""
        self._said.append(text)

    def take(self) -> tuple[str, ...]:
        """Return what was said and not taken yet, oldest first; it counts as taken."""
        taken: list[str] = []
        # One by one: more may be said meanwhile.
        while self._said:
            taken.append(self._said.popleft())
        return tuple(taken)
