"""Look at the machine's processes from outside."""

from collections.abc import Callable

import anyio
import psutil


def is_running(pid: int) -> bool:
    """Return whether the process is there and more than a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def running_with(token: str) -> list[str]:
    """Return the command lines of the processes that carry `token` in their environment."""
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            if token in process.environ().values() and is_running(process.pid):
                found.append(f"{process.pid} {' '.join(process.cmdline())}")
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what happens in a process that nobody here can wait for; ten seconds at most."""
    with anyio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - strangers' processes tell nobody
            await anyio.sleep(0.01)
