"""A session in front of a page, without a kernel: turns are said by the test."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crush_kernel.history.journal.journal import Journal
from crush_kernel.history.notebook import read_cells
from crush_kernel.history.notebookfile import read_notebook_file
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.session import CellUpdate, Session
from crush_kernel.history.turn import Turn, TurnState
from crush_kernel.messages import Message, Text, Usage, text_of
from tests.fakes.page import Page

MODEL = "fake/m"


def prompt(text: str) -> Message:
    return Message("user", (Text(text),))


def reply(text: str, tokens: int = 1) -> Message:
    usage = Usage(output_tokens=tokens)
    return Message("assistant", (Text(text),), "fake", "m", "end_turn", usage)


def shown(text: str) -> list[dict[str, Any]]:
    """Outputs that show `text`."""
    data = {"text/markdown": text, "text/plain": text}
    return [{"output_type": "display_data", "data": data, "metadata": {}}]


class LiveSession:
    """What a kernel process has of a notebook, from its start to its end."""

    def __init__(
        self,
        folder: Path,
        notebook: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        redactor = Redactor(environ or {})
        self.journal = Journal.open(folder / ".crush", clean=redactor.redact_json)
        self.session = Session(journal=self.journal, redactor=redactor, notebook=notebook)
        self.count = 0

    # Pages

    def open(self, page: Page) -> None:
        """Take in a page that is opened."""
        opening = page.opening()
        contents = read_cells(opening["cells"], notebook=opening["notebook"])
        path = None if page.path is None else Path(page.path)
        updates = self.session.load(contents, path)
        self._tell(page, updates)

    def hear(self, page: Page) -> None:
        """Take in what has changed in the cells of a page."""
        if news := page.news():
            cells = read_cells(news["cells"]).cells
            told = {cell["id"] for cell in news["cells"] if "execution_count" in cell}
            self._tell(page, self.session.rearrange(cells, told=told))

    def open_file(self) -> None:
        """Take in the notebook's file, as when a cell runs that no page has told of."""
        assert self.session.notebook is not None
        self.session.load_file(read_notebook_file(self.session.notebook))

    def tell_turn(self, page: Page, turn: Turn) -> None:
        """Tell a page of a turn that has ended."""
        self._tell(page, [CellUpdate(turn.cell_id, turn.record)])

    def bring_back(self, page: Page, cell_id: str, run: int) -> None:
        """Have an earlier run stand in a cell again, as the user asks for in another cell."""
        self._tell(page, [self.session.restore(cell_id, run)])

    def _tell(self, page: Page, updates: list[CellUpdate]) -> None:
        for update in updates:
            record = None if update.record is None else dict(update.record)
            message = {"method": "turn", "cell_id": update.cell_id, "record": record}
            for answer in page.hear(message):
                self.session.acknowledged(
                    answer["cell_id"], answer["turn"] or "", answer["revision"] or 0
                )
            if update.outputs is not None:
                picture = {
                    "cell_id": update.cell_id,
                    "outputs": update.outputs,
                    "execution_count": update.execution_count,
                    "is_running": False,
                }
                assert [*page.hear({"method": "outputs", "cells": [picture]})] == []
        if self.session.id:
            header = {"method": "session", "record": self.session.header(), "revision": 0}
            assert len([*page.hear(header)]) == 1
        stale = {"method": "stale", "cells": [*self.session.conversation.stale()]}
        assert [*page.hear(stale)] == []

    def save(self, page: Page) -> None:
        """Have a page save its notebook, to the disk too if it has a path."""
        self.session.saving()
        page.save()
        if page.path is not None:
            Path(page.path).write_text(page.ipynb, encoding="utf-8")
        self.session.saved()

    # Turns

    def begin(self, cell_id: str, *messages: Message) -> str:
        """Begin a turn, say `messages` in it and return its id."""
        place = self.session.begin(cell_id, "".join(map(text_of, messages)))
        for message in messages:
            self.session.conversation.append(message)
        return place.turn_id

    def end(self, state: TurnState = "end_turn", *, is_start: bool = False) -> Turn:
        """End the turn that runs and keep it with what it shows."""
        self.count += 1
        turn = self.session.conversation.end(state, is_start=is_start)
        text = text_of(turn.messages[-1]) if turn.messages else ""
        self.session.finish(turn, shown(text), self.count)
        return turn

    def run(self, cell_id: str, *said: str, page: Page | None = None) -> Turn:
        """Run a cell: its prompt, then replies."""
        asked, *replies = said or (f"ask in {cell_id}", f"answer in {cell_id}")
        self.begin(cell_id, prompt(asked), *map(reply, replies))
        turn = self.end()
        if page is not None:
            cell = page[cell_id]
            cell.outputs, cell.execution_count = shown(text_of(turn.messages[-1])), self.count
            self.tell_turn(page, turn)
        return turn

    def kill(self) -> None:
        """End as a killed kernel does: nothing is ended, the system takes back the locks."""
        self.journal.close()

    # What there is

    def context(self, cell_id: str) -> list[str]:
        """Return what a run of `cell_id` would see, message by message."""
        turns = self.session.conversation.turns
        above = self.session.conversation.above(cell_id)
        return [text_of(message) for cell in above for message in turns[cell].messages]

    @property
    def turns(self) -> dict[str, str]:
        """The turns that stand in the cells."""
        return {cell: turn.id for cell, turn in self.session.conversation.turns.items()}

    @property
    def notices(self) -> str:
        return " ".join(self.session.take_notices())
