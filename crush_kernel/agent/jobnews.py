"""What a turn is told of the jobs: which run, and which have ended since it was last told."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from crush_kernel.messages import Message, ToolResult
from crush_kernel.prompt.delimited import delimited
from crush_kernel.shell.jobs import Job, Jobs
from crush_kernel.tools.commandtext import job_lines

_JOB_ID = re.compile(r"[0-9A-F]{3,4}")
"""Of at most so many digits: a notebook can claim anything."""


@dataclass(slots=True)
class JobNews:
    """Tells one turn after the other."""

    jobs: Jobs
    redact: Callable[[str], str]
    said: str = ""
    """What the running turn is told; empty between turns."""
    _ended: tuple[Job, ...] = ()
    """What is in it that the model does not know yet."""

    def begin_turn(self) -> None:
        """Have the turn that begins told of what has ended by now."""
        self._ended = self.jobs.news
        self.said = self._about(self._ended)

    def has_arrived(self) -> None:
        """Note that the model has read what the turn was told: it has answered."""
        for job in self._ended:
            job.is_told = True

    def end_turn(self) -> None:
        """Have nobody told any more; what never reached the model is for the next turn."""
        self.said, self._ended = "", ()

    def preview(self) -> str:
        """Return what a turn would be told that began now; nobody counts as told."""
        return self._about(self.jobs.news)

    def _about(self, ended: Iterable[Job]) -> str:
        running = (job for job in self.jobs.listed if not job.is_ended)
        lines = job_lines((*ended, *running))
        return delimited("jobs", self.redact("\n".join(lines))) if lines else ""


def last_job_number(messages: Iterable[Message]) -> int:
    """Return the highest number that a job has in `messages`; zero if they tell of none."""
    ids = (
        part.metadata.get("shell_id")
        for message in messages
        for part in message.parts
        if isinstance(part, ToolResult)
    )
    numbers = (int(each, 16) for each in ids if isinstance(each, str) and _JOB_ID.fullmatch(each))
    return max(numbers, default=0)
