"""One command that runs: its process, what it prints, and its end."""

import logging
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

import anyio
import anyio.lowlevel

from crush_kernel.errors import ToolError
from crush_kernel.shell.environment import MARK
from crush_kernel.shell.output import OutputBuffer
from crush_kernel.shell.processes import (
    Family,
    Survivor,
    is_orphaned_group,
    still_running,
    wait_for_exit,
)

logger = logging.getLogger(__name__)

REPORT_LINES = 20
"""How many of the last lines a report shows."""

REPORT_INTERVAL_S = 0.1
"""How far apart reports are; a command that ends sooner makes none."""

MAX_COMMAND_BYTES = 128 * 1024 - 1
"""Source: Linux, `MAX_ARG_STRLEN`: one argument, its final NUL left out."""

STOP_LIMIT_S = 0.8
"""For the stop when a person waits, so that an interrupted cell is idle within a second."""

CANCEL_GRACE_S = 0.3
"""Between TERM and KILL when a person waits."""

_TIMEOUT_GRACE_S = 2.0
"""Between TERM and KILL when nobody does: time to write a report or to remove a lock."""

_CHUNK_BYTES = 16 * 1024
"""Little enough that cleaning up the wildest output keeps the loop for milliseconds only."""

_STRAGGLERS_S = 0.1
"""How long what a command started may outlive bash before it counts as left over, such as
the far end of a process substitution."""

_KILL_ROUNDS = 5
"""How often to look for what was forked while it was being killed."""

_REAP_LIMIT_S = 1.0
"""For bash to end after KILL; only a process stuck in the operating system takes longer."""

_POLL_S = 0.01

_FLOOD_PAUSE_S = 0.005
"""After a whole chunk of an output that goes to a log: an endless printer in the background is
slowed down to some megabytes a second and leaves the loop to others."""

_DISCARD_BYTES = 64 * 1024
"""What a pipe holds on Linux."""

_DISCARD_PAUSE_S = 0.05
"""Between reads of an output that nobody wants: a talkative server lives on, an endless
printer is slowed down to about a megabyte a second."""


def encode_command(command: str) -> bytes:
    """Return `command` as bash gets it.

    Raises:
        ToolError: it is empty, too long, or not made of characters that a shell can take.
    """
    if not command.strip():
        raise ToolError("The command is empty.")
    if "\0" in command:
        raise ToolError(
            "The command contains a NUL character, which no shell can take. Write it without."
        )
    try:
        script = command.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"The command contains {command[error.start]!r} at position {error.start}, which is "
            "half a character and cannot be written in UTF-8. Write it without."
        ) from error
    if len(script) > MAX_COMMAND_BYTES:
        raise ToolError(
            f"The command has {len(script)} bytes, more than the {MAX_COMMAND_BYTES} that fit; "
            "write it to a file and run that."
        )
    return script


class RunningCommand:
    """A command from its start to its end. Whoever starts it awaits `finish`."""

    def __init__(
        self,
        bash: Path,
        script: bytes,
        *,
        cwd: Path,
        env: Mapping[str, str],
        mark: str,
        clean: Callable[[str], str] | None = None,
        prefix: tuple[str, ...] = (),
    ) -> None:
        """Start bash with `script` in a session of its own.

        Args:
            bash: the program.
            script: see `encode_command`.
            cwd: the folder it starts in.
            env: its whole environment but for the mark.
            mark: by which its processes are known.
            clean: takes the secrets out of what is reported while it runs.
            prefix: the words of a program that confines it; see `shell.sandbox`.

        Raises:
            ToolError: the folder is not there, or bash cannot be started.
        """
        self.buffer = OutputBuffer()
        self._clean = clean
        self.is_timed_out = False
        self.is_stopped = False
        """Whether `stop` was called before it had ended."""
        self._limit = anyio.CancelScope()
        self.left_over: tuple[Survivor, ...] = ()
        """What bash left running."""
        self.is_drained = anyio.Event()
        """Set when nobody holds the writing end of the pipe any more."""
        self.pipe, writer = os.pipe()
        """The reading end, which the owner closes."""
        try:
            argv = [*prefix, bash, "-c", "--", script]
            self.process = _start(argv, cwd=cwd, env={**env, MARK: mark}, pipe=writer)
        except BaseException:
            os.close(self.pipe)
            raise
        finally:
            os.close(writer)
        os.set_blocking(self.pipe, False)
        self.is_confined = bool(prefix)
        self._family = Family(
            f"{MARK}={mark}\0".encode(),
            frozenset((self.group,)),
            keeper=self.group if prefix else 0,
        )

    @property
    def group(self) -> int:
        """Return the process group."""
        return self.process.pid

    @property
    def exit_code(self) -> int:
        """Return the exit code as `$?` has it: 128 + n after signal n."""
        code = self.process.returncode
        # What even KILL could not end counts as killed.
        return 128 + signal.SIGKILL if code is None else code if code >= 0 else 128 - code

    async def finish(
        self, *, timeout_s: float | None, report: Callable[[str], None] | None
    ) -> None:
        """Wait for the end; stop the command after `timeout_s` seconds.

        Cancelling stops it too, within a second.

        Args:
            timeout_s: `None` lets it run.
            report: gets the last lines of the output so far, now and then; must not raise.
        """
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._pump, report)
                with anyio.move_on_after(timeout_s) as self._limit:
                    if self.is_stopped:
                        self._limit.cancel()
                    await wait_for_exit(self.process)
                if self._limit.cancelled_caught:
                    self.is_timed_out = not self.is_stopped
                    grace_s = CANCEL_GRACE_S if self.is_stopped else _TIMEOUT_GRACE_S
                    await self._stop(grace_s=grace_s)
                self.left_over = await self._wait_for_stragglers()
                tasks.cancel_scope.cancel()
        except BaseException:
            with anyio.move_on_after(STOP_LIMIT_S, shield=True):
                await self._stop(grace_s=CANCEL_GRACE_S)
            raise
        finally:
            self.buffer.finish()

    def unfinished(self) -> str:
        """Return the line that it is printing, without secrets."""
        return self.buffer.unfinished(self._clean)

    def stop(self) -> None:
        """Have the command stopped, whose last words `finish` still waits for."""
        self.is_stopped = True
        self._limit.cancel()

    async def stop_left_over(self) -> None:
        """Stop what bash left running when it had ended."""
        # The id of a group without members may be a stranger's by now.
        is_ours = is_orphaned_group(self.group)
        family = replace(self._family, groups=frozenset((self.group,) if is_ours else ()))
        with anyio.move_on_after(STOP_LIMIT_S, shield=True):
            await stop_family(family, grace_s=CANCEL_GRACE_S)

    async def _pump(self, report: Callable[[str], None] | None) -> None:
        """Read the output to its end."""
        due_s = anyio.current_time() + REPORT_INTERVAL_S
        is_news = False
        while True:
            is_flood = False
            if report and is_news and anyio.current_time() >= due_s:
                report(self.buffer.tail(REPORT_LINES, self._clean))
                due_s, is_news = anyio.current_time() + REPORT_INTERVAL_S, False
            with anyio.CancelScope(deadline=due_s if report and is_news else inf):
                data = await self._read()
                if not data:
                    break
                self.buffer.feed(data)
                is_news = True
                is_flood = self.buffer.is_logged and len(data) == _CHUNK_BYTES
            if is_flood:
                await anyio.sleep(_FLOOD_PAUSE_S)
        self.is_drained.set()

    async def _read(self) -> bytes:
        """Return the next bytes, or none at the end. Cancelling loses nothing."""
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                return os.read(self.pipe, _CHUNK_BYTES)
            except BlockingIOError:
                await anyio.wait_readable(self.pipe)

    async def _stop(self, *, grace_s: float) -> None:
        """Stop bash and all that it started: TERM, `grace_s` seconds, KILL."""
        await stop_family(self._family, grace_s=grace_s)
        with anyio.move_on_after(_REAP_LIMIT_S):
            await wait_for_exit(self.process)

    async def _wait_for_stragglers(self) -> tuple[Survivor, ...]:
        """Give what bash left the time to end, and return what does not."""
        with anyio.move_on_after(_STRAGGLERS_S):
            await self.is_drained.wait()
            while self._survivors():  # noqa: ASYNC110 - strangers' processes tell nobody
                await anyio.sleep(_POLL_S)
            return ()
        return self._survivors()

    def _survivors(self) -> tuple[Survivor, ...]:
        return self._family.survivors(since=self.process.pid)


async def stop_family(family: Family, *, grace_s: float) -> None:
    """Stop all members of `family`: TERM, `grace_s` seconds, KILL."""
    survivors = family.survivors()
    family.send_signal(survivors, signal.SIGTERM)
    with anyio.move_on_after(grace_s):
        while survivors := still_running(survivors):  # noqa: ASYNC110 - as above
            await anyio.sleep(_POLL_S)
    for _ in range(_KILL_ROUNDS):
        survivors = family.survivors()
        if not survivors:
            break
        family.send_signal(survivors, signal.SIGKILL)
        await anyio.sleep(_POLL_S)


async def discard_output(pipe: int) -> None:
    """Read `pipe` to its end, slowly and for nothing, and close it."""
    try:
        await anyio.wait_readable(pipe)
        while os.read(pipe, _DISCARD_BYTES):
            await anyio.sleep(_DISCARD_PAUSE_S)
            await anyio.wait_readable(pipe)
    except OSError:
        logger.exception("the output of a process that was left over cannot be read")
    finally:
        os.close(pipe)


def _start(
    argv: Sequence[str | bytes | Path], *, cwd: Path, env: Mapping[str, str], pipe: int
) -> subprocess.Popen[bytes]:
    # The loop waits until bash is there, about a millisecond: less than any way around it.
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        if not cwd.is_dir():
            raise ToolError(f"There is no folder {str(cwd)!r} to run the command in.") from error
        raise ToolError(f"bash cannot be started: {error}.") from error
