"""`ls`: a tree of what a folder holds.

The walk goes level by level, so that a limit cuts off what is deep and not what comes late
in the alphabet; the tree is drawn afterwards. Links are named with where they lead and not
followed.
"""

import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import anyio.from_thread
import anyio.to_thread
from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.opening import real_folder
from crush_kernel.tools.access import find_readable
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.inrange import IN_RANGE
from crush_kernel.tools.paths import PathPolicy, Target, reason
from crush_kernel.tools.search.files import TIMEOUT_S, place, understand, with_notes
from crush_kernel.tools.search.globs import Glob, anywhere
from crush_kernel.tools.search.ignore import IgnoreRules
from crush_kernel.wording import counted

MAX_ENTRIES = 1_000
MAX_READ = 100_000
"""Names that are read of one folder, in order to sort them."""

MAX_GLOBS = 100
"""What a call may leave out."""


class LsArguments(Arguments):
    """What to list."""

    path: str = Field(default=".", description="The folder to list.")
    ignore: tuple[str, ...] = Field(
        default=(), max_length=MAX_GLOBS, description="Globs of what to leave out, too."
    )
    depth: Annotated[int, Field(ge=1), IN_RANGE] | None = Field(
        default=None, description="Levels to list: 1 is the folder alone. Default: all."
    )


def ls_tool(paths: PathPolicy, *, timeout_s: float = TIMEOUT_S) -> Tool[LsArguments]:
    """Return the tool, which walks for `timeout_s` at most."""

    async def run(arguments: LsArguments, context: ToolContext) -> ToolOutput:
        globs = tuple(understand(anywhere(each)) for each in arguments.ignore)
        base, status = await find_readable(
            paths, arguments.path or ".", context, tool="ls", action="list"
        )
        if not stat.S_ISDIR(status.st_mode):
            raise ToolError(f"{base.shown} is not a folder. Read it with view.")

        def walk() -> _Tree:
            rules = IgnoreRules(base.path, root=paths.root)
            return _Walk(base.path, rules, globs, arguments.depth, timeout_s).run()

        return _show(base, await anyio.to_thread.run_sync(walk, abandon_on_cancel=True))

    return Tool(
        name="ls",
        description=description_of("ls", {"entries": f"{MAX_ENTRIES:,}"}),
        arguments=LsArguments,
        run=run,
        describe=_describe,
        timeout_s=QUICK_S,
        is_read_only=True,
    )


@dataclass(slots=True)
class _Folder:
    """A folder in the tree, filled in when the walk comes to it."""

    path: str
    """Relative to the base, with a slash at its end; empty for the base."""
    level: int
    """How deep its entries are: 1 in the base."""
    entries: "tuple[_Entry, ...]" = ()
    note: str = ""
    """Why there is less in it than there might be."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of the tree."""

    text: str
    folder: _Folder | None = None
    """What it stands for, if that is a folder."""


@dataclass(slots=True)
class _Tree:
    """What a walk came to."""

    base: _Folder
    count: int = 0
    left_out: int = 0
    """Entries that the ignore rules hid."""
    unreadable: int = 0
    is_cut: bool = False
    """Whether the limit left out entries."""
    is_late: bool = False
    """Whether the time was up first."""
    is_deeper: bool = False
    """Whether there are folders below the wanted depth."""


@dataclass(frozen=True, slots=True)
class _Walk:
    """One walk: blocks, and ends soon after the caller is cancelled."""

    base: Path
    rules: IgnoreRules
    globs: tuple[Glob, ...]
    depth: int | None
    timeout_s: float

    def run(self) -> _Tree:
        """Return the tree, or as much of it as the limits allow."""
        deadline = time.monotonic() + self.timeout_s
        tree = _Tree(_Folder("", level=1))
        waiting = deque((tree.base,))
        while waiting:
            folder = waiting.popleft()
            if self.depth is not None and folder.level > self.depth:
                tree.is_deeper = True
                continue
            tree.is_late = tree.is_late or time.monotonic() > deadline
            try:
                self._fill(folder, tree)
            except OSError as error:
                folder.note = f"[{reason(error)}]"
                tree.unreadable += 1
            waiting.extend(entry.folder for entry in folder.entries if entry.folder is not None)
        return tree

    def _fill(self, folder: _Folder, tree: _Tree) -> None:
        """List `folder` as far as the limits of `tree` allow."""
        if tree.is_late or tree.is_cut:
            folder.note = "…"
            return
        place = self.base / folder.path
        place.lstat()  # what has too long a path for this could not be read by anybody else
        # By its handle: a link may be put in the place of a folder while the tree is walked.
        with real_folder(place) as descriptor:
            entries = sorted(self._scan(folder, tree, descriptor), key=_sort_key)
            room = MAX_ENTRIES - tree.count
            folder.entries = tuple(
                self._entry(entry, folder, descriptor) for entry in entries[:room]
            )
        tree.count += len(folder.entries)
        if len(entries) > room:
            tree.is_cut = True
            folder.note = f"… {len(entries) - room:,} more"

    def _scan(self, folder: _Folder, tree: _Tree, descriptor: int) -> Iterator[os.DirEntry[str]]:
        """Yield what is to be seen in `folder`, in no order."""
        with os.scandir(descriptor) as entries:
            for entry in islice(entries, MAX_READ):
                anyio.from_thread.check_cancelled()
                path = folder.path + entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if self.rules.is_left_out(path, is_folder=is_folder):
                    tree.left_out += 1
                elif not any(glob.matches(path) for glob in self.globs):
                    yield entry

    def _entry(self, entry: os.DirEntry[str], parent: _Folder, descriptor: int) -> _Entry:
        name = printable(entry.name)
        if entry.is_dir(follow_symlinks=False):
            below = _Folder(f"{parent.path}{entry.name}/", level=parent.level + 1)
            return _Entry(f"{name}/", below)
        if entry.is_symlink():
            return _Entry(f"{name} -> {_destination(entry.name, descriptor)}")
        return _Entry(name)


def _sort_key(entry: os.DirEntry[str]) -> tuple[bool, str, str]:
    """Put folders first, then go by name."""
    return not entry.is_dir(follow_symlinks=False), entry.name.casefold(), entry.name


def _destination(name: str, folder: int) -> str:
    try:
        return printable(os.readlink(name, dir_fd=folder))
    except OSError as error:
        return f"[{reason(error)}]"


def _describe(arguments: LsArguments) -> str:
    depth = "" if arguments.depth is None else f" to depth {arguments.depth}"
    return printable((arguments.path or ".") + depth)


def _show(base: Target, tree: _Tree) -> ToolOutput:
    lines = [f"{base.shown.rstrip('/')}/", *_draw(tree.base)]
    if not tree.count and not tree.base.note:
        lines = [f"{place(base)} is empty"]
    summary = counted(tree.count, "entry", "entries", has_more=tree.is_cut or tree.is_late)
    return ToolOutput(with_notes("\n".join(lines), _notes(tree)), summary=summary)


def _draw(base: _Folder) -> Iterator[str]:
    """Yield the lines of the tree, every folder followed by what is in it."""
    waiting: list[_Folder | str] = [base]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        indent = "  " * item.level
        if item.note and (item.entries or item is base):
            waiting.append(indent + item.note)
        for entry in reversed(item.entries):
            below = entry.folder
            is_closed = below is not None and below.note and not below.entries
            if below is not None and not is_closed:
                waiting.append(below)
            waiting.append(indent + entry.text + (f" {below.note}" if below and is_closed else ""))


def _notes(tree: _Tree) -> Iterator[str]:
    if tree.is_cut:
        yield (
            f"cut at {MAX_ENTRIES:,} entries, the nearest to the top; … marks what was not listed. "
            "List a folder by its path, or find files with glob"
        )
    if tree.is_late:
        yield "stopped for lack of time; … marks what was not listed. List a folder by its path"
    if tree.is_deeper:
        yield "there is more below this depth"
    if tree.left_out:
        yield f"{counted(tree.left_out, 'ignored entry', 'ignored entries')} left out"
    if tree.unreadable:
        yield f"{counted(tree.unreadable, 'folder')} could not be read"
