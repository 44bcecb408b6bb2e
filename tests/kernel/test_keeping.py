"""What a running cell has shown is kept before it is shown, and without secrets."""

from collections.abc import Generator
from pathlib import Path

import pytest

from crush_kernel.agent.events import (
    Event,
    ReasoningAdded,
    ReplyDropped,
    StepStarted,
    TextAdded,
    ToolCallWritten,
)
from crush_kernel.history.journal.journal import Journal
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.session import Session
from crush_kernel.kernel.keeping import CellKeeper
from crush_kernel.kernel.mirror import CellOutputs

KEY = "ghp_" + "a1B2" * 9
MARK = "⟨secret: GitHub token⟩"


@pytest.fixture
def keeper(tmp_path: Path) -> Generator[CellKeeper]:
    redactor = Redactor({})
    journal = Journal.open(tmp_path, clean=redactor.redact_json)
    session = Session(journal=journal, redactor=redactor)
    cell = session.begin("c1", "ask")
    yield CellKeeper(session, CellOutputs("c1", 1), turn_id=cell.turn_id)
    journal.close()


def shown(keeper: CellKeeper, *events: Event) -> list[Event]:
    """Let `keeper` watch `events`, with an output after each, and return what came through."""
    seen: list[Event] = []
    for event in events:
        seen += keeper.watch(event)
        keeper.keep("stream", {"name": "stdout", "text": "more\n"})
    return seen


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("notebooks.db*"))


@pytest.mark.parametrize("kind", [TextAdded, ReasoningAdded])
@pytest.mark.parametrize("cut", range(1, len(KEY)))
def test_a_secret_in_two_deltas_is_neither_shown_nor_kept(
    keeper: CellKeeper, tmp_path: Path, kind: type[TextAdded | ReasoningAdded], cut: int
) -> None:
    deltas = (kind(f"use {KEY[:cut]}"), kind(f"{KEY[cut:]} now"))
    seen = shown(keeper, StepStarted(1), *deltas, ToolCallWritten("t", "bash"))
    texts = [event.text for event in seen if isinstance(event, kind)]
    assert "".join(texts) == f"use {MARK} now"
    data = stored(tmp_path)
    assert b"use " in data
    assert KEY[cut:].encode() not in data or len(KEY[cut:]) < 4
    assert KEY[:cut].encode() not in data or len(KEY[:cut]) < 4


def test_words_and_thoughts_come_in_their_order(keeper: CellKeeper) -> None:
    events = (TextAdded("a b"), ReasoningAdded("c d"), TextAdded("e"), ToolCallWritten("t", "ls"))
    assert shown(keeper, StepStarted(1), *events) == [
        StepStarted(1),
        *(TextAdded("a "), TextAdded("b"), ReasoningAdded("c "), ReasoningAdded("d")),
        *(TextAdded("e"), ToolCallWritten("t", "ls")),
    ]


def test_what_was_held_back_of_a_dropped_reply_is_not_shown(keeper: CellKeeper) -> None:
    events = shown(keeper, StepStarted(1), TextAdded("one two"), ReplyDropped(), TextAdded("x "))
    assert events == [StepStarted(1), TextAdded("one "), ReplyDropped(), TextAdded("x ")]
