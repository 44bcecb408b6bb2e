"""Parse the command line and hand over to the module of the command.

Nothing heavy is imported before the command is known, so that `--help` and `--version`
answer at once. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

from crush_kernel import __version__
from crush_kernel.cli.usage import FAILED, exit_code_of
from crush_kernel.errors import CrushKernelError

INTERRUPTED: Final = 130

_EXAMPLES: Final = """\
examples:
  %(prog)s lab                        JupyterLab on the tour: five cells, two minutes
  %(prog)s lab work.ipynb --no-browser
  %(prog)s run work.ipynb             run what is not up to date, and save
  %(prog)s doctor                     what is missing, and what to do about it
  %(prog)s models --json              the models that could be used now
  %(prog)s install --user             use this Python's kernel from another environment
"""

_RUN_EPILOG: Final = """\
What the agent says goes to the standard output, all else to the standard error.

With --json, each line of the standard output is an object with an `event`:
  started            notebook, output, kernel, cells (how many can run)
  cell_started       cell, number, source, reason (why it is not up to date)
  tool_called        cell, call, tool, input
  tool_answered      cell, call, tool, outcome (ok, error, denied), summary
  subagent_called    cell, call (that has started it), agent, tool, input, outcome, summary;
                     told when the sub-agent is done, before its call's tool_answered
  permission_denied  cell, tool, reason
  text               cell, text: one reply of the model
  output             cell, text: what a command shows
  warning            text
  cell_finished      cell, status (ok, failed, interrupted, timed_out, died), duration_s,
                     error, message, model, usage, denied
  finished           exit_code, ran, up_to_date, written (cells whose text is the model's and
                     that wait for the next run), failed, denied, usage, duration_s, message
Later versions may add events and fields.

exit codes:
  0    all is well
  1    a cell failed or took too long, or the notebook could not be saved
  2    wrong usage: no such file, no notebook, a bad option
  3    nothing failed, but something was denied
  130  interrupted, by Ctrl-C or SIGTERM
"""

PERMISSION_MODES: Final = ("default", "accept-edits", "plan", "yolo")
"""Those of `config.settings`, which is not loaded for `--help`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, the process's own by default; return the exit code.

    Raises:
        SystemExit: the usage is wrong, or only help or the version was asked for.
    """
    _survive_narrow_encodings()
    words, for_jupyterlab = _split_lab(list(sys.argv[1:] if argv is None else argv))
    arguments = _parser(_program(sys.argv[0])).parse_args(words)
    if arguments.command == "lab":
        arguments.jupyterlab = for_jupyterlab
    try:
        return _command(arguments.command)(arguments)
    except CrushKernelError as error:
        print(f"{_program(sys.argv[0])}: {error}", file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
        return exit_code_of(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    """Import the module of a command and return its `run`."""
    module = importlib.import_module(f"crush_kernel.cli.{name}")
    return cast("Callable[[argparse.Namespace], int]", module.run)  # every command has one


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="A Jupyter kernel in which each notebook cell is a turn of a coding agent.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"crush-kernel {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    _add_lab(commands.add_parser("lab", help="open JupyterLab on the tour or on PATH"))
    _add_run(
        commands.add_parser(
            "run",
            help="run a notebook without a browser, and save it",
            epilog=_RUN_EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    )
    commands.add_parser("doctor", help="check what the kernel needs, and say what to do")
    models = commands.add_parser("models", help="list the models that can be used now")
    models.add_argument("--json", action="store_true", help="for programs: one JSON array")
    _add_install(commands.add_parser("install", help="install the kernelspec for this Python"))
    return parser


def _add_lab(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [-h] [path] [options of JupyterLab ...]"
    parser.description = (
        "Open JupyterLab on a notebook or folder. Without one: on the tour of the checkout in "
        "the current folder, else on a copy of the tour that came with the package. All that "
        "follows the first option goes to JupyterLab as it is."
    )
    parser.add_argument("path", nargs="?", type=Path, help="a notebook or a folder")


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run the cells of NOTEBOOK that are not up to date (never run, failed, interrupted, \n"
        "edited, or below something that has changed) and save it after each one. A run that \n"
        "was cut short goes on when it is started again."
    )
    parser.add_argument("notebook", type=Path, help="the notebook, an .ipynb file")
    parser.add_argument("--all", action="store_true", help="run cells that are up to date, too")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write there, and leave NOTEBOOK as it is"
    )
    parser.add_argument(
        "--permission-mode",
        choices=PERMISSION_MODES,
        help="what may be done unasked; nobody can be asked, so the rest is denied",
    )
    parser.add_argument("--model", metavar="PROVIDER/MODEL", help="the model to use")
    parser.add_argument("--kernel", metavar="NAME", help="use it in place of the notebook's own")
    parser.add_argument(
        "--timeout", type=_seconds, metavar="S", help="stop a cell after so many seconds, and fail"
    )
    parser.add_argument(
        "--allow-errors", action="store_true", help="go on after a cell that has failed"
    )
    parser.add_argument("--json", action="store_true", help="for programs: one object a line")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above zero")
    return seconds


def _add_install(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Install a kernelspec that starts this very Python, so that a JupyterLab in another "
        "environment finds the kernel. Not needed where crush-kernel itself is installed."
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for this user (the default)")
    where.add_argument("--sys-prefix", action="store_true", help="into this environment")
    where.add_argument("--prefix", type=Path, metavar="P", help="into the environment at P")
    parser.add_argument("--name", default="crush", help="the kernelspec's name (crush)")
    parser.add_argument("--display-name", default="Crush", help="what people see (Crush)")


def _split_lab(argv: list[str]) -> tuple[list[str], list[str]]:
    """Return our own words and those for JupyterLab: `lab`'s from the first option on."""
    if argv[:1] != ["lab"]:
        return argv, []
    for index, word in enumerate(argv):
        if word.startswith("-") and word not in ("-h", "--help"):
            theirs = argv[index + 1 :] if word == "--" else argv[index:]
            return argv[:index], theirs
    return argv, []


def _program(argv0: str) -> str:
    """Return how the user called us."""
    name = Path(argv0).stem
    if name.startswith("jupyter-"):
        return "jupyter crush"
    return "crush-kernel" if name == "crush-kernel" else "python -m crush_kernel"


def _survive_narrow_encodings() -> None:
    """Print `?` where the terminal has no such character instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
