"""A kernel starts fast, stops fast, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.fakes.kernel import RunningKernel, running_kernel

pytestmark = pytest.mark.slow

SHUTDOWN_LIMIT_S = 2.0
"""Design §6; jupyter_client sends SIGTERM half a second later."""


@pytest.fixture
def busy(tmp_path: Path) -> Generator[tuple[RunningKernel, list[psutil.Process]]]:
    """A kernel with a command, its child and a process that left the group."""
    home = tmp_path / "home"
    home.mkdir()
    with running_kernel(cwd=tmp_path, home=home, env={"CRUSH_MODEL": "offline/offline"}) as kernel:
        kernel.execute("!setsid sleep 617 & (sleep 618 &) ; echo begun; sleep 619")
        kernel.wait_for(lambda message: "begun" in str(message["content"].get("data")))
        children = [p for p in psutil.process_iter(["cmdline"]) if is_sleep(p)]
        assert len(children) == 3
        yield kernel, children
        for child in children:
            if child.is_running():
                child.kill()


def is_sleep(process: psutil.Process) -> bool:
    return (process.info["cmdline"] or [""])[-1] in ("617", "618", "619")


def gone(processes: list[psutil.Process]) -> bool:
    """Wait until all `processes` have ended."""
    _, alive = psutil.wait_procs(processes, timeout=5)
    return not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def test_a_shutdown_ends_kernel_and_children_in_time(
    busy: tuple[RunningKernel, list[psutil.Process]],
) -> None:
    kernel, children = busy
    process = psutil.Process(kernel.pid)
    began = time.monotonic()
    kernel.client.shutdown()
    process.wait(timeout=10)
    assert time.monotonic() - began < SHUTDOWN_LIMIT_S + 1, "with room for a busy machine"
    assert gone(children)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_child_outlives_a_killed_kernel(
    busy: tuple[RunningKernel, list[psutil.Process]], number: signal.Signals
) -> None:
    kernel, children = busy
    os.kill(kernel.pid, number)
    assert gone(children)


@pytest.mark.parametrize("is_first", [True, False], ids=["before the first command", "after one"])
def test_no_look_at_a_project_that_hangs_outlives_a_killed_kernel(
    tmp_path: Path, *, is_first: bool
) -> None:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    with running_kernel(cwd=cwd, home=home) as kernel:
        if not is_first:
            kernel.run("!true")
        os.mkfifo(cwd / ".gitignore")
        kernel.execute("!true")
        process = psutil.Process(kernel.pid)
        until(lambda: bool(gits(process)))
        waiting = gits(process)
        process.kill()
        is_over = gone(waiting)
        for each in waiting:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        assert is_over


def gits(kernel: psutil.Process) -> list[psutil.Process]:
    """Return the git processes of a kernel that look at the work tree of its shadow."""
    found: list[psutil.Process] = []
    for process in kernel.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "ls-files" in process.cmdline():
                found.append(process)
    return found


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_restarted_kernel_runs_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with running_kernel(cwd=tmp_path, home=home, env={"CRUSH_MODEL": "offline/offline"}) as kernel:
        kernel.execute("!sleep 600")
        kernel.manager.restart_kernel()
        kernel.client.wait_for_ready(timeout=30)
        assert kernel.run("/help").status == "ok"


def test_a_kernel_prints_nothing_into_its_server(
    kernel: RunningKernel, capfd: pytest.CaptureFixture[str]
) -> None:
    kernel.run("make a file", cell_id=None)
    msg_id = kernel.execute("stream for ever")
    kernel.wait_for(lambda message: "word word" in str(message["content"].get("data")))
    kernel.interrupt()
    kernel.collect(msg_id)
    kernel.manager.restart_kernel()
    kernel.client.wait_for_ready(timeout=30)
    kernel.manager.shutdown_kernel()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "module", ["anthropic", "httpx2", "mcp", "pydantic", "nbformat", "PIL", "pypdfium2"]
)
def test_the_kernel_answers_before_anything_heavy_is_imported(module: str) -> None:
    code = f"import sys, crush_kernel.kernel.app; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
