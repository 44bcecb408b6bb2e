"""Build everything that a kernel needs, and take it down again.

The only module that knows everyone: an environment and a folder go in, a `Runtime` comes
out, whose parts were handed to each other and never look each other up. It lives on the
engine thread, in the coroutine that opened it.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import anyio
import anyio.to_thread

from crush_kernel.agent.agent import Agent, Watcher
from crush_kernel.config.directories import project_root
from crush_kernel.config.settings import Settings, read_settings
from crush_kernel.config.state import FILE_NAME, ModelChoice, State
from crush_kernel.errors import CrushKernelError
from crush_kernel.history.conversation import CellRun
from crush_kernel.messages import Message, ShellCommand
from crush_kernel.permissions.gate import Gate
from crush_kernel.prompt.place import gather_facts
from crush_kernel.prompt.system import render
from crush_kernel.providers.base import Model, ModelInfo
from crush_kernel.providers.selection import Providers
from crush_kernel.shell.runner import CommandResult, Shell
from crush_kernel.tools.attachments import Attachments
from crush_kernel.tools.base import AnyTool, erase
from crush_kernel.tools.bash import bash_tool
from crush_kernel.tools.edit import edit_tool
from crush_kernel.tools.encoded import without_base64
from crush_kernel.tools.glob import glob_tool
from crush_kernel.tools.grep import grep_tool
from crush_kernel.tools.ls import ls_tool
from crush_kernel.tools.mediatype import DOCUMENT_TYPE
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.tracker import ReadTracker
from crush_kernel.tools.view import view_tool
from crush_kernel.tools.write import write_tool

logger = logging.getLogger(__name__)

INTERRUPTED_EXIT = 130
"""What a shell reports of a command that the user stopped."""


@dataclass(slots=True)
class Runtime:
    """The parts of one kernel, and the model that its next turn will ask."""

    settings: Settings
    paths: PathPolicy
    providers: Providers
    agent: Agent
    shell: Shell
    attachments: Attachments
    state: State
    _model: Model | None = None
    _opening: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def model_info(self) -> ModelInfo | None:
        """What is known about the model in use; `None` before the first was opened."""
        return self._model.info if self._model else None

    async def model(self) -> Model:
        """Return the model in use, choosing and opening it the first time.

        Raises:
            CrushKernelError: no model can be opened; its hint says what to set.
        """
        async with self._opening:
            if self._model is None:
                self._model = await self._open(await self.providers.default())
            return self._model

    async def choose(self, label: str) -> ModelInfo:
        """Use the model that `label` names from the next turn on; the history is kept."""
        info = await self.providers.find(label)
        model = await self._open(info)
        async with self._opening:
            former, self._model = self._model, model
        if former is not None:
            await former.aclose()
        return info

    async def keep_model(self) -> ModelInfo:
        """Remember the model in use as the default of new notebooks."""
        info = (await self.model()).info
        choice = ModelChoice(info.provider, info.id)
        await anyio.to_thread.run_sync(self.state.remember, "large", choice)
        return info

    async def prompt(self, text: str, *, cell_id: str, watcher: Watcher) -> None:
        """Run one turn on what a cell says, with the files that it mentions attached."""
        model = await self.model()
        permit = self.agent.permission_for(watcher)
        parts = await self.attachments.load(text, permit=permit)
        await self.agent.prompt(
            Message("user", parts), model=model, place=CellRun(cell_id), watcher=watcher
        )

    async def run_command(
        self, command: str, *, cell_id: str, on_output: Callable[[str], None]
    ) -> CommandResult:
        """Run the user's own command; it and its output become part of the conversation."""
        tail = ""

        def watch(text: str) -> None:
            nonlocal tail
            tail = text
            on_output(text)

        try:
            result = await self.shell.run(
                command, cwd=self.paths.cwd, timeout_s=None, on_output=watch
            )
        except anyio.get_cancelled_exc_class():
            output = f"{tail}\n[interrupted]".lstrip()
            self._remember(ShellCommand(command, output, INTERRUPTED_EXIT), cell_id)
            raise
        output = without_base64(result.output)
        self._remember(ShellCommand(command, output, result.exit_code), cell_id)
        return result

    def _remember(self, command: ShellCommand, cell_id: str) -> None:
        self.agent.conversation.begin(Message("user", (command,)), CellRun(cell_id))
        self.agent.conversation.end("end_turn")

    async def aclose(self) -> None:
        """Close the connections to the model."""
        if self._model is not None:
            await self._model.aclose()

    async def warm_up(self) -> None:
        """Do ahead what the first turn would do: import the SDK, open the client."""
        try:
            await self.model()
        except CrushKernelError:
            logger.info("no model to warm up; the first turn will say why", exc_info=True)

    async def _open(self, info: ModelInfo) -> Model:
        # In a thread: the first import of a vendor's SDK takes a second.
        return await anyio.to_thread.run_sync(self.providers.open, info)


@asynccontextmanager
async def open_runtime(*, environ: Mapping[str, str], cwd: Path) -> AsyncGenerator[Runtime]:
    """Build the parts for `cwd` and close them in reverse; every child ends with them."""
    settings = read_settings(environ)
    paths = PathPolicy(root=project_root(cwd), cwd=cwd)
    state = State(settings.directories.data / FILE_NAME)
    async with Shell(settings.environ) as shell:
        runtime = _build(settings, paths, state, shell)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runtime.warm_up)
            try:
                yield runtime
            finally:
                tasks.cancel_scope.cancel()
                with anyio.move_on_after(1, shield=True):
                    await runtime.aclose()


def _build(settings: Settings, paths: PathPolicy, state: State, shell: Shell) -> Runtime:
    async def system_prompt() -> str:
        today = datetime.now().astimezone().date()
        return render(gather_facts(cwd=paths.cwd, project_root=paths.root, today=today))

    def accepts(media_type: str) -> bool:
        info = runtime.model_info
        if info is None:
            return False
        return info.accepts_documents if media_type == DOCUMENT_TYPE else info.accepts_images

    runtime = Runtime(
        settings=settings,
        paths=paths,
        providers=Providers(settings, state),
        agent=Agent(
            tools=_tools(paths, shell, accepts),
            gate=Gate(settings.permission_mode),
            system_prompt=system_prompt,
        ),
        shell=shell,
        attachments=Attachments(paths),
        state=state,
    )
    return runtime


def _tools(paths: PathPolicy, shell: Shell, accepts: Callable[[str], bool]) -> tuple[AnyTool, ...]:
    tracker = ReadTracker()
    return (
        erase(view_tool(paths, tracker, accepts=accepts)),
        erase(ls_tool(paths)),
        erase(glob_tool(paths)),
        erase(grep_tool(paths)),
        erase(edit_tool(paths, tracker)),
        erase(write_tool(paths, tracker)),
        erase(bash_tool(shell, paths)),
    )
