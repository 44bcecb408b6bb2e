"""What came of a command, in words for the model and for people."""

import re
import signal
from collections.abc import Iterable, Iterator

from crush_kernel.shell.jobs import Job
from crush_kernel.shell.processes import Survivor
from crush_kernel.shell.runner import CommandResult

NO_OUTPUT = "(no output)"
"""Stands for an output without any visible character, which providers refuse as text."""

PROGRESS_LINES = 3

_MAX_LEFT_OVER = 10
"""How many of the processes that are left over are named."""

_MAX_JOBS = 10
"""How many jobs a turn is told of."""

_DESCRIBED_CHARS = 200

_WINDOWS_PATH = re.compile(r"""(?<![\w'"\\])[A-Za-z]:\\(?!\\)""")
"""One that nothing quotes, so that the shell takes its backslashes away."""


def outcome(result: CommandResult) -> str:
    """Return how a command ended, for people: `ok`, `exit 1` or `timed out`."""
    return "timed out" if result.is_timed_out else f"exit {c}" if (c := result.exit_code) else "ok"


def state(job: Job) -> str:
    """Return how far a job is: `running for 12 s`, `ended with exit code 0 after 3 s`."""
    time = f"{job.duration_s:.0f} s"
    if not job.is_ended:
        return f"running for {time}"
    if job.result is None:
        return f"ended in a way that is not known after {time}"
    if job.is_stopped:
        return f"stopped after {time}"
    if job.result.is_timed_out:
        return f"stopped at its timeout after {time}"
    code = job.result.exit_code
    return f"ended with exit code {code}{signal_name(code)} after {time}"


def job_lines(jobs: Iterable[Job]) -> tuple[str, ...]:
    """Return a line about each of the `jobs`, for the model; of many only the first."""
    jobs = tuple(jobs)
    lines = tuple(
        f"Job {job.id} {'' if job.is_ended else 'is '}{state(job)}: {first_line(job.command)}"
        for job in jobs[:_MAX_JOBS]
    )
    return (*lines, f"… and {more} more") if (more := len(jobs) - _MAX_JOBS) > 0 else lines


def exit_notes(result: CommandResult, command: str) -> Iterator[str]:
    """Yield what there is to say of an exit code that is not 0, one line each."""
    if result.exit_code and not result.is_timed_out:
        yield f"[exit code {result.exit_code}{signal_name(result.exit_code)}]"
        if _WINDOWS_PATH.search(command):
            yield "[bash drops unquoted backslashes: put such a path in single quotes]"
        yield from result.refusals


def left_over_notes(result: CommandResult) -> Iterator[str]:
    """Yield a line about what the command left running, if there is anything."""
    if result.left_over:
        yield f"[still running, until the kernel ends: {_list(result.left_over)}]"


def lost_note(count: int) -> str:
    """Return that so many bytes of an output are gone, to stand before the rest."""
    return f"[… {count} bytes before are not kept …]"


def signal_name(exit_code: int) -> str:
    """Return `, SIGTERM` for the exit code of a process that was ended by it."""
    known = {128 + number: f", {number.name}" for number in signal.Signals}
    return known.get(exit_code, "")


def last_lines(tail: str) -> str:
    """Return the lines of `tail` that people see while a command runs."""
    return "\n".join(tail.splitlines()[-PROGRESS_LINES:])


def first_line(command: str) -> str:
    """Return the first line of `command`, with a sign that there is more."""
    first, *more = command.strip().splitlines() or [""]
    if more or len(first) > _DESCRIBED_CHARS:
        return first[: _DESCRIBED_CHARS - 2] + " …"
    return first


def _list(processes: tuple[Survivor, ...]) -> str:
    named = [f"{process.pid} {process.command}".strip() for process in processes[:_MAX_LEFT_OVER]]
    if more := len(processes) - len(named):
        named.append(f"and {more} more")
    return "; ".join(named)
