"""`jupyter crush run` as a process, in a folder and a home of its own."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.fakes import headless
from tests.fakes.offline import Step, offline_script

LIMIT_S = 100
"""For one run, or one thing to come; a hang is then a failure and not a stuck suite."""

Event = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """What came of one run."""

    exit_code: int
    out: str
    err: str

    @property
    def events(self) -> list[Event]:
        """What `--json` has printed."""
        return [json.loads(row) for row in self.out.splitlines()]

    def those(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["event"] == kind]

    @property
    def ran(self) -> list[str]:
        """The cells that ran, in the order of running."""
        return [event["cell"] for event in self.those("cell_started")]

    @property
    def reasons(self) -> dict[str, str]:
        return {event["cell"]: event["reason"] for event in self.those("cell_started")}

    @property
    def statuses(self) -> dict[str, str]:
        return {event["cell"]: event["status"] for event in self.those("cell_finished")}


@dataclass
class Place:
    """A folder with a notebook, and what its runs are started with."""

    home: Path
    folder: Path
    environ: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        for each in (self.home, self.folder):
            each.mkdir(parents=True, exist_ok=True)

    @property
    def path(self) -> Path:
        return self.folder / "work.ipynb"

    @property
    def notebook(self) -> Any:  # noqa: ANN401 - nbformat carries no types
        return headless.read(self.path)

    def cell(self, index: int) -> Any:  # noqa: ANN401 - the same
        return self.notebook.cells[index]

    def write(self, *cells: str) -> Path:
        """Write the notebook; its cells are `cell-0`, `cell-1` and so on."""
        return headless.write(self.path, list(cells))

    def edit(self, change: Callable[[Any], object]) -> None:
        """Change the notebook as somebody else would."""
        notebook = self.notebook
        change(notebook)
        headless.nbformat.write(notebook, self.path)

    def play(self, *turns: Step) -> None:
        """Have the offline provider play `turns` from the next run on."""
        self.environ |= offline_script(self.home, *turns)

    def run(self, *options: str, notebook: str = "work.ipynb") -> Done:
        """Run the notebook to its end, telling it in JSON."""
        return self.done("--json", *options, notebook=notebook)

    def done(self, *options: str, notebook: str = "work.ipynb") -> Done:
        """Run the notebook to its end."""
        with self.running(*options, notebook=notebook) as process:
            out, err = process.communicate(timeout=LIMIT_S)
        return Done(process.returncode, out, err)

    @contextmanager
    def running(
        self, *options: str, notebook: str = "work.ipynb"
    ) -> Generator[subprocess.Popen[str]]:
        """Start a run; what is left of it in the end is killed."""
        process = subprocess.Popen(
            # -P, as the installed command has no modules of the folder on its path either.
            [sys.executable, "-P", "-m", "crush_kernel", "run", notebook, *options],
            cwd=self.folder,
            env=headless.environment(self.home, **self.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        try:
            yield process
        finally:
            for left in family(process):
                left.kill()
            process.communicate()


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the process and all that it has started, the kernel first."""
    try:
        parent = psutil.Process(process.pid)
        return [*parent.children(recursive=True), parent]
    except psutil.NoSuchProcess:
        return []


def kernel_of(process: subprocess.Popen[str]) -> psutil.Process:
    """Return the kernel that a run has started."""
    return next(child for child in family(process) if "crush_kernel.kernel" in child.cmdline())


def wait_until(is_so: Callable[[], bool]) -> None:
    """Block until `is_so`, which a test says must come.

    Raises:
        TimeoutError: it has not come.
    """
    never, deadline = threading.Event(), time.monotonic() + LIMIT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError
        never.wait(0.05)


def is_gone(process: psutil.Process) -> bool:
    """Return whether `process` has ended, reaped or not."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
