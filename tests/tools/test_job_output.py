"""`job_output` and `job_kill` on real jobs, and how `bash` makes them."""

import os
import re
import uuid
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from pydantic import ValidationError

import crush_kernel.shell.jobs as jobs_module
from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.shell.joblog import LOG_BYTES
from crush_kernel.shell.jobs import Job, Jobs
from crush_kernel.shell.output import MAX_TEXT_BYTES
from crush_kernel.shell.runner import Shell
from crush_kernel.tools.base import MAX_OUTPUT_BYTES, Arguments, Tool, ToolOutput
from crush_kernel.tools.bash import AUTO_BACKGROUND_S, STARTUP_S, BashArguments, bash_tool
from crush_kernel.tools.commandtext import job_lines
from crush_kernel.tools.job_kill import JobKillArguments, job_kill_tool
from crush_kernel.tools.job_output import (
    NO_NEW_OUTPUT,
    JobOutputArguments,
    job_output_tool,
)
from crush_kernel.tools.paths import PathPolicy
from tests.fakes.tool_context import FakeContext, tool_context
from tests.shell.processes import running_with, wait_until

pytestmark = pytest.mark.anyio


@pytest.fixture
def token() -> Iterator[str]:
    """Yield a word for the commands' environment; in the end nothing may run that has it."""
    token = uuid.uuid4().hex
    yield token
    assert running_with(token) == []


@dataclass
class Desk:
    """The three tools in one folder."""

    jobs: Jobs
    folder: Path

    async def bash(
        self, command: str, *, fake: FakeContext | None = None, **more: object
    ) -> ToolOutput:
        arguments = BashArguments.model_validate({"command": command, **more})
        tool = bash_tool(self.jobs, PathPolicy(self.folder, self.folder))
        return await tool.run(arguments, (fake or tool_context()).context)

    async def start(self, command: str, *, limit_s: int | None = None) -> Job:
        output = await self.bash(command, run_in_background=True, timeout=limit_s)
        return self.jobs.find(str(output.metadata["shell_id"]))

    async def read(self, shell_id: str, **more: object) -> ToolOutput:
        arguments = JobOutputArguments.model_validate({"shell_id": shell_id, **more})
        return await job_output_tool(self.jobs).run(arguments, tool_context().context)

    async def kill(self, shell_id: str) -> ToolOutput:
        arguments = JobKillArguments(shell_id=shell_id)
        return await job_kill_tool(self.jobs).run(arguments, tool_context().context)


@asynccontextmanager
async def opened(folder: Path, token: str) -> AsyncGenerator[Desk]:
    with anyio.fail_after(20):
        async with Shell({**os.environ, "CRUSH_TEST": token}) as shell, Jobs(shell) as jobs:
            yield Desk(jobs, folder)


async def test_a_command_in_the_background_is_told_with_its_id(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        fake = tool_context()
        output = await desk.bash("echo up; sleep 600", run_in_background=True, fake=fake)
        first, note = output.text.splitlines()
        assert first == "up"
        assert note.startswith("[the command runs in the background as job 001: job_output ")
        assert (output.summary, output.is_error) == ("job 001", False)
        assert output.metadata == {"background": True, "shell_id": "001"}
        assert "in the background" in fake.requests[0].notes[0]
        assert (await desk.read("001")).text.endswith(f"\n{NO_NEW_OUTPUT}")


async def test_what_fails_at_once_is_no_job(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        output = await desk.bash("echo no port; exit 3", run_in_background=True)
        assert output.text == "no port\n[exit code 3]"
        assert output.is_error
        assert desk.jobs.listed == ()


async def test_what_takes_long_goes_on_in_the_background(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        output = await desk.bash("echo up; sleep 600", auto_background_after=1)
        assert output.text.startswith("up\n[the command has not ended after 1 s and runs on in ")
        assert [job.id for job in desk.jobs.listed] == ["001"]


@pytest.mark.parametrize(
    ("arguments", "patience_s"),
    [
        pytest.param({}, AUTO_BACKGROUND_S, id="default"),
        pytest.param({"auto_background_after": 0}, AUTO_BACKGROUND_S, id="zero"),
        pytest.param({"auto_background_after": 5}, 5, id="a number"),
        pytest.param({"auto_background_after": -1}, STARTUP_S, id="negative"),
        pytest.param({"run_in_background": True}, STARTUP_S, id="at once"),
        pytest.param({"run_in_background": True, "auto_background_after": 5}, STARTUP_S, id="both"),
    ],
)
def test_a_command_is_waited_for_so_long(arguments: dict[str, object], patience_s: float) -> None:
    asked = BashArguments.model_validate({"command": "ls", **arguments})
    assert asked.patience_s == patience_s


async def test_a_denied_command_is_no_job(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        with pytest.raises(PermissionDenied):
            await desk.bash("touch made", run_in_background=True, fake=tool_context(allow=False))
        assert desk.jobs.listed == ()
    assert not (tmp_path / "made").exists()


async def test_without_room_no_more_are_started_but_what_runs_is_waited_for(
    tmp_path: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "MAX_RUNNING", 1)
    async with opened(tmp_path, token) as desk:
        await desk.start("sleep 600")
        fake = tool_context()
        with pytest.raises(ToolError, match="1 jobs are running"):
            await desk.bash("sleep 600", run_in_background=True, fake=fake)
        assert fake.requests == []
        # More than its half second of patience.
        output = await desk.bash("sleep 0.7; echo done", auto_background_after=-1)
        assert output.text == "done\n"


async def test_a_call_that_is_stopped_stops_its_command_and_no_job(
    tmp_path: Path, token: str
) -> None:
    async with opened(tmp_path, token) as desk:
        job = await desk.start("exec sleep 600")
        with anyio.move_on_after(0.2):
            await desk.bash("sleep 601")
        assert len(running_with(token)) == 1
        with anyio.move_on_after(0.1):
            await desk.read(job.id, wait=True)
        assert not job.is_ended


async def test_output_is_read_once_and_the_end_of_all_by_tail(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        job = await desk.start("seq 5; until [ -e go ]; do sleep 0.02; done; seq 6 9; exit 2")
        running = await desk.read(job.id, tail=2)
        head, _, *lines = running.text.splitlines()
        assert head.startswith("Job 001 is running for ")
        assert lines == ["4", "5"]
        assert running.summary == "running"
        (tmp_path / "go").touch()
        ended = await desk.read(job.id, wait=True)
        assert ended.text.startswith("Job 001 ended with exit code 2 after ")
        assert ended.text.endswith(" s.\n\n6\n7\n8\n9")
        assert (ended.summary, ended.is_error) == ("exit 2", False)
        assert ended.metadata["done"] is True
        assert (await desk.read(job.id)).text.endswith(f".\n\n{NO_NEW_OUTPUT}")
        assert (await desk.read(job.id, tail=3)).text.endswith(".\n\n7\n8\n9")
        assert desk.jobs.news == ()


async def test_waiting_ends_at_its_timeout_and_the_job_goes_on(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        job = await desk.start("sleep 600")
        before = anyio.current_time()
        output = await desk.read(job.id, wait=True, timeout=1)
        assert anyio.current_time() - before >= 1
        assert output.text.startswith("Job 001 is running for ")
        assert not job.is_ended


async def test_a_long_output_is_cut_in_the_middle(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        job = await desk.start(
            "until [ -e go ]; do sleep 0.02; done; seq -f 'the %.0fth line' 100000; sleep 600"
        )
        (tmp_path / "go").touch()
        await wait_until(lambda: "the 100000th line\n" in job.read(0).text)
        output = await desk.read(job.id)
        assert MAX_TEXT_BYTES < len(output.text.encode()) <= MAX_OUTPUT_BYTES
        assert "\n\nthe 1th line\nthe 2th line\n" in output.text
        assert " bytes left out …]\n" in output.text
        assert output.text.endswith("\nthe 100000th line")


async def test_what_is_not_kept_any_more_is_counted(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        job = await desk.start(f"sleep 0.6; yes | head -c {LOG_BYTES + 100}; echo end; exec cat")
        output = await desk.read(job.id, wait=True)
        # 100, the end, and a line that may have been cut.
        assert "\n\n[… 106 bytes before are not kept …]\ny\n" in output.text
        assert output.text.endswith("\ny\nend")


async def test_what_was_printed_before_a_command_went_to_the_background_is_kept(
    tmp_path: Path, token: str
) -> None:
    async with opened(tmp_path, token) as desk:
        # More than a result shows: its middle would be gone.
        output = await desk.bash("seq 20000; exec sleep 600", auto_background_after=1)
        assert output.text.startswith("1\n2\n")
        assert " bytes left out …]\n" in output.text
        assert len(output.text.encode()) <= MAX_OUTPUT_BYTES
        [job] = desk.jobs.listed
        assert job.read(0).text == "".join(f"{number}\n" for number in range(1, 20_001))
        tail = await desk.read(job.id, tail=1_000)
        assert tail.text.splitlines()[2:] == [*map(str, range(19_001, 20_001))]
        await desk.kill(job.id)


async def test_what_a_job_left_running_is_named_and_killed(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        job = await desk.start("until [ -e go ]; do sleep 0.02; done; setsid sleep 600 & sleep 0.6")
        (tmp_path / "go").touch()
        output = await desk.read(job.id, wait=True)
        assert output.text.endswith(" sleep 600]")
        output = await desk.kill(job.id)
        assert output.text.startswith("Job 001 already ended with exit code 0 after ")
        assert output.summary == "had ended"
        assert running_with(token) == []


async def test_a_killed_job_gives_the_output_that_was_not_read(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        job = await desk.start("trap 'echo bye; exit' TERM; echo up; sleep 600 & wait")
        output = await desk.kill(f" {int(job.id)} ")
        head, _, *lines = output.text.splitlines()
        assert head.startswith("Job 001 stopped after ")
        assert lines == ["bye"]
        assert output.summary == "stopped"
        assert (await desk.read(job.id)).text.startswith("Job 001 stopped after ")
        assert desk.jobs.news == ()


async def test_a_job_that_ends_at_its_timeout_says_so(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        job = await desk.start("sleep 600", limit_s=1)
        output = await desk.read(job.id, wait=True)
        assert output.text.startswith("Job 001 stopped at its timeout after ")
        assert output.summary == "timed out"


async def test_an_unknown_job_is_an_error_that_names_the_known_ones(
    tmp_path: Path, token: str
) -> None:
    async with opened(tmp_path, token) as desk:
        await desk.start("sleep 600")
        with pytest.raises(ToolError, match=r"no job '00F'\. These are running: 001\."):
            await desk.read("00F")
        with pytest.raises(ToolError, match=r"no job ''"):
            await desk.kill("")


async def test_people_see_which_job_is_meant(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        await desk.start("sleep 600\n# more")
        tool = job_output_tool(desk.jobs)
        assert tool.describe(JobOutputArguments(shell_id="1")) == "001 · sleep 600 …"
        assert tool.describe(JobOutputArguments(shell_id="a\nb")) == "a …"


async def test_the_model_is_told_of_jobs_a_line_each_of_many_some(
    tmp_path: Path, token: str
) -> None:
    async with opened(tmp_path, token) as desk:
        job = await desk.start("sleep 600\n# more")
        [line] = job_lines([job])
        assert re.fullmatch(r"Job 001 is running for \d s: sleep 600 …", line)
        assert job_lines([job] * 12)[-1] == "… and 2 more"
        assert len(job_lines([job] * 12)) == 11


@pytest.mark.parametrize(
    ("model", "arguments"),
    [
        pytest.param(JobOutputArguments, {}, id="no id"),
        pytest.param(JobOutputArguments, {"shell_id": 1}, id="a number as id"),
        pytest.param(JobOutputArguments, {"shell_id": "1", "timeout": "long"}, id="no number"),
        pytest.param(JobOutputArguments, {"shell_id": "1", "since": 3}, id="unknown name"),
        pytest.param(JobKillArguments, {}, id="nothing to kill"),
        pytest.param(JobKillArguments, {"shell_id": "1", "signal": 9}, id="not offered"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    model: type[Arguments], arguments: dict[str, object]
) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(arguments)


async def test_descriptions_are_filled_in(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path, token) as desk:
        tools: tuple[Tool[JobOutputArguments] | Tool[JobKillArguments], ...] = (
            job_output_tool(desk.jobs),
            job_kill_tool(desk.jobs),
        )
        for tool in tools:
            assert tool.description
            assert "{" not in tool.description
