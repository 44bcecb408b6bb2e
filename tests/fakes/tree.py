"""Files to search, made from names and contents."""

import os
from pathlib import Path


def write_tree(root: Path, files: dict[str, str | bytes]) -> None:
    """Make `files` below `root`, each newer than the one before it."""
    for age, (name, content) in enumerate(files.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        time = 1_600_000_000_000_000_000 + age
        os.utime(path, ns=(time, time))


def make_deep_folder(root: Path) -> None:
    """Make a folder so deep that its full path is too long for the system to open it."""
    descriptor = os.open(root, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=descriptor)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
