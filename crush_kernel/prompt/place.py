"""Gather the facts about the place where the agent works."""

import platform
from datetime import date
from pathlib import Path

from crush_kernel.prompt.system import Facts


def gather_facts(*, cwd: Path, project_root: Path, today: date) -> Facts:
    """Return what the system prompt says about `cwd`; looks at the disk, runs nothing."""
    return Facts(
        cwd=str(cwd),
        project_root=str(project_root),
        is_git=(project_root / ".git").exists(),
        platform=f"{platform.system()} {platform.release()}".strip(),
        date=today.isoformat(),
    )
