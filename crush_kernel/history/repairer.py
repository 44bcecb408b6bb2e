"""The repaired form of a history that goes on, step by step.

Keeps what it has repaired. As long as a history begins with the same messages, only the
unit in which it changes and those after it are repaired again.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from crush_kernel.history.quarantine import Key, without
from crush_kernel.history.repair import Ids, Unit, repair, repaired, trimmed, units_of
from crush_kernel.messages import Message, shared_length


@dataclass(frozen=True, slots=True)
class _Trouble:
    """A unit whose calls and results do not match."""

    open_ids: list[str]
    is_late: bool
    """Whether it holds a result that belongs to a call before it."""


class Repairer:
    """Repairs one history again and again as it grows; equal to `repair` of the whole.

    What a provider has refused is left out from then on, see `leave_out`.
    """

    def __init__(self) -> None:
        self._refused: frozenset[Key] = frozenset()
        self._forget()

    def _forget(self) -> None:
        self._context: tuple[Message, ...] = ()
        self._running: tuple[Message, ...] = ()
        self._sent: list[Message] = []
        self._ids = Ids()
        # Of each unit: where it ended, and how much there was before it.
        self._ends: list[int] = []
        self._sent_before: list[int] = []
        self._ids_before: list[int] = []
        self._troubles: dict[int, _Trouble] = {}
        self._open: Counter[str] = Counter()

    def like(self) -> "Repairer":
        """Return another one that leaves out the same and has seen nothing yet."""
        other = Repairer()
        other.leave_out(self._refused)
        return other

    def leave_out(self, refused: frozenset[Key]) -> None:
        """Leave `refused` out of all that is repaired from now on; see `history.quarantine`."""
        self._refused |= refused
        self._forget()

    def repaired(
        self, context: tuple[Message, ...], running: tuple[Message, ...] = ()
    ) -> tuple[Message, ...]:
        """Return `context` and then `running` as they may be sent.

        Args:
            context: what was said before the running turn. If it is the same object as last
                time, it is not looked through again.
            running: what was said in the running turn.
        """
        self._go_back(self._same(context, running))
        self._context, self._running = context, running
        start = self._ends[-1] if self._ends else 0
        for unit in units_of(self._from(start), start):
            self._take(unit)
        if any(trouble.is_late for trouble in self._troubles.values()):
            return without(repair(context + running), self._refused)
        return trimmed(tuple(self._sent))

    def _same(self, context: tuple[Message, ...], running: tuple[Message, ...]) -> int:
        """Return how many messages the history begins with that are as they were last time."""
        if context is self._context:
            return len(context) + shared_length(running, self._running)
        return shared_length(context + running, self._context + self._running)

    def _go_back(self, count: int) -> None:
        """Forget the units that do not lie, with what ended them, in the first `count` messages."""
        while self._ends and self._ends[-1] >= count:
            self._ends.pop()
            del self._sent[self._sent_before.pop() :]
            self._ids.take_back(self._ids_before.pop())
            if trouble := self._troubles.pop(len(self._ends), None):
                self._open.subtract(trouble.open_ids)

    def _from(self, start: int) -> Iterator[Message]:
        """Yield the messages from the index `start` on."""
        inside = start - len(self._context)
        if inside >= 0:
            return islice(self._running, inside, None)
        return chain(islice(self._context, start, None), self._running)

    def _take(self, unit: Unit) -> None:
        if not unit.is_settled:
            is_late = any(self._open[result.call_id] > 0 for result in unit.strays())
            trouble = _Trouble(unit.open_ids(), is_late)
            self._troubles[len(self._ends)] = trouble
            self._open.update(trouble.open_ids)
        self._ends.append(unit.end)
        self._sent_before.append(len(self._sent))
        self._ids_before.append(self._ids.count)
        self._sent += without(repaired(unit, self._ids), self._refused)
