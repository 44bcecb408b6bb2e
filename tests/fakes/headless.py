"""The stock programs that run a notebook without anybody watching."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat as untyped_nbformat

from tests.fakes.kernel import clean_environment, kernel_specs

nbformat: Any = untyped_nbformat

LIMIT_S = 120
"""For one program from start to end; a hang is then a failure and not a stuck suite."""

Notebook = Any
"""What nbformat reads, which carries no types."""

_NBCLIENT = """
import sys, nbformat, nbclient
source, target = sys.argv[1:]
notebook = nbformat.read(source, 4)
nbclient.NotebookClient(notebook, timeout=40).execute()
nbformat.write(notebook, target)
"""


@dataclass(frozen=True)
class Program:
    """One way to run a notebook: its name and its command line, from source to target."""

    name: str
    command: Callable[[Path, Path], list[str]]

    def run(self, source: Path, target: Path, environ: Mapping[str, str]) -> "Run":
        """Run the notebook `source` in its folder and wait for the end."""
        done = subprocess.run(
            [sys.executable, *self.command(source, target)],
            cwd=source.parent,
            env=dict(environ),
            check=False,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        return Run(done.returncode, done.stdout + done.stderr, target)


@dataclass(frozen=True)
class Run:
    """What came of it."""

    exit_code: int
    log: str
    target: Path

    @property
    def notebook(self) -> Notebook:
        return read(self.target)


PROGRAMS = (
    Program("nbclient", lambda source, target: ["-c", _NBCLIENT, str(source), str(target)]),
    Program(
        "jupyter execute",
        lambda source, target: [
            *("-m", "jupyter", "execute", str(source)),
            *("--timeout=40", f"--output={target.with_suffix('')}"),
        ],
    ),
    Program(
        "nbconvert",
        lambda source, target: [
            *("-m", "jupyter", "nbconvert", "--execute", "--to", "notebook"),
            *(str(source), f"--output={target}", "--ExecutePreprocessor.timeout=40"),
        ],
    ),
    Program(
        "papermill",
        lambda source, target: [
            *("-m", "papermill", str(source), str(target)),
            *("--no-progress-bar", "--execution-timeout", "40"),
        ],
    ),
)


def write(path: Path, cells: list[str]) -> Path:
    """Write a notebook with a code cell for each of `cells`, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(text, id=f"cell-{number}")
            for number, text in enumerate(cells)
        ],
        metadata={
            "kernelspec": {"name": "crush", "display_name": "Crush", "language": "markdown"},
            "language_info": {"name": "markdown", "file_extension": ".md"},
        },
    )
    nbformat.write(notebook, path)
    return path


def read(path: Path) -> Notebook:
    return nbformat.read(path, as_version=4)


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment in which Jupyter's programs find the kernel of this checkout."""
    kernel_specs(home / "jupyter" / "kernels")
    plain = clean_environment(home)
    # The programs are not ours: what they are warned of is theirs to mend.
    plain.pop("PYTHONWARNINGS")
    return plain | {"JUPYTER_PATH": str(home / "jupyter"), **more}


def markdown(cell: Notebook) -> str:
    """Return all Markdown that `cell` shows."""
    return "\n".join(output.get("data", {}).get("text/markdown", "") for output in cell.outputs)


def is_running(argument: str) -> bool:
    """Return whether a process has `argument` as its last one."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            except OSError:
                continue
            if words[-1] == os.fsencode(argument):
                return True
    return False
