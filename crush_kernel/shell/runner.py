"""Run command lines in bash, and let none of their processes get lost.

A command has a session of its own, no terminal, an empty stdin and one pipe for all that it
prints. It is over when bash has ended, even if something that it started holds the pipe: that
is reported, its further output is thrown away, and it is stopped with the shell at the latest.
Timeout and cancellation stop everything that the command started. A `Watchdog` does the
same if the kernel dies.
"""

import os
import secrets
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup

from crush_kernel.errors import ToolError
from crush_kernel.shell.command import (
    CANCEL_GRACE_S,
    STOP_LIMIT_S,
    RunningCommand,
    discard_output,
    encode_command,
    stop_family,
)
from crush_kernel.shell.environment import MARK, command_environment
from crush_kernel.shell.exchange import Answer, Exchange
from crush_kernel.shell.processes import Family, Survivor, is_orphaned_group
from crush_kernel.shell.reaper import Watchdog
from crush_kernel.shell.sandbox import refusals


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command came to."""

    output: str
    """What it printed on stdout and stderr, in order; see `OutputBuffer`."""
    exit_code: int
    """As `$?` has it: 128 + n after signal n."""
    is_timed_out: bool
    duration_s: float
    left_over: tuple[Survivor, ...] = ()
    """What it left running, by process id. It is stopped with the shell."""
    refusals: tuple[str, ...] = ()
    """What a sandbox has probably refused it, a line each, for the model."""


def result_of(running: RunningCommand, *, started_s: float) -> CommandResult:
    """Return what a command came to that has just ended and began at `started_s`."""
    output = running.buffer.text()
    has_failed = running.exit_code != 0 and not running.is_timed_out
    return CommandResult(
        output=output,
        exit_code=running.exit_code,
        is_timed_out=running.is_timed_out,
        duration_s=anyio.current_time() - started_s,
        left_over=running.left_over,
        refusals=refusals(output) if running.is_confined and has_failed else (),
    )


def find_bash(environ: Mapping[str, str]) -> Path | None:
    """Return the bash on the PATH of `environ`, if there is one."""
    found = shutil.which("bash", path=environ.get("PATH"))
    return Path(found) if found and os.name == "posix" else None


class Shell:
    """Runs commands, any number at a time; leaving it ends all that they left.

    To be used on one event loop, which may run on any thread.
    """

    def __init__(
        self, environ: Mapping[str, str], *, clean: Callable[[str], str] | None = None
    ) -> None:
        """Prepare a shell; nothing starts yet.

        Args:
            environ: what its commands inherit.
            clean: takes the secrets out of what is reported while a command runs, a text to
                which more will be added. The result in the end is as it was printed.
        """
        self._clean = clean
        self._environ = command_environment(environ)
        self._id = secrets.token_hex(8)
        self._count = 0
        self._active: set[int] = set()
        """The process groups whose bash runs."""
        self._left: set[int] = set()
        """Those whose bash has ended and which had members left."""
        self._bash: Path | None = None
        self._watchdog: Watchdog | None = None
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
        """Stop whatever still runs, within about a second, also when cancelled."""
        tasks, self._tasks = self._tasks, None
        watchdog, self._watchdog = self._watchdog, None
        if self._count:
            self._left = {group for group in self._left if is_orphaned_group(group)}
            family = Family(
                f"{MARK}={self._id}.".encode(), groups=frozenset(self._active | self._left)
            )
            with anyio.move_on_after(STOP_LIMIT_S, shield=True):
                await stop_family(family, grace_s=CANCEL_GRACE_S)
        if watchdog:
            await watchdog.close()
        if tasks:
            tasks.cancel_scope.cancel()
            # An error of the body goes on as it is: in the group it would become a group.
            await tasks.__aexit__(None, None, None)

    async def run(
        self,
        command: str,
        *,
        cwd: Path,
        timeout_s: float | None,
        on_output: Callable[[str], None] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run `command` in bash and return what it came to.

        Cancelling stops the command and all that it started, within a second.

        Args:
            command: a bash program.
            cwd: the folder it starts in.
            timeout_s: when to stop it; `None` lets it run.
            on_output: gets the last 20 lines so far, at most every 0.1 s; must not raise.
            env: what to add to its environment.

        Raises:
            ToolError: nothing was run, because the command is no text for a shell, the
                folder is not there, or bash cannot be started.
        """
        started_s = anyio.current_time()
        with self.command(command, cwd=cwd, env=env) as running:
            await running.finish(timeout_s=timeout_s, report=on_output)
        return result_of(running, started_s=started_s)

    @contextmanager
    def command(
        self,
        command: str,
        *,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        prefix: tuple[str, ...] = (),
    ) -> Generator[RunningCommand]:
        """Start `command`; whoever enters awaits its `finish` before leaving.

        Args:
            command: a bash program.
            cwd: the folder it starts in.
            env: what to add to its environment.
            prefix: the words of a program that confines it; see `shell.sandbox`.

        Raises:
            ToolError: as `run`.
        """
        running = self._start(encode_command(command), cwd=cwd, env=env or {}, prefix=prefix)
        try:
            yield running
        finally:
            self._let_go(running)

    def guard(self) -> dict[str, str]:
        """Return what to add to the environment of a program that is to end with the kernel.

        For programs that others start, and end themselves while the kernel lives.
        """
        if self._tasks is not None and (watchdog := self._watching()):
            watchdog.watch(self._active, self._left)
        return {MARK: f"{self._id}.0"}

    async def exchange(
        self,
        command: str,
        given: bytes,
        *,
        cwd: Path,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> Answer:
        """Run `command` in bash with something to read, and return what it answers.

        Nothing that it started outlives the call. Cancelling stops it within a second.

        Args:
            command: a bash program.
            given: what it can read on stdin.
            cwd: the folder it starts in.
            timeout_s: when to stop it.
            env: what to add to its environment.

        Raises:
            ToolError: as `run`.
        """
        script = encode_command(command)
        bash, mark = self._ready()
        asked = Exchange(
            bash, script, given, cwd=cwd, env=self._environment(cwd, env or {}), mark=mark
        )
        self._note(asked.group)
        try:
            return await asked.finish(timeout_s=timeout_s)
        finally:
            asked.close()
            self._forget(asked.group)

    def _start(
        self, script: bytes, *, cwd: Path, env: Mapping[str, str], prefix: tuple[str, ...]
    ) -> RunningCommand:
        bash, mark = self._ready()
        running = RunningCommand(
            bash,
            script,
            cwd=cwd,
            env=self._environment(cwd, env),
            mark=mark,
            clean=self._clean,
            prefix=prefix,
        )
        self._note(running.group)
        return running

    def _ready(self) -> tuple[Path, str]:
        """Return bash and the mark of the next command, once the watchdog knows of it."""
        if self._tasks is None:
            raise RuntimeError("the shell is not open")
        watchdog = self._watching()
        if self._bash is None or watchdog is None:
            raise ToolError("bash is not installed, or not on the PATH: install it.")
        # Before the command: the kernel can die at any moment, and the mark is enough to find it.
        watchdog.watch(self._active, self._left)
        self._count += 1
        return self._bash, f"{self._id}.{self._count}"

    def _environment(self, cwd: Path, env: Mapping[str, str]) -> dict[str, str]:
        return {**self._environ, "PWD": str(cwd), **env}

    def _note(self, group: int) -> None:
        self._active.add(group)
        if self._watchdog:
            self._watchdog.watch(self._active, self._left)

    def _watching(self) -> Watchdog | None:
        """Return the watchdog; `None` where there is no bash."""
        if self._watchdog is None:
            self._bash = find_bash(self._environ)
            if self._bash is not None:
                self._watchdog = Watchdog(self._bash, f"{MARK}={self._id}.")
        return self._watchdog

    def _let_go(self, running: RunningCommand) -> None:
        """Close the pipe or leave it to a reader, and forget the groups that have ended."""
        if running.left_over and self._tasks and not running.is_drained.is_set():
            # Closing it would kill a server with the first line that it logs.
            self._tasks.start_soon(discard_output, running.pipe)
        else:
            os.close(running.pipe)
        self._forget(running.group)

    def _forget(self, group: int) -> None:
        """Forget a group whose bash has ended, unless it has members left."""
        self._active.discard(group)
        self._left = {each for each in (*self._left, group) if is_orphaned_group(each)}
        if self._watchdog:
            self._watchdog.watch(self._active, self._left)
