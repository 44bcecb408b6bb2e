"""`install`: a kernelspec that starts this Python, for Jupyter of another environment."""

import argparse
import re
import sys
from pathlib import Path

from crush_kernel.cli.kernelspecs import install_kernelspec
from crush_kernel.cli.usage import UsageError


def run(arguments: argparse.Namespace) -> int:
    """Install the kernelspec where the arguments say, and say where that is."""
    name: str = arguments.name
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise UsageError(
            f"{name!r} cannot be the name of a kernelspec: "
            "only letters, digits, '.', '-' and '_' can"
        )
    prefix = Path(sys.prefix) if arguments.sys_prefix else arguments.prefix
    place = install_kernelspec(
        name=name, display_name=arguments.display_name, user=prefix is None, prefix=prefix
    )
    print(f"Installed {arguments.display_name!r} in {place}\nIt starts {sys.executable}")
    return 0
