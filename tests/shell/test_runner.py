"""Commands: what they give back, and that they end."""

import os
import tracemalloc
from collections.abc import Mapping
from pathlib import Path

import anyio
import psutil
import pytest
from anyio.from_thread import start_blocking_portal

from crush_kernel.errors import ToolError
from crush_kernel.shell.output import MAX_TEXT_BYTES
from crush_kernel.shell.runner import CommandResult, Shell, find_bash
from tests.shell.processes import is_running, running_with, wait_until

pytestmark = pytest.mark.anyio

SCRIPT_OF_DAEMONS = """
setsid sleep 600 >/dev/null 2>&1 &
(sleep 600 &)
sleep 600 &
(trap '' TERM; sleep 600; sleep 600) &
"""


async def run(
    environ: Mapping[str, str], command: str, *, cwd: Path, timeout_s: float = 20
) -> CommandResult:
    async with Shell(environ) as shell:
        return await shell.run(command, cwd=cwd, timeout_s=timeout_s)


async def test_stdout_and_stderr_come_in_the_order_in_which_they_were_written(
    environ: dict[str, str], tmp_path: Path
) -> None:
    result = await run(environ, "echo 1; echo 2 >&2; echo 3; exit 4", cwd=tmp_path)

    assert (result.output, result.exit_code) == ("1\n2\n3\n", 4)
    assert not result.is_timed_out
    assert result.left_over == ()


@pytest.mark.parametrize(
    ("command", "output", "exit_code"),
    [
        pytest.param("true", "", 0, id="nothing"),
        pytest.param("kill -KILL $$", "", 137, id="killed"),
        pytest.param("bash -c 'kill -SEGV $$'; exit $?", None, 139, id="a child is killed"),
        pytest.param("nonsuch_command", None, 127, id="no such command"),
        pytest.param("if", None, 2, id="no bash"),
        pytest.param("-x", None, 127, id="looks like an option"),
        pytest.param("exec >&- 2>&-; exit 3", "", 3, id="closes its output"),
        pytest.param("read -r line; echo $?", "1\n", 0, id="reads"),
        pytest.param("cat; echo end", "end\n", 0, id="reads to the end"),
        pytest.param("python3 -c 'input()' 2>&1 | tail -1", "EOFError", 0, id="asks"),
        pytest.param("exec </dev/tty", None, 1, id="opens the terminal"),
        pytest.param("read -p 'ok? ' x", "", 1, id="prompts"),
        pytest.param(
            "git init -q && git -c user.name=a -c user.email=a@b commit --allow-empty",
            None,
            1,
            id="opens an editor",
        ),
        pytest.param("echo 'ü €' | wc -c", "7\n", 0, id="is not ASCII"),
        pytest.param("a=(1 2); [[ ${a[1]} == 2 ]] && echo bash", "bash\n", 0, id="needs bash"),
        pytest.param("ulimit -n >/dev/null; kill -0 $$", "", 0, id="uses builtins"),
        pytest.param("echo one \\\n two # three", "one two\n", 0, id="has several lines"),
        pytest.param('echo "$CRUSH $AGENT $AI_AGENT"', "1 crush crush\n", 0, id="asks who"),
    ],
)
async def test_a_command_ends_with_its_output_and_its_exit_code(
    environ: dict[str, str], tmp_path: Path, command: str, output: str | None, exit_code: int
) -> None:
    with anyio.fail_after(10):
        result = await run(environ, command, cwd=tmp_path)

    assert result.exit_code == exit_code
    if output is not None:
        assert result.output.startswith(output)


async def test_a_command_runs_in_its_folder_under_the_name_it_was_given(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real")

    result = await run(environ, "pwd; pwd -P", cwd=link)

    assert result.output == f"{link}\n{tmp_path / 'real'}\n"


async def test_variables_can_be_added_for_one_command(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with Shell(environ) as shell:
        first = await shell.run("echo $X", cwd=tmp_path, timeout_s=5, env={"X": "1"})
        second = await shell.run("echo $X", cwd=tmp_path, timeout_s=5)

    assert (first.output, second.output) == ("1\n", "\n")


async def test_nothing_is_run_before_the_command(environ: dict[str, str], tmp_path: Path) -> None:
    startup = tmp_path / "startup.sh"
    startup.write_text("echo evil")
    for name in (".bashrc", ".bash_profile", ".profile"):
        (tmp_path / name).write_text("echo evil")

    result = await run(
        environ | {"BASH_ENV": str(startup), "HOME": str(tmp_path)}, "echo good", cwd=tmp_path
    )

    assert result.output == "good\n"


async def test_colors_links_and_progress_bars_are_reduced_to_text(
    environ: dict[str, str], tmp_path: Path
) -> None:
    command = (
        r"for i in 1 2 3 4 5; do printf '\rDownloading %d0%%' $i; done; "
        r"printf '\n\033[32mok\033[0m\n'; "
        r"printf '\033]8;;http://x\007link\033]8;;\007\n'; echo $NO_COLOR $TERM"
    )

    result = await run(environ, command, cwd=tmp_path)

    assert result.output == "Downloading 50%\nok\nlink\n1 dumb\n"


@pytest.mark.slow
async def test_bytes_are_decoded_across_pauses_and_bad_ones_replaced(
    environ: dict[str, str], tmp_path: Path
) -> None:
    command = (
        r"printf 'start\n'; sleep 0.2; printf '\xc4\xe3\xba\xc3\n'; printf '\xe2\x82'; "
        r"sleep 0.2; printf '\xac\n'"
    )

    result = await run(environ, command, cwd=tmp_path)

    start, garbage, euro = result.output.splitlines()
    assert (start, euro) == ("start", "€")
    assert "\N{REPLACEMENT CHARACTER}" in garbage


@pytest.mark.slow
@pytest.mark.parametrize("command", ["yes", "cat /dev/zero", "yes $'\\r50%' | tr -d '\\n'"])
async def test_a_command_that_prints_for_ever_is_stopped_and_costs_no_memory(
    environ: dict[str, str], tmp_path: Path, command: str
) -> None:
    tracemalloc.start()
    result = await run(environ, command, cwd=tmp_path, timeout_s=0.3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert result.is_timed_out
    assert len(result.output.encode()) <= MAX_TEXT_BYTES + 100
    assert peak < 12_000_000


@pytest.mark.slow
async def test_a_long_output_is_kept_at_both_ends_with_a_count_of_the_rest(
    environ: dict[str, str], tmp_path: Path
) -> None:
    result = await run(
        environ,
        "echo first; yes 'words that make a line' | head -c 115000000; echo last",
        cwd=tmp_path,
    )

    assert result.exit_code == 0
    assert result.output.startswith("first\nwords that make a line\nwords that make a line\n")
    assert result.output.endswith("words that make a line\nwords that make a line\nlast\n")
    assert f"{115_000_000 + 11 - MAX_TEXT_BYTES} bytes left out" in result.output


async def test_the_loop_goes_on_while_a_command_floods_it(
    environ: dict[str, str], tmp_path: Path
) -> None:
    outputs: list[str] = []
    async with Shell(environ) as shell, anyio.create_task_group() as tasks:
        tasks.start_soon(_run_for_ever, shell, "yes", tmp_path)
        with anyio.fail_after(5):
            outputs.append((await shell.run("echo hello", cwd=tmp_path, timeout_s=5)).output)
        tasks.cancel_scope.cancel()

    assert outputs == ["hello\n"]


async def test_the_last_lines_are_reported_while_a_command_runs(
    environ: dict[str, str], tmp_path: Path
) -> None:
    reports: list[str] = []
    seen = anyio.Event()

    def report(tail: str) -> None:
        reports.append(tail)
        seen.set()

    async with Shell(environ) as shell, anyio.create_task_group() as tasks:

        async def follow() -> None:
            await shell.run("seq 30; sleep 600", cwd=tmp_path, timeout_s=None, on_output=report)

        tasks.start_soon(follow)
        with anyio.fail_after(5):
            await seen.wait()
        tasks.cancel_scope.cancel()

    assert reports == ["\n".join(map(str, range(11, 31)))]


async def test_a_quick_command_reports_nothing(environ: dict[str, str], tmp_path: Path) -> None:
    reports: list[str] = []
    async with Shell(environ) as shell:
        await shell.run("true", cwd=tmp_path, timeout_s=5, on_output=reports.append)

    assert reports == []


@pytest.mark.parametrize(
    ("command", "message"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param(" \n\t", "empty", id="blank"),
        pytest.param("echo a\0b", "NUL", id="a NUL"),
        pytest.param("echo \ud800", "half a character", id="a lone surrogate"),
        pytest.param("echo \udcff", "half a character", id="an undecodable byte"),
        pytest.param("echo " + "é" * 65_536, "write it to a file", id="too long"),
    ],
)
async def test_a_text_that_no_shell_can_take_is_refused(
    environ: dict[str, str], tmp_path: Path, command: str, message: str
) -> None:
    async with Shell(environ) as shell:
        with pytest.raises(ToolError, match=message):
            await shell.run(command, cwd=tmp_path, timeout_s=5)


async def test_the_longest_command_that_is_accepted_runs(
    environ: dict[str, str], tmp_path: Path
) -> None:
    command = "echo " + "x" * (128 * 1024 - 1 - 5)

    result = await run(environ, command, cwd=tmp_path)

    assert result.exit_code == 0


@pytest.mark.parametrize("make", ["nothing", "file"])
async def test_a_folder_that_is_none_is_named(
    environ: dict[str, str], tmp_path: Path, make: str
) -> None:
    folder = tmp_path / "folder"
    if make == "file":
        folder.touch()

    async with Shell(environ) as shell:
        with pytest.raises(ToolError, match=r"There is no folder .*folder"):
            await shell.run("true", cwd=folder, timeout_s=5)


async def test_a_missing_bash_is_named(environ: dict[str, str], tmp_path: Path) -> None:
    environ["PATH"] = str(tmp_path)

    assert find_bash(environ) is None
    async with Shell(environ) as shell:
        with pytest.raises(ToolError, match="bash is not installed"):
            await shell.run("true", cwd=tmp_path, timeout_s=5)


async def test_a_shell_that_is_not_open_refuses(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not open"):
        await Shell(environ).run("true", cwd=tmp_path, timeout_s=5)


async def test_an_error_passes_through_a_shell_as_it_is_and_ends_its_commands(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async def use() -> None:
        async with Shell(environ) as shell:
            await shell.run("sleep 600 &", cwd=tmp_path, timeout_s=5)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await use()

    assert running_with(environ["CRUSH_TEST"]) == []


async def test_a_shell_whose_owner_is_cancelled_ends_its_commands(
    environ: dict[str, str], tmp_path: Path
) -> None:
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        async with Shell(environ) as shell:
            await shell.run("yes & trap '' TERM; sleep 600 &", cwd=tmp_path, timeout_s=5)
            scope.cancel()
            await anyio.sleep_forever()

    assert scope.cancelled_caught
    assert running_with(environ["CRUSH_TEST"]) == []


async def test_commands_run_side_by_side(environ: dict[str, str], tmp_path: Path) -> None:
    # Each waits for the other at a named pipe: in turn, neither would end.
    os.mkfifo(tmp_path / "pipe")
    results: dict[str, str] = {}

    async with Shell(environ) as shell:

        async def keep(name: str, command: str) -> None:
            results[name] = (await shell.run(command, cwd=tmp_path, timeout_s=10)).output

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep, "reader", "cat pipe")
            tasks.start_soon(keep, "writer", "echo hello >pipe; echo written")

    assert results == {"reader": "hello\n", "writer": "written\n"}


async def test_nothing_stays_open(environ: dict[str, str], tmp_path: Path) -> None:
    before = psutil.Process().num_fds()
    async with Shell(environ) as shell:
        await shell.run("echo; sleep 600 &", cwd=tmp_path, timeout_s=5)
        await shell.run("sleep 600", cwd=tmp_path, timeout_s=0.01)
        with pytest.raises(ToolError):
            await shell.run("true", cwd=tmp_path / "nonsuch", timeout_s=5)

    assert psutil.Process().num_fds() == before


@pytest.mark.slow
async def test_at_the_timeout_everything_is_stopped_and_the_output_so_far_is_kept(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with Shell(environ) as shell:
        result = await shell.run(
            f"echo before; {SCRIPT_OF_DAEMONS} trap 'echo bye; exit' TERM; sleep 600 & wait",
            cwd=tmp_path,
            timeout_s=0.3,
        )

        assert running_with(environ["CRUSH_TEST"]) == []
    assert result.is_timed_out
    assert result.output == "before\nbye\n"
    assert result.left_over == ()


async def test_cancelling_stops_everything(environ: dict[str, str], tmp_path: Path) -> None:
    started = anyio.Event()
    async with Shell(environ) as shell:
        async with anyio.create_task_group() as tasks:

            async def follow() -> None:
                await shell.run(
                    f"{SCRIPT_OF_DAEMONS} trap '' TERM; echo started; sleep 600; sleep 600",
                    cwd=tmp_path,
                    timeout_s=None,
                    on_output=lambda _: started.set(),
                )

            tasks.start_soon(follow)
            with anyio.fail_after(5):
                await started.wait()
            tasks.cancel_scope.cancel()

        assert running_with(environ["CRUSH_TEST"]) == []


async def test_what_is_left_running_is_reported_and_ends_with_the_shell(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with Shell(environ) as shell:
        result = await shell.run(
            "(setsid sleep 601 &); sleep 602 >/dev/null 2>&1 & env -i sleep 603 & echo started",
            cwd=tmp_path,
            timeout_s=10,
        )
        pids = [survivor.pid for survivor in result.left_over]
        assert all(map(is_running, pids))

    assert result.output == "started\n"
    assert not result.is_timed_out
    commands = {survivor.command for survivor in result.left_over}
    assert commands == {"sleep 601", "sleep 602", "sleep 603"}
    assert not any(map(is_running, pids))


async def test_the_ends_of_a_process_substitution_are_not_reported(
    environ: dict[str, str], tmp_path: Path
) -> None:
    result = await run(environ, "echo hello > >(tr a-z A-Z; exec sleep 0.02)", cwd=tmp_path)

    assert result.output == "HELLO\n"
    assert result.left_over == ()


async def test_what_is_left_running_can_go_on_printing(
    environ: dict[str, str], tmp_path: Path
) -> None:
    # More than a pipe holds: it would block, or be killed, if nobody read it.
    command = "(sleep 0.2; for i in {1..3000}; do printf '%080d\\n' $i; done; : >done) & echo up"
    async with Shell(environ) as shell:
        result = await shell.run(command, cwd=tmp_path, timeout_s=5)

        await wait_until((tmp_path / "done").exists)

    assert result.output == "up\n"


def test_a_loop_on_another_thread_can_run_and_stop_commands(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async def use() -> tuple[CommandResult, bool]:
        async with Shell(environ) as shell:
            result = await shell.run("echo hello; exit 3", cwd=tmp_path, timeout_s=10)
            with anyio.move_on_after(0.05) as scope:
                await shell.run("sleep 600", cwd=tmp_path, timeout_s=None)
            return result, scope.cancelled_caught

    with start_blocking_portal() as portal:
        result, is_cancelled = portal.call(use)

    assert (result.output, result.exit_code) == ("hello\n", 3)
    assert is_cancelled


async def test_commands_run_and_stop_on_a_system_without_pidfd(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(38, f"not here: {pid}, {flags}")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    async with Shell(environ) as shell:
        result = await shell.run("echo hello; exit 3", cwd=tmp_path, timeout_s=5)
        stopped = await shell.run("sleep 600", cwd=tmp_path, timeout_s=0.05)

    assert (result.output, result.exit_code) == ("hello\n", 3)
    assert stopped.is_timed_out


async def _run_for_ever(shell: Shell, command: str, cwd: Path) -> None:
    await shell.run(command, cwd=cwd, timeout_s=None)
