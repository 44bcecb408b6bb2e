"""No command outlives the kernel, not even if the kernel is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import psutil
import pytest

from crush_kernel.shell.reaper import Watchdog
from crush_kernel.shell.runner import Shell, find_bash
from crush_kernel.shell.sandbox import find_sandbox
from tests.shell.processes import is_running, running_with, wait_until

FORGETFUL_KERNEL = """
import os, sys, psutil
from crush_kernel.shell.reaper import Watchdog
from crush_kernel.shell.runner import find_bash
Watchdog(find_bash(os.environ), "MARK=x.").watch(set(), {int(sys.argv[1])})
print(psutil.Process().children()[0].pid)
"""

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@contextmanager
def kernel_stand_in(
    command: str, environ: dict[str, str], *more: str
) -> Generator[subprocess.Popen[str]]:
    """Yield a process that runs `command`, once that has printed something or has ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.shell.kernel_stand_in", command, *more],
        stdout=subprocess.PIPE,
        env=environ,
        encoding="utf-8",
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            yield process
        finally:
            process.kill()


def watchdog_of(kernel: int) -> int:
    """Return the process id of the watchdog of the process `kernel`."""
    children = psutil.Process(kernel).children()
    [watchdog] = [child.pid for child in children if "crush-watchdog" in child.cmdline()]
    return watchdog


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("echo; sleep 600", id="in the foreground"),
        pytest.param("echo; exec sleep 600", id="in bash's place"),
        pytest.param("(sleep 600 &)", id="in the background"),
        pytest.param("setsid sleep 600 >/dev/null 2>&1 & ", id="in a session of its own"),
        pytest.param("echo; setsid setsid sleep 600 & sleep 600", id="in several sessions"),
        pytest.param("trap '' TERM; echo; sleep 600; sleep 600; sleep 600", id="deaf to TERM"),
        pytest.param("nohup sleep 600 >/dev/null 2>&1 &", id="deaf to HUP"),
        pytest.param("echo; kill -STOP $$", id="stopped"),
        pytest.param("echo; while :; do (sleep 0.01; sleep 600) & sleep 0.1; done", id="forking"),
        pytest.param("echo; env -u CRUSH_COMMAND_ID sleep 600", id="without the mark"),
        pytest.param("env -u CRUSH_COMMAND_ID sleep 600 & echo", id="orphaned without the mark"),
    ],
)
async def test_everything_ends_when_the_kernel_is_killed(
    environ: dict[str, str], command: str
) -> None:
    with kernel_stand_in(command, environ) as kernel:
        watchdog = watchdog_of(kernel.pid)
        assert len(running_with(environ["CRUSH_TEST"])) >= 2
        assert is_running(watchdog)

        os.kill(kernel.pid, signal.SIGKILL)

        await wait_until(lambda: not running_with(environ["CRUSH_TEST"]))
        await wait_until(lambda: not is_running(watchdog))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_job_in_the_background_ends_with_its_kernel(
    environ: dict[str, str], number: signal.Signals
) -> None:
    command = "trap '' TERM; echo; setsid sleep 600 & sleep 600; sleep 600"
    with kernel_stand_in(command, environ, "job") as kernel:
        assert len(running_with(environ["CRUSH_TEST"])) >= 2

        os.kill(kernel.pid, number)

        await wait_until(lambda: not running_with(environ["CRUSH_TEST"]))


@pytest.mark.skipif(bool(find_sandbox(os.environ)[1]), reason="there is no sandbox")
async def test_everything_in_a_sandbox_ends_with_its_kernel(environ: dict[str, str]) -> None:
    command = "trap '' TERM; echo; setsid sleep 600 & sleep 600; sleep 600"
    with kernel_stand_in(command, environ, "sandbox") as kernel:
        assert len(running_with(environ["CRUSH_TEST"])) >= 4

        os.kill(kernel.pid, signal.SIGKILL)

        await wait_until(lambda: not running_with(environ["CRUSH_TEST"]))


async def test_a_kernel_that_dies_while_it_starts_its_first_command_leaves_nothing(
    environ: dict[str, str],
) -> None:
    command = [sys.executable, "-m", "tests.shell.kernel_stand_in", "kill -KILL $PPID; sleep 600"]

    kernel = await anyio.run_process(command, env=environ, check=False)

    assert kernel.returncode == -signal.SIGKILL
    await wait_until(lambda: not running_with(environ["CRUSH_TEST"]))


async def test_a_kernel_that_is_terminated_leaves_nothing(environ: dict[str, str]) -> None:
    with kernel_stand_in("sleep 600 & echo", environ) as kernel:
        kernel.terminate()

        await wait_until(lambda: not running_with(environ["CRUSH_TEST"]))


async def test_a_watchdog_that_was_killed_is_replaced_with_the_next_command(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with Shell(environ) as shell:
        await shell.run("true", cwd=tmp_path, timeout_s=5)
        first = watchdog_of(os.getpid())
        os.kill(first, signal.SIGKILL)
        await wait_until(lambda: not is_running(first))

        await shell.run("true", cwd=tmp_path, timeout_s=5)

        second = watchdog_of(os.getpid())
        assert second != first
        assert is_running(second)
    assert not psutil.pid_exists(second)


async def test_a_signal_to_the_watchdog_does_not_end_it(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with Shell(environ) as shell:
        await shell.run("true", cwd=tmp_path, timeout_s=5)
        watchdog = watchdog_of(os.getpid())
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(watchdog, number)

        await shell.run("true", cwd=tmp_path, timeout_s=5)

        assert watchdog_of(os.getpid()) == watchdog


async def test_a_watchdog_that_is_dismissed_harms_nobody(environ: dict[str, str]) -> None:
    bash = find_bash(environ)
    assert bash is not None
    bystander = await anyio.open_process(
        ["sleep", "600"], env={**environ, "MARK": "x.1"}, start_new_session=True
    )
    async with bystander:
        watchdog = Watchdog(bash, "MARK=x.")
        watchdog.watch({bystander.pid}, set())

        await watchdog.close()
        await watchdog.close()

        assert bystander.returncode is None
        assert is_running(bystander.pid)
        bystander.kill()


async def test_a_group_whose_id_has_been_used_again_is_spared(environ: dict[str, str]) -> None:
    stranger = await anyio.open_process(["sleep", "600"], env=environ, start_new_session=True)
    async with stranger:
        # Notes the group as orphaned, tells the watchdog's process id, and ends.
        kernel = await anyio.run_process(
            [sys.executable, "-c", FORGETFUL_KERNEL, str(stranger.pid)], env=environ
        )

        await wait_until(lambda: not is_running(int(kernel.stdout)))

        assert is_running(stranger.pid)
        stranger.kill()


async def test_commands_run_where_no_watchdog_can_be_started(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watchdog = Watchdog(tmp_path / "nonsuch", "MARK=x.")

    watchdog.watch({os.getpid()}, set())
    await watchdog.close()

    assert "no watchdog" in caplog.text
