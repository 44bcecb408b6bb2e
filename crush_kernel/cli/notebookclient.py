"""A front end without a screen: starts the kernel, runs cells, keeps the notebook's records.

nbclient's client, for its way with outputs, with a reader of its own: nbclient hears the
kernel only while a cell runs and only what answers that cell, but the comm speaks at any
time. What would be an exception in nbclient, a cell that fails or a kernel that dies, is a
value here, since the notebook has to be saved in any case.

One task calls `listen`; `run_cell` is called by one task at a time; `interrupt` and `kill`
by any. All on one loop.

Source: nbclient 0.11 `NotebookClient`; Jupyter messaging; JupyterLab's `CodeCell.execute`.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any, Final, Literal, cast

import anyio
from anyio import CancelScope
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import ensure_async
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionComplete

from crush_kernel.cli.notebookpage import NotebookPage
from crush_kernel.cli.records import KEY, Json, Notebook
from crush_kernel.errors import CrushKernelError
from crush_kernel.kernel.outlet import packing_any_text
from crush_kernel.kernel.pages.messages import TARGET

IMPLEMENTATION: Final = "crush"
"""What our kernel calls itself; only with that one a comm makes sense."""

START_TIMEOUT_S: Final = 60
START_ATTEMPTS: Final = 3
"""jupyter_client chooses ports a second before the kernel listens on them: another program
may have taken one by then, and the kernel ends at once."""
ALIVE_EVERY_S: Final = 0.5
"""How often we look whether the kernel lives while it says nothing."""
SETTLE_S: Final = 5
"""How long we wait for output that must have been sent, since the reply is here."""
READY_S: Final = 30
"""How long a kernel may take to load a notebook; it answers even a large one in seconds."""


@dataclass(frozen=True, slots=True)
class CellReply:
    """How a cell ended."""

    status: Literal["ok", "error", "interrupted", "died"]
    name: str = ""
    """The name of the error."""
    message: str = ""


@dataclass(slots=True)
class _Running:
    """The cell whose output is coming."""

    request: str
    index: int
    is_idle: anyio.Event = field(default_factory=anyio.Event)


class RunClient(NotebookClient):
    """Runs the cells of one notebook in a kernel that it owns."""

    def __init__(
        self,
        notebook: Notebook,
        page: NotebookPage,
        new_manager: Callable[[], AsyncKernelManager],
    ) -> None:
        # Times would make a diff of what has not changed, and there are no widgets.
        super().__init__(cast("Any", notebook), record_timing=False, store_widget_state=False)
        self._new_manager = new_manager
        self._page = page
        self._comm_id = ""
        """Empty while no comm is open."""
        self._running: _Running | None = None
        self._idle: dict[str, anyio.Event] = {}
        """Requests whose end is waited for."""
        self._news = anyio.Event()
        """Set, and put in place anew, whenever the page was told something."""
        self._listening = CancelScope()
        self.language_info: Json = {}
        """What the kernel says of its language; known once the page is open."""

    async def start(self, *, cwd: Path, environ: Mapping[str, str]) -> None:
        """Start the kernel and wait until it answers.

        Cancelling may leave a kernel behind, which `close` stops.

        Raises:
            CrushKernelError: it does not start; its last words are on the standard error.
        """
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                await self._start_once(cwd, environ)
            except (RuntimeError, OSError) as error:
                await self._drop_kernel()
                if attempt == START_ATTEMPTS or isinstance(error, OSError):
                    raise CrushKernelError(
                        f"the kernel does not start: {error}",
                        hint="`jupyter crush doctor` says what is missing.",
                    ) from error
            else:
                return

    async def listen(self) -> None:
        """Take in what the kernel publishes, until it is closed."""
        with self._listening:
            while True:
                self._heard(await ensure_async(self._kernel.iopub_channel.get_msg(timeout=None)))

    async def open_page(self) -> None:
        """Open the comm and wait until the kernel has told all that it knows.

        A kernel without it is left as it is: an older one of ours, or another language's.
        """
        request = self._send("kernel_info_request", {})
        reply = await self._reply_to(request)
        info: Json = reply["content"] if reply else {}
        self.language_info = info.get("language_info") or {}
        if info.get("implementation") != IMPLEMENTATION:
            return
        self._comm_id = uuid.uuid4().hex
        self._send(
            "comm_open",
            {
                "comm_id": self._comm_id,
                "target_name": TARGET,
                "data": self._page.opening(),
            },
        )
        with anyio.move_on_after(READY_S):
            while self._comm_id and not self._page.is_ready and await self._is_alive():
                with anyio.move_on_after(ALIVE_EVERY_S):
                    await self._news.wait()

    @property
    def has_page(self) -> bool:
        """Whether the kernel speaks with the page."""
        return bool(self._comm_id) and self._page.is_ready

    @property
    def is_busy(self) -> bool:
        """Whether a cell runs."""
        return self._running is not None

    def tell(self, data: Json) -> None:
        """Say something to the kernel over the comm, if it is open."""
        if self._comm_id and self.kc is not None:
            self._send("comm_msg", {"comm_id": self._comm_id, "data": data})

    async def run_cell(self, index: int) -> CellReply:
        """Run a code cell, writing what it shows into the notebook, and return how it ended.

        Its former outputs go. All that the kernel had to say of it has been taken in.
        """
        cell = self.nb.cells[index]
        cell["outputs"] = []
        cell["execution_count"] = None
        self.clear_before_next_output = False
        self.clear_display_id_mapping(index)
        self._running = _Running(self._execute(cell), index)
        self._page.running = cell["id"]
        try:
            reply = await self._reply_to(self._running.request)
            if reply is None:
                return CellReply("died")
            with anyio.move_on_after(SETTLE_S):
                await self._running.is_idle.wait()
            await self._settle()
            return _cell_reply(reply["content"])
        finally:
            self._running = None
            self._page.running = None

    async def interrupt(self) -> None:
        """Ask the kernel to stop the cell that runs."""
        if await self._is_alive():
            await ensure_async(self._manager.interrupt_kernel())

    async def kill(self) -> None:
        """End the kernel at once; its children end with it."""
        if await self._is_alive():
            await self._manager.provisioner.kill()

    async def close(self) -> None:
        """Shut the kernel down, by force if it does not obey; safe to repeat.

        Takes up to five seconds, and cannot be cancelled.
        """
        self._listening.cancel()
        with CancelScope(shield=True):
            await self._drop_kernel()

    # What is sent

    def _execute(self, cell: Json) -> str:
        """Send a cell to be run, as JupyterLab does, and return the request's id.

        Our own metadata stays here: the kernel has it over the comm.
        """
        metadata = {key: value for key, value in cell["metadata"].items() if key != KEY}
        content: Json = {
            "code": cell["source"],
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        return self._send("execute_request", content, {**metadata, "cellId": cell["id"]})

    def _send(self, kind: str, content: Json, metadata: Json | None = None) -> str:
        message = self._kernel.session.msg(kind, content, metadata=metadata)
        self._kernel.shell_channel.send(message)
        return message["header"]["msg_id"]

    # What comes

    def _heard(self, message: Json) -> None:
        content, kind = message["content"], message["header"]["msg_type"]
        request = message["parent_header"].get("msg_id")
        running = self._running
        if kind.startswith("comm_") and content.get("comm_id") == self._comm_id:
            self._told(kind, content)
        elif running is not None and request == running.request:
            try:
                self.process_message(message, self.nb.cells[running.index], running.index)
            except CellExecutionComplete:
                running.is_idle.set()
        elif kind == "status" and content["execution_state"] == "idle" and request in self._idle:
            self._idle[request].set()

    def _told(self, kind: str, content: Json) -> None:
        if kind == "comm_close":
            self._comm_id = ""
        elif kind == "comm_msg":
            answers = self._page.receive(content["data"])
            if self._page.former is not None:
                self._renumber(self._page.former)
                self._page.former = None
            for answer in answers:
                self.tell(answer)
            while self._page.repainted:
                self.clear_display_id_mapping(self._page.repainted.pop())
        self._news.set()
        self._news = anyio.Event()

    def _renumber(self, former: list[str]) -> None:
        """Find by their new places the cells that were known by the `former` ones."""
        cells = enumerate(self.nb.cells)
        places = {cell["id"]: place for place, cell in cells if cell["cell_type"] == "code"}
        if self._running is not None:
            self._running.index = places[former[self._running.index]]
        for shown in self._display_id_map.values():
            kept = {
                places[former[place]]: outputs
                for place, outputs in shown.items()
                if former[place] in places
            }
            shown.clear()
            shown.update(kept)

    async def _reply_to(self, request: str) -> Json | None:
        """Return the reply to `request`; `None` if the kernel has died."""
        while True:
            try:
                message = await ensure_async(
                    self._kernel.shell_channel.get_msg(timeout=ALIVE_EVERY_S)
                )
            except Empty:
                if not await self._is_alive():
                    return None
            else:
                if message["parent_header"].get("msg_id") == request:
                    return message

    async def _settle(self) -> None:
        """Wait until all that the kernel has sent so far is here: one socket keeps the order."""
        request = self._send("kernel_info_request", {})
        arrived = self._idle[request] = anyio.Event()
        try:
            if await self._reply_to(request) is not None:
                with anyio.move_on_after(SETTLE_S):
                    await arrived.wait()
        finally:
            del self._idle[request]

    # The kernel

    async def _start_once(self, cwd: Path, environ: Mapping[str, str]) -> None:
        self.km = self._new_manager()
        await self._manager.start_kernel(cwd=str(cwd), env=dict(environ))
        self.kc = self._manager.client()
        self._kernel.session.pack = packing_any_text(self._kernel.session.pack)
        self._kernel.start_channels()
        await self._kernel.wait_for_ready(timeout=START_TIMEOUT_S)

    async def _drop_kernel(self) -> None:
        if self.km is not None:
            await self._async_cleanup_kernel()

    async def _is_alive(self) -> bool:
        return self.km is not None and await ensure_async(self.km.is_alive())

    @property
    def _kernel(self) -> Any:  # noqa: ANN401 - its methods are coroutines or not, by its class
        return self.kc

    @property
    def _manager(self) -> Any:  # noqa: ANN401 - the same
        return self.km


def _cell_reply(content: Json) -> CellReply:
    if content.get("status") == "ok":
        return CellReply("ok")
    name, message = str(content.get("ename", "")), str(content.get("evalue", ""))
    # A request that was waiting while another cell was stopped is `aborted`.
    is_stopped = content.get("status") == "aborted" or name in ("Interrupted", "KeyboardInterrupt")
    return CellReply("interrupted" if is_stopped else "error", name, message)
