"""Kernel processes that are started by hand, to see how long they take and what they weigh."""

import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import zmq
from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session

from tests.fakes.kernel import clean_environment

CRUSH = "crush_kernel.kernel"
IPYTHON = "ipykernel_launcher"
"""ipykernel's own kernel, which is what every user of Jupyter knows."""

_PATIENCE_MS = 1_000
"""How often a kernel that does not answer is asked whether it still runs."""
_RECONNECT_MS = 1
"""How often a socket knocks until the kernel listens; by default that blurs 100 ms."""

_KEY = b"bench"


@dataclass(frozen=True, slots=True)
class StartedKernel:
    """A kernel that has answered."""

    pid: int
    ready_s: float
    """From the start of the process to the reply to `kernel_info_request`."""
    resident_mb: float
    """When it had answered."""


@contextmanager
def started_kernel(
    module: str, folder: Path, env: Mapping[str, str] | None = None
) -> Generator[StartedKernel]:
    """Start the kernel that `python -m module` is, and wait until it answers."""
    file, info = write_connection_file(str(folder / "connection.json"), key=_KEY)
    environ = clean_environment(folder) | {"PYTHONWARNINGS": "default"} | dict(env or {})
    began = time.monotonic()
    command = [sys.executable, "-m", module, "-f", file]
    with (
        (folder / "kernel.log").open("wb+") as log,
        subprocess.Popen(command, env=environ, cwd=folder, stdout=log, stderr=log) as process,
    ):
        try:
            if not _is_answered(info, process):
                log.seek(0)
                raise RuntimeError(f"{module} does not start: {log.read()[-500:].decode()}")
            ready_s = time.monotonic() - began
            yield StartedKernel(process.pid, ready_s, resident_mb(process.pid))
        finally:
            process.kill()


def resident_mb(pid: int) -> float:
    """Return how much memory a process has, without its children."""
    return psutil.Process(pid).memory_info().rss / 1e6


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process has used, without its children."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def _is_answered(info: Mapping[str, Any], process: subprocess.Popen[bytes]) -> bool:
    """Ask the kernel what it is; return whether it answers before it ends."""
    session: Any = Session(key=_KEY)  # its types are partly unknown
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        socket.reconnect_ivl = _RECONNECT_MS
        socket.connect(f"tcp://{info['ip']}:{info['shell_port']}")
        session.send(socket, "kernel_info_request", {})
        while not socket.poll(_PATIENCE_MS):
            if process.poll() is not None:
                return False
        return True
