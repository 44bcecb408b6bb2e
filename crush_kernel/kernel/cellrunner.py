"""Carry out one cell: a prompt, a command or a shell command, from its text to its reply.

Runs on the main loop and has the work done on the engine. Whatever happens, the outputs
are settled before the reply, no widget stays, and the reply says how it went.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import ipywidgets  # pyright: ignore[reportMissingTypeStubs] - it has none

from crush_kernel.agent.agent import Watcher
from crush_kernel.agent.events import (
    Event,
    Notice,
    ReasoningAdded,
    StepFinished,
    StepStarted,
    TextAdded,
    TurnFinished,
)
from crush_kernel.config.directories import project_data_directory
from crush_kernel.errors import CrushKernelError, NothingToDo
from crush_kernel.history.conversation import CellRun
from crush_kernel.history.messagejson import write_value
from crush_kernel.history.notebook import RECORD_MIME_TYPE
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.session import CellUpdate
from crush_kernel.history.turn import Turn, TurnState
from crush_kernel.kernel import completion, inspection
from crush_kernel.kernel.bridge import Engine, Mailbox, call_main
from crush_kernel.kernel.cells import Command, Empty, Prompt, Shell, parse_cell
from crush_kernel.kernel.commands import undo
from crush_kernel.kernel.commands.call import CommandCall
from crush_kernel.kernel.commands.table import COMMANDS, NEW, run_command
from crush_kernel.kernel.commands.window import COMPACT
from crush_kernel.kernel.display import FrontEnd, TurnDisplay
from crush_kernel.kernel.keeping import CellKeeper
from crush_kernel.kernel.logs import attach_log
from crush_kernel.kernel.mirror import Mirror
from crush_kernel.kernel.outlet import Outlet
from crush_kernel.kernel.pages.messages import client_of
from crush_kernel.kernel.pages.opennotebook import Busy, OpenPages
from crush_kernel.kernel.pages.pages import Pages
from crush_kernel.kernel.redactedevent import redacted_form, redacted_request
from crush_kernel.kernel.render import FooterFacts, Rendered, failure, notice
from crush_kernel.kernel.shellcell import ShellOutput
from crush_kernel.kernel.steering import steering_offered
from crush_kernel.messages import JsonObject
from crush_kernel.permissions.gate import Answer, Asker, DenyAll
from crush_kernel.permissions.rules import PermissionRequest
from crush_kernel.prompt.skills import Skill
from crush_kernel.providers.base import ModelInfo
from crush_kernel.runtime import Runtime
from crush_kernel.tools.question import Answered, Nobody, QuestionForm, Unanswered
from crush_kernel.tools.undo.rewind import Rewinding

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_SAID_CHARS = 100_000
"""Of what is said to a running turn: as good as all."""

Reply = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MainAsker:
    """Asks on the main loop what the agent wants to know on the engine."""

    loop: asyncio.AbstractEventLoop
    display: TurnDisplay
    redactor: Redactor

    async def ask(self, request: PermissionRequest) -> Answer:
        """Show the question in the running cell and return the answer. Engine thread."""
        shown = redacted_request(request, self.redactor)
        return await call_main(self.loop, partial(self.display.ask, shown))

    async def ask_questions(self, form: QuestionForm) -> Answered | Unanswered:
        """Show `form` in the running cell and return what comes of it. Engine thread."""
        shown = redacted_form(form, self.redactor)
        reply = await call_main(self.loop, partial(self.display.ask_questions, shown))
        if isinstance(reply, Unanswered):
            return reply
        clean = self.redactor.redact
        return Answered(tuple(replace(each, text=clean(each.text)) for each in reply.given))


@dataclass(slots=True)
class _Cell:
    """One run of a cell, and what it needs."""

    code: str
    cell_id: str
    outlet: Outlet
    front_end: FrontEnd
    keeper: CellKeeper
    place: CellRun | None = None
    told: int = 0
    """How many messages of the turn were told to runners."""


class CellRunner:
    """Carries out cells, one at a time, and answers what the editor asks about them."""

    def __init__(
        self,
        runtime: Runtime,
        engine: Engine[Runtime],
        loop: asyncio.AbstractEventLoop,
        pages: Pages,
        mirror: Mirror,
    ) -> None:
        self._runtime = runtime
        self._engine = engine
        self._loop = loop
        self._pages = pages
        self._mirror = mirror
        attach_log(
            project_data_directory(runtime.paths.cwd, runtime.paths.root),
            redact=runtime.session.redactor.redact,
        )
        runtime.titling.on_title = self._header_changed
        # After a reload the page asks for the state of the widgets that it lost.
        ipywidgets.register_comm_target()  # pyright: ignore[reportUnknownMemberType]

    def offer_page(self, busy: Busy) -> None:
        """Have tools look at the notebook, and change it, through the pages that show it.

        Args:
            busy: tells the cells that run or wait to be run.
        """
        self._runtime.desk.page = OpenPages(
            self._pages, self._mirror, self._runtime.session, loop=self._loop, busy=busy
        )

    def _header_changed(self) -> None:
        """Have the pages write the notebook's header. Engine thread."""
        tell = partial(self._pages.tell_turns, (), self._runtime.session)
        try:
            self._loop.call_soon_threadsafe(tell)
        except RuntimeError:
            logger.debug("the title came after the end")

    async def run(
        self, code: str, *, outlet: Outlet, cell_id: str, allow_stdin: bool, execution_count: int
    ) -> Reply:
        """Carry out the cell `code` and return what its reply says beyond `ok`.

        Cancelling stops the work, settles the outputs and is raised on.
        """
        await self._pages.settled(has_page=bool(cell_id))
        front_end = front_end_of(
            cell_id, allow_stdin=allow_stdin, is_headless=self._pages.is_headless
        )
        shown = self._mirror.begin(cell_id, execution_count)
        self._pages.began(shown, client_of(outlet.parent))
        keeper = CellKeeper(self._runtime.session, shown)
        redactor = self._runtime.session.redactor
        kept = replace(outlet, keep=keeper.keep, clean=redactor.redact_output)
        cell = _Cell(code, cell_id, kept, front_end, keeper)
        end: TurnState = "error"
        try:
            await self._carry_out(cell)
            end = "end_turn"
        except CrushKernelError as error:
            return cell.outlet.fail(error, is_told=front_end == "rich")
        except asyncio.CancelledError:
            end = "interrupted"
            raise
        except Exception as error:
            # Here already, so that what is shown of it is kept with the rest.
            logger.exception("a cell failed unexpectedly")
            return cell.outlet.fail(error)
        finally:
            self._end(cell, end)
        return {}

    async def _carry_out(self, cell: "_Cell") -> None:
        match parse_cell(cell.code):
            case Empty():
                pass
            case Prompt(text=text):
                await self._prompt(text, cell)
            case Command(name=name, arguments=arguments):
                await self._command(name, arguments, cell)
            case Shell(command=command):
                await self._shell(command, cell)

    async def _begin(self, cell: "_Cell") -> None:
        """Begin the turn of `cell`; from here on its outputs are the turn's."""

        async def begin() -> None:
            # There: an interrupt may come when the turn has begun and nobody waits any more.
            cell.place = await self._runtime.begin(cell.cell_id, cell.code)
            cell.keeper.turn_id = cell.place.turn_id

        await self._on_engine(begin)

    def _turn(self, cell: "_Cell") -> Turn | None:
        """Return the turn that `cell` has made, once it has ended."""
        if cell.place is None:
            return None
        turn = self._runtime.session.conversation.turn_in(cell.place.cell_id)
        is_made = turn is not None and turn.run == cell.place.number and turn.end != "running"
        return turn if is_made else None

    def _record(self, cell: "_Cell") -> JsonObject | None:
        """Return what the outputs must carry, since nobody writes metadata."""
        turn = None if self._pages.has_writer else self._turn(cell)
        return None if turn is None else turn.record

    def _end(self, cell: "_Cell", end: TurnState) -> None:
        """Keep the whole turn with its outputs, and tell the pages.

        A turn that could not even begin to be carried out ends here as `end`.
        """
        session, shown = self._runtime.session, cell.keeper.shown
        self._mirror.end(shown)
        if cell.place is not None and session.conversation.is_running:
            session.conversation.end(end)
        if (turn := self._turn(cell)) is not None:
            session.finish(turn, shown.outputs, shown.execution_count)
            self._pages.ended(turn, session)
        self._pages.show_ended(shown)

    async def complete(self, code: str, cursor: int) -> Reply:
        """Return the content of a `complete_reply`; `cursor` counts code points."""
        wanted = completion.wanted_at(code, cursor)
        return completion.reply(code, cursor, wanted, await self._matches(wanted))

    async def inspect(self, code: str, cursor: int) -> Reply:
        """Return the content of an `inspect_reply`; `cursor` counts code points."""
        word = inspection.word_at(code, cursor)
        runtime = self._runtime
        markdown = await asyncio.to_thread(
            inspection.describe, word, paths=runtime.paths, tools=runtime.agent.tools
        )
        return inspection.reply(markdown)

    async def _prompt(self, text: str, cell: "_Cell", skill: Skill | None = None) -> None:
        is_watched = cell.front_end != "headless"
        await self._converse(
            cell, partial(self._runtime.prompt, text, skill=skill, is_watched=is_watched)
        )

    async def _compact(self, wishes: str, cell: "_Cell") -> None:
        async def check() -> None:
            self._runtime.check_compact(cell.cell_id)

        try:
            await self._on_engine(check)
        except CrushKernelError as error:
            if cell.front_end != "console":
                show(failure(error), cell)
            raise
        await self._converse(cell, partial(self._runtime.compact, wishes))

    async def _converse(self, cell: "_Cell", work: Callable[..., Awaitable[None]]) -> None:
        """Have the turn of `cell` do `work` with a watcher, and show what comes of it."""
        await self._begin(cell)
        redactor = self._runtime.session.redactor

        def say(said: str) -> None:
            if clean := redactor.redact(said[:MAX_SAID_CHARS].strip()):
                display.say(clean, is_heard=self._runtime.agent.steering.say(clean))

        display = TurnDisplay(
            cell.outlet.publish,
            loop=self._loop,
            front_end=cell.front_end,
            model=self._model_name(),
            stop_tool=self._stop_tool,
            read_line=cell.outlet.read_line,
            # Pages have a place of their own for it.
            say=None if self._pages.has_writer else say,
        )
        finished: list[TurnFinished] = []
        is_alone = cell.front_end == "headless"

        def deliver(event: Event) -> None:
            if isinstance(event, TurnFinished):
                finished.append(event)
            for shown in cell.keeper.watch(event):
                display.on_event(shown)
                if isinstance(shown, Notice):
                    self._pages.noticed(cell.cell_id, shown.text)
            if is_alone and isinstance(event, (StepStarted, StepFinished)):
                self._tell_runners(cell)

        mailbox = Mailbox(self._loop, deliver, is_bulk=_is_bulk)
        person = MainAsker(self._loop, display, redactor)
        asker: Asker = DenyAll() if is_alone else person
        watcher = Watcher(mailbox.post, asker)
        offered = (
            steering_offered(cell.cell_id, say, pages=self._pages, loop=self._loop)
            if cell.front_end == "rich"
            else nullcontext()
        )
        display.start()
        try:
            with offered, self._runtime.questions.manned(Nobody() if is_alone else person):
                await self._on_engine(partial(work, watcher=watcher))
        except CrushKernelError as error:
            mailbox.drain()
            display.fail(error)
            raise
        except asyncio.CancelledError:
            mailbox.drain()
            display.interrupted()
            raise
        finally:
            mailbox.drain()
            facts = self._footer(finished[-1] if finished else None)
            display.finish(facts, self._record(cell))

    def _tell_runners(self, cell: "_Cell") -> None:
        """Tell what was said so far to programs that run the notebook and report on it."""
        session = self._runtime.session
        said = session.conversation.running
        first = min(cell.told, len(said))
        if first == cell.told == len(said):
            return
        new = session.redactor.redact_messages(said[first:])
        self._pages.said(cell.cell_id, first, [write_value(message) for message in new])
        cell.told = len(said)

    async def _command(self, name: str, arguments: str, cell: "_Cell") -> None:
        if name == NEW and not arguments:
            await self._start_afresh(cell)
            return
        if name == COMPACT:
            await self._compact(arguments, cell)
            return
        if name in (undo.UNDO, undo.REDO):
            await self._rewind(name, arguments, cell)
            return
        if name not in COMMANDS and (skill := await self._skill(name)):
            await self._prompt(arguments, cell, skill)
            return
        call = CommandCall(arguments, self._runtime, cell.cell_id)
        if given_up := await self._on_engine(partial(self._runtime.give_up, cell.cell_id)):
            self._update([given_up])
        try:
            answer = await self._on_engine(partial(run_command, name, call))
        except CrushKernelError as error:
            if cell.front_end != "console":
                show(failure(error), cell)
            raise
        show(Rendered(answer.markdown, answer.markdown), cell)
        for output in answer.outputs:
            cell.outlet.publish("display_data", {**output, "transient": {}})
        self._update(answer.updates)

    async def _skill(self, name: str) -> Skill | None:
        return await self._on_engine(partial(self._runtime.invocable_skill, name))

    def _update(self, updates: Sequence[CellUpdate]) -> None:
        """Have the pages show cells as a command has changed them."""
        if updates:
            self._pages.tell_turns(updates, self._runtime.session)
            shown = [
                self._mirror.restore(each.cell_id, each.outputs, each.execution_count)
                for each in updates
                if each.outputs is not None
            ]
            if shown:
                self._pages.show(shown)

    async def _start_afresh(self, cell: "_Cell") -> None:
        await self._begin(cell)

        async def start() -> None:
            self._runtime.session.conversation.end("end_turn", is_start=True)

        await self._on_engine(start)
        show(notice("The cells below know nothing of what is above."), cell, self._record(cell))

    async def _rewind(self, name: str, arguments: str, cell: "_Cell") -> None:
        async def prepare() -> Rewinding:
            await self._runtime.load(cell.cell_id)
            return await undo.prepare(self._runtime, name, arguments)

        try:
            rewinding = await self._on_engine(prepare)
        except NothingToDo as found:
            show(notice(" ".join(filter(None, (str(found), found.hint)))), cell)
            return
        except CrushKernelError as error:
            if cell.front_end != "console":
                show(failure(error), cell)
            raise
        await self._begin(cell)
        turn_id = cell.keeper.turn_id
        done = await self._on_engine(partial(undo.carry_out, self._runtime, rewinding, turn_id))
        show(done, cell, self._record(cell))

    async def _shell(self, command: str, cell: "_Cell") -> None:
        await self._begin(cell)
        output = ShellOutput(cell.outlet, cell.front_end)
        tails = Mailbox(self._loop, output.progress, is_bulk=lambda _: True)
        try:
            result = await self._on_engine(
                partial(self._runtime.run_command, command, on_output=tails.post)
            )
        except asyncio.CancelledError:
            tails.drain()
            output.interrupted(self._record(cell))
            raise
        tails.drain()
        output.finish(result, self._record(cell))

    async def _on_engine(self, work: Callable[[], Awaitable[T]]) -> T:
        return await self._engine.call(work).result()

    def _stop_tool(self, call_id: str) -> None:
        async def stop() -> None:
            self._runtime.agent.stop_tool(call_id)

        self._engine.call(stop)

    async def _matches(self, wanted: completion.Wanted | None) -> list[completion.Match]:
        match wanted:
            case completion.Wanted(kind="command", word=word):
                found = await self._on_engine(self._runtime.prompts.found_skills)
                skills = [skill.name for skill in found.invocable if skill.name not in COMMANDS]
                names = [(name, "command") for name in COMMANDS]
                names += [(name, "skill") for name in skills]
                return [
                    completion.Match(f"/{name}", kind)
                    for name, kind in names
                    if name.startswith(word)
                ]
            case completion.Wanted(kind="argument", command="model", word=word):
                models = await self._on_engine(self._runtime.models.providers.models)
                labels = ["keep", *(info.label for info in models)]
                return [completion.Match(label, "model") for label in labels if word in label]
            case completion.Wanted(kind="file", word=word):
                return await asyncio.to_thread(
                    completion.file_matches, word, self._runtime.paths.cwd
                )
            case _:
                return []

    def _model_name(self) -> str:
        info = self._runtime.models.info
        return info.id if info else ""

    def _footer(self, turn: TurnFinished | None) -> FooterFacts:
        info = self._runtime.models.info or ModelInfo(provider="", id="")
        info = replace(info, context_window=self._runtime.agent.window_of(info))
        facts = FooterFacts(model=info.id, context_window=info.context_window)
        return facts if turn is None else footer_of(turn, info, self._notes(turn))

    def _notes(self, turn: TurnFinished) -> tuple[str, ...]:
        mode = self._runtime.agent.gate.mode
        notes = [f"{mode} mode"] if mode != "default" else []
        if turn.retries:
            notes.append(f"{turn.retries} {'retry' if turn.retries == 1 else 'retries'}")
        return tuple(notes)


def front_end_of(cell_id: str, *, allow_stdin: bool, is_headless: bool = False) -> FrontEnd:
    """Return what kind of front end sent a cell, by what its request tells (design §7).

    Args:
        cell_id: the id that the front end gave.
        allow_stdin: whether it has a keyboard.
        is_headless: whether it said that nobody is there to press a button.
    """
    if cell_id and not is_headless:
        return "rich"
    if is_headless:
        return "headless"
    return "console" if allow_stdin else "headless"


def footer_of(turn: TurnFinished, info: ModelInfo, notes: tuple[str, ...]) -> FooterFacts:
    """Return what the last line of `turn` says."""
    return FooterFacts(
        model=info.id,
        # The stand-in takes no time worth telling, and the same notebook is to read the same.
        duration_s=None if info.provider == "offline" else turn.duration_s,
        context_tokens=turn.context_tokens,
        context_window=info.context_window,
        usage=turn.usage,
        cost_usd=turn.cost_usd,
        tool_calls=turn.tool_calls,
        notes=notes,
    )


def show(what: Rendered, cell: "_Cell", record: JsonObject | None = None) -> None:
    """Show something that will not change any more, with the turn that is kept beside it."""
    if cell.front_end == "console":
        cell.outlet.publish("stream", {"name": "stdout", "text": f"{what.plain}\n"})
        return
    data: Reply = {**what.bundle()}
    if record is not None:
        data[RECORD_MIME_TYPE] = record
    cell.outlet.publish("display_data", {"data": data, "metadata": {}, "transient": {}})


def _is_bulk(event: Event) -> bool:
    return isinstance(event, (TextAdded, ReasoningAdded))
