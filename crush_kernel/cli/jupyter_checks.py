"""Checks of Jupyter: does it find the kernel, and does the browser get our extension."""

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from jupyter_core.paths import jupyter_config_path, jupyter_path

from crush_kernel import __version__
from crush_kernel.cli.findings import Finding
from crush_kernel.cli.kernelspecs import KERNEL_NAME, Kernelspec, find_kernelspec
from crush_kernel.errors import CrushKernelError

EXTENSION: Final = "crush-kernel"

WIDGETS_EXTENSION: Final = "@jupyter-widgets/jupyterlab-manager"

_PYTHON_TIMEOUT_S: Final = 30.0
"""For another interpreter to import our package; slow disks take seconds."""


def jupyter_findings() -> Iterator[Finding]:
    """Yield what there is to say about Jupyter."""
    yield jupyter_command(shutil.which("jupyter"), scripts=sysconfig.get_path("scripts"))
    yield _kernelspec()
    places = [Path(place) for place in jupyter_path("labextensions")]
    configured = [Path(place) for place in jupyter_config_path()]
    yield labextension(places, disabled=disabled_extensions(configured))
    yield _widgets(places)


def jupyter_command(found: str | None, *, scripts: str) -> Finding:
    """Tell whether `jupyter` on PATH is the one of the environment with these `scripts`."""
    if found is None:
        return Finding(
            "warning",
            "there is no command `jupyter` on PATH",
            f"Activate the environment, or use `{sys.executable} -m crush_kernel lab`.",
        )
    if Path(found).parent.resolve() == Path(scripts).resolve():
        return Finding("ok", f"jupyter at {found}")
    return Finding(
        "warning",
        f"`jupyter` on PATH is {found}, of another environment than crush-kernel's",
        "Start JupyterLab with `crush-kernel lab`, or run `crush-kernel install --user` and "
        "install crush-kernel there too.",
    )


def kernelspec(spec: Kernelspec | None) -> Finding:
    """Tell whether a kernelspec starts a Python that has our kernel."""
    if spec is None:
        return Finding(
            "broken",
            f"Jupyter finds no kernelspec {KERNEL_NAME!r}",
            "Run `crush-kernel install --user`, or install crush-kernel where JupyterLab is.",
        )
    if shutil.which(spec.python) is None:
        return _points_astray(spec, f"{spec.python!r}, which is not there")
    there = _version_in(spec.python, cwd=spec.directory)
    if there is None:
        return _points_astray(spec, f"{spec.python}, which has no crush-kernel")
    if there != __version__:
        return Finding(
            "warning",
            f"the kernelspec in {spec.directory} starts crush-kernel {there}, not {__version__}",
            "Run `crush-kernel install --user` to use this one.",
        )
    return Finding("ok", f"kernelspec {KERNEL_NAME!r} in {spec.directory}")


def labextension(places: Sequence[Path], *, disabled: Sequence[str]) -> Finding:
    """Tell whether JupyterLab gets our extension from one of `places`, first come first served."""
    found = next(
        (p / EXTENSION for p in places if (p / EXTENSION / "package.json").is_file()), None
    )
    reinstall = (
        f"Run `{sys.executable} -m pip install --force-reinstall --no-deps crush-kernel`, in a "
        "checkout with `.` for the name."
    )
    if found is None:
        return Finding("broken", "the JupyterLab extension is not installed", reinstall)
    try:
        manifest = json.loads((found / "package.json").read_text("utf-8"))
        number, load = manifest["version"], manifest["jupyterlab"]["_build"]["load"]
    except (OSError, ValueError, KeyError, TypeError):
        return Finding("broken", f"the JupyterLab extension in {found} is damaged", reinstall)
    if not (found / load).is_file():
        return Finding("broken", f"the JupyterLab extension in {found} is incomplete", reinstall)
    if off := [name for name in disabled if name.split(":")[0] == EXTENSION]:
        return Finding(
            "broken",
            f"the JupyterLab extension is disabled: {', '.join(off)}",
            f"Run `jupyter labextension enable {off[0]}`.",
        )
    if number != __version__:
        text = f"the JupyterLab extension in {found} is version {number}, not {__version__}"
        return Finding("warning", text, reinstall)
    return Finding("ok", f"JupyterLab extension in {found}")


def _kernelspec() -> Finding:
    try:
        return kernelspec(find_kernelspec())
    except CrushKernelError as error:
        return Finding("broken", str(error), error.hint)


def _points_astray(spec: Kernelspec, where: str) -> Finding:
    return Finding(
        "broken",
        f"the kernelspec in {spec.directory} starts {where}",
        "Run `crush-kernel install --user` to make it start this Python.",
    )


def _version_in(python: str, *, cwd: Path) -> str | None:
    """Return the version of our package in another interpreter, `None` without one.

    `cwd` must hold no package of ours: Python looks there first.
    """
    if Path(python) == Path(sys.executable):
        return __version__
    code = "import crush_kernel.kernel; print(crush_kernel.__version__)"
    try:
        done = subprocess.run(
            [python, "-c", code],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PYTHON_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _widgets(places: Sequence[Path]) -> Finding:
    if any((place / WIDGETS_EXTENSION / "package.json").is_file() for place in places):
        return Finding("ok", "JupyterLab shows widgets, so permission buttons work")
    return Finding(
        "broken",
        "JupyterLab has no widgets extension, so permission buttons cannot be shown",
        f"Run `{sys.executable} -m pip install --force-reinstall jupyterlab_widgets`.",
    )


def disabled_extensions(directories: Sequence[Path]) -> tuple[str, ...]:
    """Return the extensions and plugins that JupyterLab's page configuration turns off.

    Read here, since JupyterLab's own reader takes seconds to import.

    Args:
        directories: Jupyter's configuration directories, the most important first.

    Source: `jupyterlab_server.config.get_static_page_config`.
    """
    switches: dict[str, bool] = {}
    for directory in reversed(directories):
        folder = directory / "labconfig"
        for file in (
            *sorted((folder / "page_config.d").glob("*.json")),
            folder / "page_config.json",
        ):
            switches |= _switches(file)
    return tuple(name for name, is_off in switches.items() if is_off)


def _switches(file: Path) -> dict[str, bool]:
    """Return what a page configuration turns off, or on again; nothing if it cannot be read."""
    try:
        names = json.loads(file.read_text("utf-8"))["disabledExtensions"]
        # Older versions of JupyterLab write a list.
        return {str(name): True if isinstance(names, list) else bool(names[name]) for name in names}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
