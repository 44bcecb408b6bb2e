"""One notebook's session: what it was told, what it keeps, what a page has to be told.

Brings three sources together: the file (or the page that shows it), the journal, and what
happened in this kernel. For each cell the newest turn wins, except that a turn which the
front end has saved gives way to the file: the file was changed on purpose since then.

Engine thread, except where a method says otherwise. Nothing here raises for disk trouble;
what the user should know waits in `take_notices`.

Source: design §§4, 5.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from crush_kernel.errors import CommandError
from crush_kernel.history.conversation import CellRun, Conversation
from crush_kernel.history.journal import Journal, StoredTurn
from crush_kernel.history.notebook import NotebookCell, NotebookContents
from crush_kernel.history.record import (
    BadRecord,
    SessionHeader,
    read_turn,
    write_header,
    write_turn,
)
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.sidefiles import budget_notice, caps_for, restored, spilled
from crush_kernel.history.turn import Turn, source_digest
from crush_kernel.messages import (
    JsonObject,
    Media,
    Message,
    Part,
    Reasoning,
    ShellCommand,
    Text,
    ToolCall,
    ToolResult,
)

Outputs = list[dict[str, Any]]
"""Outputs of a cell, as nbformat has them."""


@dataclass(frozen=True, slots=True)
class CellUpdate:
    """What a page has to be told about one cell."""

    cell_id: str
    record: JsonObject | None
    """The cell's turn; `None` if it has none any more."""
    outputs: Outputs | None = None
    """What the page missed; `None` if nothing."""
    execution_count: int | None = None


class Session:
    """Owns the conversation of one notebook and keeps it."""

    def __init__(
        self, *, journal: Journal, redactor: Redactor, notebook: Path | None = None
    ) -> None:
        """Begin with nothing; `load` brings what was.

        Args:
            journal: of the project.
            redactor: takes the secrets out of all that is kept.
            notebook: the file that the kernel was started for, if anybody told.
        """
        self.conversation = Conversation(self)
        self.redactor = redactor
        self.journal = journal
        self._notebook = notebook
        self._id = ""
        self._header = SessionHeader()
        self._weight = 0
        self._acknowledged: dict[str, tuple[str, int]] = {}
        self._being_saved: dict[str, tuple[str, int]] | None = None
        self._saved: dict[str, tuple[str, int]] = {}
        self._notices: list[str] = []
        self.is_loaded = False

    @property
    def id(self) -> str:
        """The session's id; empty until the first turn or the first load."""
        return self._id

    @property
    def notebook(self) -> Path | None:
        """The notebook's file, as far as anybody told."""
        return self._notebook

    def take_notices(self) -> tuple[str, ...]:
        """Return the sentences that the user has not been told yet; they count as told."""
        taken = (*self._notices, *filter(None, (self.journal.take_notice(),)))
        self._notices.clear()
        return taken

    # What pages tell

    def load(self, contents: NotebookContents, notebook: Path | None) -> list[CellUpdate]:
        """Take in what a file or a page holds, and return what it does not know yet.

        A later load, of a page that was opened again, brings nothing that happened since.
        """
        if notebook is not None:
            self._notebook = notebook
        if not self.is_loaded:
            self._open(contents)
        self._notices += contents.problems
        self._announce(cell.turn for cell in contents.cells)
        stored = self._unsaved_in_journal()
        updates: list[CellUpdate] = []
        for cell in contents.cells:
            if cell.id:
                updates += self._load_cell(cell, stored.get(cell.id))
        return updates

    def rearrange(self, cells: Sequence[NotebookCell]) -> None:
        """Take the order of the document, and the turns of cells that are new in it."""
        self._announce(cell.turn for cell in cells)
        for cell in cells:
            if cell.turn is not None and cell.id not in self.conversation.turns:
                self._place(cell.id, cell.turn)
        self.conversation.arrange([cell.id for cell in cells])

    def moved(self, notebook: Path) -> None:
        """Note that the notebook has another name now."""
        self._notebook = notebook
        if self._id:
            self.journal.adopt(self._id, str(notebook))

    def acknowledged(self, cell_id: str, turn_id: str, revision: int) -> None:
        """Note that a page has written a turn into its cell."""
        self._acknowledged[cell_id] = turn_id, revision

    def saving(self) -> None:
        """Note that a page has begun to save what it has acknowledged so far."""
        self._being_saved = dict(self._acknowledged)

    def saved(self) -> None:
        """Note that the file holds what was acknowledged when saving began."""
        self._saved |= self._acknowledged if self._being_saved is None else self._being_saved
        self._being_saved = None
        if self._id:
            self.journal.mark_saved(self._id, [turn_id for turn_id, _ in self._saved.values()])

    # Turns

    def begin(self, cell_id: str, text: str) -> CellRun:
        """Begin the turn of a cell that runs now, and return where it stands."""
        name = cell_id or self.conversation.name_cell()
        if not self._id:
            self._claim(new_id(name))
        known = self.conversation.turns.get(name)
        runs = [stored.run for stored in self.journal.versions(self._id, name)]
        number = max([*runs, known.run if known else 0]) + 1
        place = CellRun(name, number, source_digest(text))
        self.conversation.begin(place)
        return place

    def finish(self, turn: Turn, outputs: Outputs, execution_count: int | None) -> None:
        """Keep a turn that has ended with what its cell shows. Any thread."""
        self.journal.ended(self._id, turn, outputs, execution_count)

    def header(self) -> JsonObject:
        """Return what the notebook's own metadata is to say."""
        spent = self.conversation.spent_by_model
        last = next(
            (m for m in reversed(self.conversation.messages) if m.role == "assistant"), None
        )
        model = f"{last.provider}/{last.model}" if last else self._header.model
        turns = len(self.conversation.turns)
        header = replace(self._header, id=self._id, model=model, turns=turns, usage=spent)
        return write_header(header)

    def versions(self, cell_id: str) -> list[StoredTurn]:
        """Return all turns that ran in `cell_id`, oldest first."""
        return sorted(self.journal.versions(self._id, cell_id), key=lambda each: each.run)

    def restore(self, cell_id: str, run: int) -> CellUpdate:
        """Have the turn of an earlier run stand in `cell_id` again.

        Raises:
            CommandError: the journal has no such turn.
        """
        versions = self.versions(cell_id)
        wanted = next((each for each in versions if each.run == run), None)
        turn = None if wanted is None else self.turn_of(wanted)
        if wanted is None or turn is None:
            runs = ", ".join(str(each.run) for each in versions) or "none"
            raise CommandError(
                f"The journal has no run {run} of that cell.", hint=f"It has: {runs}."
            )
        newest = max(each.run for each in versions)
        outputs, _ = self.journal.outputs(self._id, wanted.id) or ([], None)
        again = replace(turn, cell_id=cell_id, run=newest + 1)
        again = replace(again, record=write_turn(replace(again, record=None)))
        self.conversation.place(cell_id, again)
        self.journal.ended(self._id, again, outputs, None)
        return CellUpdate(cell_id, again.record, outputs)

    def outputs(self, cell_id: str) -> Outputs:
        """Return what the turn in `cell_id` has shown, as far as the journal knows."""
        turn = self.conversation.turns.get(cell_id)
        found = None if turn is None else self.journal.outputs(self._id, turn.id)
        return [] if found is None else found[0]

    # What the conversation tells

    def began(self, turn: Turn) -> None:
        """Keep that `turn` has begun."""
        self.journal.began(self._id, turn)

    def said(self, turn: Turn, message: Message) -> None:
        """Keep the next message of `turn`."""
        self.journal.said(self._id, turn.id, message)

    def unsaid(self, turn: Turn) -> None:
        """Forget the last message of `turn`."""
        self.journal.unsaid(self._id, turn.id)

    def answered(self, turn: Turn, result: ToolResult) -> None:
        """Keep a result whose message is not complete yet."""
        self.journal.answered(self._id, turn.id, result)

    def decided(self, turn: Turn, facts: JsonObject) -> None:
        """Keep by what right a call was made, or why it was refused."""
        self.journal.decided(self._id, turn.id, facts)

    def file_changed(
        self, turn: Turn, path: Path, before: bytes | None, after: bytes | None
    ) -> None:
        """Keep a file as it was and as it will be. Any thread."""
        self.journal.file_changed(self._id, turn.id, path, before, after)

    def ended(self, turn: Turn) -> Turn:
        """Return `turn` with its record and digest."""
        said = self.redactor.redact_messages(turn.messages)
        before = self._weight
        kept = spilled(said, caps=caps_for(before), keep=self.journal.blobs.keep)
        self._weight += _weight_of(kept)
        if notice := budget_notice(before, self._weight):
            self._notices.append(notice)
        volatile: JsonObject = {"ended": datetime.now(UTC).isoformat(timespec="seconds")}
        record = write_turn(replace(turn, messages=kept, volatile=volatile))
        # As it will be read one day, so that it then is the same context.
        digest = read_turn(dict(record), cell_id=turn.cell_id).digest
        return replace(turn, record=record, digest=digest, volatile=volatile)

    # Loading

    def _open(self, contents: NotebookContents) -> None:
        """Find the session that the notebook is, and end what a dead kernel left open in it."""
        self.is_loaded = True
        self._header = contents.header or SessionHeader()
        self.conversation.spend(self._header.usage)
        path = "" if self._notebook is None else str(self._notebook)
        cells = [cell.id for cell in contents.cells if cell.id]
        found = self.journal.find(path, cells) if path else None
        first = next((cell.turn for cell in contents.cells if cell.turn), None)
        wanted = found or self._header.id or (new_id(first.cell_id) if first else "")
        if wanted:
            self._claim(wanted)
            self.journal.recover(self._id)

    def _claim(self, wanted: str) -> None:
        """Make `wanted` the session's id, or a branch of it if it is somebody else's."""
        path = "" if self._notebook is None else str(self._notebook)
        session_id = wanted
        stored = self.journal.session(session_id)
        if stored and path and stored.path not in ("", path) and Path(stored.path).exists():
            # A copy of a notebook that is still there: both go on from here on their own.
            session_id = self.journal.branch(session_id, path)
        while not self.journal.own(session_id):
            session_id = self.journal.branch(session_id, path)
            self._notices.append(
                "This notebook is open in another kernel too. What you run here is kept apart; "
                "close one of them, or the last one to save wins the file."
            )
        self._id = session_id
        self.journal.adopt(session_id, path)

    def _unsaved_in_journal(self) -> dict[str, StoredTurn]:
        """Return the newest turns that no file was told of, by their cells."""
        newest: dict[str, StoredTurn] = {}
        for stored in self.journal.turns(self._id) if self._id else ():
            known = newest.get(stored.cell_id)
            if known is None or (stored.run, stored.revision) > (known.run, known.revision):
                newest[stored.cell_id] = stored
        return {cell: stored for cell, stored in newest.items() if not stored.is_saved}

    def _load_cell(self, cell: NotebookCell, stored: StoredTurn | None) -> list[CellUpdate]:
        known = self.conversation.turns.get(cell.id)
        if known is not None and known.end == "running":
            return []
        if known is not None and self._is_saved(cell.id, known):
            known = None
        if stored is not None and _is_newer(stored, cell.turn) and _is_newer(stored, known):
            known = self.turn_of(stored) or known
        chosen = max(
            (turn for turn in (cell.turn, known) if turn is not None),
            key=lambda turn: turn.age,
            default=None,
        )
        if chosen is None:
            self.conversation.remove(cell.id)
        elif chosen is not self.conversation.turns.get(cell.id):
            self._place(cell.id, chosen)
        if chosen is None or (cell.turn is not None and chosen.age == cell.turn.age):
            return []
        outputs, count = self.journal.outputs(self._id, chosen.id) or (None, None)
        return [CellUpdate(cell.id, chosen.record, outputs, count)]

    def _is_saved(self, cell_id: str, turn: Turn) -> bool:
        return self._saved.get(cell_id) == (turn.id, turn.revision)

    def turn_of(self, stored: StoredTurn) -> Turn | None:
        """Return a turn that the journal keeps, `None` if it cannot be read."""
        record = self.journal.record(self._id, stored.id)
        try:
            return None if record is None else read_turn(dict(record), cell_id=stored.cell_id)
        except BadRecord:
            return None

    def _place(self, cell_id: str, turn: Turn) -> None:
        """Have `turn` stand in a cell, with what is kept beside the notebook put back."""
        self._weight += _weight_of(turn.messages)
        messages = restored(turn.messages, fetch=self.journal.blobs.fetch)
        self.conversation.place(cell_id, replace(turn, messages=messages))

    def _announce(self, turns: Iterable[Turn | None]) -> None:
        """Tell of history that was not made here, once."""
        strange = [
            turn
            for turn in turns
            if turn is not None and not self.journal.knows(turn.id, turn.digest)
        ]
        if not strange:
            return
        count = f"{len(strange)} turn{'' if len(strange) == 1 else 's'}"
        self._notices.append(
            f"History from this file: {count}. They were not made here: read them before you "
            "go on, if you do not know where the notebook comes from."
        )
        self.journal.imported(self._id, strange)


def new_id(cell_id: str) -> str:
    """Return the id of a session that begins in `cell_id`: the same each time, for a clean diff."""
    return blake2b(cell_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _is_newer(stored: StoredTurn, turn: Turn | None) -> bool:
    return turn is None or (stored.run, stored.revision) > (turn.run, turn.revision)


def _weight_of(messages: Iterable[Message]) -> int:
    """Return roughly how many characters `messages` take in a record."""
    return sum(_size(part) for message in messages for part in message.parts)


def _size(part: Part) -> int:
    match part:
        case Text(text=text) | Reasoning(text=text):
            return len(text)
        case ToolCall(input=arguments):
            return len(arguments)
        case ToolResult(content=content, media=media):
            return len(content) + sum(len(each.data) for each in media)
        case Media(data=data):
            return len(data)
        case ShellCommand(output=output):
            return len(output)
        case _:
            return 0
