"""A process that runs a command as a kernel does and then waits to be killed.

Usage: `python -m tests.shell.kernel_stand_in COMMAND`. Prints a line when the command has
printed one, and runs on until it is killed.
"""

import os
import sys
from pathlib import Path

import anyio

from crush_kernel.shell.runner import Shell


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


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
