"""The `job_output` tool: what a command in the background has printed since the last look."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.shell.joblog import LOG_BYTES
from crush_kernel.shell.jobs import Job, Jobs
from crush_kernel.shell.output import MAX_TEXT_BYTES
from crush_kernel.tools.base import (
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
    limit_output,
)
from crush_kernel.tools.commandtext import (
    first_line,
    last_lines,
    left_over_notes,
    lost_note,
    outcome,
    state,
)
from crush_kernel.tools.inrange import IN_RANGE

DEFAULT_WAIT_S = 60
MAX_WAIT_S = 600

MAX_TAIL_LINES = 1_000

NO_NEW_OUTPUT = "(no new output)"


class JobOutputArguments(Arguments):
    """Which job to look at, and how."""

    shell_id: str = Field(description="The job's id, such as 001")
    wait: bool = Field(default=False, description="Wait until the job has ended")
    timeout: Annotated[int, Field(ge=1, le=MAX_WAIT_S), IN_RANGE] = Field(
        default=DEFAULT_WAIT_S,
        description="How long to wait at most, in seconds; the job goes on after that",
    )
    tail: Annotated[int, Field(ge=1, le=MAX_TAIL_LINES), IN_RANGE] | None = Field(
        default=None,
        description="Show only so many last lines, also those that were read before",
    )


def job_output_tool(jobs: Jobs) -> Tool[JobOutputArguments]:
    """Return the tool that reads what `jobs` print."""

    async def run(arguments: JobOutputArguments, context: ToolContext) -> ToolOutput:
        job = jobs.find(arguments.shell_id)
        if arguments.wait:
            await job.wait(arguments.timeout, lambda tail: context.progress(last_lines(tail)))
        return _tool_output(job, arguments)

    return Tool(
        name="job_output",
        description=description_of(
            "job_output",
            {
                "wait_s": DEFAULT_WAIT_S,
                "kilobytes": MAX_TEXT_BYTES // 1000,
                "megabytes": LOG_BYTES // 1024**2,
            },
        ),
        arguments=JobOutputArguments,
        run=run,
        describe=lambda arguments: described(jobs, arguments.shell_id),
        is_read_only=True,
        is_harmless=True,
    )


def described(jobs: Jobs, shell_id: str) -> str:
    """Return a job as people should see it: `001 · make serve`."""
    try:
        job = jobs.find(shell_id)
    except ToolError:
        return first_line(shell_id)
    return f"{job.id} · {first_line(job.command)}"


def metadata_of(job: Job) -> dict[str, str | bool]:
    """Return what programs should know of a job."""
    return {"shell_id": job.id, "done": job.is_ended, "working_directory": str(job.cwd)}


def _tool_output(job: Job, arguments: JobOutputArguments) -> ToolOutput:
    job.is_told = job.is_told or job.is_ended
    section = job.read_new() if arguments.tail is None else job.read_last(arguments.tail)
    text = limit_output(section.text, max_bytes=MAX_TEXT_BYTES).rstrip()
    lost = lost_note(section.lost_bytes) if section.lost_bytes else ""
    said = (f"Job {job.id} {_verb(job)}.\n", lost, text or NO_NEW_OUTPUT, *_notes(job))
    return ToolOutput(
        "\n".join(filter(None, said)),
        summary=outcome(job.result) if job.result else "running",
        metadata={**metadata_of(job)},
    )


def _verb(job: Job) -> str:
    return state(job) if job.is_ended else f"is {state(job)}"


def _notes(job: Job) -> Iterator[str]:
    if job.result is not None:
        yield from left_over_notes(job.result)
