"""Run git, without running anything that a repository brings along.

A repository is a stranger's: its configuration can name programs for git to run, and looking
at a notebook's folder must run none of them. So monitors, hooks, filters, signature checks
and transports are switched off on the command line, which goes before the repository's own
configuration; other settings in the environment are left out.

Source: git-config; "safe.directory" and `GIT_NO_LAZY_FETCH` in git's manual.
"""

import logging
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from crush_kernel.files.names import printable
from crush_kernel.prompt.gitfacts import GitAnswer
from crush_kernel.shell.processes import wait_for_exit

logger = logging.getLogger(__name__)

LIMIT_S = 2.0
"""How long a command may take."""

MAX_OUTPUT_BYTES = 256 * 1024
"""Far more than is shown; what a million untracked files print is not read."""

_MAX_REASON_CHARACTERS = 200
_REAP_LIMIT_S = 0.5

_KEPT = frozenset(
    ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_EXEC_PATH")
)
"""Variables of the user's that say where git and its own configuration are."""

_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # a partial clone fetches what is missing: by no transport
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",  # no index is written, so that nobody else's git is in the way
    "GIT_PAGER": "cat",
    "GIT_SSH_COMMAND": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}

_OPTIONS = (
    "--no-pager",
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.sshCommand=false"),
    *("-c", "core.quotePath=false"),
    *("-c", "core.pager=cat"),
    *("-c", "color.ui=false"),
    *("-c", "color.status=false"),
    *("-c", "column.ui=never"),
    *("-c", "diff.external="),
    *("-c", "log.showSignature=false"),
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "status.showStash=false"),
    *("-c", "status.submoduleSummary=false"),
)


class GitCommands:
    """Runs commands of git in one folder."""

    def __init__(self, cwd: Path, project_root: Path, environ: Mapping[str, str]) -> None:
        """Prepare to run; `environ` is the user's environment."""
        self._cwd = cwd
        self._root = project_root
        self._environ = git_environment(environ, project_root)
        self._program = _find_git(environ)

    async def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> GitAnswer:
        """Run one git command and return what it printed, or why not; over also when cancelled."""
        if self._program is None:
            return GitAnswer(failure="git is not installed.")
        # The repository's own `core.worktree` could lead anywhere.
        place = f"--work-tree={self._root}"
        command = [self._program, *_OPTIONS, place, *arguments]
        try:
            # In a thread, since the start of a process takes milliseconds.
            environ = {**self._environ, **(env or {})}
            process = await run_sync(lambda: _start(command, cwd=self._cwd, env=environ))
        except (OSError, ValueError) as error:
            logger.warning("git cannot be started: %s", error)
            return GitAnswer(failure=f"git cannot be started: {error}.")
        return await _answer(process)


def git_environment(environ: Mapping[str, str], project_root: Path) -> dict[str, str]:
    """Return the environment for git: the user's, without what points to other repositories."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("GIT_") or name in _KEPT
    }
    # Git is not to find a repository that the project does not count as its own.
    ceiling = {"GIT_CEILING_DIRECTORIES": str(project_root.parent)}
    return kept | _ENVIRONMENT | ceiling | {"PATH": _path_of(environ)}


def _path_of(environ: Mapping[str, str]) -> str:
    """Return the PATH without entries that mean the folder itself."""
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if os.path.isabs(entry))  # noqa: PTH117 - no path yet


def _find_git(environ: Mapping[str, str]) -> str | None:
    return shutil.which("git", path=_path_of(environ))


def _start(command: list[str], *, cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


async def _answer(process: subprocess.Popen[bytes]) -> GitAnswer:
    """Return what `process` prints; it is over when this returns, also when cancelled."""
    stdout, stderr = process.stdout, process.stderr
    if stdout is None or stderr is None:
        raise ValueError("the process has no pipes")
    output, complaint = _Pipe(stdout.fileno()), _Pipe(stderr.fileno())
    try:
        with anyio.move_on_after(LIMIT_S) as limit:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(complaint.read)
                await output.read()
                if output.is_cut:
                    tasks.cancel_scope.cancel()
            if not output.is_cut:
                await wait_for_exit(process)
    finally:
        if process.poll() is None:
            process.kill()
        with anyio.move_on_after(_REAP_LIMIT_S, shield=True):
            await wait_for_exit(process)
        stdout.close()
        stderr.close()
    if limit.cancelled_caught:
        return GitAnswer(failure=f"git took longer than {LIMIT_S:.0f} s.")
    if process.returncode and not output.is_cut:
        return GitAnswer(failure=_failure(process.returncode, complaint.data))
    return GitAnswer(bytes(output.data), is_cut=output.is_cut)


class _Pipe:
    """What comes out of a pipe, up to a limit."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self.data = bytearray()
        self.is_cut = False

    async def read(self) -> None:
        """Read to the end or the limit."""
        while len(self.data) <= MAX_OUTPUT_BYTES:
            try:
                chunk = os.read(self._descriptor, 65_536)
            except BlockingIOError:
                await anyio.wait_readable(self._descriptor)
                continue
            except OSError:
                return
            if not chunk:
                return
            self.data += chunk
        self.is_cut = True


def _failure(code: int, complaint: bytearray) -> str:
    first = complaint.decode("utf-8", "replace").strip().partition("\n")[0]
    reason = printable(first)[:_MAX_REASON_CHARACTERS]
    logger.info("git ended with %d: %s", code, reason)
    return f"git failed with exit code {code}{': ' if reason else ''}{reason}"
