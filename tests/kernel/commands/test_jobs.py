"""Commands in the background of a real kernel: told, listed, stopped, and ended with it."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from tests.fakes.eventful import settings
from tests.fakes.kernel import Msg, RunningKernel, running_kernel
from tests.fakes.provider.replies import call, say
from tests.fakes.provider.server import FakeProvider

pytestmark = pytest.mark.slow

SERVER = "echo listen''ing; exec sleep 641"
WAITING = {"command": "echo beg''un; exec sleep 642", "description": "wait"}


@pytest.fixture
def kernel(tmp_path: Path, provider: FakeProvider) -> Generator[RunningKernel]:
    for name in ("home", "cwd"):
        (tmp_path / name).mkdir()
    env = settings("anthropic", provider) | {"CRUSH_PERMISSION_MODE": "yolo"}
    with running_kernel(cwd=tmp_path / "cwd", home=tmp_path / "home", env=env) as running:
        yield running


def start(kernel: RunningKernel, provider: FakeProvider) -> psutil.Process:
    """Have a turn start the server, and return its process."""
    arguments = {"command": SERVER, "description": "Serve a|b", "run_in_background": True}
    provider.play(call("bash", arguments), say("It runs."))
    cell = kernel.run("serve", cell_id="a")
    assert cell.status == "ok"
    assert "job 001" in cell.markdown
    [server] = sleeping(kernel, "641")
    return server


def sleeping(kernel: RunningKernel, seconds: str) -> list[psutil.Process]:
    children = psutil.Process(kernel.pid).children(recursive=True)
    return [child for child in children if child.cmdline()[-1:] == [seconds]]


def shows(text: str, message: Msg) -> bool:
    return text in str(message["content"].get("data", message["content"]))


def asked(kernel: RunningKernel, provider: FakeProvider, cell_id: str) -> str:
    """Run a prompt and return its request."""
    provider.reset()
    provider.play(say("Yes."))
    assert kernel.run("And now?", cell_id=cell_id).status == "ok"
    return provider.requests[0].raw.decode()


def test_a_job_outlives_turns_and_interrupts_and_its_end_is_told_once(
    kernel: RunningKernel, provider: FakeProvider
) -> None:
    server = start(kernel, provider)
    provider.reset()
    provider.play(call("bash", WAITING))
    msg_id = kernel.execute("wait", cell_id="b")
    kernel.wait_for(lambda message: shows("begun", message))
    kernel.interrupt()
    assert kernel.collect(msg_id).reply["content"]["ename"] == "Interrupted"
    assert sleeping(kernel, "642") == []
    assert server.is_running()

    page = kernel.run("/jobs", cell_id="c").markdown
    assert "| 001 | " in page
    assert "sleep 641" in page
    assert "| running for " in page
    assert "Job 001 is running for " in asked(kernel, provider, "d")

    assert "Job 001 stopped after " in kernel.run("/jobs stop 1", cell_id="e").markdown
    psutil.wait_procs([server], timeout=5)
    assert not server.is_running()
    assert "Job 001 stopped after " in asked(kernel, provider, "f")
    assert "Job 001" not in asked(kernel, provider, "g")
    assert "| stopped after " in kernel.run("/jobs", cell_id="h").markdown


@pytest.mark.parametrize("code", ["/jobs stop 001", "/jobs stop", "/jobs 001", "/jobs stop 1 2"])
def test_what_jobs_cannot_do_is_said(kernel: RunningKernel, code: str) -> None:
    assert kernel.run(code).status == "error"
    assert "Nothing was run in the background." in kernel.run("/jobs").markdown


@pytest.mark.parametrize("how", ["shutdown", "restart", "SIGTERM", "SIGKILL"])
def test_a_job_ends_with_its_kernel(
    kernel: RunningKernel, provider: FakeProvider, how: str
) -> None:
    server = start(kernel, provider)
    match how:
        case "shutdown":
            kernel.client.shutdown()
        case "restart":
            kernel.client.shutdown(restart=True)
        case _:
            os.kill(kernel.pid, getattr(signal, how))
    _, alive = psutil.wait_procs([server], timeout=5)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
