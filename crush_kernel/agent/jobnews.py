"""What a turn is told of the jobs: which run, and which have ended since it was last told."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from crush_kernel.prompt.delimited import delimited
from crush_kernel.shell.jobs import Job, Jobs
from crush_kernel.tools.commandtext import job_lines


@dataclass(slots=True)
class JobNews:
    """Tells one turn after the other."""

    jobs: Jobs
    redact: Callable[[str], str]
    said: str = ""
    """What the running turn is told; empty between turns."""

    def begin_turn(self) -> None:
        """Have the turn that begins told of what has ended by now."""
        self.said = self._about(self.jobs.take_news())

    def end_turn(self) -> None:
        """Have nobody told any more."""
        self.said = ""

    def preview(self) -> str:
        """Return what a turn would be told that began now; nobody counts as told."""
        return self._about(self.jobs.news)

    def _about(self, ended: Iterable[Job]) -> str:
        running = (job for job in self.jobs.listed if not job.is_ended)
        lines = job_lines((*ended, *running))
        return delimited("jobs", self.redact("\n".join(lines))) if lines else ""
