"""Find the processes that a command left, and signal them.

On Linux a process belongs to a command if it is in the command's process group, carries
the command's mark in its environment, or descends from one that does: a daemon that made a
session of its own is found too. It escapes only if it also wiped its environment and lost
its parent. Elsewhere the process group is all there is.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from crush_kernel.wording import clipped

_COMMAND_CHARS = 120
"""How much of a command line is shown."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that still runs."""

    pid: int
    group: int
    command: str
    """Its command line in short, control characters replaced; empty if it is not known."""


@dataclass(frozen=True, slots=True)
class Family:
    """What the processes of a command, or of a whole shell, have in common."""

    mark: bytes
    """How the marking entry of the environment begins, `NAME=value`; a NUL ends an exact one."""
    groups: frozenset[int]
    """Their process groups, as far as they are known."""
    keeper: int = 0
    """The process of the program that confines all others, with which they end at once. It and
    its copies get no signal but KILL, so that what is inside has time to end by itself."""

    def survivors(self, *, since: int = 0) -> tuple[Survivor, ...]:
        """Return the members that run, zombies excepted, by process id.

        Args:
            since: a process id that no member is older than. It makes the search cheap
                where process ids count up; the member `since` itself is left out.
        """
        if sys.platform != "linux":
            return tuple(Survivor(group, group, "") for group in self.groups if _is_group(group))
        if since and _newest_pid() == since:
            return ()
        return tuple(
            Survivor(process.pid, group=process.group, command=_command_of(process.pid))
            for process in self._members(_processes(since))
        )

    def send_signal(self, survivors: Iterable[Survivor], number: int) -> None:
        """Send a signal to the survivors, as far as they are there and ours.

        A group of the family gets it as a whole, so that none of it can slip away by forking.
        """
        if self.keeper and number != signal.SIGKILL:
            self._send_inside(survivors, number)
            return
        for survivor in survivors:
            if survivor.group not in self.groups:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(survivor.pid, number)
        for group in {survivor.group for survivor in survivors} & self.groups:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)

    def _send_inside(self, survivors: Iterable[Survivor], number: int) -> None:
        """Send a signal to all but those that do nothing but confine."""
        confining = _command_of(self.keeper)
        for survivor in survivors:
            if survivor.command != confining:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(survivor.pid, number)

    def _members(self, processes: "Iterable[_Process]") -> "list[_Process]":
        members: dict[int, _Process] = {}
        others: list[_Process] = []
        for process in processes:
            if process.group in self.groups or self.mark in _environment_of(process.pid):
                members[process.pid] = process
            else:
                others.append(process)
        while children := [process for process in others if process.parent in members]:
            members |= {process.pid: process for process in children}
            others = [process for process in others if process.pid not in members]
        return sorted(members.values(), key=lambda process: process.pid)


def still_running(survivors: Iterable[Survivor]) -> tuple[Survivor, ...]:
    """Return those of the survivors that have not ended."""
    if sys.platform != "linux":
        return tuple(survivor for survivor in survivors if _is_group(survivor.pid))
    return tuple(survivor for survivor in survivors if _read_process(survivor.pid))


def is_orphaned_group(group: int) -> bool:
    """Return whether the process group still has members though its leader was reaped.

    An id is not given out again before the group is empty. So a process that has the id is
    somebody else's, and so is the group.
    """
    try:
        os.kill(group, 0)
    except ProcessLookupError:
        return _is_group(group)
    except PermissionError:
        return False
    return False


async def wait_for_exit(process: subprocess.Popen[bytes]) -> None:
    """Wait until `process` has ended, and reap it. Cancelling leaves it alone.

    On Linux no thread is needed and nothing is polled, on whatever thread the loop runs.
    """
    if process.poll() is not None:
        return
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel or sandbox without pidfd
            await _wait_for_pidfd(os.pidfd_open(process.pid))
            process.wait()
            return
    await anyio.to_thread.run_sync(process.wait, abandon_on_cancel=True)


async def _wait_for_pidfd(pidfd: int) -> None:
    try:
        await anyio.wait_readable(pidfd)
    finally:
        os.close(pidfd)


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    group: int


def _is_group(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _newest_pid() -> int:
    """Return the id that was given out last, to a process or a thread; 0 if it is not known."""
    try:
        return int(Path("/proc/loadavg").read_bytes().split()[4])
    except (OSError, ValueError, IndexError):
        return 0


def _processes(since: int) -> "Iterator[_Process]":
    # Ids have begun anew if the newest is below.
    oldest = since if _newest_pid() > since else 0
    for name in os.listdir("/proc"):  # noqa: PTH208 - a tenth of the time, and no path is used
        if name.isdecimal() and int(name) > oldest and int(name) not in (since, os.getpid()):
            process = _read_process(int(name))
            if process is not None:
                yield process


def _read_process(pid: int) -> _Process | None:
    """Return the process, or `None` if it has ended or waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name in parentheses may hold anything, parentheses and spaces too.
    state, parent, group, *_ = stat[stat.rindex(b")") + 1 :].split()
    if state in b"ZXx":
        return None
    return _Process(pid, parent=int(parent), group=int(group))


def _environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _command_of(pid: int) -> str:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    words = (
        arguments.rstrip(b"\0").replace(b"\0", b" ")[: 4 * _COMMAND_CHARS].decode(errors="replace")
    )
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in words)
    return clipped(shown, _COMMAND_CHARS)
