"""Carry out one cell: a prompt, a command or a shell command, from its text to its reply.

Runs on the main loop and has the work done on the engine. Whatever happens, the outputs
are settled before the reply, no widget stays, and the reply says how it went.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import ipywidgets  # pyright: ignore[reportMissingTypeStubs] - it has none

from crush_kernel.agent.agent import Watcher
from crush_kernel.agent.events import Event, ReasoningAdded, TextAdded, TurnFinished
from crush_kernel.config.directories import project_data_directory
from crush_kernel.errors import CrushKernelError
from crush_kernel.kernel import completion, inspection
from crush_kernel.kernel.bridge import Engine, Mailbox, call_main
from crush_kernel.kernel.cells import Command, Empty, Prompt, Shell, parse_cell
from crush_kernel.kernel.commands import COMMANDS, run_command
from crush_kernel.kernel.display import FrontEnd, TurnDisplay
from crush_kernel.kernel.logs import attach_log
from crush_kernel.kernel.outlet import Outlet
from crush_kernel.kernel.render import FooterFacts, Rendered, failure
from crush_kernel.kernel.shellcell import ShellOutput
from crush_kernel.permissions.gate import Answer, Asker, DenyAll
from crush_kernel.permissions.rules import PermissionRequest
from crush_kernel.providers.base import ModelInfo
from crush_kernel.runtime import Runtime

T = TypeVar("T")

Reply = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MainAsker:
    """Asks on the main loop what the agent wants to know on the engine."""

    loop: asyncio.AbstractEventLoop
    display: TurnDisplay

    async def ask(self, request: PermissionRequest) -> Answer:
        """Show the question in the running cell and return the answer. Engine thread."""
        return await call_main(self.loop, partial(self.display.ask, request))


class CellRunner:
    """Carries out cells, one at a time, and answers what the editor asks about them."""

    def __init__(
        self, runtime: Runtime, engine: Engine[Runtime], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._runtime = runtime
        self._engine = engine
        self._loop = loop
        attach_log(project_data_directory(runtime.paths.cwd, runtime.paths.root))
        # After a reload the page asks for the state of the widgets that it lost.
        ipywidgets.register_comm_target()  # pyright: ignore[reportUnknownMemberType]

    async def run(self, code: str, *, outlet: Outlet, cell_id: str, allow_stdin: bool) -> Reply:
        """Carry out the cell `code` and return what its reply says beyond `ok`.

        Cancelling stops the work, settles the outputs and is raised on.
        """
        front_end = front_end_of(cell_id, allow_stdin=allow_stdin)
        try:
            match parse_cell(code):
                case Empty():
                    pass
                case Prompt(text=text):
                    await self._prompt(text, outlet, cell_id, front_end)
                case Command(name=name, arguments=arguments):
                    await self._command(name, arguments, outlet, front_end)
                case Shell(command=command):
                    await self._shell(command, outlet, cell_id, front_end)
        except CrushKernelError as error:
            return outlet.fail(error, is_told=front_end == "rich")
        return {}

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

    async def _prompt(self, text: str, outlet: Outlet, cell_id: str, front_end: FrontEnd) -> None:
        display = TurnDisplay(
            outlet.publish,
            loop=self._loop,
            front_end=front_end,
            model=self._model_name(),
            stop_tool=self._stop_tool,
            read_line=outlet.read_line,
        )
        finished: list[TurnFinished] = []

        def deliver(event: Event) -> None:
            if isinstance(event, TurnFinished):
                finished.append(event)
            display.on_event(event)

        mailbox = Mailbox(self._loop, deliver, is_bulk=_is_bulk)
        asker: Asker = DenyAll() if front_end == "headless" else MainAsker(self._loop, display)
        watcher = Watcher(mailbox.post, asker)
        display.start()
        try:
            await self._on_engine(
                partial(self._runtime.prompt, text, cell_id=cell_id, watcher=watcher)
            )
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
            display.finish(self._footer(finished[-1] if finished else None))

    async def _command(
        self, name: str, arguments: str, outlet: Outlet, front_end: FrontEnd
    ) -> None:
        try:
            markdown = await self._on_engine(partial(run_command, name, arguments, self._runtime))
        except CrushKernelError as error:
            if front_end != "console":
                show(failure(error), outlet, front_end)
            raise
        show(Rendered(markdown, markdown), outlet, front_end)

    async def _shell(self, command: str, outlet: Outlet, cell_id: str, front_end: FrontEnd) -> None:
        output = ShellOutput(outlet, front_end)
        tails = Mailbox(self._loop, output.progress, is_bulk=lambda _: True)
        try:
            result = await self._on_engine(
                partial(self._runtime.run_command, command, cell_id=cell_id, on_output=tails.post)
            )
        except asyncio.CancelledError:
            tails.drain()
            output.interrupted()
            raise
        tails.drain()
        output.finish(result)

    async def _on_engine(self, work: Callable[[], Awaitable[T]]) -> T:
        return await self._engine.call(work).result()

    def _stop_tool(self, call_id: str) -> None:
        async def stop() -> None:
            self._runtime.agent.stop_tool(call_id)

        self._engine.call(stop)

    async def _matches(self, wanted: completion.Wanted | None) -> list[completion.Match]:
        match wanted:
            case completion.Wanted(kind="command", word=word):
                return [
                    completion.Match(f"/{name}", "command")
                    for name in COMMANDS
                    if name.startswith(word)
                ]
            case completion.Wanted(kind="argument", command="model", word=word):
                models = await self._on_engine(self._runtime.providers.models)
                labels = ["keep", *(info.label for info in models)]
                return [completion.Match(label, "model") for label in labels if word in label]
            case completion.Wanted(kind="file", word=word):
                return await asyncio.to_thread(
                    completion.file_matches, word, self._runtime.paths.cwd
                )
            case _:
                return []

    def _model_name(self) -> str:
        info = self._runtime.model_info
        return info.id if info else ""

    def _footer(self, turn: TurnFinished | None) -> FooterFacts:
        info = self._runtime.model_info or ModelInfo(provider="", id="")
        facts = FooterFacts(model=info.id, context_window=info.context_window)
        return facts if turn is None else footer_of(turn, info, self._notes(turn))

    def _notes(self, turn: TurnFinished) -> tuple[str, ...]:
        mode = self._runtime.agent.gate.mode
        notes = [f"{mode} mode"] if mode != "default" else []
        if turn.retries:
            notes.append(f"{turn.retries} {'retry' if turn.retries == 1 else 'retries'}")
        return tuple(notes)


def front_end_of(cell_id: str, *, allow_stdin: bool) -> FrontEnd:
    """Return what kind of front end sent a cell, by what its request tells (design §7)."""
    if cell_id:
        return "rich"
    return "console" if allow_stdin else "headless"


def footer_of(turn: TurnFinished, info: ModelInfo, notes: tuple[str, ...]) -> FooterFacts:
    """Return what the last line of `turn` says."""
    return FooterFacts(
        model=info.id,
        duration_s=turn.duration_s,
        context_tokens=turn.context_tokens,
        context_window=info.context_window,
        usage=turn.usage,
        cost_usd=info.cost(turn.usage),
        tool_calls=turn.tool_calls,
        notes=notes,
    )


def show(what: Rendered, outlet: Outlet, front_end: FrontEnd) -> None:
    """Show something that will not change any more."""
    if front_end == "console":
        outlet.publish("stream", {"name": "stdout", "text": f"{what.plain}\n"})
    else:
        content: Reply = {"data": what.bundle(), "metadata": {}, "transient": {}}
        outlet.publish("display_data", content)


def _is_bulk(event: Event) -> bool:
    return isinstance(event, (TextAdded, ReasoningAdded))
