"""One command that is given something to read, and what it answers on two streams.

As a `RunningCommand` it has a session of its own and ends with all that it started when its time
is up, when it is cancelled, and when it prints without end. What it is given it need not read.
Of what it prints the beginning is kept, in bytes as it was printed.
"""

import os
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel

from crush_kernel.errors import ToolError
from crush_kernel.shell.command import CANCEL_GRACE_S, STOP_LIMIT_S, stop_family
from crush_kernel.shell.environment import MARK
from crush_kernel.shell.processes import Family, is_orphaned_group, wait_for_exit

MAX_KEPT_BYTES: Final = 1024 * 1024
"""Of each stream."""

MAX_PRINTED_BYTES: Final = 16 * 1024 * 1024
"""What prints more on one stream prints without end, and is stopped."""

GRACE_S: Final = 1.0
"""Between TERM and KILL when its time is up. Source: Crush, hooks, execution."""

_CHUNK_BYTES: Final = 64 * 1024

_REAP_LIMIT_S: Final = 1.0
"""For bash to end after KILL; only a process stuck in the operating system takes longer."""

_STRAGGLERS_S: Final = 0.1
"""How long what it started may hold its streams after bash has ended, and still be heard."""


@dataclass(slots=True)
class Printed:
    """What was printed on one stream."""

    pipe: FileIO
    """The reading end."""
    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    """How many bytes there were."""
    drained: anyio.Event = field(default_factory=anyio.Event)
    """Set when nobody holds the writing end any more."""

    @property
    def is_cut(self) -> bool:
        """Return whether there was more than is kept."""
        return self.size > len(self.data)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command has answered."""

    stdout: bytes
    stderr: bytes
    exit_code: int
    """As `$?` has it: 128 + n after signal n."""
    is_timed_out: bool
    is_flood: bool
    """Whether it was stopped because it printed without end."""
    is_cut: bool
    """Whether stdout was longer than what is kept of it."""


class Exchange:
    """A command from its start to its end. Whoever starts it awaits `finish`, then `close`s it."""

    def __init__(
        self,
        bash: Path,
        script: bytes,
        given: bytes,
        *,
        cwd: Path,
        env: Mapping[str, str],
        mark: str,
    ) -> None:
        """Start bash with `script` in a session of its own.

        Args:
            bash: the program.
            script: see `encode_command`.
            given: what it can read on stdin.
            cwd: the folder it starts in.
            env: its whole environment but for the mark.
            mark: by which its processes are known.

        Raises:
            ToolError: the folder is not there, or bash cannot be started.
        """
        self._given = memoryview(given)
        self.is_timed_out = False
        self.is_flood = False
        with ExitStack() as ours, ExitStack() as theirs:
            stdin, self._stdin = _pipe(theirs, ours)
            out, stdout = _pipe(ours, theirs)
            err, stderr = _pipe(ours, theirs)
            for end in (self._stdin, out, err):
                os.set_blocking(end.fileno(), False)
            self._out, self._err = Printed(out), Printed(err)
            try:
                self.process = subprocess.Popen(
                    [bash, "-c", "--", script],
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    cwd=cwd,
                    env={**env, MARK: mark},
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise ToolError(f"bash cannot be started in {str(cwd)!r}: {error}.") from error
            self._ends = ours.pop_all()
        self._family = Family(f"{MARK}={mark}\0".encode(), frozenset((self.group,)))
        self._limit = anyio.CancelScope()

    @property
    def group(self) -> int:
        """Return the process group."""
        return self.process.pid

    async def finish(self, *, timeout_s: float) -> Answer:
        """Wait for the end and return the answer; stop the command after `timeout_s` seconds.

        Cancelling stops it too, within a second. What it leaves running is stopped as well: it
        was there to answer.
        """
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._give)
                tasks.start_soon(self._take, self._out)
                tasks.start_soon(self._take, self._err)
                with anyio.move_on_after(timeout_s) as self._limit:
                    await wait_for_exit(self.process)
                if self._limit.cancelled_caught:
                    self.is_timed_out = not self.is_flood
                    await self._stop(CANCEL_GRACE_S if self.is_flood else GRACE_S)
                await self._hear_stragglers()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(STOP_LIMIT_S, shield=True):
                await self._stop_what_is_left()
        return self._answer()

    def close(self) -> None:
        """Let go of the streams."""
        self._ends.close()

    def _answer(self) -> Answer:
        code = self.process.returncode
        return Answer(
            stdout=bytes(self._out.data),
            stderr=bytes(self._err.data),
            # What even KILL could not end counts as killed.
            exit_code=137 if code is None else code if code >= 0 else 128 - code,
            is_timed_out=self.is_timed_out,
            is_flood=self.is_flood,
            is_cut=self._out.is_cut,
        )

    async def _give(self) -> None:
        """Write what it can read, as far as it reads, and then the end."""
        with self._stdin, suppress(BrokenPipeError):  # it has closed stdin, or ended
            while self._given:
                written = self._stdin.write(self._given)
                if written is None:
                    await anyio.wait_writable(self._stdin)
                self._given = self._given[written or 0 :]

    async def _take(self, printed: Printed) -> None:
        while data := await _read(printed.pipe):
            printed.size += len(data)
            printed.data += data[: MAX_KEPT_BYTES - len(printed.data)]
            if printed.size > MAX_PRINTED_BYTES:
                self.is_flood = True
                self._limit.cancel()
                return
        printed.drained.set()

    async def _hear_stragglers(self) -> None:
        with anyio.move_on_after(_STRAGGLERS_S):
            await self._out.drained.wait()
            await self._err.drained.wait()

    async def _stop(self, grace_s: float) -> None:
        """Stop bash and all that it started: TERM, `grace_s` seconds, KILL."""
        await stop_family(self._family, grace_s=grace_s)
        with anyio.move_on_after(_REAP_LIMIT_S):
            await wait_for_exit(self.process)

    async def _stop_what_is_left(self) -> None:
        if self.process.poll() is None:
            await self._stop(CANCEL_GRACE_S)
        elif self._family.survivors(since=self.group):
            # The id of a group without members may be a stranger's by now.
            groups = frozenset((self.group,) if is_orphaned_group(self.group) else ())
            await stop_family(replace(self._family, groups=groups), grace_s=CANCEL_GRACE_S)


def _pipe(reading: ExitStack, writing: ExitStack) -> tuple[FileIO, FileIO]:
    """Return the two ends of a pipe, each closed by its owner."""
    reader, writer = os.pipe()
    return (
        reading.enter_context(FileIO(reader, "rb")),
        writing.enter_context(FileIO(writer, "wb")),
    )


async def _read(pipe: FileIO) -> bytes:
    """Return the next bytes, or none at the end."""
    await anyio.lowlevel.checkpoint()
    while (data := pipe.read(_CHUNK_BYTES)) is None:
        await anyio.wait_readable(pipe)
    return data
