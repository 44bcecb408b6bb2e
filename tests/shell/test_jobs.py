"""Jobs: waited for, put into the background, read, stopped, and ended with the kernel."""

import os
import tracemalloc
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import psutil
import pytest

import crush_kernel.shell.jobs as jobs_module
from crush_kernel.errors import ToolError
from crush_kernel.history.redactedstream import RedactedStream, redacted_so_far
from crush_kernel.history.redaction import Redactor
from crush_kernel.shell.command import RunningCommand
from crush_kernel.shell.joblog import LOG_BYTES
from crush_kernel.shell.jobs import Job, Jobs
from crush_kernel.shell.runner import Shell
from tests.shell.processes import is_running, running_with, wait_until

pytestmark = pytest.mark.anyio

GITHUB = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"

STUBBORN = "trap '' TERM; setsid sleep 600 & (sleep 600 &); sleep 600; sleep 600; sleep 600"


@asynccontextmanager
async def opened(environ: dict[str, str]) -> AsyncGenerator[Jobs]:
    with anyio.fail_after(20):
        async with Shell(environ) as shell, Jobs(shell) as jobs:
            yield jobs


async def put_away(jobs: Jobs, command: str, cwd: Path, *, timeout_s: float | None = None) -> Job:
    async with jobs.command(command, cwd=cwd, timeout_s=timeout_s) as job:
        jobs.put_away(job)
    return job


class Tap:
    """A named pipe that a command copies to its output."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tap"
        os.mkfifo(self.path)
        self._file = os.open(self.path, os.O_RDWR)

    def put(self, text: str) -> None:
        """Have the command print `text`."""
        os.write(self._file, text.encode())

    def close(self) -> None:
        """Stop; what reads it goes on waiting."""
        os.close(self._file)


def has_logged(job: Job, text: str) -> Callable[[], bool]:
    return lambda: text in job.read(0).text


async def test_a_command_that_is_waited_for_gives_its_result_and_is_no_ones_job(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with opened(environ) as jobs:
        async with jobs.command("echo hello; exit 3", cwd=tmp_path, timeout_s=None) as job:
            assert await job.wait(None)
        assert jobs.listed == ()

    assert job.result is not None
    assert (job.result.output, job.result.exit_code) == ("hello\n", 3)
    assert not job.is_stopped


async def test_whoever_gives_up_waiting_stops_the_command(
    environ: dict[str, str], tmp_path: Path
) -> None:
    started = anyio.Event()
    async with opened(environ) as jobs, anyio.create_task_group() as tasks:

        async def follow() -> None:
            async with jobs.command(f"echo up; {STUBBORN}", cwd=tmp_path, timeout_s=None) as job:
                await job.wait(None, lambda _: started.set())

        tasks.start_soon(follow)
        await started.wait()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await wait_until(lambda: not running_with(environ["CRUSH_TEST"]))


async def test_a_job_in_the_background_outlives_whoever_started_it(
    environ: dict[str, str], tmp_path: Path
) -> None:
    tap = Tap(tmp_path)
    async with opened(environ) as jobs:
        started: list[Job] = []
        with anyio.CancelScope() as turn:
            started.append(await put_away(jobs, "cat tap", tmp_path))
            turn.cancel()
            await anyio.sleep_forever()
        [job] = started
        tap.put("still here\n")
        await wait_until(has_logged(job, "still here\n"))
        assert (job.id, job.is_ended) == ("001", False)
        assert jobs.listed == (job,)
        assert jobs.find("1") is job
        assert jobs.find(" 001 ") is job
    tap.close()
    assert running_with(environ["CRUSH_TEST"]) == []


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("sleep 600", id="quiet"),
        pytest.param(STUBBORN, id="deaf to TERM, in several sessions"),
        pytest.param("while :; do (sleep 0.01; sleep 600) & sleep 0.1; done", id="forking"),
        pytest.param("yes", id="flood"),
        pytest.param("sleep 600 & setsid sleep 601 &", id="what an ended one left"),
    ],
)
@pytest.mark.parametrize("how", ["left", "cancelled"])
async def test_all_jobs_end_with_their_owner(
    environ: dict[str, str], tmp_path: Path, command: str, how: str
) -> None:
    with anyio.fail_after(15), anyio.CancelScope() as scope:
        async with Shell(environ) as shell, Jobs(shell) as jobs:
            started = [await put_away(jobs, f"echo up; {command}", tmp_path) for _ in range(4)]
            for job in started:
                await wait_until(has_logged(job, "up\n"))
            if how == "cancelled":
                scope.cancel()
                await anyio.sleep_forever()
    assert running_with(environ["CRUSH_TEST"]) == []


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("echo up; sleep 600", id="quiet"),
        pytest.param(f"echo up; {STUBBORN}", id="deaf to TERM"),
        pytest.param("echo up; yes", id="flood"),
    ],
)
async def test_a_job_is_stopped_with_all_that_it_started(
    environ: dict[str, str], tmp_path: Path, command: str
) -> None:
    async with opened(environ) as jobs:
        other = await put_away(jobs, "exec sleep 600", tmp_path)
        job = await put_away(jobs, command, tmp_path)
        await wait_until(has_logged(job, "up\n"))
        with anyio.fail_after(5):
            await jobs.stop(job)
        assert (job.is_ended, job.is_stopped) == (True, True)
        assert len(running_with(environ["CRUSH_TEST"])) == 1
        assert not other.is_ended
        await jobs.stop(job)
        assert job.result is not None
        assert job.result.exit_code in (137, 143)


async def test_what_an_ended_job_left_is_stopped_with_it(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with opened(environ) as jobs:
        job = await put_away(jobs, "sleep 600 & setsid sleep 601 & echo up", tmp_path)
        assert await job.wait(None)
        assert job.result is not None
        pids = [survivor.pid for survivor in job.result.left_over]
        assert len(pids) == 2
        assert all(map(is_running, pids))
        await jobs.stop(job)
        assert not any(map(is_running, pids))
        assert not job.is_stopped


async def test_only_new_output_is_read_and_a_line_in_the_making_with_it(
    environ: dict[str, str], tmp_path: Path
) -> None:
    tap = Tap(tmp_path)
    async with opened(environ) as jobs:
        job = await put_away(jobs, "cat tap", tmp_path)
        tap.put("one\ntwo\n")
        await wait_until(has_logged(job, "two\n"))
        assert job.read_new().text == "one\ntwo\n"
        assert job.read_new().text == ""
        tap.put("three\nname? ")
        await wait_until(lambda: job.running.unfinished() == "name? ")
        assert job.read_new().text == "three\nname? "
        assert job.read_new().text == ""
        tap.put("Ada\n")
        await wait_until(has_logged(job, "Ada\n"))
        assert job.read_new().text == "name? Ada\n"
        assert job.read_last(2).text == "three\nname? Ada\n"
        tap.put("end")
        await wait_until(lambda: job.running.unfinished() == "end")
        assert job.read_last(1).text == "end"
        await jobs.stop(job)
        assert job.read_new().text == "end"
        assert job.read_last(1).text == "end"
    tap.close()


async def test_what_was_printed_before_is_read_first(
    environ: dict[str, str], tmp_path: Path
) -> None:
    tap = Tap(tmp_path)
    printed = anyio.Event()
    async with opened(environ) as jobs:
        async with jobs.command("seq 3; printf 4; cat tap", cwd=tmp_path, timeout_s=None) as job:
            await _first_report(job, printed)
            jobs.put_away(job)
        assert job.read_new().text == "1\n2\n3\n4"
        tap.put("2\n5\n")
        await wait_until(has_logged(job, "5\n"))
        assert job.read_new().text == "42\n5\n"
    tap.close()


async def _first_report(job: Job, printed: anyio.Event) -> None:
    def tell(tail: str) -> None:
        assert tail
        printed.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(job.wait, None, tell)
        await printed.wait()
        tasks.cancel_scope.cancel()


@pytest.mark.slow
async def test_a_flood_in_the_background_costs_bounded_memory_and_disk_and_starves_nobody(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with opened(environ) as jobs:
        tracemalloc.start()
        job = await put_away(jobs, "yes 'a line of some length'", tmp_path)
        assert job.log is not None
        while job.log.end < 3 * LOG_BYTES:
            async with jobs.command("echo hello", cwd=tmp_path, timeout_s=5) as other:
                with anyio.fail_after(5):
                    assert await other.wait(None)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4_000_000
        assert job.log.disk_bytes == LOG_BYTES
        section = job.read_new()
        assert section.lost_bytes >= 2 * LOG_BYTES
        assert set(section.text.splitlines()[:-1]) == {"a line of some length"}


async def test_no_secret_is_read_however_it_is_printed(
    environ: dict[str, str], tmp_path: Path
) -> None:
    redactor = Redactor({})
    tap = Tap(tmp_path)
    clean = partial(redacted_so_far, redactor=redactor)
    async with (
        Shell(environ, clean=clean) as shell,
        Jobs(shell, open_stream=partial(RedactedStream, redactor)) as jobs,
    ):
        job = await put_away(jobs, "cat tap", tmp_path)
        read = ""
        for piece in ("first\nkey ", GITHUB[:12], GITHUB[12:], "\nlast\n"):
            seen = job.running.buffer.text()
            tap.put(piece)
            await wait_until(lambda seen=seen, piece=piece: job_text(job) == seen + piece)
            read += job.read_new().text
            assert GITHUB[4:12] not in read
            assert GITHUB[4:12] not in job.read_last(3).text
        assert "⟨secret: " in job.read(0).text
    tap.close()


def job_text(job: Job) -> str:
    return job.running.buffer.text()


async def test_only_running_jobs_count_and_the_oldest_ended_ones_are_forgotten(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "MAX_RUNNING", 2)
    monkeypatch.setattr(jobs_module, "MAX_ENDED", 2)
    async with opened(environ) as jobs:
        running = await put_away(jobs, "sleep 600", tmp_path)
        for _ in range(5):
            jobs.require_room()
            assert await (await put_away(jobs, "true", tmp_path)).wait(None)
        last = await put_away(jobs, "sleep 600", tmp_path)
        assert [job.id for job in jobs.listed] == ["001", "005", "006", "007"]
        assert not jobs.has_room
        with pytest.raises(ToolError, match=r"2 jobs are running.*job_kill"):
            jobs.require_room()
        with pytest.raises(ToolError, match=r"no job '002'. These are running: 001, 007\. "):
            jobs.find("002")
        await jobs.stop(running)
        assert jobs.has_room
        await jobs.stop(last)
        with pytest.raises(ToolError, match="None is running"):
            jobs.find("FFFF")


async def test_the_timeout_holds_in_the_background_too(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with opened(environ) as jobs:
        job = await put_away(jobs, "echo up; sleep 600", tmp_path, timeout_s=0.2)
        assert await job.wait(None)
        assert job.result is not None
        assert job.result.is_timed_out
        assert job.read_new().text == "up\n"


async def test_an_end_is_news_once_unless_it_was_told(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with opened(environ) as jobs:
        told, untold, running = [
            await put_away(jobs, command, tmp_path) for command in ("true", "true", "sleep 600")
        ]
        assert await told.wait(None)
        assert await untold.wait(None)
        told.is_told = True
        assert jobs.news == (untold,), "looking tells nobody"
        untold.is_told = True
        assert jobs.news == ()
        await jobs.stop(running)
        assert jobs.news == (running,)


async def test_the_id_of_an_earlier_kernels_job_never_means_another(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with Shell(environ) as shell, Jobs(shell, last_used=lambda: 0x1F) as jobs:
        first, second = [await put_away(jobs, "sleep 600", tmp_path) for _ in range(2)]
        assert (first.id, second.id) == ("020", "021")
        with pytest.raises(ToolError, match=r"no job '001'.*Jobs end with their kernel"):
            jobs.find("001")


async def test_a_command_that_cannot_be_followed_ends_alone(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = RunningCommand._read  # pyright: ignore[reportPrivateUsage] - one of them goes on

    async with opened(environ) as jobs:
        other = await put_away(jobs, "echo up; sleep 600", tmp_path)

        async def fail(running: RunningCommand) -> bytes:
            if running is other.running:
                return await read(running)
            raise OSError(5, "Input/output error")

        await wait_until(has_logged(other, "up\n"))
        with monkeypatch.context() as patch:
            patch.setattr(RunningCommand, "_read", fail)
            job = await put_away(jobs, "sleep 600", tmp_path)
            assert await job.wait(None)
        assert job.result is None
        assert job.error is not None
        assert not other.is_ended


async def test_nothing_runs_that_cannot_be_started(environ: dict[str, str], tmp_path: Path) -> None:
    async with opened(environ) as jobs:
        for command, cwd in ((" ", tmp_path), ("true", tmp_path / "nonsuch")):
            with pytest.raises(ToolError):
                await put_away(jobs, command, cwd)
        assert jobs.listed == ()
        assert await (await put_away(jobs, "true", tmp_path)).wait(None)


async def test_jobs_that_are_not_open_refuse(environ: dict[str, str], tmp_path: Path) -> None:
    async with Shell(environ) as shell:
        with pytest.raises(RuntimeError, match="no jobs"):
            await put_away(Jobs(shell), "true", tmp_path)


async def test_an_error_passes_through_as_it_is(environ: dict[str, str], tmp_path: Path) -> None:
    async def use() -> None:
        async with opened(environ) as jobs:
            await put_away(jobs, "sleep 600", tmp_path)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await use()


async def test_nothing_stays_open(environ: dict[str, str], tmp_path: Path) -> None:
    before = psutil.Process().num_fds()
    async with opened(environ) as jobs:
        await put_away(jobs, "echo; sleep 600", tmp_path)
        assert await (await put_away(jobs, "sleep 600 &", tmp_path)).wait(None)
        async with jobs.command("sleep 600", cwd=tmp_path, timeout_s=None):
            pass
    assert psutil.Process().num_fds() == before
