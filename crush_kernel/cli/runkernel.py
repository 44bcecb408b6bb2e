"""Which kernel a notebook is run with, and how that one is found."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager

import crush_kernel.kernel
from crush_kernel.cli.kernelspecs import KERNEL_NAME, Kernelspec, find_kernelspec
from crush_kernel.cli.records import Json, Notebook
from crush_kernel.cli.usage import UsageError

OUR_KERNELSPEC: Final[Json] = {
    "name": KERNEL_NAME,
    "display_name": "Crush",
    "language": "markdown",
}
"""What a notebook says that was made for our kernel."""


def choose_kernel(
    notebook: Notebook,
    wanted: str | None,
    *,
    find: Callable[[str], Kernelspec | None] = find_kernelspec,
) -> str:
    """Return the name of the kernelspec to run `notebook` with.

    Args:
        notebook: one that names no kernel gets ours.
        wanted: what the user named, whatever the notebook says.
        find: looks for a kernelspec. Ours need not be installed.

    Raises:
        UsageError: the notebook is for another kernel, or there is none of that name.
    """
    own = notebook["metadata"].get("kernelspec", {}).get("name") or KERNEL_NAME
    name = wanted or own
    if name == KERNEL_NAME:
        return name
    spec = find(name)
    if wanted:
        if spec is None:
            raise UsageError(
                f"there is no kernel {name!r}", hint="`jupyter kernelspec list` shows them."
            )
    elif spec is None or not _is_ours(spec):
        raise UsageError(
            f"the notebook is for the kernel {name!r}, not for Crush",
            hint=f"To run its cells as prompts all the same: --kernel {KERNEL_NAME}.",
        )
    return name


def manager_for(kernel: str) -> AsyncKernelManager:
    """Return a manager that starts `kernel`, or this very Python's if ours is not installed."""
    return AsyncKernelManager(kernel_name=kernel, kernel_spec_manager=_Specs())


class _Specs(KernelSpecManager):
    """Knows our kernel even where its kernelspec is not installed."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        try:
            return super().get_kernel_spec(kernel_name)
        except NoSuchKernel:
            if kernel_name != KERNEL_NAME:
                raise
            folder = Path(crush_kernel.kernel.__path__[0]) / "kernelspec"
            return KernelSpec.from_resource_dir(str(folder))


def _is_ours(spec: Kernelspec) -> bool:
    """Return whether `spec` starts our kernel, under whatever name."""
    return any(word.startswith("crush_kernel") for word in spec.argv)
