"""Writes what is said into the journal, and makes records of turns: clean, and not too large.

The conversation's recorder. What goes out of the kernel's memory passes here and loses its
secrets; in memory the model keeps what its own tools have read.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from crush_kernel.history.journal.journal import Journal
from crush_kernel.history.record import read_turn, write_turn
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.sidefiles import budget_notice, caps_for, restored, spilled
from crush_kernel.history.subagentmessages import Nested, shortened
from crush_kernel.history.summary import sealed
from crush_kernel.history.turn import Turn
from crush_kernel.history.weight import weight_of
from crush_kernel.messages import JsonObject, Message, ToolResult


class Recording:
    """Records the turns of one session; see `conversation.Recorder`."""

    def __init__(self, journal: Journal, redactor: Redactor, tell: Callable[[str], None]) -> None:
        """Record nothing before `session` is set.

        Args:
            journal: of the project.
            redactor: takes the secrets out.
            tell: takes a sentence for the user.
        """
        self.session = ""
        """The session's id."""
        self._journal = journal
        self._redactor = redactor
        self._tell = tell
        self._weights: dict[str, int] = {}
        """Of the records in the notebook, by their cells."""

    def began(self, turn: Turn) -> None:
        """Keep that `turn` has begun."""
        self._journal.began(self.session, turn)

    def said(self, turn: Turn, message: Message) -> None:
        """Keep the next message of `turn`."""
        # Here and not in the journal: with a secret in it, thinking is left out as a whole.
        (clean,) = self._redactor.redact_messages((message,))
        self._journal.said(self.session, turn.id, clean)

    def unsaid(self, turn: Turn) -> None:
        """Forget the last message of `turn`."""
        self._journal.unsaid(self.session, turn.id)

    def answered(self, turn: Turn, result: ToolResult) -> None:
        """Keep a result whose message is not complete yet."""
        self._journal.answered(self.session, turn.id, result)

    def nested(self, turn: Turn, nested: Nested) -> Nested:
        """Keep what a sub-agent of `turn` says, and return it as it was kept: bounded, clean."""
        (clean,) = self._redactor.redact_messages((nested.message,))
        kept = replace(nested, message=shortened(clean))
        self._journal.nested(self.session, turn.id, kept)
        return kept

    def decided(self, turn: Turn, facts: JsonObject) -> None:
        """Keep by what right a call was made, or why it was refused, and when."""
        self._journal.decided(self.session, turn.id, {**facts, "at": now()})

    def file_changed(
        self, turn: Turn, path: Path, before: bytes | None, after: bytes | None
    ) -> None:
        """Keep a file as it was and as it will be. Any thread."""
        self._journal.file_changed(self.session, turn.id, path, before, after)

    def ended(self, turn: Turn) -> Turn:
        """Return `turn` with its record, its digest and where its summary stands."""
        kept = self.spilled(turn.cell_id, self._redactor.redact_messages(turn.messages))
        kept = sealed(kept, turn.fingerprint)
        volatile: JsonObject = {"ended": now()}
        record = write_turn(replace(turn, messages=kept, volatile=volatile))
        # As it will be read one day, so that it then is the same context.
        read = read_turn(dict(record), cell_id=turn.cell_id)
        return replace(
            turn, record=record, digest=read.digest, summary=read.summary, volatile=volatile
        )

    def spilled(self, cell_id: str, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return `messages` as the record in a cell has them; what is too large is kept apart."""
        self.forget(cell_id)
        before = sum(self._weights.values())
        kept, size, caps = messages, 0, caps_for(before)
        is_tighter = True
        while is_tighter:
            kept = spilled(kept, caps=caps, keep=self._journal.blobs.keep)
            size = weight_of(kept)
            # One turn alone may be so large that less is allowed from here on.
            former, caps = caps, caps_for(before + size)
            is_tighter = caps.text_bytes < former.text_bytes
        self._weights[cell_id] = size
        if notice := budget_notice(before, before + size):
            self._tell(notice)
        return kept

    def placed(self, cell_id: str, turn: Turn) -> Turn:
        """Return `turn`, which is kept in a cell, with what is kept apart put back."""
        self._weights[cell_id] = weight_of(turn.messages)
        return replace(turn, messages=restored(turn.messages, fetch=self._journal.blobs.fetch))

    def forget(self, cell_id: str) -> None:
        """Note that a cell keeps no record any more."""
        self._weights.pop(cell_id, None)


def now() -> str:
    """Return the time as records have it: in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
