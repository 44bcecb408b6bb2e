"""Carry out one cell: a prompt, a command or a shell command, from its text to its reply.

Runs on the main loop and has the work done on the engine. Whatever happens, the outputs
are settled before the reply, no widget stays, and the reply says how it went.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import ipywidgets  # pyright: ignore[reportMissingTypeStubs] - it has none

from crush_kernel.config.directories import project_data_directory
from crush_kernel.errors import CrushKernelError, NothingToDo
from crush_kernel.history.session import CellUpdate
from crush_kernel.history.turn import Turn, TurnState
from crush_kernel.kernel.bridge import Engine, Mailbox
from crush_kernel.kernel.cells import Command, Empty, Prompt, Shell, parse_cell
from crush_kernel.kernel.commands import undo
from crush_kernel.kernel.commands.call import CommandCall
from crush_kernel.kernel.commands.table import COMMANDS, NEW, run_command
from crush_kernel.kernel.commands.window import COMPACT
from crush_kernel.kernel.editorhelp import EditorHelp
from crush_kernel.kernel.keeping import CellKeeper
from crush_kernel.kernel.logs import attach_log
from crush_kernel.kernel.mirror import Mirror
from crush_kernel.kernel.outlet import Outlet
from crush_kernel.kernel.pages.messages import client_of
from crush_kernel.kernel.pages.opennotebook import Busy, OpenPages
from crush_kernel.kernel.pages.pages import Pages
from crush_kernel.kernel.render import Rendered, failure, notice
from crush_kernel.kernel.runningcell import RunningCell, front_end_of, show
from crush_kernel.kernel.shellcell import ShellOutput
from crush_kernel.kernel.watchedturn import WatchedTurn
from crush_kernel.messages import JsonObject
from crush_kernel.prompt.skills import Skill
from crush_kernel.runtime import Runtime
from crush_kernel.tools.undo.rewind import Rewinding

logger = logging.getLogger(__name__)

Reply = dict[str, Any]


class CellRunner:
    """Carries out cells, one at a time."""

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
        self.editor = EditorHelp(runtime, engine)
        """Answers what is asked about cells that are written."""
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
        cell = RunningCell(code, cell_id, kept, front_end, keeper)
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

    async def _carry_out(self, cell: RunningCell) -> None:
        match parse_cell(cell.code):
            case Empty():
                pass
            case Prompt(text=text):
                await self._prompt(text, cell)
            case Command(name=name, arguments=arguments):
                await self._command(name, arguments, cell)
            case Shell(command=command):
                await self._shell(command, cell)

    async def _begin(self, cell: RunningCell) -> None:
        """Begin the turn of `cell`; from here on its outputs are the turn's."""

        async def begin() -> None:
            # There: an interrupt may come when the turn has begun and nobody waits any more.
            cell.place = await self._runtime.begin(cell.cell_id, cell.code)
            cell.keeper.turn_id = cell.place.turn_id

        await self._engine.run(begin)

    def _turn(self, cell: RunningCell) -> Turn | None:
        """Return the turn that `cell` has made, once it has ended."""
        if cell.place is None:
            return None
        turn = self._runtime.session.conversation.turn_in(cell.place.cell_id)
        is_made = turn is not None and turn.run == cell.place.number and turn.end != "running"
        return turn if is_made else None

    def _record(self, cell: RunningCell) -> JsonObject | None:
        """Return what the outputs must carry, since nobody writes metadata."""
        turn = None if self._pages.has_writer else self._turn(cell)
        return None if turn is None else turn.record

    def _end(self, cell: RunningCell, end: TurnState) -> None:
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

    async def _prompt(self, text: str, cell: RunningCell, skill: Skill | None = None) -> None:
        is_watched = cell.front_end != "headless"
        await self._converse(
            cell, partial(self._runtime.prompt, text, skill=skill, is_watched=is_watched)
        )

    async def _compact(self, wishes: str, cell: RunningCell) -> None:
        async def check() -> None:
            self._runtime.check_compact(cell.cell_id)

        try:
            await self._engine.run(check)
        except CrushKernelError as error:
            if cell.front_end != "console":
                show(failure(error), cell)
            raise
        await self._converse(cell, partial(self._runtime.compact, wishes))

    async def _converse(self, cell: RunningCell, work: Callable[..., Awaitable[None]]) -> None:
        """Have the turn of `cell` do `work` with a watcher, and show what comes of it."""
        await self._begin(cell)
        turn = WatchedTurn(
            cell, self._runtime, engine=self._engine, loop=self._loop, pages=self._pages
        )
        await turn.run(work, record=partial(self._record, cell))

    async def _command(self, name: str, arguments: str, cell: RunningCell) -> None:
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
        if given_up := await self._engine.run(partial(self._runtime.give_up, cell.cell_id)):
            self._update([given_up])
        try:
            answer = await self._engine.run(partial(run_command, name, call))
        except CrushKernelError as error:
            if cell.front_end != "console":
                show(failure(error), cell)
            raise
        show(Rendered(answer.markdown, answer.markdown), cell)
        for output in answer.outputs:
            cell.outlet.publish("display_data", {**output, "transient": {}})
        self._update(answer.updates)

    async def _skill(self, name: str) -> Skill | None:
        return await self._engine.run(partial(self._runtime.invocable_skill, name))

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

    async def _start_afresh(self, cell: RunningCell) -> None:
        await self._begin(cell)

        async def start() -> None:
            self._runtime.session.conversation.end("end_turn", is_start=True)

        await self._engine.run(start)
        show(notice("The cells below know nothing of what is above."), cell, self._record(cell))

    async def _rewind(self, name: str, arguments: str, cell: RunningCell) -> None:
        async def prepare() -> Rewinding:
            await self._runtime.load(cell.cell_id)
            return await undo.prepare(self._runtime, name, arguments)

        try:
            rewinding = await self._engine.run(prepare)
        except NothingToDo as found:
            show(notice(" ".join(filter(None, (str(found), found.hint)))), cell)
            return
        except CrushKernelError as error:
            if cell.front_end != "console":
                show(failure(error), cell)
            raise
        await self._begin(cell)
        turn_id = cell.keeper.turn_id
        done = await self._engine.run(partial(undo.carry_out, self._runtime, rewinding, turn_id))
        show(done, cell, self._record(cell))

    async def _shell(self, command: str, cell: RunningCell) -> None:
        await self._begin(cell)
        output = ShellOutput(cell.outlet, cell.front_end)
        tails = Mailbox(self._loop, output.progress, is_bulk=lambda _: True)
        try:
            result = await self._engine.run(
                partial(self._runtime.user_commands.run, command, on_output=tails.post)
            )
        except asyncio.CancelledError:
            tails.drain()
            output.interrupted(self._record(cell))
            raise
        tails.drain()
        output.finish(result, self._record(cell))
