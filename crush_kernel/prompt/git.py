"""Ask git about the work tree when a turn begins, for the requests that come after.

The answers are needed when a request is sent, and a large repository takes longer than that.
So git is asked when a turn begins, beside what else it begins with. If the answer is late,
the one before it will do, with its age.

Source: git-config, git-status.
"""

import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from crush_kernel.prompt.gitcommand import GitCommands
from crush_kernel.prompt.gitfacts import COMMITS, GitAnswer, GitFacts
from crush_kernel.prompt.githead import Head, read_head
from crush_kernel.prompt.place import is_work_tree

PATIENCE_S = 0.01
"""How long after git was asked a request waits for answers that are newer than those there are."""

FIRST_PATIENCE_S = 0.5
"""The same when there are none."""

_TICK_NS = 2_000_000_000
"""See `diskcache`."""

# Looking into a submodule would obey that one's configuration, filters included.
_STATUS = (
    *("status", "--short", "--branch", "--no-ahead-behind", "--no-column"),
    "--ignore-submodules=dirty",
)
_LOG = (
    *("log", f"--max-count={COMMITS}", "--format=%h %s"),
    *("--no-show-signature", "--no-decorate", "--no-notes", "--no-patch", "--no-ext-diff"),
)
_CONFIG = ("config", "--list", "--name-only", "--show-scope", "-z")


@dataclass(frozen=True, slots=True)
class GitNews:
    """What git said last, and how long ago it was asked."""

    facts: GitFacts
    age_s: float


class Git:
    """Asks git about one work tree. To be used on one event loop."""

    def __init__(self, *, cwd: Path, project_root: Path, environ: Mapping[str, str]) -> None:
        """Prepare to ask; nothing runs yet.

        Args:
            cwd: the folder to ask about.
            project_root: the top of the work tree, if it is one.
            environ: the user's environment.
        """
        self._root = project_root
        self._run = GitCommands(cwd, project_root, environ).run
        self._filters: tuple[tuple[object, ...], Mapping[str, str]] | None = None
        """What switches filters off, and the state of the configuration that it was made from."""
        self._log: tuple[Head, GitAnswer] | None = None
        """The last commits, and where they were read."""
        self._latest: GitFacts | None = None
        self._latest_s = 0.0
        """When that was asked for."""
        self._is_late = False
        self._answered: anyio.Event | None = None
        """Set when the running question is answered; `None` if none runs."""
        self._asked_s = 0.0
        """When the running question was asked."""

    def ask(self, tasks: TaskGroup) -> None:
        """Begin to ask in `tasks`, unless a question is under way."""
        is_closing = tasks.cancel_scope.cancel_called
        if self._answered is None and not is_closing and is_work_tree(self._root):
            self._answered, self._asked_s = anyio.Event(), anyio.current_time()
            tasks.start_soon(self._ask, self._answered)

    def ask_again_if_late(self, tasks: TaskGroup) -> None:
        """Begin to ask again for next time, if the last answer was not awaited."""
        if self._is_late:
            self._is_late = False
            self.ask(tasks)

    async def news(self) -> GitNews | None:
        """Return the newest answers that are there in a moment; `None` without a work tree."""
        if not is_work_tree(self._root):
            return None
        began_s = anyio.current_time()
        if self._answered is not None:
            # From when it was asked: what is done meanwhile is waiting enough.
            patience_s = FIRST_PATIENCE_S if self._latest is None else PATIENCE_S
            with anyio.CancelScope(deadline=self._asked_s + patience_s) as limit:
                await self._answered.wait()
            self._is_late = limit.cancelled_caught
        if self._latest is None:
            nothing = GitAnswer(failure="git has not answered yet")
            return GitNews(GitFacts(nothing, nothing), 0.0)
        return GitNews(self._latest, max(0.0, began_s - self._latest_s))

    async def settled(self) -> None:
        """Wait until the question that is under way is answered, however long it takes."""
        if self._answered is not None:
            await self._answered.wait()

    async def _ask(self, answered: anyio.Event) -> None:
        try:
            self._latest = await self.facts()
            self._latest_s = self._asked_s
        finally:
            self._answered = None
            answered.set()

    async def facts(self) -> GitFacts:
        """Ask, and return the answers, each within its time limit."""
        answers: dict[str, GitAnswer] = {}

        async def log() -> None:
            answers["log"] = await self._commits()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(log)
            answers["status"] = await self._status()
        return GitFacts(**answers)

    async def _commits(self) -> GitAnswer:
        head = read_head(self._root)
        if self._log is not None and self._log[0] == head:
            return self._log[1]
        answer = await self._run(*_LOG)
        # Nobody knows which commits were read while it moved.
        is_kept = head is not None and not answer.failure and read_head(self._root) == head
        self._log = (head, answer) if head is not None and is_kept else None
        return answer

    async def _status(self) -> GitAnswer:
        switches = await self._switches()
        if isinstance(switches, GitAnswer):
            return switches
        return await self._run(*_STATUS, env=switches)

    async def _switches(self) -> Mapping[str, str] | GitAnswer:
        """Return what switches off the repository's filters, or why that is not known."""
        signature = _config_signature(self._root)
        if self._filters is not None and self._filters[0] == signature:
            return self._filters[1]
        names = await self._run(*_CONFIG)
        if names.failure:
            return names
        switches = _without_filters(names.output)
        # A configuration that includes others can change without a change of its own.
        is_whole = signature is not None and b"\0include" not in names.output
        self._filters = (signature, switches) if signature is not None and is_whole else None
        return switches


def _config_signature(root: Path) -> tuple[object, ...] | None:
    """Return what changes with the repository's configuration.

    `None` if that cannot be said: it lies elsewhere, or was changed a moment ago.
    """
    facts = (_facts(root / ".git" / name) for name in ("", "config", "config.worktree"))
    folder, *files = facts
    if folder is None or not stat.S_ISDIR(folder.st_mode):
        return None
    newest_ns = max((each.st_ctime_ns for each in files if each), default=0)
    if newest_ns + _TICK_NS > time.time_ns():
        return None
    return tuple(each and (each.st_ino, each.st_size, each.st_ctime_ns) for each in files)


def _facts(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _without_filters(listed: bytes) -> dict[str, str]:
    """Return variables that switch off the filters that the repository itself defines.

    The user's own, such as Git LFS's, stay: without them files would look changed.

    Args:
        listed: scopes and names of all settings, each ended by a NUL.
    """
    words = listed.decode("utf-8", "surrogateescape").split("\0")
    drivers = {
        name.rpartition(".")[0]
        for scope, name in zip(words[::2], words[1::2], strict=False)
        if scope in ("local", "worktree") and name.startswith("filter.")
    }
    settings = [
        (f"{driver}.{name}", value)
        for driver in sorted(drivers)
        for name, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    ]
    # Not by `-c`, which would end a name at the first `=` in it.
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables
