"""Gather the facts about the place where the agent works."""

import json
import platform
from pathlib import Path

from crush_kernel.prompt.system import Place


def gather_place(*, cwd: Path, project_root: Path) -> Place:
    """Return what the system prompt says about `cwd`; looks at the disk, runs nothing."""
    return Place(
        cwd=_on_one_line(cwd),
        project_root=_on_one_line(project_root),
        is_git=is_work_tree(project_root),
        platform=f"{platform.system()} {platform.release()}".strip(),
    )


def is_work_tree(project_root: Path) -> bool:
    """Return whether the project is a git work tree, which its folders belong to as well."""
    try:
        return (project_root / ".git").exists()
    except OSError:
        return False


def _on_one_line(path: Path) -> str:
    """Return `path` so that a folder cannot add lines to the prompt by its name."""
    text = str(path)
    return text if text.isprintable() else json.dumps(text)
