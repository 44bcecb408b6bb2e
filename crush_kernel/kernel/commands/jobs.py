"""`/jobs`: the commands that run in the background, and how to stop them.

It runs on the engine thread.
"""

from collections.abc import Iterator

from crush_kernel.errors import CommandError, ToolError
from crush_kernel.kernel.commands.call import CommandCall
from crush_kernel.kernel.plaintext import code_span, escape
from crush_kernel.shell.jobs import Job
from crush_kernel.tools.commandtext import first_line, state


async def jobs(call: CommandCall) -> str:
    """List the jobs, the oldest first, or stop one."""
    match call.arguments.split():
        case []:
            return "\n".join(_page(call)) or "Nothing was run in the background."
        case ["stop", job_id]:
            job = _find(call, job_id)
            await call.runtime.jobs.stop(job)
            return f"Job {job.id} {state(job)}: {_shown(call, job.command)}"
        case _:
            raise CommandError(
                f"/jobs knows no {call.arguments!r}.",
                hint="/jobs lists what runs in the background, /jobs stop 001 stops one.",
            )


def _page(call: CommandCall) -> Iterator[str]:
    listed = call.runtime.jobs.listed
    redact = call.runtime.session.redactor.redact
    if listed:
        yield "| job | command | for | state |"
        yield "|---|---|---|---|"
    for job in listed:
        about = escape(redact(first_line(job.description)))
        yield f"| {job.id} | {_shown(call, job.command)} | {about} | {state(job)} |"
    if any(not job.is_ended for job in listed):
        yield "\n`/jobs stop 001` stops one with all that it started. All end with the kernel."


def _shown(call: CommandCall, command: str) -> str:
    # In a table: a bar would end the cell, even in code.
    line = first_line(call.runtime.session.redactor.redact(command))
    return code_span(line).replace("|", "\\|")


def _find(call: CommandCall, job_id: str) -> Job:
    try:
        return call.runtime.jobs.find(job_id)
    except ToolError as error:
        raise CommandError(f"There is no job {job_id!r}.", hint="/jobs lists them.") from error
