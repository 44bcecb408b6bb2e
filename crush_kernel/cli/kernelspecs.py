"""The kernelspecs that Jupyter sees from here, and the one that we install."""

import json
import sys
import tempfile
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

from crush_kernel.errors import CrushKernelError

KERNEL_NAME: Final = "crush"

_FILES: Final = ("kernel.json", "logo-svg.svg", "logo-64x64.png", "logo-32x32.png")


@dataclass(frozen=True, slots=True)
class Kernelspec:
    """A kernelspec as Jupyter found it."""

    directory: Path
    argv: tuple[str, ...]

    @property
    def python(self) -> str:
        """Return the interpreter that starts the kernel, as JupyterLab here would start it.

        A bare `python` is replaced by the interpreter of the server.
        """
        first = self.argv[0] if self.argv else ""
        return sys.executable if first in ("python", "python3") else first


def find_kernelspec(name: str = KERNEL_NAME) -> Kernelspec | None:
    """Return the kernelspec that JupyterLab in this environment would use, if there is one."""
    manager = KernelSpecManager(ensure_native_kernel=False)
    try:
        spec = manager.get_kernel_spec(name)
    except NoSuchKernel:
        return None
    except (OSError, ValueError) as error:
        raise CrushKernelError(
            f"the kernelspec {name!r} cannot be read: {error}",
            hint=f"Remove it with `jupyter kernelspec remove {name}`, then install it anew.",
        ) from error
    return Kernelspec(Path(spec.resource_dir), tuple(spec.argv))


def install_kernelspec(*, name: str, display_name: str, user: bool, prefix: Path | None) -> Path:
    """Install a kernelspec that starts this interpreter; return where it is now.

    Replaces one of the same name.

    Args:
        name: letters, digits, `.`, `-` and `_`.
        display_name: what the launcher shows.
        user: for this user only; then `prefix` is `None`.
        prefix: the environment to install into.

    Raises:
        CrushKernelError: the place cannot be written.
    """
    manager = KernelSpecManager(ensure_native_kernel=False)
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), display_name)
        try:
            place = manager.install_kernel_spec(
                folder, kernel_name=name, user=user, prefix=str(prefix) if prefix else None
            )
        except OSError as error:
            raise CrushKernelError(
                f"the kernelspec cannot be written: {error}",
                hint="Choose another place with --user, --sys-prefix or --prefix.",
            ) from error
    return Path(place)


def _write(folder: Path, display_name: str) -> None:
    with as_file(files("crush_kernel.kernel") / "kernelspec") as source:
        for name in _FILES:
            (folder / name).write_bytes((source / name).read_bytes())
    file = folder / "kernel.json"
    spec = json.loads(file.read_text("utf-8"))
    spec["argv"][0] = sys.executable
    spec["display_name"] = display_name
    file.write_text(json.dumps(spec, indent=2, ensure_ascii=False) + "\n", "utf-8")
