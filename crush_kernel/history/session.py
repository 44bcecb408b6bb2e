"""One notebook's session: what it was told, what it keeps, what a page has to be told.

Brings three sources together: the file (or the page that shows it), the journal, and what
happened in this kernel. For each cell the newest turn wins, except that a turn which the
front end has saved gives way to the file: the file was changed on purpose since then.

Engine thread, except where a method says otherwise. Nothing here raises for disk trouble;
what the user should know waits in `take_notices`.

Source: design §§4, 5.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeAlias

from crush_kernel.errors import CommandError
from crush_kernel.history.claim import claim, new_id
from crush_kernel.history.conversation import CellRun, Conversation
from crush_kernel.history.journal.journal import Journal, StoredTurn
from crush_kernel.history.journal.storedturns import (
    is_newer,
    read_stored,
    run_again,
    sorted_out,
    taken_back,
)
from crush_kernel.history.notebook import RECORD_MIME_TYPE, NotebookCell, NotebookContents
from crush_kernel.history.notebookfile import had_ended, named_cells, written_at
from crush_kernel.history.outputs import Output, without_type
from crush_kernel.history.record import (
    MAX_COUNT,
    MAX_TITLE,
    BadRecord,
    SessionHeader,
    read_header,
    write_header,
    write_turn,
)
from crush_kernel.history.recording import Recording
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.saved import SavedTurns
from crush_kernel.history.spending import Spending, beyond, spent_in, spent_on
from crush_kernel.history.summary import sealed
from crush_kernel.history.todos import TodoReader, write_todos
from crush_kernel.history.turn import Turn, source_digest
from crush_kernel.messages import JsonObject, Message, SummaryMark, Usage
from crush_kernel.wording import counted

Outputs: TypeAlias = list[Output]
"""All outputs of a cell."""


@dataclass(frozen=True, slots=True)
class CellUpdate:
    """What a page has to be told about one cell."""

    cell_id: str
    record: JsonObject | None
    """The cell's turn; `None` if it has none any more."""
    outputs: Outputs | None = None
    """What the page missed; `None` if nothing."""
    execution_count: int | None = None
    source: str | None = None
    """What the cell is to say; `None` leaves its text alone."""


class Session:
    """Owns the conversation of one notebook and keeps it."""

    def __init__(
        self, *, journal: Journal, redactor: Redactor, notebook: Path | None = None
    ) -> None:
        """Begin with nothing; `load` or `load_file` brings what was.

        Args:
            journal: of the project.
            redactor: takes the secrets out of all that is kept.
            notebook: the file that the kernel was started for, if anybody told.
        """
        self.redactor = redactor
        self.journal = journal
        self._notices: list[str] = [*redactor.problems]
        self._recording = Recording(journal, redactor, self._tell)
        self.conversation = Conversation(self._recording)
        self._notebook = notebook
        self._header = SessionHeader()
        self._todos = TodoReader()
        self._spent: dict[str, Usage] = {}
        """What was counted of what earlier kernels have spent."""
        self._saved = SavedTurns()
        self._problems: set[str] = set()
        """Those of the notebook that the user was told, or will be."""
        self._is_order_told = False
        self.is_loaded = False

    @property
    def id(self) -> str:
        """The session's id; empty until the first turn or the first load."""
        return self._recording.session

    @property
    def notebook(self) -> Path | None:
        """The notebook's file, as far as anybody told."""
        return self._notebook

    def take_notices(self) -> tuple[str, ...]:
        """Return the sentences that the user has not been told yet; they count as told."""
        taken, self._notices = self._notices, []
        return (*taken, *filter(None, (self.journal.take_notice(),)))

    def note(self, notice: str) -> None:
        """Have the user told `notice`, a sentence, with the next turn."""
        self._tell(self.redactor.redact(notice))

    def _tell(self, notice: str) -> None:
        self._notices.append(notice)

    # What pages and files tell

    def load(self, contents: NotebookContents, notebook: Path | None) -> list[CellUpdate]:
        """Take in what a page holds and in which order, and return what it does not know yet.

        A later load, of a page that was opened again, brings nothing that happened since.
        """
        if notebook is not None and notebook != self._notebook:
            self.moved(notebook)
        self._open(contents)
        self._take_in(contents.cells)
        saved, unsaved = self._kept()
        updates: list[CellUpdate] = []
        for cell in contents.cells:
            if cell.id:
                updates += self._settle(cell, unsaved.get(cell.id), lambda turn: turn.id in saved)
                self._hold(cell)
        self._arrange(contents.cells)
        return updates

    def load_file(self, contents: NotebookContents) -> None:
        """Take in what the notebook's file holds, where no page tells it.

        What the journal has beyond that counts unless the file was written since: then the
        file is without it on purpose.
        """
        self._open(contents, is_file=True)
        self._take_in(contents.cells, is_file=True)
        written = None if self._notebook is None else written_at(self._notebook)
        saved, unsaved = self._kept()
        if written is not None:
            unsaved = {
                cell: stored
                for cell, stored in unsaved.items()
                if not had_ended(self.turn_of(stored), written)
            }
        for cell in named_cells(contents.cells):
            self._settle(cell, unsaved.pop(cell.id, None), lambda turn: turn.id in saved)
        for cell_id, stored in unsaved.items():
            self._settle(NotebookCell(cell_id), stored, lambda turn: turn.id in saved)
        if contents.header is not None:
            # A page has written it, and will tell the order soon: till then it is this one.
            self._arrange(contents.cells)
            self._is_order_told = False

    def rearrange(
        self, cells: Sequence[NotebookCell], *, told: Collection[str]
    ) -> list[CellUpdate]:
        """Take the order of the document, and return what the page does not know yet.

        Args:
            cells: from top to bottom.
            told: the cells of which the page has told what they hold, since they are new in
                it, came back or hold something else. A turn that the page had and that is not
                there any more was given up on purpose.
        """
        news = [cell for cell in cells if cell.id and cell.id in told]
        self._take_in(news)
        turns = self.conversation.turns
        unsaved = {} if all(cell.id in turns for cell in news) else self._kept()[1]
        updates: list[CellUpdate] = []
        for cell in news:
            stored = None if cell.id in turns else unsaved.get(cell.id)
            updates += self._settle(cell, stored, partial(self._saved.is_written, cell.id))
            self._hold(cell)
        self._arrange(cells)
        return updates

    def _arrange(self, cells: Iterable[NotebookCell]) -> None:
        self.conversation.arrange([cell.id for cell in cells if cell.id])
        self._is_order_told = True

    def moved(self, notebook: Path) -> None:
        """Note that the notebook has another name now."""
        self._notebook = notebook
        if self.id:
            self.journal.adopt(self.id, str(notebook))

    def acknowledged(self, cell_id: str, turn_id: str, revision: int) -> None:
        """Note that a page has written a turn into its cell."""
        self._saved.note_written(cell_id, turn_id, revision)

    def _hold(self, cell: NotebookCell) -> None:
        """Note what a page has in a cell, as it said itself."""
        if cell.turn is not None:
            self.acknowledged(cell.id, cell.turn.id, cell.turn.revision)

    def saving(self) -> None:
        """Note that a page has begun to save what it has acknowledged so far."""
        self._saved.begin()

    def saved(self) -> None:
        """Note that the file holds what was acknowledged when saving began."""
        news = self._saved.finish()
        if self.id and news:
            self.journal.mark_saved(self.id, news)

    # Turns

    def begin(self, cell_id: str, text: str) -> CellRun:
        """Begin the turn of a cell that runs now, and return where it stands."""
        name = cell_id or self.conversation.name_cell()
        if not self.id:
            self._claim(new_id(name))
        place = CellRun(name, self._next_run(name), source_digest(text))
        self.conversation.begin(place)
        if not self._is_order_told:
            self.conversation.arrange(None)
        return place

    def give_up(self, cell_id: str) -> CellUpdate | None:
        """Have no turn stand in a cell that now shows something else; `None` if none did.

        The turn stays in the journal.
        """
        turn = self.conversation.turn_in(cell_id)
        if turn is None:
            return None
        # What no file holds would come back with the next page.
        self.journal.mark_saved(self.id, [turn.id])
        self._empty(cell_id)
        return CellUpdate(cell_id, None)

    def _empty(self, cell_id: str) -> None:
        self.conversation.remove(cell_id)
        self._recording.forget(cell_id)

    def finish(self, turn: Turn, outputs: Outputs, execution_count: int | None) -> None:
        """Keep a turn that has ended with what its cell shows. Any thread."""
        self._keep_header()
        self.journal.ended(self.id, turn, outputs, execution_count)

    def header(self) -> JsonObject:
        """Return what the notebook's own metadata is to say. Any thread."""
        talk = self.conversation
        messages = talk.everything
        last = next((m for m in reversed(messages) if m.role == "assistant"), None)
        shown = None if talk.order is None else set(talk.order)
        return write_header(
            replace(
                self._header,
                id=self.id,
                model=f"{last.provider}/{last.model}" if last else self._header.model,
                turns=sum(shown is None or cell in shown for cell in talk.turns),
                usage=talk.spent_by_model,
                todos=self._todos_after(messages),
                summaries=tuple(
                    {"turn": turn.id} for turn in talk.turns.values() if turn.summary is not None
                ),
            )
        )

    def _todos_after(self, messages: tuple[Message, ...]) -> tuple[JsonObject, ...]:
        """Return the list of what is to do; the one that was read while none was set since."""
        todos = self._todos.read(messages).todos
        if todos is None:
            return self._header.todos
        cleaned = map(self.redactor.redact_json, write_todos(todos))
        return tuple(each for each in cleaned if isinstance(each, dict))

    @property
    def title(self) -> str:
        """What the notebook is about, in a few words; empty as long as nobody has said."""
        return self._header.title

    def entitle(self, title: str) -> None:
        """Call the notebook `title`, unless it has a title already. Engine thread."""
        if not self._header.title:
            clean = self.redactor.redact(title)
            self._header = replace(self._header, title=clean[:MAX_TITLE])
            if self.id:
                self._keep_header()

    def versions(self, cell_id: str) -> list[StoredTurn]:
        """Return all turns that ran in `cell_id`, oldest first."""
        return sorted(self.journal.versions(self.id, cell_id), key=lambda each: each.run)

    def restore(self, cell_id: str, run: int) -> CellUpdate:
        """Have the turn of an earlier run stand in `cell_id` again, as its latest one.

        Raises:
            CommandError: the journal has no such turn.
        """
        versions = self.versions(cell_id)
        wanted = next((each for each in versions if each.run == run), None)
        record = None if wanted is None else self.journal.record(self.id, wanted.id)
        number = self._next_run(cell_id)
        again = read_stored(run_again(record or {}, cell_id, number), cell_id)
        if wanted is None or again is None:
            runs = ", ".join(str(each.run) for each in versions) or "none"
            raise CommandError(
                f"The journal has no run {run} of that cell.", hint=f"It has: {runs}."
            )
        outputs = self._shown(wanted.id)
        self._place(cell_id, again)
        self.journal.ended(self.id, again, outputs, None)
        return CellUpdate(cell_id, again.record, outputs)

    def take_back_summary(self, cell_id: str) -> CellUpdate:
        """Have the nearest summary above `cell_id` stand for nothing any more.

        What it stood for is read again. A turn that was nothing but the summary goes.

        Raises:
            CommandError: no summary stands above the cell.
        """
        place = self.conversation.summary_above(cell_id) or ""
        turn = self.conversation.turn_in(place)
        kept = None if turn is None else read_stored(write_turn(turn), place)
        if turn is None or kept is None or kept.summary is None:
            raise CommandError(
                "No summary stands above this cell.", hint="`/compact` makes one in a cell."
            )
        if len(turn.messages) == 1:
            return self.give_up(place) or CellUpdate(place, None)
        marks = (p for p in kept.messages[kept.summary].parts if isinstance(p, SummaryMark))
        again = read_stored(taken_back(write_turn(turn), next(marks)), place) or kept
        outputs = self._shown(turn.id)
        self._place(place, again)
        self.journal.ended(self.id, again, outputs, None)
        return CellUpdate(place, again.record, outputs)

    def outputs(self, cell_id: str) -> Outputs:
        """Return what the turn in `cell_id` has shown, as far as the journal knows."""
        turn = self.conversation.turn_in(cell_id)
        return [] if turn is None else self._shown(turn.id)

    def _shown(self, turn_id: str) -> Outputs:
        """Return what a turn has shown, to be shown elsewhere: without the turn itself."""
        outputs, _ = self.journal.outputs(self.id, turn_id) or ([], None)
        return without_type(outputs, RECORD_MIME_TYPE)

    def turn_of(self, stored: StoredTurn) -> Turn | None:
        """Return a turn that the journal keeps, `None` if it cannot be read."""
        return read_stored(self.journal.record(self.id, stored.id), stored.cell_id)

    def _next_run(self, cell_id: str) -> int:
        """Return the number of the next run of `cell_id`."""
        known = self.conversation.turn_in(cell_id)
        runs = {stored.run for stored in self.journal.versions(self.id, cell_id)}
        runs |= {known.run} if known else set()
        number = max(runs, default=0) + 1
        # A file may say any number; none that can be read comes after the last one.
        return number if number <= MAX_COUNT else next(n for n in count(1) if n not in runs)

    def _keep_header(self) -> None:
        self.journal.adopt(self.id, "", header=self.header())

    # Loading

    def _open(self, contents: NotebookContents, *, is_file: bool = False) -> None:
        """Find the session that the notebook is, unless there is one already."""
        self.is_loaded = True
        problems = [problem for problem in contents.problems if problem not in self._problems]
        self._problems.update(problems)
        self._notices += problems
        if self.id:
            return
        self._header = contents.header or self._header
        self._count(spent_on(contents))
        found = self._found(contents, is_file=is_file)
        if wanted := found or self._header.id:
            self._claim(wanted)

    def _found(self, contents: NotebookContents, *, is_file: bool) -> str | None:
        """Return the session that the journal has of this notebook."""
        if self._notebook is None:
            return None
        cells = {cell.id for cell in contents.cells}
        cells |= {cell.turn.cell_id for cell in contents.cells if cell.turn is not None}
        # A file that holds nothing may never have been saved.
        is_any = is_file and not contents.cells
        return self.journal.find(str(self._notebook), None if is_any else cells)

    def _claim(self, wanted: str) -> None:
        """Own a session, count what it has spent, and end what a dead kernel left open in it."""
        claimed = claim(self.journal, wanted, self._notebook)
        self._recording.session = claimed.session
        if claimed.is_apart:
            self._tell(
                "This notebook is open in another kernel too. What you run here is kept apart; "
                "close one of them, or the last one to save wins the file."
            )
        stored = self.journal.session(self.id)
        with suppress(BadRecord):
            kept = read_header(dict(stored.header) if stored and stored.header else None)
            self._header = kept if self._header == SessionHeader() else self._header
            self._count(kept.usage)
        recovered = self.journal.recover(self.id)
        for turn, outputs in recovered:
            self._recovered(turn, outputs)
        if recovered:
            self._keep_header()

    def _recovered(self, turn: Turn, outputs: Outputs) -> None:
        """Count what an interrupted turn has spent, and take out what is too large in it."""
        self.conversation.spend(dict(spent_in((turn,))))
        kept = self._recording.spilled(turn.cell_id, turn.messages)
        if kept != turn.messages:
            kept = sealed(kept, turn.fingerprint)
            smaller = replace(turn, messages=kept, revision=turn.revision + 1, record=None)
            if (again := read_stored(write_turn(smaller), turn.cell_id)) is not None:
                self.journal.ended(self.id, again, outputs, None)

    def _count(self, spent: Spending) -> None:
        """Count what earlier kernels have spent, as far as it is more than what is counted."""
        for label, more in beyond(spent, self._spent).items():
            self._spent[label] = self._spent.get(label, Usage()) + more
            self.conversation.spend({label: more})

    def _take_in(self, cells: Iterable[NotebookCell], *, is_file: bool = False) -> None:
        """Have the journal know the turns of `cells`; tell of those that were not made here."""
        turns = [cell.turn for cell in cells if cell.turn is not None]
        if not turns:
            return
        if strange := sum(not self.journal.knows(turn.id, turn.digest) for turn in turns):
            self._tell(
                f"History from this file: {counted(strange, 'turn')}. They were "
                "not made here: read them before you go on, if you do not know where the "
                "notebook comes from."
            )
        if not self.id:
            self._claim(new_id(turns[0].cell_id))
        kept = {(stored.id, stored.digest) for stored in self.journal.turns(self.id)}
        # What a page shows of what is kept already need not be in the file.
        new = turns if is_file else [turn for turn in turns if (turn.id, turn.digest) not in kept]
        self.journal.imported(self.id, new)

    def _kept(self) -> tuple[set[str], dict[str, StoredTurn]]:
        """Return the turns that a file has held, and by cells the newest ones that none has."""
        return sorted_out(self.journal.turns(self.id) if self.id else (), saved=self._saved.ids)

    def _settle(
        self, cell: NotebookCell, stored: StoredTurn | None, gives_way: Callable[[Turn], bool]
    ) -> list[CellUpdate]:
        """Have the turn that counts stand in `cell`, and return it if the page has another one.

        Args:
            cell: as the page or the file tells it.
            stored: what the journal has of it that no file was told of.
            gives_way: whether a turn that stands in the cell gives way to what is told.
        """
        known, told = self.conversation.turn_in(cell.id), cell.turn
        if known is not None and known.end == "running":
            return []
        if known is not None and told is not None and (known.id, known.age) == (told.id, told.age):
            # This one has what the model's own tools have read as they read it.
            told = known
        elif known is not None and gives_way(known):
            self.journal.mark_saved(self.id, [known.id])
            known = None
        if stored is not None and is_newer(stored, told) and is_newer(stored, known):
            known = self.turn_of(stored) or known
        turns = [turn for turn in (told, known) if turn is not None]
        chosen = max(turns, key=lambda turn: turn.age, default=None)
        if chosen is None:
            self._empty(cell.id)
        elif chosen is not self.conversation.turn_in(cell.id):
            self._place(cell.id, chosen)
        if chosen is None or chosen is told:
            return []
        outputs, execution_count = self.journal.outputs(self.id, chosen.id) or (None, None)
        return [CellUpdate(cell.id, chosen.record, outputs, execution_count)]

    def _place(self, cell_id: str, turn: Turn) -> None:
        """Have `turn`, as it was read, stand in a cell."""
        self.conversation.place(cell_id, self._recording.placed(cell_id, turn))
