"""Files to search, made from names and contents."""

import os
from collections.abc import Mapping
from pathlib import Path

DEEPER_THAN_RECURSION = 1_100
"""Levels that a walk which calls itself cannot take."""


def write_tree(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Make `files` below `root`, each newer than the one before it."""
    for age, (name, content) in enumerate(files.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        time = 1_600_000_000_000_000_000 + age
        os.utime(path, ns=(time, time))


def make_deep_folder(root: Path, *, name: str = "d" * 250, levels: int = 20) -> None:
    """Make folders in folders; by default so deep that the system cannot open the last."""
    descriptor = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
