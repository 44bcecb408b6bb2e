"""What the user says to a turn that is running, until the turn takes it in."""

from dataclasses import dataclass, field
from threading import Lock


@dataclass(slots=True)
class Steering:
    """A queue between whoever hears the user and the turn. Any thread, each method."""

    _said: list[str] = field(default_factory=list[str])
    _is_over: bool = True
    _lock: Lock = field(default_factory=Lock)

    def open(self) -> None:
        """Have a turn listen from now on; what was said before it is forgotten."""
        with self._lock:
            self._said, self._is_over = [], False

    def say(self, text: str) -> bool:
        """Have `text` said to the model with its next request; `False` if no turn listens."""
        with self._lock:
            if not self._is_over:
                self._said.append(text)
            return not self._is_over

    def take(self) -> tuple[str, ...]:
        """Return what was said and not taken yet, oldest first; it counts as taken."""
        with self._lock:
            taken, self._said = tuple(self._said), []
            return taken

    def take_or_close(self) -> tuple[str, ...]:
        """Return what was said and not taken yet; if that is nothing, nobody listens any more."""
        with self._lock:
            taken, self._said = tuple(self._said), []
            self._is_over = not taken
            return taken

    def close(self) -> tuple[str, ...]:
        """Listen no more, and return what was said and not taken yet, oldest first."""
        with self._lock:
            taken, self._said, self._is_over = tuple(self._said), [], True
            return taken
