"""The entries of one turn while it runs: which rows an addition becomes.

Most entries are a row each. Drafts and updates of outputs come many times a second and each
says only what is new, so they are written over the row before: what a turn takes on disk is
what there is to see of it, not how often it was shown.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from crush_kernel.history.journal import rows
from crush_kernel.history.journal.entries import Began, Drafted, Entry, Published, Said
from crush_kernel.history.journal.migrations import transaction
from crush_kernel.history.outputs import display_id_of
from crush_kernel.history.turn import Turn
from crush_kernel.messages import Message

_MAX_DRAFT_CHARS: Final = 2000
"""How much of a draft is in one row: less than the page that is written anyway."""


@dataclass(slots=True)
class RunningTurn:
    """Adds the entries of one turn; what it remembers follows what was committed."""

    session: str
    turn_id: str
    code: Callable[[Entry], tuple[str, bytes]]
    """Returns the kind and the cleaned JSON of an entry; raises `ValueError` if it has none."""
    first: int = 0
    """The number of the entry in which the turn began."""
    _connection: sqlite3.Connection | None = None
    """To the file that it began in; numbers mean nothing in another one."""
    _draft: Drafted | None = None
    """What the last row of drafts holds, as it came."""
    _draft_number: int = 0
    _has_drafts: bool = False
    _displays: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """The numbers of the entries that show a display id."""

    def begin(self, connection: sqlite3.Connection, turn: Turn) -> None:
        """Note the beginning; entries of the same turn that are there are void."""
        coded = self.code(Began(turn))
        rows.delete_entries(connection, self.session, self.turn_id)
        self.first = self._add(connection, coded)
        self._connection = connection

    def is_in(self, connection: sqlite3.Connection) -> bool:
        """Return whether the turn has begun in the file of `connection`."""
        return self._connection is connection

    def add(self, connection: sqlite3.Connection, entry: Entry) -> None:
        """Note `entry` as a row of its own; it may end an attempt, which then begins anew."""
        self._add(connection, self.code(entry))
        self._draft = None

    def say(self, connection: sqlite3.Connection, message: Message) -> None:
        """Note a message; a reply takes the place of its drafts."""
        coded = self.code(Said(message))
        if message.role != "assistant" or not self._has_drafts:
            self._add(connection, coded)
            return
        with transaction(connection):
            rows.delete_drafts(connection, self.session, self.turn_id, first=self.first)
            self._add(connection, coded)
        self._draft, self._has_drafts = None, False

    def draft(self, connection: sqlite3.Connection, new: Drafted) -> None:
        """Note more of a reply, cleaned together with what is before it in its row.

        So a secret that comes in pieces is found when it is whole.
        """
        former, number = self._draft, self._draft_number
        if former is None or not _is_continued(former, new):
            number = self._add(connection, self.code(new))
        elif len(former.text) + len(new.text) <= _MAX_DRAFT_CHARS:
            new = replace(new, text=former.text + new.text)
            self._rewrite(connection, number, self.code(new))
        else:
            head, tail = _cut(former.text + new.text)
            new = replace(new, text=tail)
            full, rest = self.code(replace(new, text=head)), self.code(new)
            with transaction(connection):
                self._rewrite(connection, number, full)
                number = self._add(connection, rest)
        self._draft, self._draft_number, self._has_drafts = new, number, True

    def publish(
        self, connection: sqlite3.Connection, msg_type: str, content: dict[str, Any]
    ) -> None:
        """Note an output message; an update is written over what it updates.

        An update of something that this turn did not show changes nothing.
        """
        display_id = display_id_of(content)
        shown = self._displays.get(display_id, []) if display_id else []
        is_update = msg_type == "update_display_data"
        if is_update and len(shown) == 1:
            self._rewrite(connection, shown[0], self._display(content))
        elif shown:
            with transaction(connection):
                for number in shown:
                    self._rewrite(connection, number, self._display(content))
                if not is_update:
                    self._show(connection, msg_type, content)
        elif not is_update:
            self._show(connection, msg_type, content)

    def _display(self, content: dict[str, Any]) -> tuple[str, bytes]:
        return self.code(Published("display_data", content))

    def _show(self, connection: sqlite3.Connection, msg_type: str, content: dict[str, Any]) -> None:
        number = self._add(connection, self.code(Published(msg_type, content)))
        if display_id := display_id_of(content):
            self._displays.setdefault(display_id, []).append(number)

    def _rewrite(
        self, connection: sqlite3.Connection, number: int, coded: tuple[str, bytes]
    ) -> None:
        rows.rewrite_entry(connection, number, *coded, session=self.session, turn_id=self.turn_id)

    def _add(self, connection: sqlite3.Connection, coded: tuple[str, bytes]) -> int:
        return rows.add_entry(connection, self.session, self.turn_id, *coded)


def _is_continued(former: Drafted, new: Drafted) -> bool:
    return (former.step, former.attempt, former.part) == (new.step, new.attempt, new.part)


def _cut(text: str) -> tuple[str, str]:
    """Return `text` in two, cut between words where there is one, the second part short."""
    at = max(text.rfind(" "), text.rfind("\n")) + 1
    if len(text) - at > _MAX_DRAFT_CHARS:
        at = len(text)
    return text[:at], text[at:]
