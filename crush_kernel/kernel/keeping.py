"""Keeps what a cell shows before it is shown: outputs, and the reply that is still coming.

One `CellKeeper` a run. The text of an unfinished reply is kept whenever outputs are, so
that whatever a reader has seen is there for the next turn, should the kernel be killed.

Main loop.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from crush_kernel.agent.events import (
    Event,
    ReasoningAdded,
    ReplyDropped,
    StepFinished,
    StepStarted,
    TextAdded,
)
from crush_kernel.history.journal.entries import DraftKind
from crush_kernel.history.journal.journal import Journal
from crush_kernel.history.redactedstream import RedactedStream
from crush_kernel.history.session import Session
from crush_kernel.kernel.mirror import CellOutputs
from crush_kernel.kernel.redactedevent import redacted_event


@dataclass(slots=True)
class CellKeeper:
    """Keeps one run of a cell."""

    session: Session
    shown: CellOutputs
    turn_id: str = ""
    """The turn that the run makes; empty for a command, which makes none."""
    _streams: dict[DraftKind, RedactedStream] = field(init=False)
    _step: int = 0
    _attempt: int = 1
    _draft: list[tuple[DraftKind, str]] = field(default_factory=list[tuple[DraftKind, str]])

    def __post_init__(self) -> None:
        kinds: tuple[DraftKind, ...] = ("text", "reasoning")
        self._streams = {kind: RedactedStream(self.session.redactor) for kind in kinds}

    def keep(self, msg_type: str, content: dict[str, Any]) -> dict[str, Any]:
        """Keep an output that is about to be sent, and return it without secrets."""
        clean = self.session.redactor.redact_output(content)
        self._keep_draft()
        self.shown.apply(msg_type, clean)
        if self.turn_id:
            self._journal.published(self.session.id, self.turn_id, msg_type, clean)
        return clean

    def watch(self, event: Event) -> Iterator[Event]:
        """Take in an event of the turn, and yield what of it can be shown by now.

        A few letters of a reply are kept back where they may be the beginning of a secret.
        """
        match event:
            case TextAdded(text=text):
                yield from self._rest("reasoning")
                yield from self._streamed("text", text)
            case ReasoningAdded(text=text):
                yield from self._rest("text")
                yield from self._streamed("reasoning", text)
            case _:
                rest = [*self._rest("text"), *self._rest("reasoning")]
                if not isinstance(event, ReplyDropped):
                    yield from rest
                self._take(event)
                yield redacted_event(event, self.session.redactor)

    def _streamed(self, kind: DraftKind, text: str) -> Iterator[Event]:
        stream = self._streams[kind]
        stream.add(text)
        yield from self._shown(kind, stream.take())

    def _rest(self, kind: DraftKind) -> Iterator[Event]:
        yield from self._shown(kind, self._streams[kind].flush())

    def _shown(self, kind: DraftKind, text: str) -> Iterator[Event]:
        if text:
            # The same for the draft: a secret must not be kept in two parts either.
            self._draft.append((kind, text))
            yield TextAdded(text) if kind == "text" else ReasoningAdded(text)

    def _take(self, event: Event) -> None:
        match event:
            case StepStarted(number=number):
                self._step, self._attempt = number, 1
            case ReplyDropped():
                self._draft.clear()
                self._journal.dropped(self.session.id, self.turn_id, self._step, self._attempt)
                self._attempt += 1
            case StepFinished():
                # The reply itself is kept by now.
                self._draft.clear()
            case _:
                pass

    def _keep_draft(self) -> None:
        for kind, chunks in groupby(self._draft, key=itemgetter(0)):
            text = "".join(chunk for _, chunk in chunks)
            self._journal.drafted(
                self.session.id, self.turn_id, self._step, self._attempt, kind, text
            )
        self._draft.clear()

    @property
    def _journal(self) -> Journal:
        return self.session.journal
