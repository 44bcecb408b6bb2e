"""What Jupyter calls: the handlers of the kernel, each a few lines.

The shell channel is read by a dispatcher of our own: execute requests run one after
another, everything else (clicks, completions, kernel info) is answered at once, also while
a cell runs. What is heavy (the agent, its SDKs, widgets) is imported on the engine thread
after the first `kernel_info` was answered, so that a front end finds the kernel ready.

Source: Jupyter messaging; ipykernel 7.4 `kernelbase.Kernel`.
"""

# ipykernel's traits carry no types that pyright can read:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false, reportArgumentType=false

import asyncio
import contextvars
import inspect
import logging
import os
import signal
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatch
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import comm
from ipykernel.kernelbase import Kernel

from crush_kernel import __version__
from crush_kernel.errors import CommandError, CrushKernelError
from crush_kernel.kernel.bridge import Engine
from crush_kernel.kernel.mirror import Mirror
from crush_kernel.kernel.outlet import Outlet, error_content, packing_any_text
from crush_kernel.kernel.pages.messages import TARGET
from crush_kernel.kernel.pages.pages import Pages

if TYPE_CHECKING:
    # These cost a quarter of a second to import: `_open_runtime` does it on the engine.
    from crush_kernel.history.session import Session
    from crush_kernel.kernel.cellrunner import CellRunner
    from crush_kernel.runtime import Runtime

logger = logging.getLogger(__name__)


Reply = dict[str, Any]

INTERRUPTED_REPLY: Reply = {
    "status": "error",
    "ename": "Interrupted",
    "evalue": "The turn was interrupted.",
    "traceback": [],
}
"""Sent without an `error` output: the queue stops, no red box appears."""


class CrushKernel(Kernel):
    """A kernel whose cells are turns of a coding agent."""

    implementation = "crush"
    implementation_version = __version__
    banner = f"Crush {__version__}: write what you want and run the cell. /help says more."
    language_info: dict[str, object] = {  # noqa: RUF012 - a class attribute in the base too
        "name": "markdown",
        "version": "1",
        "mimetype": "text/x-markdown",
        "file_extension": ".md",
        "codemirror_mode": "markdown",
        "pygments_lexer": "markdown",
    }

    def __init__(self, **kwargs: object) -> None:
        # The application passes what only a Python kernel has a use for.
        super().__init__(
            **{name: kwargs[name] for name in kwargs if name not in ("debugpy_stream", "user_ns")}
        )
        self.session.pack = packing_any_text(self.session.pack)
        self.comm_manager = comm.get_comm_manager()
        for kind in ("comm_open", "comm_msg", "comm_close"):
            self.shell_handlers[kind] = getattr(self.comm_manager, kind)
        self._engine = Engine["Runtime"](partial(_open_runtime, Path.cwd()))
        self._mirror = Mirror()
        self._pages = Pages(self._session, self._engine.run, self._mirror)
        self.comm_manager.register_target(TARGET, self._pages.on_open)
        self._runner: CellRunner | None = None
        self._cell_turn = asyncio.Lock()
        self._received = 0
        self._waiting: dict[int, str] = {}
        """The cells that run or wait to be run, by the number of their requests."""
        self._abort_up_to = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._inputs: list[str] = []
        self._cell: asyncio.Task[Reply] | None = None
        self._outlet: Outlet | None = None
        self._is_interrupted = False
        self._is_warming = False

    @property
    def kernel_info(self) -> Reply:
        """Describe the kernel; the base class would import a debugger and advertise it."""
        return {
            "protocol_version": "5.4",
            "implementation": self.implementation,
            "implementation_version": self.implementation_version,
            "language_info": self.language_info,
            "banner": self.banner,
            "help_links": [],
            "supported_features": [],
        }

    def start(self) -> None:
        """Take over the shell channel and the signals. Main thread."""
        super().start()
        self._loop: asyncio.AbstractEventLoop = self.io_loop.asyncio_loop
        self.shell_stream.on_recv(self._on_shell, copy=False)
        with suppress(NotImplementedError):
            self._loop.add_signal_handler(signal.SIGINT, self.interrupt)
            self._loop.add_signal_handler(signal.SIGTERM, self._terminate)

    def pre_handler_hook(self) -> None:
        """Leave SIGINT alone: the base class would let it kill the loop."""

    def post_handler_hook(self) -> None:
        """Leave SIGINT alone."""

    # Dispatch

    def _on_shell(self, frames: list[Any]) -> None:
        """Start a task for each message; cells wait for each other, nothing else waits."""
        try:
            _, rest = self.session.feed_identities(frames, copy=False)
            # A peek: deserializing the content twice would count as a replayed message.
            message = self.session.deserialize(rest, content=False, copy=False)
            msg_type = message["header"]["msg_type"]
        except Exception:
            logger.exception("bad message on the shell channel")
            return
        if msg_type == "execute_request":
            self._received += 1
            self._waiting[self._received] = _cell_of(message["metadata"])
            self._spawn(self._in_turn(self._received, frames))
        else:
            self._spawn(self._at_once(frames))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # A context of its own: a shared one would re-parent the output of a running cell.
        task = self._loop.create_task(work, context=contextvars.copy_context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _in_turn(self, number: int, frames: list[Any]) -> None:
        try:
            async with self._cell_turn:
                self._aborting = number <= self._abort_up_to
                await self.dispatch_shell(frames)
        finally:
            del self._waiting[number]

    def _abort_queues(self, subshell_id: str | None = None) -> None:  # noqa: ARG002 - signature of the base
        """Abort the cells that were received so far; later ones run again."""
        self._abort_up_to = self._received

    async def _at_once(self, frames: list[Any]) -> None:
        ident, rest = self.session.feed_identities(frames, copy=False)
        try:
            message = self.session.deserialize(rest, content=True, copy=False)
        except Exception:
            logger.exception("bad message on the shell channel")
            return
        self._shell_parent.set(message)
        self._shell_parent_ident.set(ident)
        msg_type = message["header"]["msg_type"]
        self._publish_status("busy", "shell", parent=message)
        try:
            if handler := self.shell_handlers.get(msg_type):
                result = handler(self.shell_stream, ident, message)
                if inspect.isawaitable(result):
                    await result
            else:
                logger.warning("unknown message type %r", msg_type)
        except Exception as error:
            logger.exception("the handler of %r failed", msg_type)
            self._reply_with(error, ident, message)
        # Widgets send their next change only after the idle; the page shows the last
        # status that came, so a running cell has to say once more that it is busy.
        self._publish_status("idle", "shell", parent=message)
        if self._outlet is not None:
            self._publish_status("busy", "shell", parent=self._outlet.parent)
        if msg_type == "kernel_info_request":
            self._warm_up()

    def _reply_with(self, error: Exception, ident: object, request: Reply) -> None:
        """Answer a request that failed, since whoever sent it waits."""
        kind, is_request, _ = str(request["header"]["msg_type"]).rpartition("_request")
        if is_request:
            content = {"status": "error", **error_content(error)}
            self.session.send(self.shell_stream, f"{kind}_reply", content, request, ident=ident)

    # Interrupt and shutdown

    async def interrupt_request(self, stream: object, ident: object, parent: Reply) -> None:
        """Hop from the control thread to the main loop, and answer at once."""
        self._loop.call_soon_threadsafe(self.interrupt)
        self.session.send(stream, "interrupt_reply", {"status": "ok"}, parent, ident=ident)

    def interrupt(self) -> None:
        """Stop the running cell and abort the waiting ones. Main loop."""
        self._abort_up_to = self._received
        if self._cell is not None and not self._is_interrupted:
            # Once: a second cancel would tear the clean-up of the first.
            self._is_interrupted = True
            self._cell.cancel()

    async def do_shutdown(self, restart: bool) -> Reply:  # noqa: FBT001 - signature of the base
        """Stop the running cell, all children and the engine. Control thread."""
        closing = asyncio.run_coroutine_threadsafe(self._close(), self._loop)
        await asyncio.wrap_future(closing)
        return {"status": "ok", "restart": restart}

    async def _close(self) -> None:
        self.interrupt()
        await asyncio.to_thread(self._engine.close)

    def _terminate(self) -> None:
        """Do on SIGTERM what a shutdown request does."""

        async def close_and_stop() -> None:
            await self._close()
            self.io_loop.stop()

        self._spawn(close_and_stop())

    # Cells

    async def execute_request(self, stream: object, ident: object, parent: Reply) -> None:
        """Have a cell run, and send its one reply even if the request makes no sense."""
        try:
            if isinstance(parent["content"].get("code"), str):
                await super().execute_request(stream, ident, parent)
            else:
                # The base class would only log it, and whoever has sent it would wait.
                error = CommandError("The request holds no text of a cell.")
                self._reply_with(error, ident, parent)
        except Exception as error:
            logger.exception("an execute request failed")
            self._reply_with(error, ident, parent)

    async def do_execute(
        self,
        code: str,
        silent: bool,  # noqa: FBT001 - signature of the base
        store_history: bool = True,  # noqa: FBT001, FBT002 - signature of the base
        user_expressions: Reply | None = None,  # noqa: ARG002
        allow_stdin: bool = False,  # noqa: FBT001, FBT002
        *,
        cell_meta: Reply | None = None,  # noqa: ARG002
        cell_id: str | None = None,
    ) -> Reply:
        """Run one cell and return the one reply it gets."""
        reply: Reply = {
            "status": "ok",
            "execution_count": self.execution_count,
            "payload": [],
            "user_expressions": {},
        }
        if silent or not code.strip():
            return reply
        if store_history:
            self._inputs.append(code)
        self._outlet = Outlet(
            session=self.session,
            iopub=self.iopub_socket,
            stdin=self.stdin_socket,
            parent=self.get_parent("shell"),
            ident=self._shell_parent_ident.get(),
        )
        self._cell = asyncio.create_task(
            self._run(code, self._outlet, cell_id=_name(cell_id), allow_stdin=allow_stdin)
        )
        try:
            return reply | await self._cell
        except asyncio.CancelledError:
            return reply | INTERRUPTED_REPLY
        finally:
            self._cell = self._outlet = None
            self._is_interrupted = False

    async def _run(self, code: str, outlet: Outlet, *, cell_id: str, allow_stdin: bool) -> Reply:
        try:
            runner = await self._ready()
            return await runner.run(
                code,
                outlet=outlet,
                cell_id=cell_id,
                allow_stdin=allow_stdin,
                execution_count=self.execution_count,
            )
        except CrushKernelError as error:
            return outlet.fail(error)
        except Exception as error:
            logger.exception("a cell failed unexpectedly")
            return outlet.fail(error)

    async def do_complete(self, code: str, cursor_pos: int) -> Reply:
        """Complete `/` commands and `@` files."""
        runner = await self._ready()
        return await runner.editor.complete(code, cursor_pos)

    async def do_inspect(
        self,
        code: str,
        cursor_pos: int,
        detail_level: int = 0,  # noqa: ARG002 - signature of the base
        omit_sections: tuple[str, ...] = (),  # noqa: ARG002
    ) -> Reply:
        """Say what the `@file`, tool or command under the cursor is."""
        runner = await self._ready()
        return await runner.editor.inspect(code, cursor_pos)

    async def do_is_complete(self, code: str) -> Reply:
        """Say whether a console may send: a trailing backslash or an open fence asks for more."""
        is_open = code.rstrip(" ").endswith("\\") or code.count("```") % 2 == 1
        return {"status": "incomplete", "indent": ""} if is_open else {"status": "complete"}

    async def do_history(  # noqa: PLR0917 - signature of the base
        self,
        hist_access_type: str,
        output: bool,  # noqa: ARG002, FBT001
        raw: bool,  # noqa: ARG002, FBT001
        session: int | None = None,  # noqa: ARG002
        start: int | None = 0,
        stop: int | None = None,
        n: int | None = None,
        pattern: str | None = None,
        unique: bool = False,  # noqa: FBT001, FBT002
    ) -> Reply:
        """Return this kernel's inputs, oldest first, as a console wants them."""
        rows = list(enumerate(self._inputs, start=1))
        if hist_access_type == "range":
            rows = [
                row for row in rows if row[0] >= (start or 0) and (stop is None or row[0] < stop)
            ]
        if hist_access_type == "search":
            rows = [row for row in rows if fnmatch(row[1], pattern or "*")]
        if unique:
            rows = [(number, text) for text, number in {text: n for n, text in rows}.items()]
        if n is not None and hist_access_type in ("tail", "search"):
            rows = rows[-n:]
        return {"status": "ok", "history": [(0, number, text) for number, text in rows]}

    # Loading

    def _warm_up(self) -> None:
        """Load what the first cell will need, unless that has begun."""
        if not self._is_warming:
            self._is_warming = True
            self._spawn(self._load_quietly())

    async def _load_quietly(self) -> None:
        try:
            await self._ready()
        except Exception:
            logger.exception("the runtime does not open; the next cell will say why")

    async def _ready(self) -> "CellRunner":
        """Return the runner of cells, loading it on first use."""
        runtime = await self._engine.runtime()
        if self._runner is None:
            # Already in memory: `_open_runtime` imported it on the engine thread.
            from crush_kernel.kernel.cellrunner import CellRunner  # noqa: PLC0415

            self._runner = CellRunner(runtime, self._engine, self._loop, self._pages, self._mirror)
            self._runner.offer_page(self._waiting.values)
        return self._runner

    async def _session(self) -> "Session":
        return (await self._engine.runtime()).session


def _name(cell_id: object) -> str:
    """Return the id of a cell, empty if the front end gives none or nonsense."""
    return cell_id if isinstance(cell_id, str) else ""


def _cell_of(metadata: object) -> str:
    """Return the id of the cell that a request runs, by its metadata; empty without one."""
    return _name(metadata.get("cellId")) if isinstance(metadata, dict) else ""


@asynccontextmanager
async def _open_runtime(cwd: Path) -> "AsyncGenerator[Runtime]":
    """Import what is heavy and open the runtime. Engine thread."""
    from crush_kernel.runtime import open_runtime  # noqa: PLC0415 - after kernel_info

    import_module("crush_kernel.kernel.cellrunner")

    async with open_runtime(environ=dict(os.environ), cwd=cwd) as runtime:
        yield runtime
