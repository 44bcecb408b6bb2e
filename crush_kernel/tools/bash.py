"""The `bash` tool: run a command line, once it is allowed, and say what came of it."""

import re
import signal
from collections.abc import Iterator

from pydantic import ConfigDict, Field

from crush_kernel.errors import ToolError
from crush_kernel.permissions.rules import PermissionRequest
from crush_kernel.shell.command import encode_command
from crush_kernel.shell.processes import Survivor
from crush_kernel.shell.runner import CommandResult, Shell
from crush_kernel.tools.base import Arguments, Tool, ToolContext, ToolOutput, description_of
from crush_kernel.tools.paths import PathPolicy, Target, reason

DEFAULT_TIMEOUT_S = 120
MAX_TIMEOUT_S = 600

NO_OUTPUT = "(no output)"
"""Stands for an output without any visible character, which providers refuse as text."""

PROGRESS_LINES = 3

_MAX_LEFT_OVER = 10
"""How many of the processes that are left over are named."""

_DESCRIBED_CHARS = 200

_WINDOWS_PATH = re.compile(r"""(?<![\w'"\\])[A-Za-z]:\\(?!\\)""")
"""One that nothing quotes, so that the shell takes its backslashes away."""


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
    timeout: int = Field(
        default=DEFAULT_TIMEOUT_S,
        ge=1,
        le=MAX_TIMEOUT_S,
        description="When to stop the command, in seconds",
    )


def bash_tool(shell: Shell, paths: PathPolicy) -> Tool[BashArguments]:
    """Return the tool that runs commands in `shell`, by default in the folder of `paths`."""

    async def run(arguments: BashArguments, context: ToolContext) -> ToolOutput:
        encode_command(arguments.command)
        target = _folder(paths, arguments.working_dir)
        await context.permit(_request(arguments, target, call_id=context.call_id))
        if _folder(paths, arguments.working_dir) != target:
            raise ToolError(f"{target.shown} was replaced while permission was asked. Try again.")
        result = await shell.run(
            arguments.command,
            cwd=target.path,
            timeout_s=arguments.timeout,
            on_output=lambda tail: context.progress(_last_lines(tail)),
        )
        return _tool_output(result, arguments)

    return Tool(
        name="bash",
        description=description_of(
            "bash", {"default_timeout_s": DEFAULT_TIMEOUT_S, "max_timeout_s": MAX_TIMEOUT_S}
        ),
        arguments=BashArguments,
        run=run,
        describe=_describe,
    )


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


def _request(arguments: BashArguments, target: Target, *, call_id: str) -> PermissionRequest:
    return PermissionRequest(
        call_id=call_id,
        tool="bash",
        action="execute",
        title="run",
        paths=(target.path,) if target.is_outside else (),
        is_outside=target.is_outside,
        command=arguments.command,
        cwd=target.path,
    )


def _tool_output(result: CommandResult, arguments: BashArguments) -> ToolOutput:
    code = result.exit_code
    failure = "timed out" if result.is_timed_out else f"exit {code}" if code else ""
    return ToolOutput(
        _text(result, arguments),
        is_error=bool(failure),
        summary=failure or "ok",
        metadata={"exit_code": code, "is_timed_out": result.is_timed_out},
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
    elif result.exit_code:
        yield f"[exit code {result.exit_code}{_signal_name(result.exit_code)}]"
        if _WINDOWS_PATH.search(arguments.command):
            yield "[bash drops unquoted backslashes: put such a path in single quotes]"
    if result.left_over:
        yield f"[still running, until the kernel ends: {_list(result.left_over)}]"


def _signal_name(exit_code: int) -> str:
    known = {128 + number: f", {number.name}" for number in signal.Signals}
    return known.get(exit_code, "")


def _list(processes: tuple[Survivor, ...]) -> str:
    named = [f"{process.pid} {process.command}".strip() for process in processes[:_MAX_LEFT_OVER]]
    if more := len(processes) - len(named):
        named.append(f"and {more} more")
    return "; ".join(named)


def _last_lines(tail: str) -> str:
    return "\n".join(tail.splitlines()[-PROGRESS_LINES:])


def _describe(arguments: BashArguments) -> str:
    """Return the first line of the command, with a sign that there is more."""
    first, *more = arguments.command.strip().splitlines() or [""]
    if more or len(first) > _DESCRIBED_CHARS:
        return first[: _DESCRIBED_CHARS - 2] + " …"
    return first
