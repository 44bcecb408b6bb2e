"""`lab`: JupyterLab of this environment, on the tour or on what the user names."""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from shutil import copyfile
from typing import Final

import crush_kernel
from crush_kernel.cli.kernelspecs import KERNEL_NAME, find_kernelspec
from crush_kernel.errors import CrushKernelError

TOUR: Final = "tour.ipynb"

COPY_NAME: Final = "crush-tour"


def run(arguments: argparse.Namespace) -> int:
    """Become JupyterLab; returns only where a process cannot become another."""
    path: Path | None = arguments.path
    opened = find_tour(Path.cwd(), _packaged_notebooks()) if path is None else _existing(path)
    if find_kernelspec() is None:
        raise CrushKernelError(
            f"JupyterLab would not find the kernel: there is no kernelspec {KERNEL_NAME!r}",
            hint="Run `crush-kernel install --sys-prefix`, then try again.",
        )
    # -P: a folder that somebody else has filled must not lend JupyterLab its modules.
    command = [sys.executable, "-P", "-m", "jupyterlab", str(opened)]
    command += [*root_options(arguments.jupyterlab), *arguments.jupyterlab]
    if "--no-browser" in arguments.jupyterlab:
        print(f"In your browser, open /lab/tree/{opened.name} at the address printed below")
    sys.stdout.flush()
    if os.name != "nt":
        os.execv(sys.executable, command)  # noqa: S606 - no shell is what we want
    return subprocess.run(command, check=False).returncode


def find_tour(cwd: Path, packaged: Path) -> Path:
    """Return the tour of the checkout in `cwd`, else that of a copy in `cwd`, made if needed.

    A copy that is there already is opened as it is: the user may have run it.

    Raises:
        CrushKernelError: there is no tour, or no copy can be made.
    """
    if (cwd / "crush_kernel").is_dir() and (cwd / "notebooks" / TOUR).is_file():
        return cwd / "notebooks" / TOUR
    copy = cwd / COPY_NAME
    if (copy / TOUR).is_file():
        print(f"Opening the tour in {copy}, which is there already")
        return copy / TOUR
    if not (packaged / TOUR).is_file():
        raise CrushKernelError(
            "this installation has no tour", hint="Name a notebook: `jupyter crush lab my.ipynb`."
        )
    try:
        _copy(packaged, copy)
    except OSError as error:
        raise CrushKernelError(
            f"the tour cannot be copied to {str(copy)!r}: {error.strerror or error}",
            hint="Change to a folder that you can write, or name a notebook.",
        ) from error
    print(f"Copied the tour to {copy}")
    return copy / TOUR


def root_options(options: list[str]) -> list[str]:
    """Return what JupyterLab needs to start for root, such as in a container.

    It refuses otherwise, and would leave nothing but a traceback of advice.
    """
    is_root = os.name != "nt" and os.geteuid() == 0
    if not is_root or any(option.startswith("--allow-root") for option in options):
        return []
    print("You are root: JupyterLab is started with --allow-root", file=sys.stderr)
    return ["--allow-root"]


def _existing(path: Path) -> Path:
    if not path.exists():
        raise CrushKernelError(
            f"there is no {str(path)!r}", hint="Without a path, `lab` opens the tour."
        )
    return path


def _packaged_notebooks() -> Path:
    """Return the notebooks that came with the package; in a checkout they lie beside it."""
    package = Path(crush_kernel.__file__).parent
    inside = package / "notebooks"
    return inside if inside.is_dir() else package.parent / "notebooks"


def _copy(source: Path, target: Path) -> None:
    """Copy what is neither hidden nor compiled; every copy can be written."""
    target.mkdir(exist_ok=True)
    for item in sorted(source.iterdir()):
        if item.name.startswith((".", "__pycache__")):
            continue
        if item.is_dir():
            _copy(item, target / item.name)
        else:
            copyfile(item, target / item.name)
