"""The repaired form of a history that goes on, step by step.

Keeps what it has repaired. As long as a history begins with the same messages, only the
unit in which it changes and those after it are repaired again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from crush_kernel.history.quarantine import Key, without
from crush_kernel.history.repair import Ids, Unit, repair, repaired, trimmed, units_of
from crush_kernel.messages import Message, shared_length


class _Done(NamedTuple):
    """A unit that was repaired, and how things stood before it."""

    end: int
    sent: int
    """How many messages were sent before it."""
    ids: int
    """How many ids were given before it."""
    open_ids: Sequence[str] = ()
    is_late: bool = False
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
        self._done: list[_Done] = []
        self._sent: list[Message] = []
        self._ids = Ids()
        self._open: Counter[str] = Counter()
        self._late = 0

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
        start = self._done[-1].end if self._done else 0
        for unit in units_of(self._from(start), start):
            self._take(unit)
        if self._late:
            return without(repair(context + running), self._refused)
        return trimmed(tuple(self._sent))

    def _same(self, context: tuple[Message, ...], running: tuple[Message, ...]) -> int:
        """Return how many messages the history begins with that are as they were last time."""
        if context is self._context:
            return len(context) + shared_length(running, self._running)
        return shared_length(context + running, self._context + self._running)

    def _go_back(self, count: int) -> None:
        """Forget the units that do not lie, with what ended them, in the first `count` messages."""
        while self._done and self._done[-1].end >= count:
            done = self._done.pop()
            del self._sent[done.sent :]
            self._ids.take_back(done.ids)
            if done.open_ids or done.is_late:
                self._open.subtract(done.open_ids)
                self._late -= done.is_late

    def _from(self, start: int) -> Iterator[Message]:
        """Yield the messages from the index `start` on."""
        inside = start - len(self._context)
        if inside >= 0:
            return islice(self._running, inside, None)
        return chain(islice(self._context, start, None), self._running)

    def _take(self, unit: Unit) -> None:
        done = _Done(unit.end, len(self._sent), self._ids.count)
        if (unit.calls or unit.results) and not unit.is_settled:
            is_late = any(self._open[result.call_id] > 0 for result in unit.strays())
            done = done._replace(open_ids=unit.open_ids(), is_late=is_late)
            self._open.update(done.open_ids)
            self._late += is_late
        self._done.append(done)
        self._sent += without(repaired(unit, self._ids), self._refused)
