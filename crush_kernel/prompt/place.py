"""Gather the facts about the place where the agent works."""

import json
import platform
from datetime import date
from pathlib import Path

from crush_kernel.prompt.system import Facts


def gather_facts(*, cwd: Path, project_root: Path, today: date) -> Facts:
    """Return what the system prompt says about `cwd`; looks at the disk, runs nothing."""
    return Facts(
        cwd=_on_one_line(cwd),
        project_root=_on_one_line(project_root),
        is_git=(project_root / ".git").exists(),
        platform=f"{platform.system()} {platform.release()}".strip(),
        date=today.isoformat(),
    )


def _on_one_line(path: Path) -> str:
    """Return `path` so that a folder cannot add lines to the prompt by its name."""
    text = str(path)
    return text if text.isprintable() else json.dumps(text)
