"""One run of a notebook: which cell is next, what is told of it, and what is saved when.

The notebook is saved after every cell, whatever ended it, so that a run that is killed has
lost no more than the cell that ran; the next run begins with that one.

What is run is what stood in the notebook at the start. Cells that a model adds meanwhile, or
whose text it exchanges, are left for the next run: what it writes is to be read first.

A first Ctrl-C or SIGTERM stops the cell, saves and shuts the kernel down; a second one does
not wait for the cell.
"""

import logging
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import anyio
from anyio import CancelScope
from anyio.abc import TaskGroup, TaskStatus
from jupyter_client.manager import AsyncKernelManager

from crush_kernel.cli.due import CellState, Reason, due, states
from crush_kernel.cli.notebookclient import CellReply, RunClient
from crush_kernel.cli.notebookfile import NotebookFile
from crush_kernel.cli.notebookpage import NotebookPage
from crush_kernel.cli.records import KEY, Json, Notebook, kept_record
from crush_kernel.cli.runevents import (
    CellFinished,
    CellStarted,
    Finished,
    Output,
    Report,
    Status,
    Warned,
    exit_code,
)
from crush_kernel.cli.turnnews import TurnNews, cut
from crush_kernel.errors import CrushKernelError
from crush_kernel.history.messagejson import read_messages
from crush_kernel.history.plainjson import Budget, Unreasonable
from crush_kernel.history.record import BadRecord, read_turn
from crush_kernel.kernel.cells import Prompt, parse_cell

logger = logging.getLogger(__name__)

GRACE_S: Final = 10
"""How long a cell may take to stop before the kernel is ended; ours takes one second."""
AGAIN_S: Final = 1
"""When to ask again: an interrupt that comes before the cell has begun stops nothing."""
MAX_SOURCE_CHARS: Final = 2_000

_SIGNALS = () if os.name == "nt" else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user asked for."""

    place: Path
    """Where the notebook is written, absolute, as a kernel says it that works in the folder."""
    cwd: Path
    """Where the kernel works: the folder of the notebook that is read."""
    environ: Mapping[str, str]
    """For the kernel, whole."""
    kernelspec: Json | None = None
    """What the notebook is to say of its kernel, if it says nothing."""
    runs_all: bool = False
    allows_errors: bool = False
    """Whether the cells after a failed one run, too."""
    timeout_s: float | None = None
    """For one cell."""


class NotebookRun:
    """Runs one notebook once."""

    def __init__(
        self,
        *,
        notebook: Notebook,
        file: NotebookFile,
        new_manager: Callable[[], AsyncKernelManager],
        choices: Choices,
        report: Report,
    ) -> None:
        self._notebook = notebook
        self._file = file
        self._choices = choices
        self._report = report
        self._page = NotebookPage(
            notebook,
            choices.place,
            on_turn=self._on_turn,
            on_said=self._on_said,
            on_notice=lambda text: report(Warned(text)),
        )
        self._client = RunClient(notebook, self._page, new_manager)
        self._news: dict[str, TurnNews] = {}
        """Of the cells that have run or run now, in the order of running."""
        self._finished: list[CellFinished] = []
        self._opening = CancelScope()
        self._is_stopping = False
        """Whether the user wants no more."""
        self._is_cut_short = False
        """Whether cells were left because of that."""
        self._runs_all = choices.runs_all

    async def execute(self) -> Finished:
        """Run what has to run, tell of it, and return what is to be told last."""
        started = anyio.current_time()
        error: CrushKernelError | None = None
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._obey_signals)
            try:
                await self._run(tasks)
            except CrushKernelError as failure:
                error = failure
            finally:
                await self._client.close()
            tasks.cancel_scope.cancel()
        return self._summary(anyio.current_time() - started, error)

    async def _run(self, tasks: TaskGroup) -> None:
        with self._opening:
            await self._client.start(cwd=self._choices.cwd, environ=self._choices.environ)
            tasks.start_soon(self._client.listen)
            await self._client.open_page()
        if not self._is_stopping:
            if not self._client.has_page:
                self._runs_all = True
                self._report(Warned("this kernel keeps no turns in a notebook: every cell is run"))
            self._save()
        while chosen := self._next():
            if self._is_stopping:
                self._is_cut_short = True
                return
            if not self._goes_on_after(await self._cell(*chosen)):
                return

    def _next(self) -> tuple[int, Reason] | None:
        """Return the place of the cell that runs next, and why it does."""
        waiting = due(
            self._states(),
            stale=self._page.stale,
            ran=self._news.keys(),
            runs_all=self._runs_all,
        )
        for index, cell in enumerate(self._notebook["cells"]):
            if reason := waiting.get(cell["id"]):
                return index, reason
        return None

    def _states(self) -> tuple[CellState, ...]:
        """Return the cells that can run in this run, from top to bottom."""
        written = self._page.written - self._news.keys()
        return tuple(state for state in states(self._notebook) if state.id not in written)

    def _goes_on_after(self, ended: CellFinished) -> bool:
        if ended.status in ("failed", "timed_out"):
            return self._choices.allows_errors
        self._is_cut_short |= ended.status == "interrupted" and self._is_stopping
        return ended.status == "ok"

    # One cell

    async def _cell(self, index: int, reason: Reason) -> CellFinished:
        cell = self._notebook["cells"][index]
        self._name_kernel()
        news = self._news[cell["id"]] = TurnNews(cell["id"])
        self._report(self._cell_started(index, reason))
        started, kept = anyio.current_time(), kept_record(cell)
        try:
            status, reply = await self._within_time(index)
            if reply.status == "died" and kept_record(cell) is kept:
                # Of an earlier run: it does not go with what the cell shows now.
                cell["metadata"].pop(KEY, None)
        finally:
            self._save()
        # What a model says was told while it came: of a prompt, or of a skill that was called.
        is_told = isinstance(parse_cell(cell["source"]), Prompt) or bool(news.model)
        if not news.has_turn or not is_told:
            self._tell_output(cell)
        ended = CellFinished(
            cell=cell["id"],
            status=status,
            duration_s=round(anyio.current_time() - started, 3),
            error=reply.name,
            message=reply.message,
            model=news.model,
            usage=news.usage,
            denied=news.denied,
        )
        self._finished.append(ended)
        self._report(ended)
        return ended

    def _name_kernel(self) -> None:
        """Have the notebook say what it was run with, as a browser does."""
        metadata = self._notebook["metadata"]
        if self._client.language_info:
            metadata["language_info"] = self._client.language_info
        if self._choices.kernelspec is not None:
            metadata["kernelspec"] = self._choices.kernelspec

    async def _within_time(self, index: int) -> tuple[Status, CellReply]:
        """Run a cell, stopping it when its time is over."""
        is_late = False
        reply = CellReply("interrupted")

        async def stop_late() -> None:
            nonlocal is_late
            if self._choices.timeout_s is not None:
                await anyio.sleep(self._choices.timeout_s)
                is_late = True
                await self._stop_cell()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop_late)
            reply = await self._client.run_cell(index)
            tasks.cancel_scope.cancel()
        status = _STATUSES[reply.status]
        if status in ("interrupted", "died") and (is_late or self._is_stopping):
            # Also when only the end of the kernel could stop it.
            return "timed_out" if is_late else "interrupted", reply
        return status, reply

    def _on_turn(self, cell_id: str, record: Json) -> None:
        news = self._news.get(cell_id)
        if news is None:
            return
        try:
            turn = read_turn(record, cell_id=cell_id)
        except BadRecord:
            logger.warning("the kernel sent a record that cannot be read")
            return
        if record.get("end") == "running":
            turn = replace(turn, end="running")
        for event in news.feed(turn):
            self._report(event)

    def _on_said(self, cell_id: str, index: int, messages: list[Any]) -> None:
        news = self._news.get(cell_id)
        if news is None:
            return
        try:
            read = read_messages(messages, Budget())
        except Unreasonable:
            return
        for event in news.grow(index, read.messages):
            self._report(event)

    def _tell_output(self, cell: Json) -> None:
        if text := "\n".join(_plain(cell["outputs"])):
            self._report(Output(cell["id"], cut(text)))

    def _save(self) -> None:
        """Write the notebook, and tell the kernel so.

        Raises:
            CrushKernelError: it cannot be written.
        """
        self._client.tell({"method": "saving"})
        self._file.save(self._notebook)
        self._client.tell({"method": "saved"})

    # Stopping

    async def _obey_signals(self, *, task_status: TaskStatus[None]) -> None:
        if not _SIGNALS:
            task_status.started()
            return
        with anyio.open_signal_receiver(*_SIGNALS) as signals:
            task_status.started()
            async with anyio.create_task_group() as tasks:
                async for _ in signals:
                    if self._is_stopping:
                        await self._client.kill()
                        continue
                    self._is_stopping = True
                    self._opening.cancel()
                    self._report(Warned("stopping; once more ends the kernel at once"))
                    tasks.start_soon(self._stop_cell)

    async def _stop_cell(self) -> None:
        """Interrupt the cell that runs until it has stopped, by force in the end."""
        with anyio.move_on_after(GRACE_S):
            while self._client.is_busy:
                await self._client.interrupt()
                await anyio.sleep(AGAIN_S)
        if self._client.is_busy:
            await self._client.kill()

    # What is told

    def _cell_started(self, index: int, reason: Reason) -> CellStarted:
        cell = self._notebook["cells"][index]
        places = [state.id for state in self._states()]
        source = cut(cell["source"].strip(), MAX_SOURCE_CHARS)
        return CellStarted(cell["id"], places.index(cell["id"]) + 1, source, reason)

    def _unasked(self) -> tuple[int, ...]:
        """Return the numbers of the cells in which nobody could be asked."""
        return tuple(
            number
            for number, state in enumerate(self._states(), 1)
            if (news := self._news.get(state.id)) is not None and news.unasked
        )

    def _summary(self, duration_s: float, error: CrushKernelError | None) -> Finished:
        cells = tuple(self._finished)
        runnable = {state.id for state in states(self._notebook)}
        written = runnable & self._page.written
        usage: Counter[str] = Counter()
        for ended in cells:
            usage.update(ended.usage or {})
        if usage:
            usage["is_estimated"] = bool(usage["is_estimated"])  # no count, as the others are
        return Finished(
            exit_code=exit_code(cells, is_stopped=self._is_cut_short, is_broken=error is not None),
            ran=len(cells),
            up_to_date=len(runnable - self._news.keys() - written),
            written=len(written),
            failed=sum(ended.status not in ("ok", "interrupted") for ended in cells),
            denied=sum(ended.denied for ended in cells),
            unasked=self._unasked(),
            usage=dict(usage),
            duration_s=round(duration_s, 3),
            message="" if error is None else " ".join(filter(None, (str(error), error.hint))),
        )


_STATUSES: Mapping[str, Status] = {
    "ok": "ok",
    "error": "failed",
    "interrupted": "interrupted",
    "died": "died",
}


def _plain(outputs: list[Json]) -> Iterator[str]:
    """Yield what `outputs` show in plain text, but errors, which are told on their own."""
    for output in outputs:
        text = output.get("text") or output.get("data", {}).get("text/plain", "")
        if isinstance(text, str) and text.strip():
            yield text.rstrip("\n")
