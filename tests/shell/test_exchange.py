"""Commands that are given something to read, and answer."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

import anyio
import psutil
import pytest

from crush_kernel.errors import ToolError
from crush_kernel.shell.exchange import MAX_KEPT_BYTES, Answer
from crush_kernel.shell.runner import Shell
from tests.shell.processes import running_with, wait_until

pytestmark = pytest.mark.anyio

SOON_S = 5.0
"""Of what takes no time by itself, on a busy machine."""


async def ask(
    environ: Mapping[str, str],
    command: str,
    given: bytes = b"",
    *,
    cwd: Path,
    timeout_s: float = 20,
) -> Answer:
    async with Shell(environ) as shell:
        return await shell.exchange(command, given, cwd=cwd, timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("command", "given", "stdout", "stderr", "code"),
    [
        pytest.param("cat", b"hi\n", b"hi\n", b"", 0, id="reads and answers"),
        pytest.param("cat | wc -c", b"x" * 3_000_000, b"3000000\n", b"", 0, id="reads much"),
        pytest.param("cat; echo no >&2; exit 2", b"a", b"a", b"no\n", 2, id="both streams"),
        pytest.param("exit 49", b"x" * 3_000_000, b"", b"", 49, id="reads nothing of much"),
        pytest.param("exec <&-; echo ok", b"x" * 300_000, b"ok\n", b"", 0, id="closes stdin"),
        pytest.param("head -c 2", b"x" * 300_000, b"xx", b"", 0, id="reads the beginning"),
        pytest.param("exec >&- 2>&-; exit 3", b"", b"", b"", 3, id="closes its output"),
        pytest.param("printf '\\xff\\0'", b"", b"\xff\0", b"", 0, id="bytes"),
        pytest.param("kill -KILL $$", b"", b"", b"", 137, id="killed"),
        pytest.param("read -r a; read -r b; echo $a$b", b"1\n2\n", b"12\n", b"", 0, id="lines"),
        pytest.param("[ -p /dev/stdin ] && echo pipe", b"", b"pipe\n", b"", 0, id="a pipe"),
    ],
)
async def test_a_command_reads_what_it_is_given_and_answers_on_both_streams(
    environ: dict[str, str],
    tmp_path: Path,
    command: str,
    given: bytes,
    *,
    stdout: bytes,
    stderr: bytes,
    code: int,
) -> None:
    answer = await ask(environ, command, given, cwd=tmp_path)
    assert (answer.stdout, answer.stderr, answer.exit_code) == (stdout, stderr, code)
    assert [answer.is_timed_out, answer.is_flood, answer.is_cut] == [False] * 3


async def test_a_command_has_a_session_of_its_own_and_no_terminal(
    environ: dict[str, str], tmp_path: Path
) -> None:
    script = "ps -o pgid= -p $$ | tr -d ' '; echo $$; tty; pwd"
    answer = await ask(environ, script, cwd=tmp_path)
    group, process, tty, folder = answer.stdout.decode().split("\n")[:4]
    assert group == process != str(os.getpgid(0))
    assert tty == "not a tty"
    assert Path(folder) == tmp_path


@pytest.mark.parametrize("stream", ["", ">&2"])
async def test_who_prints_without_end_is_cut_and_stopped(
    environ: dict[str, str], tmp_path: Path, stream: str
) -> None:
    answer = await ask(environ, f"yes flood {stream}", cwd=tmp_path)
    assert answer.is_flood
    assert not answer.is_timed_out
    assert len(answer.stdout + answer.stderr) == MAX_KEPT_BYTES


async def test_what_is_long_is_kept_as_far_as_there_is_room_and_the_rest_not_waited_for(
    environ: dict[str, str], tmp_path: Path
) -> None:
    command = f"head -c {3 * MAX_KEPT_BYTES} /dev/zero; echo why >&2; exit 2"
    answer = await ask(environ, command, cwd=tmp_path)
    assert (len(answer.stdout), answer.stderr, answer.exit_code) == (MAX_KEPT_BYTES, b"why\n", 2)
    assert answer.is_cut
    assert not answer.is_flood


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("sleep 600", id="sleeps"),
        pytest.param("trap '' TERM; sleep 600; sleep 600", id="ignores TERM"),
        pytest.param("sleep 600 & setsid sleep 600 & wait", id="with children"),
    ],
)
async def test_a_command_whose_time_is_up_ends_with_all_that_it_started(
    environ: dict[str, str], tmp_path: Path, command: str
) -> None:
    async with Shell(environ) as shell:
        began = time.monotonic()
        answer = await shell.exchange(command, b"", cwd=tmp_path, timeout_s=0.2)
        assert answer.is_timed_out
        assert time.monotonic() - began < SOON_S
        assert _commands(environ) == []


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("sleep 600 & echo ok", id="a child"),
        pytest.param("(setsid sleep 600 >/dev/null 2>&1 &); echo ok", id="a daemon"),
        pytest.param("(trap '' TERM; sleep 600; sleep 600) & echo ok", id="a stubborn one"),
    ],
)
async def test_what_a_command_leaves_running_is_not_waited_for_and_ends_with_it(
    environ: dict[str, str], tmp_path: Path, command: str
) -> None:
    async with Shell(environ) as shell:
        began = time.monotonic()
        answer = await shell.exchange(command, b"", cwd=tmp_path, timeout_s=60)
        assert (answer.stdout, answer.exit_code) == (b"ok\n", 0)
        assert time.monotonic() - began < SOON_S
        assert _commands(environ) == []


async def test_cancelling_ends_a_command_with_all_that_it_started(
    environ: dict[str, str], tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    command = "setsid sleep 600 & touch begun; sleep 600"
    async with Shell(environ) as shell, anyio.create_task_group() as tasks:

        async def run() -> None:
            await shell.exchange(command, b"x" * 1_000_000, cwd=tmp_path, timeout_s=600)

        tasks.start_soon(run)
        await wait_until(begun.exists)
        tasks.cancel_scope.cancel()
    assert _commands(environ) == []


@pytest.mark.parametrize("command", ["", " \n", "echo \0", "echo \ud800", "x" * 200_000])
async def test_what_is_no_command_is_not_run(
    environ: dict[str, str], tmp_path: Path, command: str
) -> None:
    with pytest.raises(ToolError):
        await ask(environ, command, cwd=tmp_path)


async def test_a_folder_that_is_gone_is_an_error_and_leaves_no_pipe_open(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with Shell(environ) as shell:
        await shell.exchange("true", b"", cwd=tmp_path, timeout_s=20)
        before = psutil.Process().num_fds()
        for _ in range(5):
            with pytest.raises(ToolError, match="gone"):
                await shell.exchange("true", b"", cwd=tmp_path / "gone", timeout_s=20)
            await shell.exchange("true", b"", cwd=tmp_path, timeout_s=20)
        assert psutil.Process().num_fds() == before


def _commands(environ: Mapping[str, str]) -> list[str]:
    """Return what runs of the commands; the watchdog has a bare environment."""
    return running_with(environ["CRUSH_TEST"])
