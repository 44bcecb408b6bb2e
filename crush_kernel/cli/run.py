"""`run`: carry out a notebook without a browser, and save it.

By default only what is not up to date runs: cells that never ran, that failed or were
interrupted, that were edited since, or whose context has changed. So a run that was cut
short goes on where it was when it is started again.

Exit codes: 0 all is well, 1 a cell failed or took too long, or something else did, 2 wrong
usage, 3 nothing failed but something was denied, 130 interrupted.
"""

import argparse
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio

from crush_kernel.cli.due import states
from crush_kernel.cli.notebookfile import NotebookFile
from crush_kernel.cli.notebookrun import Choices, NotebookRun
from crush_kernel.cli.runevents import Finished, Report, Started
from crush_kernel.cli.runkernel import OUR_KERNELSPEC, choose_kernel, manager_for
from crush_kernel.cli.runreport import json_report, people_report
from crush_kernel.cli.usage import exit_code_of
from crush_kernel.errors import CrushKernelError


def run(arguments: argparse.Namespace) -> int:
    """Run the notebook as the arguments say and return the exit code."""
    report = json_report() if arguments.json else people_report()
    try:
        finished = _run(arguments, report)
    except CrushKernelError as error:
        if arguments.json:
            report(Finished(exit_code=exit_code_of(error), message=str(error)))
        raise
    report(finished)
    return finished.exit_code


def _run(arguments: argparse.Namespace, report: Report) -> Finished:
    file = NotebookFile(arguments.notebook, arguments.output)
    notebook = file.read()
    kernel = choose_kernel(notebook, arguments.kernel)
    file.check_target()
    report(
        Started(
            notebook=str(file.source),
            output=str(file.target),
            kernel=kernel,
            cells=len(states(notebook)),
        )
    )
    place = Path(os.path.realpath(file.target.parent)) / file.target.name
    choices = Choices(
        place=place,
        cwd=Path(os.path.realpath(file.source.parent)),
        environ=environment(
            os.environ, notebook=place, mode=arguments.permission_mode, model=arguments.model
        ),
        kernelspec=None if "kernelspec" in notebook["metadata"] else OUR_KERNELSPEC,
        runs_all=arguments.all,
        allows_errors=arguments.allow_errors,
        timeout_s=arguments.timeout,
    )

    async def work() -> Finished:
        return await NotebookRun(
            notebook=notebook,
            file=file,
            new_manager=partial(manager_for, kernel),
            choices=choices,
            report=report,
        ).execute()

    return anyio.run(work)


def environment(
    environ: Mapping[str, str], *, notebook: Path, mode: str | None, model: str | None
) -> dict[str, str]:
    """Return `environ` for the kernel, with what the command line sets.

    Args:
        environ: our own; inside of a notebook it names that one, which the kernel must not
            take for its own.
        notebook: the one that is written, absolute.
        mode: the permission mode, if it was named.
        model: the label of the model, if it was named.
    """
    ours = {
        "JPY_SESSION_NAME": str(notebook),
        "CRUSH_PERMISSION_MODE": mode,
        "CRUSH_MODEL": model,
    }
    return {**environ, **{name: value for name, value in ours.items() if value}}
