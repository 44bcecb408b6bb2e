"""A project whose turns are edits and real commands, and can be taken back."""

import os
import stat
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import anyio
from pydantic import JsonValue

from crush_kernel.history.journal.journal import Journal
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.undo.rewind import Rewind, Rewound
from crush_kernel.tools.undo.shadow import Shadow
from crush_kernel.tools.undo.worktree import Worktree

MARK = "0123456789abcdef0123456789abcdef"

SECRET = "sk-not-a-real-secret-123456"  # noqa: S105 - what the tests' own cleaning finds

turns = count(1)

Tree = Mapping[str, tuple[str, object]]


def clean(value: JsonValue) -> JsonValue:
    return value.replace(SECRET, "[secret]") if isinstance(value, str) else value


def tree_of(root: Path, *, without: tuple[str, ...] = (".crush", ".git")) -> Tree:
    """Return all there is below `root`: contents, rights to run, targets of links, folders."""
    tree: dict[str, tuple[str, object]] = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in without]
        for name in (*names, *files):
            path = Path(folder, name)
            shown = str(path.relative_to(root))
            facts = path.lstat()
            if stat.S_ISLNK(facts.st_mode):
                tree[shown] = ("link", os.readlink(path))  # noqa: PTH115 - as it is
            elif stat.S_ISDIR(facts.st_mode):
                tree[shown] = ("folder", None)
            else:
                kind = "program" if facts.st_mode & stat.S_IXUSR else "file"
                tree[shown] = (kind, path.read_bytes())
    return tree


@dataclass(slots=True)
class Project:
    """One kernel's view of a project."""

    root: Path
    journal: Journal
    worktree: Worktree
    session: str
    jobs: list[object] = field(default_factory=list[object])
    """Stands for what runs in the background."""
    rewind: Rewind = field(init=False)

    def __post_init__(self) -> None:
        paths = PathPolicy(root=self.root, cwd=self.root)
        self.rewind = Rewind(paths, self.journal.file_history, self.worktree, lambda: self.session)

    def next_turn(self) -> str:
        self.worktree.turn_id = f"c{next(turns)}.1"
        return self.worktree.turn_id

    async def shell(self, command: str) -> None:
        """Run a command in the turn that runs, as the tool does."""
        async with self.worktree.command():
            await anyio.run_process(["bash", "-c", command], cwd=self.root, check=False)

    def write(self, name: str, data: bytes | None) -> None:
        """Change a file in the turn that runs, as the tools do."""
        path = self.root / name
        before = path.read_bytes() if path.exists() else None
        self.journal.file_changed(self.session, self.worktree.turn_id, path, before, data)
        if data is None:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[str]:
        turn_id = self.next_turn()
        async with self.rewind.turn():
            yield turn_id

    async def run(self, command: str) -> str:
        """Have a turn that is one command."""
        async with self.turn() as turn_id:
            await self.shell(command)
        return turn_id

    async def undo(self, *, is_forced: bool = False) -> Rewound:
        rewinding = await self.rewind.prepare("undo", is_forced=is_forced)
        return await self.rewind.carry_out(rewinding, self.next_turn())

    async def redo(self, *, is_forced: bool = False) -> Rewound:
        rewinding = await self.rewind.prepare("redo", is_forced=is_forced)
        return await self.rewind.carry_out(rewinding, self.next_turn())


@asynccontextmanager
async def open_project(
    root: Path, *, session: str = "one", mark: str = MARK, environ: Mapping[str, str] | None = None
) -> AsyncGenerator[Project]:
    """Open a project as a kernel does."""
    directory = root / ".crush"
    journal = Journal.open(directory, clean=clean)
    files = journal.file_history
    jobs: list[object] = []

    def open_shadow() -> Shadow:
        return Shadow(
            root=root,
            directory=directory,
            session=session,
            mark=mark,
            environ=os.environ if environ is None else environ,
            has_secret=files.has_secret,
            is_excluded=lambda path: path == "open.ipynb",
        )

    async with anyio.create_task_group() as tasks:
        worktree = Worktree(
            root=root,
            open_shadow=open_shadow,
            record=lambda turn_id, changes: files.add(session, turn_id, changes),
            has_jobs=lambda: bool(jobs),
            tasks=tasks,
        )
        files.on_tool_change = worktree.note
        try:
            yield Project(root, journal, worktree, session, jobs)
        finally:
            tasks.cancel_scope.cancel()
            journal.close()


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@localhost"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)
