"""Jobs: commands that may run on when whoever started them goes on.

Every command of the agent is one. While somebody waits for it, it is nobody else's business
and is stopped when the waiting is cancelled. Once it is put into the background it has an id
and a log, belongs to the kernel, and ends by itself, by `stop`, or with the kernel. Nothing is
polled: a job tells when it ends.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from crush_kernel.errors import ToolError
from crush_kernel.shell.command import RunningCommand
from crush_kernel.shell.joblog import JobLog, PlainStream, Section, TextStream
from crush_kernel.shell.runner import CommandResult, Shell, result_of
from crush_kernel.shell.sandbox import Sandbox

logger = logging.getLogger(__name__)

MAX_RUNNING = 50
"""Jobs in the background at a time."""

MAX_ENDED = 50
"""Jobs that have ended and whose output is kept; the oldest is forgotten first."""

_STOP_LIMIT_S = 3.0
"""For a job to say that it has ended; only one that no signal reaches takes longer."""


class Job:
    """One command. `Jobs` starts and ends it, others look at it and wait for it."""

    def __init__(
        self, running: RunningCommand, command: str, *, cwd: Path, description: str
    ) -> None:
        """Begin with a command that was just started."""
        self.id = ""
        """Empty while it is not in the background."""
        self.command = command
        self.cwd = cwd
        self.description = description
        self.running = running
        self.started_s = anyio.current_time()
        self.result: CommandResult | None = None
        """What it came to, once it has ended; `None` still if it cannot be known."""
        self.error: Exception | None = None
        """Why it cannot be known."""
        self.is_told = False
        """Whether the model has read that it has ended."""
        self.scope = anyio.CancelScope()
        self.log: JobLog | None = None
        self._ended = anyio.Event()
        self._listeners: list[Callable[[str], None]] = []
        self._cursor = 0
        self._unfinished = ""

    @property
    def is_ended(self) -> bool:
        """Return whether it runs no more."""
        return self._ended.is_set()

    @property
    def is_stopped(self) -> bool:
        """Return whether `stop` has ended it."""
        return self.running.is_stopped

    @property
    def duration_s(self) -> float:
        """Return for how long it has run."""
        return self.result.duration_s if self.result else anyio.current_time() - self.started_s

    async def wait(
        self, timeout_s: float | None, on_output: Callable[[str], None] | None = None
    ) -> bool:
        """Wait until it has ended, `timeout_s` seconds at most, and return whether it has.

        Cancelling leaves it alone.

        Args:
            timeout_s: `None` waits as long as it takes.
            on_output: gets the last lines so far, now and then; must not raise.
        """
        if on_output is not None:
            self._listeners.append(on_output)
        try:
            with anyio.move_on_after(timeout_s):
                await self._ended.wait()
        finally:
            if on_output is not None:
                self._listeners.remove(on_output)
        return self.is_ended

    def read_new(self) -> Section:
        """Return what was printed since the last time, and remember that it was read.

        A line in the making comes at the end, and again when it is done.
        """
        section = self.read(self._cursor)
        self._cursor = self.log.end if self.log else 0
        unfinished = "" if self.is_ended else self.running.unfinished()
        if unfinished != self._unfinished:
            section = Section(section.text + unfinished, section.lost_bytes)
        self._unfinished = unfinished
        return section

    def read_last(self, lines: int) -> Section:
        """Return the last `lines` lines of all; everything before counts as read."""
        self.read_new()
        text = self.read(0).text + ("" if self.is_ended else self.running.unfinished())
        return Section("".join(text.splitlines(keepends=True)[-lines:]), 0)

    def read(self, start: int) -> Section:
        """Return what is kept of its output from the position `start` on."""
        return self.log.read(start) if self.log else Section("", 0)

    def tell(self, tail: str) -> None:
        """Tell whoever waits how far it is."""
        for listener in self._listeners:
            listener(tail)

    def finish(self, *, is_known: bool) -> None:
        """Say that it has ended, and whether it is known how."""
        if is_known:
            self.result = result_of(self.running, started_s=self.started_s)
        if self.log is not None:
            self.log.finish()
        self._ended.set()


class Jobs:
    """The jobs of one kernel; leaving it ends them all. To be used on one event loop."""

    def __init__(
        self,
        shell: Shell,
        *,
        open_stream: Callable[[], TextStream] = PlainStream,
        last_used: Callable[[], int] = lambda: 0,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Prepare for jobs in `shell`, which outlives this; nothing starts yet.

        Args:
            shell: runs the commands.
            open_stream: makes what takes the secrets out of one output.
            last_used: tells the highest number that a job of an earlier kernel has in the
                conversation, whose id must not come to mean another one.
            sandbox: confines every command, or refuses it.
        """
        self.sandbox = sandbox
        self._last_used = last_used
        self._shell = shell
        self._open_stream = open_stream
        self._listed: dict[str, Job] = {}
        self._count = 0
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop all jobs together, within about a second, also when cancelled."""
        tasks, self._tasks = self._tasks, None
        try:
            if tasks:
                tasks.cancel_scope.cancel()
                # An error of the body goes on as it is: in the group it would become a group.
                await tasks.__aexit__(None, None, None)
        finally:
            for job in self._listed.values():
                _forget(job)
            self._listed.clear()

    @property
    def listed(self) -> tuple[Job, ...]:
        """The jobs in the background, the oldest first, also those that have ended lately."""
        return tuple(self._listed.values())

    @property
    def has_room(self) -> bool:
        """Whether one more may run in the background."""
        return sum(not job.is_ended for job in self._listed.values()) < MAX_RUNNING

    def require_room(self) -> None:
        """Raise `ToolError` unless one more may run in the background."""
        if not self.has_room:
            raise ToolError(
                f"{MAX_RUNNING} jobs are running, and more may not. Stop one with job_kill first."
            )

    @asynccontextmanager
    async def command(
        self,
        command: str,
        *,
        cwd: Path,
        timeout_s: float | None,
        description: str = "",
        env: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[Job]:
        """Start `command`; leaving stops it within a second, unless it was put away by then.

        Args:
            command: a bash program.
            cwd: the folder it starts in.
            timeout_s: when to stop it, wherever it is then; `None` lets it run.
            description: what it is for, in a few words.
            env: what to add to its environment.

        Raises:
            ToolError: as `Shell.run`.
        """
        if self._tasks is None:
            raise RuntimeError("there are no jobs yet, or no more")
        prefix = await self.sandbox.prefix(cwd) if self.sandbox else ()

        async def run(*, task_status: TaskStatus[Job]) -> None:
            with self._shell.command(command, cwd=cwd, env=env, prefix=prefix) as running:
                job = Job(running, command, cwd=cwd, description=description)
                task_status.started(job)
                await _follow(job, timeout_s=timeout_s)

        job: Job = await self._tasks.start(run)
        try:
            yield job
        finally:
            if not job.id and not job.is_ended:
                # Its last words are of no interest: whoever waited is gone.
                job.scope.cancel()
                with anyio.CancelScope(shield=True):
                    await job.wait(_STOP_LIMIT_S)

    def put_away(self, job: Job) -> None:
        """Let a running job run on in the background; it gets an id.

        Raises:
            ToolError: there is no room for its output on the disk.
        """
        try:
            job.log = JobLog(self._open_stream())
        except OSError as error:
            raise ToolError(
                f"The command cannot run in the background, because its output cannot be kept: "
                f"{error.strerror or error}."
            ) from error
        job.log.lose(job.running.buffer.lost_bytes)
        job.running.buffer.log_to(job.log.add)
        if job.is_ended:
            job.running.buffer.finish()
            job.log.finish()
        self._count = max(self._count, self._last_used()) + 1
        job.id = f"{self._count:03X}"
        self._listed[job.id] = job
        ended = [each for each in self._listed.values() if each.is_ended]
        for oldest in ended[: max(0, len(ended) - MAX_ENDED)]:
            _forget(self._listed.pop(oldest.id))

    def guard(self) -> dict[str, str]:
        """Do what `Shell.guard` does."""
        return self._shell.guard()

    def find(self, job_id: str) -> Job:
        """Return the job with an id, however it is written.

        Raises:
            ToolError: there is none.
        """
        if job := self._listed.get(job_id.strip().upper().rjust(3, "0")):
            return job
        known = ", ".join(job.id for job in self._listed.values() if not job.is_ended)
        raise ToolError(
            f"There is no job {job_id!r}. "
            + (f"These are running: {known}." if known else "None is running.")
            + " Jobs end with their kernel, and those that ended long ago are forgotten."
        )

    async def stop(self, job: Job) -> None:
        """Stop `job` and all that it started, within a second; what has ended stays as it is."""
        if not job.is_ended:
            job.running.stop()
            await job.wait(_STOP_LIMIT_S)
        if job.result is not None and job.result.left_over:
            await job.running.stop_left_over()

    @property
    def news(self) -> tuple[Job, ...]:
        """The jobs that have ended without the model knowing."""
        return tuple(job for job in self.listed if job.is_ended and not job.is_told)


async def _follow(job: Job, *, timeout_s: float | None) -> None:
    """Wait for the end of `job`, and say so whatever it is."""
    is_known = False
    try:
        with job.scope:
            await job.running.finish(timeout_s=timeout_s, report=job.tell)
        is_known = True
    except Exception as error:
        # Other jobs run beside it, and those must go on.
        logger.exception("a command cannot be followed")
        job.error = error
    finally:
        job.finish(is_known=is_known)


def _forget(job: Job) -> None:
    if job.log is not None:
        job.log.close()
