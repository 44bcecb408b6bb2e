"""The `job_kill` tool: stop a command in the background."""

from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.shell.jobs import Jobs
from crush_kernel.shell.output import MAX_TEXT_BYTES
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
    limit_output,
)
from crush_kernel.tools.commandtext import state
from crush_kernel.tools.job_output import described, metadata_of


class JobKillArguments(Arguments):
    """Which job to stop."""

    shell_id: str = Field(description="The job's id, such as 001")


def job_kill_tool(jobs: Jobs) -> Tool[JobKillArguments]:
    """Return the tool that stops `jobs`. Cancelled, it may have stopped the job or not."""

    async def run(arguments: JobKillArguments, _: ToolContext) -> ToolOutput:
        job = jobs.find(arguments.shell_id)
        was_ended = job.is_ended
        await jobs.stop(job)
        if not job.is_ended:
            raise ToolError(f"Job {job.id} does not end, although it was killed. Look at it later.")
        job.is_told = True
        already = " already" if was_ended else ""
        printed = limit_output(job.read_new().text, max_bytes=MAX_TEXT_BYTES).strip("\n")
        unread = f"\nWhat it printed since you last read it:\n{printed}" if printed else ""
        return ToolOutput(
            f"Job {job.id}{already} {state(job)}; nothing of it runs.{unread}",
            summary="had ended" if was_ended else "stopped",
            metadata={**metadata_of(job)},
        )

    return Tool(
        name="job_kill",
        description=description_of("job_kill"),
        arguments=JobKillArguments,
        run=run,
        describe=lambda arguments: described(jobs, arguments.shell_id),
        timeout_s=QUICK_S,
        is_harmless=True,
    )
