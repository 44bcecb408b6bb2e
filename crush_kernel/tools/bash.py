"""The `bash` tool: run a command line, once it is allowed, and say what came of it.

A command that takes long, or is meant to, goes on in the background: see `shell.jobs`.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Annotated, Protocol

from anyio.to_thread import run_sync
from pydantic import ConfigDict, Field

from crush_kernel.config.directories import home_directory
from crush_kernel.errors import ToolError
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.permissions.shell.reading import read_command
from crush_kernel.shell.command import encode_command
from crush_kernel.shell.jobs import Job, Jobs
from crush_kernel.shell.output import MAX_TEXT_BYTES
from crush_kernel.shell.runner import CommandResult
from crush_kernel.shell.sandbox import NOTE as SANDBOX_NOTE
from crush_kernel.tools.base import (
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
    limit_output,
)
from crush_kernel.tools.commandrequest import command_request
from crush_kernel.tools.commandtext import (
    NO_OUTPUT,
    exit_notes,
    first_line,
    last_lines,
    left_over_notes,
    lost_note,
    outcome,
)
from crush_kernel.tools.filechange import OpenNotebook, is_at, no_notebook
from crush_kernel.tools.inrange import IN_RANGE
from crush_kernel.tools.notebook.steer import States, named_notebooks, states_of, steering_notes
from crush_kernel.tools.paths import PathPolicy, Target, reason

AUTO_BACKGROUND_S = 60
MAX_S = 86_400
"""A day, for whatever is set in seconds."""

OWN_NOTEBOOK = "writes to the notebook that runs: the page may overwrite that, or be overwritten"
"""Why that is asked in every mode."""

GIT_WITHOUT_PROGRAMS: Mapping[str, str] = MappingProxyType(
    {
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": "false",
        "GIT_CONFIG_KEY_1": "diff.ignoreSubmodules",
        "GIT_CONFIG_VALUE_1": "all",
        "GIT_CONFIG_KEY_2": "core.hooksPath",
        "GIT_CONFIG_VALUE_2": os.devnull,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }
)
"""For commands that only read: git does not look into repositories inside of the repository, whose
configuration nobody has looked at, runs no hooks, fetches nothing and writes no index."""

STARTUP_S = 0.5
"""How long a command that goes into the background at once is watched before: what fails, fails
early, and then the model knows."""


class Watch(Protocol):
    """Finds out what commands change, so that it can be taken back."""

    def expect(self) -> None:
        """Prepare for a command, which may still be refused."""

    def command(self) -> AbstractAsyncContextManager[None]:
        """Have what the block changes count to the turn."""
        ...

    def notes(self) -> tuple[str, ...]:
        """Return what is not covered, a sentence each."""
        ...


class NoWatch:
    """Finds out nothing."""

    def expect(self) -> None:
        """Do nothing."""

    def command(self) -> AbstractAsyncContextManager[None]:
        """Do nothing around the block."""
        return nullcontext()

    def notes(self) -> tuple[str, ...]:
        """Say nothing."""
        return ()


class BashArguments(Arguments):
    """What the model says about a command."""

    # Asked for, since it makes the model say what it means to do; not insisted on.
    model_config = ConfigDict(json_schema_extra={"required": ["command", "description"]})

    command: str = Field(description="The command line, any bash program")
    description: str = Field(
        default="", description="What the command is for, in at most ten words"
    )
    working_dir: str = Field(
        default="", description="The folder to run it in; by default the working directory"
    )
    run_in_background: bool = Field(
        default=False, description="Do not wait: for servers and what else does not end by itself"
    )
    auto_background_after: Annotated[int, Field(le=MAX_S), IN_RANGE] = Field(
        default=AUTO_BACKGROUND_S,
        description="How long to wait before the command goes on in the background, in seconds",
    )
    timeout: Annotated[int, Field(ge=1, le=MAX_S), IN_RANGE] | None = Field(
        default=None,
        description="When to stop it, in seconds, also in the background; by default never",
    )

    @property
    def patience_s(self) -> float:
        """How long to wait. Source: Crush: 0 is the default, less means not at all."""
        if self.run_in_background or self.auto_background_after < 0:
            return STARTUP_S
        return self.auto_background_after or AUTO_BACKGROUND_S


def bash_tool(
    jobs: Jobs,
    paths: PathPolicy,
    watch: Watch | None = None,
    *,
    notebook: OpenNotebook = no_notebook,
) -> Tool[BashArguments]:
    """Return the tool.

    Args:
        jobs: as which commands run.
        paths: in whose folder, by default.
        watch: finds out what they change.
        notebook: tells which notebook runs.
    """
    watch = watch or NoWatch()

    async def run(arguments: BashArguments, context: ToolContext) -> ToolOutput:
        encode_command(arguments.command)
        target = _folder(paths, arguments.working_dir)
        if arguments.run_in_background:
            jobs.require_room()
        watch.expect()
        notes = tuple(_asked_notes(arguments, is_confined=jobs.sandbox is not None))
        asked = partial(_request, arguments, target, paths, context.call_id, notes)
        request = await run_sync(lambda: _sparing(asked(), notebook))
        await context.permit(request)
        if _folder(paths, arguments.working_dir) != target:
            raise ToolError(f"{target.shown} was replaced while permission was asked. Try again.")
        names = named_notebooks(arguments.command)
        before: States = {}
        if names:
            before = await run_sync(states_of, names, target.path, abandon_on_cancel=True)
        async with watch.command():
            env = GIT_WITHOUT_PROGRAMS if request.is_read_only else None
            output = await _run(jobs, arguments, target, context, env)
        if before:
            noted = partial(steering_notes, arguments.command, before, target.path, notebook())
            lines = await run_sync(lambda: tuple(noted()), abandon_on_cancel=True)
            if lines:
                output = replace(output, text="\n".join((output.text.rstrip("\n"), *lines)))
        notes = " ".join(watch.notes())
        return replace(output, metadata={**output.metadata, "undo": notes}) if notes else output

    return Tool(
        name="bash",
        description=description_of(
            "bash",
            {
                "auto_background_s": AUTO_BACKGROUND_S,
                "kilobytes": MAX_TEXT_BYTES // 1000,
            },
        ),
        arguments=BashArguments,
        run=run,
        describe=lambda arguments: first_line(arguments.command),
    )


async def _run(
    jobs: Jobs,
    arguments: BashArguments,
    target: Target,
    context: ToolContext,
    env: Mapping[str, str] | None,
) -> ToolOutput:
    def report(tail: str) -> None:
        context.progress(last_lines(tail))

    async with jobs.command(
        arguments.command,
        cwd=target.path,
        timeout_s=arguments.timeout,
        description=arguments.description,
        env=env,
    ) as job:
        is_ended = await job.wait(arguments.patience_s, report)
        if not is_ended and not jobs.has_room:
            # Better to wait than to stop what is half done.
            is_ended = await job.wait(None, report)
        if not is_ended:
            jobs.put_away(job)
            return _background(job, arguments)
    if job.result is None:
        raise ToolError(f"The command was stopped, because it cannot be followed: {job.error}")
    return _tool_output(job.result, arguments)


def _folder(paths: PathPolicy, working_dir: str) -> Target:
    target = paths.resolve(working_dir or ".")
    try:
        is_folder = target.path.is_dir()
    except OSError as error:
        why = reason(error)
        raise ToolError(f"{target.shown} cannot be entered: {why}. Nothing was run.") from error
    if not is_folder:
        raise ToolError(f"There is no folder {target.shown}. Nothing was run.")
    return target


def _request(
    arguments: BashArguments,
    target: Target,
    paths: PathPolicy,
    call_id: str,
    notes: tuple[str, ...],
) -> PermissionRequest:
    known = {"HOME": str(home_directory(os.environ)), "PWD": str(target.path)}
    reading = read_command(arguments.command, known=known)
    return command_request(arguments.command, reading, paths, target, call_id=call_id, notes=notes)


def _sparing(request: PermissionRequest, notebook: OpenNotebook) -> PermissionRequest:
    """Return `request` with a warning if it writes to the notebook that runs."""
    if not any(is_at(notebook, path) for path in request.writes):
        return request
    return replace(request, dangers=(*request.dangers, OWN_NOTEBOOK))


def _asked_notes(arguments: BashArguments, *, is_confined: bool) -> Iterator[str]:
    if arguments.run_in_background:
        yield "It runs on in the background when the turn has ended, until the kernel ends"
    if is_confined:
        yield SANDBOX_NOTE


def _background(job: Job, arguments: BashArguments) -> ToolOutput:
    section = job.read_new()
    printed = limit_output(section.text, max_bytes=MAX_TEXT_BYTES).rstrip()
    if section.lost_bytes:
        printed = f"{lost_note(section.lost_bytes)}\n{printed}"
    is_meant = arguments.run_in_background or arguments.auto_background_after < 0
    why = "runs" if is_meant else f"has not ended after {job.duration_s:.0f} s and runs on"
    note = (
        f"[the command {why} in the background as job {job.id}: job_output waits for it or reads "
        "what it prints from here on, job_kill stops it; it ends with the kernel at the latest]"
    )
    return ToolOutput(
        f"{printed or NO_OUTPUT}\n{note}",
        summary=f"job {job.id}",
        metadata={"background": True, "shell_id": job.id},
    )


def _tool_output(result: CommandResult, arguments: BashArguments) -> ToolOutput:
    summary = outcome(result)
    return ToolOutput(
        _text(result, arguments),
        is_error=summary != "ok",
        summary=summary,
        metadata={"exit_code": result.exit_code, "is_timed_out": result.is_timed_out},
    )


def _text(result: CommandResult, arguments: BashArguments) -> str:
    printed = result.output if result.output.strip() else NO_OUTPUT
    notes = tuple(_notes(result, arguments))
    return "\n".join((printed.rstrip("\n"), *notes)) if notes else printed


def _notes(result: CommandResult, arguments: BashArguments) -> Iterator[str]:
    """Yield what there is to say besides the output, one line each."""
    if result.is_timed_out:
        yield (
            f"[stopped after {arguments.timeout} s with everything it started; the output may be "
            "partial]"
        )
    yield from exit_notes(result, arguments.command)
    yield from left_over_notes(result)
