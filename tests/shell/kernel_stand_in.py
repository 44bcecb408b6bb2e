"""A process that runs a command as a kernel does and then waits to be killed.

Usage: `python -m tests.shell.kernel_stand_in COMMAND [job or sandbox]`, the latter to put the
command into the background, and into a sandbox. Prints a line when the command has
printed one, and runs on until it is killed.
"""

import os
import sys
from pathlib import Path

import anyio

from crush_kernel.shell.jobs import Jobs
from crush_kernel.shell.runner import Shell
from crush_kernel.shell.sandbox import Confinement, Sandbox


async def main(command: str) -> None:
    """Run `command` to its end, if it has one, and then wait."""
    async with Shell(os.environ) as shell:
        await shell.run(
            command,
            cwd=Path.cwd(),
            timeout_s=None,
            on_output=lambda tail: print(tail, flush=True),  # noqa: T201 - the parent reads it
        )
        print("ended", flush=True)  # noqa: T201 - as above
        await anyio.sleep_forever()


async def main_of_job(command: str, how: str) -> None:
    """Run `command` in the background, and wait."""
    is_confined = how == "sandbox"
    sandbox = Sandbox(os.environ, Confinement((Path.cwd(),))) if is_confined else None
    async with Shell(os.environ) as shell, Jobs(shell, sandbox=sandbox) as jobs:
        async with jobs.command(command, cwd=Path.cwd(), timeout_s=None) as job:
            jobs.put_away(job)
        await job.wait(None, lambda tail: print(tail, flush=True))  # noqa: T201 - as above
        await anyio.sleep_forever()


if __name__ == "__main__":
    if sys.argv[2:]:
        anyio.run(main_of_job, sys.argv[1], sys.argv[2])
    else:
        anyio.run(main, sys.argv[1])
