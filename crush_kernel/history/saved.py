"""Which turns pages have written into the notebook, and which of them its file holds.

A page goes on writing while it saves, so that the file holds what had been written when the
save began. Values and one mutable owner; nothing here looks at the file.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from crush_kernel.history.turn import Turn

State: TypeAlias = tuple[str, int]
"""The id and the revision of a turn."""


@dataclass(slots=True)
class SavedTurns:
    """What is known of the notebook's file without reading it."""

    ids: set[str] = field(default_factory=set[str])
    """The turns that the file has held."""
    _written: dict[str, State] = field(default_factory=dict[str, State])
    """What pages have, by cells."""
    _being_saved: dict[str, State] | None = None

    def note_written(self, cell_id: str, turn_id: str, revision: int) -> None:
        """Note that a page has a turn in a cell."""
        self._written[cell_id] = turn_id, revision

    def is_written(self, cell_id: str, turn: Turn) -> bool:
        """Return whether this very state of `turn` is what a page had in a cell last."""
        return self._written.get(cell_id) == (turn.id, turn.revision)

    def begin(self) -> None:
        """Note that a page has begun to save."""
        self._being_saved = dict(self._written)

    def finish(self) -> set[str]:
        """Note that the save is done, and return the turns that no file has held before."""
        held = self._written if self._being_saved is None else self._being_saved
        self._being_saved = None
        news = {turn_id for turn_id, _ in held.values()} - self.ids
        self.ids |= news
        return news
