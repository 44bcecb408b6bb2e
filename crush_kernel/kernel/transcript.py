"""A turn as far as it has come: what is settled, and what may still change.

Pure, with one mutable owner: events go in, `Piece`s that will not change any more come out
in the order of the turn, and what remains is live: the tail of the stream, calls that are
running, and a status line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from crush_kernel.agent.events import (
    Event,
    HookTold,
    Notice,
    PermissionSettled,
    ReasoningAdded,
    ReplyDropped,
    Retrying,
    Steered,
    StepFinished,
    StepStarted,
    SummaryFinished,
    SummaryStarted,
    TextAdded,
    TodosChanged,
    ToolCallWritten,
    ToolFinished,
    ToolProgressed,
    ToolRewritten,
    ToolStarted,
    TurnFinished,
)
from crush_kernel.history.todos import Todo, is_open, todos_of
from crush_kernel.kernel import render, subagentcard
from crush_kernel.kernel.markdown import open_fence
from crush_kernel.kernel.render import CallFacts, Rendered, Row
from crush_kernel.messages import Media, ToolResult

TAIL_CHARS = 3000
"""How much of the stream stays live: JupyterLab lays out the whole slot at each update."""

BLOCK_CHARS = 500
"""How much of a stream is worth settling early, so that it is made safe only once."""

SHORTER_AFTER_CHARS = 200_000
"""From this much shown of results on, only their lines are shown, so that a turn of a
thousand calls still opens in a browser."""

_LIST_ITEM = re.compile(r"^[ \t>]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that does not change any more."""

    shown: Rendered
    attempt: int = 0
    """The reply it is part of, 0 for what no failed reply takes away."""
    run: int = 0
    """Pieces of the same run, if it is not 0, are Markdown to be read as one."""
    source: str = ""
    """That Markdown."""
    opener: str = ""
    """The line that opened the code block in which `source` starts."""
    is_whole: bool = True
    """Whether a paragraph or a code block ends with it."""
    images: tuple[Media, ...] = ()
    is_call: bool = False
    """Whether it is a tool call with its result."""
    listed: Rendered | None = None
    """The same with the list of what is to do, for the call that has set that last."""
    is_listed: bool = False
    """Whether it is to be shown so."""

    @property
    def size(self) -> int:
        """How long it is, however a reply was cut."""
        return len(self.source) if self.run else len(self.shown.markdown)


@dataclass(slots=True)
class Call:
    """A tool call in the making."""

    call_id: str
    name: str
    summary: str
    started: float
    """By the watcher's clock."""
    settled: float = 0.0
    """When it was last permitted or denied, by the same clock: what is waiting does not run."""
    tail: str = ""
    permission: str = ""
    is_denied: bool = False
    waits: set[str] = field(default_factory=set[str])
    """The calls that a person is asked about: itself, or those of a sub-agent inside it."""
    is_interrupted: bool = False
    result: ToolResult | None = None
    duration_s: float = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a person."""
        return bool(self.waits)

    @property
    def is_asked_about(self) -> bool:
        """Whether a person is asked about the call itself, so that the question shows it."""
        return self.call_id in self.waits

    @property
    def is_running(self) -> bool:
        """Whether it has neither ended nor been given up."""
        return self.result is None and not self.is_interrupted

    def facts(self) -> CallFacts:
        """Return what is to be shown of it."""
        return CallFacts(
            name=self.name,
            summary=self.summary,
            state=self._state(),
            result=self.result,
            permission=self.permission,
            is_denied=self.is_denied and (self.result is None or self.result.is_error),
        )

    def row(self, now: float) -> Row:
        """Return its row on the card of running calls."""
        word = render.outcome(self.facts())
        if self.is_running and not self.is_waiting:
            since = max(self.started, self.settled)
            word = f"running {render.clock_time(max(0.0, now - since))}"
        elif self.result is not None:
            word = f"{word} {render.duration(self.duration_s)}".strip()
        return Row(
            call_id=self.call_id,
            name=self.name,
            summary=self.summary,
            word=word,
            is_running=self.is_running,
            tail=render.last_lines(self.tail),
        )

    def _state(self) -> Literal["running", "waiting", "done", "interrupted"]:
        if self.is_running:
            return "waiting" if self.is_waiting else "running"
        return "interrupted" if self.result is None else "done"


@dataclass(slots=True)
class _Run:
    """Text of one reply without a break: words or thoughts."""

    number: int
    attempt: int
    is_reasoning: bool
    chunks: list[str] = field(default_factory=list[str])
    size: int = 0
    opener: str = ""
    is_closed: bool = False

    def text(self) -> str:
        if len(self.chunks) > 1:
            self.chunks = ["".join(self.chunks)]
        return self.chunks[0] if self.chunks else ""

    def cut(self, limit: int) -> Piece | None:
        """Take off what is settled: everything once closed, else what exceeds `limit`."""
        text = self.text()
        if self.is_reasoning:
            return Piece(render.reasoning(text), self.attempt) if self.is_closed else None
        if self.is_closed:
            return self._piece(text, is_whole=True)
        if self.size <= BLOCK_CHARS:
            return None
        end = _block_end(text, self.opener)
        is_whole = end > 0
        if not is_whole:
            if self.size <= limit:
                return None
            # Even in code: parts that are kept together are read as one again.
            end = text.rfind("\n") + 1 or text.rfind(" ") + 1 or len(text)
        self.chunks, self.size = [text[end:]], self.size - end
        piece = self._piece(text[:end], is_whole=is_whole)
        self.opener = open_fence(text[:end], self.opener)
        return piece

    def tail(self) -> Rendered:
        text = self.text()
        return render.reply(f"{self.opener}\n{text}" if self.opener else text)

    def _piece(self, source: str, *, is_whole: bool) -> Piece:
        text = f"{self.opener}\n{source}" if self.opener else source
        return Piece(
            shown=render.reply(text),
            attempt=self.attempt,
            run=self.number,
            source=source,
            opener=self.opener,
            is_whole=is_whole,
        )


_Item = _Run | Call | Piece
_Phase = Literal["thinking", "talking", "writing", "acting", "over"]


class Transcript:
    """Takes in what happens and gives out what is settled, in order."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._items: list[_Item] = []
        self._calls: dict[str, Call] = {}
        self._run: _Run | None = None
        self._runs = 0
        self._attempt = 1
        self._phase: _Phase = "thinking"
        self._writing = ""
        self._retrying: tuple[Retrying, float] | None = None
        self._summing_since: float | None = None
        self._todos: tuple[Todo, ...] = ()
        self._queued: list[str] = []
        self._shown_chars = 0

    def feed(self, event: Event, now: float) -> None:  # noqa: C901, PLR0912 - one arm per event
        """Take in `event`, which happened at `now` by the watcher's clock."""
        match event:
            case TextAdded(text=text):
                self.add_text(text)
            case ReasoningAdded(text=text):
                self.add_reasoning(text)
            case StepStarted():
                self._begin_reply("thinking")
            case ReplyDropped():
                self.drop()
            case Retrying():
                self._retrying = (event, now + event.delay_s)
            case ToolCallWritten(name=name):
                self._close_run()
                self._phase, self._writing, self._retrying = "writing", name, None
            case ToolStarted():
                self._start(event, now)
            case ToolRewritten() | ToolProgressed():
                self._change(event)
            case PermissionSettled():
                self._permit(event, now)
            case ToolFinished():
                self._finish(event)
            case StepFinished():
                self._begin_reply("acting")
            case Notice(text=text) | HookTold(text=text):
                self.add(render.notice(text))
            case SummaryStarted():
                self._begin_reply("thinking")
                self._summing_since = now
            case SummaryFinished():
                self._begin_reply("thinking")
                self.add(render.summary(event))
            case TodosChanged(todos=todos):
                self._todos = todos
            case Steered(text=text):
                self._steer(text)
            case TurnFinished():
                self._begin_reply("over")

    def add_text(self, text: str) -> None:
        """Take in more of the reply; costs next to nothing."""
        run = self._run
        if run is None or run.is_reasoning:
            run = self._open_run(is_reasoning=False)
        run.chunks.append(text)
        run.size += len(text)

    def add_reasoning(self, text: str) -> None:
        """Take in more of the model's thinking."""
        run = self._run
        if run is None or not run.is_reasoning:
            run = self._open_run(is_reasoning=True)
        run.chunks.append(text)
        run.size += len(text)

    def add(self, shown: Rendered, images: tuple[Media, ...] = ()) -> None:
        """Take in something that stands for itself and ends what streams before it."""
        self._close_run()
        self._items.append(Piece(shown, images=images))

    def queue(self, text: str) -> None:
        """Take in what the user says to the turn, until the turn takes it in."""
        self._queued.append(text)

    def drop(self) -> int:
        """Forget the unfinished reply and return its number."""
        dropped = self._attempt
        self._items = [
            item for item in self._items if isinstance(item, Call) or item.attempt != dropped
        ]
        self._begin_reply("thinking")
        return dropped

    def wait(self, call_id: str, *, is_waiting: bool) -> None:
        """Note whether a person is being asked about a call."""
        if call := self._call_around(call_id):
            (call.waits.add if is_waiting else call.waits.discard)(call_id)

    def end(self) -> None:
        """Settle everything: calls without a result count as interrupted."""
        self._begin_reply("over")
        for call in self.calls():
            call.is_interrupted = call.result is None
            call.waits.clear()
        self._todos = ()
        for text in self._queued:
            self.add(render.left_over(text))
        self._queued.clear()

    def settle(self, limit: int = TAIL_CHARS) -> list[Piece]:
        """Take out, oldest first, what does not change any more.

        Args:
            limit: how many characters of a running stream may stay behind.
        """
        pieces: list[Piece] = []
        while self._items:
            piece = self._settled(self._items[0], limit)
            if piece is None:
                break
            pieces.append(piece)
            if not isinstance(self._items[0], _Run) or self._items[0].is_closed:
                self._items.pop(0)
        return [piece for piece in pieces if piece.shown.markdown or piece.images]

    def calls(self) -> list[Call]:
        """Return the calls that are not taken out yet, in the order of their start."""
        return [item for item in self._items if isinstance(item, Call)]

    def live(self, now: float) -> list[Rendered]:
        """Return what is to be shown of all that may still change."""
        shown = [*self._live_items(), *self.standing()]
        status = self.status(now)
        return [*shown, render.status(status)] if status else shown

    def standing(self) -> list[Rendered]:
        """Return what stands below all that happens: what is to do, and what waits to be said."""
        todos = self.todos
        return [*([render.todos(todos)] if todos else ()), *map(render.queued, self._queued)]

    @property
    def todos(self) -> tuple[Todo, ...]:
        """What is to do, while any of it is open."""
        return self._todos if is_open(self._todos) else ()

    @property
    def queued(self) -> tuple[str, ...]:
        """What the user has said and the turn has not taken in yet, oldest first."""
        return tuple(self._queued)

    def status(self, now: float) -> str:
        """Return what is going on, as plain text; empty if it can be seen."""
        if self._retrying is not None:
            event, until = self._retrying
            return render.countdown(event, until - now)
        if self._summing_since is not None:
            spent = render.clock_time(max(0.0, now - self._summing_since))
            return f"Summarizing the conversation… {spent}"
        if self._phase == "writing":
            return f"writing a call of {render.short(self._writing)} …"
        is_thinking = self._run is None or self._run.is_reasoning
        if self._phase == "thinking" and is_thinking:
            return f"{self._model} is thinking …" if self._model else "thinking …"
        return ""

    @property
    def is_timed(self) -> bool:
        """Whether the status changes with time."""
        return self._retrying is not None or self._summing_since is not None

    def _live_items(self) -> Iterator[Rendered]:
        for item in self._items:
            match item:
                case _Run(is_reasoning=False):
                    yield item.tail()
                case Call():
                    yield render.call(item.facts())
                case Piece():
                    yield item.shown
                case _:
                    pass

    def _settled(self, item: _Item, limit: int) -> Piece | None:
        match item:
            case _Run():
                return item.cut(limit)
            case Call():
                return None if item.is_running else self._call_piece(item)
            case Piece():
                return item

    def _call_piece(self, call: Call) -> Piece:
        images = call.result.media if call.result is not None else ()
        is_short = self._shown_chars > SHORTER_AFTER_CHARS
        todos = todos_of(call.result) if call.result is not None else None
        if todos is not None:
            facts = call.facts()
            return Piece(
                render.call(facts, is_short=True),
                is_call=True,
                listed=render.listing_call(facts, todos),
                # An open list stands below everything as long as the turn goes on.
                is_listed=not is_open(todos),
            )
        shown = subagentcard.call(call.facts(), is_short=is_short)
        self._shown_chars += len(shown.markdown)
        return Piece(shown, images=images, is_call=True)

    def _open_run(self, *, is_reasoning: bool) -> _Run:
        self._close_run()
        self._runs += 1
        self._run = _Run(self._runs, self._attempt, is_reasoning)
        self._items.append(self._run)
        self._retrying = None
        if not is_reasoning:
            self._phase = "talking"
        return self._run

    def _close_run(self) -> None:
        if self._run is not None:
            self._run.is_closed = True
            self._run = None

    def _begin_reply(self, phase: _Phase) -> None:
        self._close_run()
        self._attempt += 1
        self._phase, self._retrying, self._summing_since = phase, None, None

    def _start(self, event: ToolStarted, now: float) -> None:
        self._close_run()
        call = Call(event.call_id, event.name, event.summary, started=now)
        self._phase = "acting"
        self._calls[event.call_id] = call
        self._items.append(call)

    def _change(self, event: ToolRewritten | ToolProgressed) -> None:
        if call := self._calls.get(event.call_id):
            match event:
                case ToolRewritten(summary=summary):
                    call.summary = summary
                case ToolProgressed(tail=tail):
                    call.tail = tail

    def _steer(self, text: str) -> None:
        if text in self._queued:
            self._queued.remove(text)
        self.add(render.steered(text))

    def _permit(self, event: PermissionSettled, now: float) -> None:
        call_id = event.request.call_id
        if call := self._call_around(call_id):
            call.waits.discard(call_id)
            # What a sub-agent was allowed stands with its own steps.
            if call.call_id == call_id:
                call.permission = render.permission_words(event) or call.permission
                call.is_denied = not event.is_allowed
                call.settled = now

    def _call_around(self, call_id: str) -> Call | None:
        """Return the call `call_id`, or that of the sub-agent whose call it is."""
        while (call := self._calls.get(call_id)) is None and "/" in call_id:
            call_id = call_id.rpartition("/")[0]
        return call

    def _finish(self, event: ToolFinished) -> None:
        if call := self._calls.get(event.result.call_id):
            call.result, call.duration_s = event.result, event.duration_s


def blocks(piece: Piece) -> Iterator[Piece]:
    """Yield text in parts that are the same however the stream was cut, each by itself."""
    start, opener = 0, piece.opener
    for end in (*_block_ends(piece.source, piece.opener), len(piece.source)):
        source = piece.source[start:end]
        is_whole = piece.is_whole or end < len(piece.source)
        shown = render.reply(f"{opener}\n{source}" if opener else source)
        yield replace(piece, shown=shown, source=source, opener=opener, is_whole=is_whole)
        start, opener = end, ""


def _block_end(text: str, opener: str) -> int:
    """Return where to cut a stream: before the last line that surely starts something new."""
    return max(_block_ends(text, opener), default=0)


def _block_ends(text: str, opener: str) -> Iterator[int]:
    """Yield where lines begin that surely start something new.

    That is after a blank line outside of code, and neither indented nor part of a list. What
    is before and after reads the same alone as together.
    """
    begin, position, state = 0, 0, opener
    while (end := text.find("\n\n", position)) >= 0:
        state = open_fence(text[position:end], state)
        position = end + 2
        follower = text[position : position + 1]
        if state or not follower or follower in " \t>-*+\n" or follower.isdigit():
            continue
        # Code after a list may be a part of its last item.
        if follower not in "`~" or not _LIST_ITEM.search(text, begin, position):
            yield position
            begin = position
