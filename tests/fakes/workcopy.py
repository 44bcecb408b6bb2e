"""Real git repositories for tests."""

import subprocess
from pathlib import Path

_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
}

ENVIRON = {
    name: _ENVIRONMENT[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "PATH")
}
"""Of a user who has configured nothing."""


def git(folder: Path, *arguments: str, data: bytes = b"") -> str:
    """Run git in `folder` and return what it printed, stripped; failing is an error."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**_ENVIRONMENT, "HOME": str(folder)},
        input=data,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def make_repository(folder: Path, *subjects: str) -> Path:
    """Make `folder` a work tree on `main` with a commit for each subject; return it."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    for number, subject in enumerate(subjects):
        (folder / "file.txt").write_text(f"{number}\n", encoding="utf-8")
        git(folder, "add", "file.txt")
        git(folder, "commit", "--quiet", "--message", subject)
    return folder
