"""The one mutable owner of a conversation: the turns of the cells, and the running one.

A turn stands in a cell; running the cell again replaces its turn. A front end that tells
the order of the cells makes it the order of the conversation; otherwise turns stand in the
order in which they ran, so that a re-run turn moves to the end (design §4). What the running
turn sees was fixed when it began.

Exactly one task writes a running turn. Each change is told to the recorder before anybody
can see it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Protocol

from crush_kernel.history.context import (
    cells_above,
    fingerprint_of,
    messages_of,
    shares_of,
    stale_cells,
    standing_summary,
)
from crush_kernel.history.estimate import tokens_of
from crush_kernel.history.subagentmessages import Nested, shortened
from crush_kernel.history.summary import (
    Kept,
    covers_of,
    is_summary,
    requests_of,
    sealed,
    since_summary,
    split_unseen,
    standing_in,
    summary_message,
)
from crush_kernel.history.turn import Turn, TurnState, digest_of
from crush_kernel.messages import JsonObject, Message, ToolResult, Usage, calls_of


@dataclass(frozen=True, slots=True)
class CellRun:
    """One run of a cell: where its turn will stand."""

    cell_id: str = ""
    """The front end's id of the cell; one without a name gets one."""
    number: int = 0
    """How often the cell has run, this time included; 0 counts the turns that are known."""
    source: str = ""
    """The digest of the cell's text."""

    @property
    def turn_id(self) -> str:
        """The id of the turn that the run makes."""
        return Turn(self.cell_id, self.number).id


class Recorder(Protocol):
    """Keeps what is said, as it is said."""

    def began(self, turn: Turn) -> None:
        """Keep that `turn` has begun; its messages follow one by one."""

    def said(self, turn: Turn, message: Message) -> None:
        """Keep the next message of `turn`."""

    def unsaid(self, turn: Turn) -> None:
        """Forget the last message of `turn`."""

    def answered(self, turn: Turn, result: ToolResult) -> None:
        """Keep a result whose message is not complete yet."""

    def nested(self, turn: Turn, nested: Nested) -> Nested:
        """Keep what a sub-agent of `turn` says, and return it as it was kept: bounded, clean."""
        ...

    def decided(self, turn: Turn, facts: JsonObject) -> None:
        """Keep by what right a call was made, or why it was refused."""

    def file_changed(
        self, turn: Turn, path: Path, before: bytes | None, after: bytes | None
    ) -> None:
        """Keep a file as it was and as it will be. Any thread."""

    def ended(self, turn: Turn) -> Turn:
        """Return `turn` with its record, its digest and where its summary stands."""
        ...


class NoRecorder:
    """Keeps nothing: for conversations that end with their owner."""

    def began(self, turn: Turn) -> None:
        """Do nothing."""

    def said(self, turn: Turn, message: Message) -> None:
        """Do nothing."""

    def unsaid(self, turn: Turn) -> None:
        """Do nothing."""

    def answered(self, turn: Turn, result: ToolResult) -> None:
        """Do nothing."""

    def nested(self, turn: Turn, nested: Nested) -> Nested:  # noqa: ARG002 - a `Recorder`
        """Return `nested` bounded."""
        return replace(nested, message=shortened(nested.message))

    def decided(self, turn: Turn, facts: JsonObject) -> None:
        """Do nothing."""

    def file_changed(
        self, turn: Turn, path: Path, before: bytes | None, after: bytes | None
    ) -> None:
        """Do nothing."""

    def ended(self, turn: Turn) -> Turn:
        """Return `turn` with its digest and where its summary stands."""
        kept = sealed(turn.messages, turn.fingerprint)
        summary = standing_in(kept, turn.fingerprint)
        return replace(turn, messages=kept, digest=digest_of(kept), summary=summary)


class Conversation:
    """All turns by the cells in which they stand, and the one that runs."""

    def __init__(
        self,
        recorder: Recorder | None = None,
        *,
        tell_spent: Callable[[str, Usage], None] = lambda _, __: None,
    ) -> None:
        """Begin without a turn.

        Args:
            recorder: keeps what is said.
            tell_spent: is told of every usage that is counted, with its `provider/model`.
        """
        self._recorder: Recorder = recorder or NoRecorder()
        self._tell_spent = tell_spent
        self._turns: dict[str, Turn] = {}
        self._order: tuple[str, ...] | None = None
        self._running: Turn | None = None
        self._context: tuple[Message, ...] = ()
        self._above: tuple[Turn, ...] = ()
        self._spent: dict[str, Usage] = {}
        self._used: dict[str, Usage] = {}
        self._nameless = 0

    @property
    def turns(self) -> dict[str, Turn]:
        """The turns by the cell in which they stand, in the order in which they ran."""
        return dict(self._turns)

    def turn_in(self, cell_id: str) -> Turn | None:
        """Return the turn that stands in a cell; takes the same time however many there are."""
        return self._turns.get(cell_id)

    @property
    def order(self) -> tuple[str, ...] | None:
        """All cells from top to bottom, `None` if nobody tells."""
        return self._order

    @property
    def context(self) -> tuple[Message, ...]:
        """What the turn that began last sees above it; the same object for the whole turn."""
        return self._context

    @property
    def running(self) -> tuple[Message, ...]:
        """What was said in the turn that began last."""
        return self._running.messages if self._running else ()

    @property
    def is_running(self) -> bool:
        """Whether the turn that began last has not ended."""
        return self._running is not None and self._running.end == "running"

    @property
    def messages(self) -> tuple[Message, ...]:
        """Everything that the turn that began last sees, itself included."""
        return self._context + self.running

    @property
    def sent(self) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
        """What the next request is to say of `context` and `running`: from a summary on."""
        return since_summary(self._context, self.running)

    @property
    def everything(self) -> tuple[Message, ...]:
        """What was said above and in the turn that began last, whatever summaries stand for."""
        return (*chain.from_iterable(turn.messages for turn in self._above), *self.running)

    @property
    def request(self) -> tuple[Message, ...]:
        """What the user is waiting for: prompts, oldest first, as a summary is to repeat them."""
        return requests_of(self._with_running(self._above))

    @property
    def spent_by_model(self) -> dict[str, Usage]:
        """What all requests used, by `provider/model`; those of replaced turns count too."""
        return dict(self._spent)

    @property
    def used_by_model(self) -> dict[str, Usage]:
        """What the requests of the turn that began last have used, by `provider/model`.

        Those of its sub-agents and forgotten replies included.
        """
        return dict(self._used)

    @property
    def context_tokens(self) -> int:
        """What the last request and its reply filled of the window; zero if unknown."""
        return context_tokens(self.messages)

    def stale(self) -> tuple[str, ...]:
        """Return the cells whose context has changed since they ran."""
        # A copy: another thread may ask while a turn begins.
        return stale_cells(self.turns, self._order)

    def above(self, cell_id: str) -> tuple[str, ...]:
        """Return the cells that a run of `cell_id` would see, in the order of reading."""
        return cells_above(cell_id, self.turns, self._order)

    def summary_above(self, cell_id: str) -> str | None:
        """Return the cell whose summary a run of `cell_id` would begin with; `None` without."""
        cells = self.above(cell_id)
        index = standing_summary([self._turns[cell] for cell in cells])
        return None if index is None else cells[index]

    def shares_above(self, cell_id: str) -> list[tuple[str, tuple[Message, ...]]]:
        """Return what a run of `cell_id` would see, by the cells that it is from."""
        cells = {id(self._turns[cell]): cell for cell in self.above(cell_id)}
        shares = shares_of([self._turns[cell] for cell in cells.values()])
        return [(cells[id(turn)], messages) for turn, messages in shares]

    def arrange(self, order: Sequence[str] | None) -> None:
        """Take `order` as the order of the document; the running turn sees what it saw."""
        self._order = None if order is None else tuple(order)

    def place(self, cell_id: str, turn: Turn) -> None:
        """Have `turn`, which ran before, stand in `cell_id`."""
        self._turns[cell_id] = turn

    def remove(self, cell_id: str) -> None:
        """Have no turn stand in `cell_id`."""
        self._turns.pop(cell_id, None)

    def spend(self, spent: dict[str, Usage]) -> None:
        """Add to what was spent what earlier kernels spent, by `provider/model`."""
        for label, usage in spent.items():
            self._spent[label] = self._spent.get(label, Usage()) + usage

    def use(self, label: str, usage: Usage) -> None:
        """Count what a request of the running turn has used that is in none of its messages.

        That is one of a sub-agent, or one that came to nothing.
        """
        self._used[label] = self._used.get(label, Usage()) + usage
        self.spend({label: usage})
        self._tell_spent(label, usage)

    def name_cell(self) -> str:
        """Return a name for a cell that its front end does not name; no turn has it yet."""
        taken = self._turns.keys() | {turn.cell_id for turn in self._turns.values()}
        self._nameless += 1
        while f"#{self._nameless}" in taken:
            self._nameless += 1
        return f"#{self._nameless}"

    def begin(self, place: CellRun, *messages: Message) -> Turn:
        """Begin a turn in `place` with `messages`; a former turn of the same cell goes."""
        cell_id = place.cell_id or self.name_cell()
        former = self._turns.pop(cell_id, None)
        above = [self._turns[cell] for cell in cells_above(cell_id, self._turns, self._order)]
        turn = Turn(
            cell_id=cell_id,
            run=place.number or (former.run + 1 if former else 1),
            fingerprint=fingerprint_of(above),
            source=place.source,
        )
        self._context = tuple(messages_of(above))
        self._above = tuple(above)
        self._used = {}
        self._recorder.began(turn)
        self._set(turn)
        for message in messages:
            self.append(message)
        return self._turn

    def append(self, message: Message) -> None:
        """Add `message` to the running turn and count what it used."""
        self._add(message)
        if message.usage:
            self.use(f"{message.provider}/{message.model}", message.usage)

    def summarize(
        self, text: str, *, todos: tuple[str, ...], max_request_chars: int, reply: Message
    ) -> Message:
        """Have a summary stand for what was said so far, and return its message.

        What the user has said since the last reply was not answered yet, so that it stays as
        it is, behind the summary.

        Args:
            text: the words of the summary.
            todos: what is still to do, one line each.
            max_request_chars: of the user's request, that are repeated word for word.
            reply: who wrote it, and what that used.
        """
        answered, unseen = split_unseen(self.running)
        is_open = bool(answered) and not _has_ended(answered)
        # The request of a turn that only begins stands behind the summary anyway.
        turns = self._with_running(self._above) if answered else self._above
        kept = Kept(
            requests=requests_of(turns),
            is_open=is_open,
            todos=todos,
            max_request_chars=max_request_chars,
        )
        message = replace(
            summary_message(text, kept, covers=covers_of(self._turn.fingerprint, answered)),
            provider=reply.provider,
            model=reply.model,
            usage=reply.usage,
        )
        for _ in unseen:
            self.drop_last()
        self.append(message)
        for said in unseen:
            self._add(said)
        return message

    def _add(self, message: Message) -> None:
        self._recorder.said(self._turn, message)
        turn = self._turn
        self._set(replace(turn, messages=(*turn.messages, message), revision=turn.revision + 1))

    def answer(self, result: ToolResult) -> None:
        """Keep `result`, whose message will be appended when all calls have theirs."""
        self._recorder.answered(self._turn, result)

    def nest(self, nested: Nested) -> Nested:
        """Keep what a sub-agent of the running turn says, and return it as it was kept."""
        return self._recorder.nested(self._turn, nested)

    def decide(self, facts: JsonObject) -> None:
        """Keep by what right something was done in the running turn, or why it was refused."""
        self._recorder.decided(self._turn, facts)

    def keep_version(self, path: Path, before: bytes | None, after: bytes | None) -> None:
        """Keep a file as it was and as it will be. Any thread."""
        self._recorder.file_changed(self._turn, path, before, after)

    def drop_last(self) -> None:
        """Forget the last message of the running turn; what it used stays counted."""
        self._recorder.unsaid(self._turn)
        turn = self._turn
        self._set(replace(turn, messages=turn.messages[:-1], revision=turn.revision + 1))

    def end(self, state: TurnState, *, is_start: bool = False) -> Turn:
        """End the running turn and return it as it is kept."""
        turn = self._turn
        ended = replace(turn, end=state, is_start=is_start, revision=turn.revision + 1)
        self._set(self._recorder.ended(ended))
        return self._turn

    def _with_running(self, turns: Iterable[Turn]) -> tuple[Turn, ...]:
        return (*turns, self._turn)

    @property
    def _turn(self) -> Turn:
        if self._running is None:
            raise RuntimeError("no turn has begun")
        return self._running

    def _set(self, turn: Turn) -> None:
        self._running = turn
        self._turns[turn.cell_id] = turn


def context_tokens(messages: Sequence[Message]) -> int:
    """Return what the last request and its reply filled of the window; zero if unknown.

    Right after a summary that is what the summary comes to.
    """
    last = next((m for m in reversed(messages) if m.usage), None)
    if last is None or last.usage is None:
        return 0
    return tokens_of(last) if is_summary(last) else last.usage.context_tokens


def _has_ended(messages: Sequence[Message]) -> bool:
    """Return whether the last of `messages` is a reply after which nothing is to be done."""
    return messages[-1].role == "assistant" and not calls_of(messages[-1])


def count_calls(messages: Sequence[Message]) -> int:
    """Return how many tool calls the replies among `messages` made."""
    return sum(len(calls_of(message)) for message in messages if message.role == "assistant")
