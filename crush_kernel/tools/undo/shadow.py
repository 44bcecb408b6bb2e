"""What a project's files are like and what has changed since the last look.

A private git repository has the project as its work tree. Its index says what was seen last,
so that one `git ls-files` tells what is different now, however large the project is; only that
is read. What was seen last: see `lastlook`; its contents are in the repository: `shadowstore`.

Every method blocks; one thread at a time. Paths are relative to the project, as text with
undecodable bytes as lone surrogates.

Source: git-ls-files.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Final

from crush_kernel.history.journal.fileversions import Content
from crush_kernel.tools.undo.entryreader import (
    MAX_FILE_BYTES,
    TOO_MUCH,
    Budget,
    EntryReader,
    There,
)
from crush_kernel.tools.undo.lastlook import (
    NOT_SEEN,
    Found,
    LastLook,
    Look,
    Seen,
    folders_above,
    is_folder,
    split_names,
)
from crush_kernel.tools.undo.shadowstore import ShadowFailed, ShadowStore, failed
from crush_kernel.tools.undo.sweep import Sweep, sweep, telling

MAX_FILES: Final = 50_000
MAX_STORED_BYTES: Final = 1_000_000_000
"""Of contents that no repository of the project has."""

MAX_CHANGES: Final = 2_000
"""Files whose contents are kept when they change at once; of the others only the names are."""
MAX_CHANGED_BYTES: Final = 200_000_000

MAX_FOLDERS: Final = 5_000
"""In what is new, that are looked through for empty ones."""

_FETCHED_AT_ONCE: Final = 100
_STORED_AT_ONCE: Final = 1_000
_STORED_BYTES_AT_ONCE: Final = 32_000_000
_NAMED_AT_ONCE: Final = 500
"""Folders that are named on a command line."""


@dataclass(slots=True)
class _Draft:
    """A look in the making."""

    found: list[Found] = field(default_factory=list[Found])
    seen: "dict[str, Seen | None]" = field(default_factory=dict[str, "Seen | None"])
    others: "dict[str, list[int] | None]" = field(default_factory=dict[str, "list[int] | None"])
    rights: dict[str, int] = field(default_factory=dict[str, int])
    contents: list[bytes] = field(default_factory=list[bytes])
    """What was seen last from now on, to be stored."""

    def see(self, path: str, content: Content) -> Seen:
        """Note what is at `path`, and return what to remember of it."""
        seen = self.seen[path] = Seen.of(content)
        if content.rights is not None:
            self.rights[path] = content.rights
        return seen


class Shadow:
    """The shadow of one project, as one session sees it."""

    def __init__(
        self,
        *,
        root: Path,
        directory: Path,
        session: str,
        mark: str,
        environ: Mapping[str, str],
        has_secret: Callable[[bytes], bool],
        is_excluded: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Prepare to look; nothing is made on disk yet.

        Args:
            root: the project, a real path.
            directory: of the project's data.
            session: who looks; each session has seen something else last.
            mark: tells a shadow of ours from one that came with the project.
            environ: the user's environment.
            has_secret: whether a content must not be written.
            is_excluded: whether a path is never looked at: the notebook itself.
        """
        self._root = root
        name = blake2b(session.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        self._store = ShadowStore(
            root=root,
            directory=directory,
            index_name=f"index-{name}",
            mark=mark,
            environ=environ,
            has_secret=has_secret,
        )
        self._is_excluded = is_excluded
        self.last = LastLook(self._store, root)
        """What was seen last, and which turn was under way then."""
        self._telling: frozenset[str] | None = None
        """What a sweep looks at; `None` if that is to be found out."""
        self._swept: Sweep | None = None
        """From just before the last look; `None` if that cannot tell whether anything changed."""
        self.nested: frozenset[str] = frozenset()
        """Folders with repositories of their own, which are not covered."""

    @property
    def uncovered_files(self) -> int:
        """How many files were seen whose content is not covered."""
        return len(self.last.others)

    def open(self, *, limit_s: float) -> None:
        """See the project for the first time in this kernel.

        What an earlier kernel of the session has seen last counts as seen last.

        Raises:
            ShadowFailed: it cannot be looked at; nothing was seen.
        """
        self._store.deadline_s = time.monotonic() + limit_s
        try:
            self._store.make()
            is_new = not self.last.is_kept
            is_borrowed = is_new and self.last.borrow()
            self.last.read()
            if is_new and not is_borrowed:
                self._begin()
                return
            self._secure()
            if is_borrowed:
                self.accept(self._look())
                self.last.note_rights(self._sweep().rights())
        except (OSError, subprocess.SubprocessError) as error:
            raise failed(error) from error

    def look(self, *, limit_s: float) -> Look:
        """Return what has changed since what was accepted last.

        Raises:
            ShadowFailed: it cannot be looked at in that time.
        """
        self._store.deadline_s = time.monotonic() + limit_s
        try:
            return self._look_if_changed()
        except (OSError, subprocess.SubprocessError) as error:
            raise failed(error) from error

    def accept(self, look: Look) -> None:
        """Have what `look` saw be what was seen last.

        Raises:
            ShadowFailed: that cannot be kept.
        """
        self._telling = None
        try:
            self.last.accept(look)
        except (OSError, subprocess.SubprocessError) as error:
            raise failed(error) from error

    def _begin(self) -> None:
        """See a project that no session has seen."""
        names, folders = self._different()
        if len(names) > MAX_FILES:
            raise ShadowFailed(f"the project has more than {MAX_FILES:,} files")
        draft = _Draft()
        contents = _Contents(self._store)
        with EntryReader(self._root) as reader:
            for path in sorted(names):
                self._store.require_time()
                there = reader.read(path, Budget(1, MAX_FILE_BYTES + 1))
                if there is not None and there.content.data is None:
                    draft.others[path] = there.stamp
                elif there is not None and there.content.data is not None:
                    seen = draft.see(path, there.content)
                    contents.add(seen.oid, there.content.data)
        contents.flush()
        self.accept(Look((), draft.seen, frozenset(folders), draft.others, draft.rights))

    def _secure(self) -> None:
        """See to it that the contents that were seen last can be had when they change."""
        absent = self._store.absent({entry.oid for entry in self.last.files.values()})
        contents = _Contents(self._store)
        with EntryReader(self._root) as reader:
            for path, entry in self.last.files.items():
                if entry.oid not in absent:
                    continue
                self._store.require_time()
                there = reader.read(path, Budget(1, MAX_FILE_BYTES + 1))
                if there is None or there.content.data is None:
                    continue
                if Seen.of(there.content).oid == entry.oid:
                    contents.add(entry.oid, there.content.data)
        contents.flush()

    def _look_if_changed(self) -> Look:
        swept = self._sweep()
        if self._swept is not None and swept.is_like(self._swept):
            return Look(folders=frozenset(self.last.folders))
        look = self._look()
        # Of before the look: what has changed since is different at the next one.
        self._swept = swept
        self.last.note_rights(swept.rights())
        return look

    def _sweep(self) -> Sweep:
        if self._telling is None:
            files = (*self.last.files, *self.last.others)
            self._telling = telling(files, self.last.folders)
        return sweep(self._root, self._telling)

    def _look(self) -> Look:
        names, folders = self._different()
        draft = _Draft()
        budget = Budget(MAX_CHANGES, MAX_CHANGED_BYTES)
        with EntryReader(self._root) as reader:
            for path in sorted(names):
                self._store.require_time()
                self._look_at(path, draft, reader.read(path, budget))
        for path in self.last.others.keys() - names:
            if not os.path.lexists(self._root / path):
                draft.others[path] = None
                draft.found.append(Found(path, self.last.content_of(path), None))
        found = self._with_folders(list(self._with_contents(draft.found)), folders)
        self._store.store(draft.contents)
        return Look(tuple(found), draft.seen, frozenset(folders), draft.others, draft.rights)

    def _look_at(self, path: str, draft: "_Draft", there: "There | None") -> None:
        """Note in `draft` what has changed at `path`."""
        former = self.last.files.get(path)
        known = self.last.others.get(path)
        if there is not None and there.content.data is None:
            if known != there.stamp:
                draft.others[path] = there.stamp
                draft.found.append(Found(path, self.last.content_of(path), there.content))
                if former is not None:
                    draft.seen[path] = None
            return
        now = None if there is None else Seen.of(there.content)
        if known is not None:
            draft.others[path] = None
        elif now == former:
            return
        if there is None:
            draft.seen[path] = None
        elif there.content.data is not None:
            draft.see(path, there.content)
            draft.contents.append(there.content.data)
        # What was not covered so far need not have changed.
        if known is None or there is None or known != there.stamp:
            draft.found.append(Found(path, self.last.content_of(path), there and there.content))

    def _with_contents(self, found: list[Found]) -> Iterator[Found]:
        """Yield `found` with the contents that were seen last in place of their ids."""
        budget = Budget(MAX_CHANGES, MAX_CHANGED_BYTES)
        for start in range(0, len(found), _FETCHED_AT_ONCE):
            chunk = found[start : start + _FETCHED_AT_ONCE]
            ids = filter(None, (_id_in(each.before) for each in chunk))
            contents = self._store.fetch(ids) if budget.has_room else {}
            for each in chunk:
                before = each.before
                if before is not None and (oid := _id_in(before)):
                    before = _with_data(before, contents.get(oid), budget)
                yield Found(each.path, before, each.after)

    def _different(self) -> tuple[set[str], set[str]]:
        """Return the files that may differ from what was seen last, and folders without any."""
        listed = self._list("-m", "-d", "-o", "--directory")
        names = {name for name in listed if not name.endswith("/")}
        roots = {name for name in listed if name.endswith("/")}
        nested = {name for name in roots if self._is_nested(name)}
        folders: set[str] = set()
        unlisted = [name for name in sorted(roots - nested) if self._walk(name, folders)]
        if unlisted:
            inner = (
                self._list("-o", "--", *unlisted)
                if len(unlisted) < _NAMED_AT_ONCE
                else self._list("-o")
            )
            names |= {name for name in inner if not name.endswith("/")}
            nested |= {name for name in inner if name.endswith("/") and self._is_nested(name)}
        names |= self._behind_links(names)
        self.nested = frozenset(name.rstrip("/") for name in nested)
        folders = {name for name in folders if not f"{name}/".startswith(tuple(nested))}
        return {name for name in names if not self._is_excluded(name)}, folders

    def _behind_links(self, names: set[str]) -> set[str]:
        """Return the files of folders in whose place there are links now: git follows those."""
        links = {
            name for name in names - self.last.files.keys() if (self._root / name).is_symlink()
        }
        if not links:
            return set()
        return {name for name in self.last.files if not links.isdisjoint(folders_above(name))}

    def _list(self, *arguments: str) -> list[str]:
        command = ("ls-files", "-z", *arguments)
        at = command.index("--") if "--" in command else len(command)
        command = (*command[:at], "--exclude-standard", *command[at:])
        return split_names(self._store.git(*command))

    def _is_nested(self, name: str) -> bool:
        return os.path.lexists(self._root / name / ".git")

    def _walk(self, top: str, folders: set[str]) -> bool:
        """Add the folders from `top` on to `folders`; return whether there is any file in them."""
        has_files = False
        waiting = [top.rstrip("/")]
        while waiting and len(folders) < MAX_FOLDERS:
            name = waiting.pop()
            folders.add(name)
            with suppress(OSError), os.scandir(self._root / name) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        has_files = True
                    elif entry.name != ".git":
                        waiting.append(f"{name}/{entry.name}")
        return has_files or bool(waiting)

    def _with_folders(self, found: list[Found], folders: set[str]) -> list[Found]:
        """Return `found` with which folders have come and gone.

        One goes before a file comes in its place, and comes after one has gone.
        """
        gone: set[str] = {name for name in self.last.folders if not is_folder(self._root, name)}
        for each in found:
            if each.after is None:
                above = folders_above(each.path)
                gone.update(name for name in above if not is_folder(self._root, name))
        made = folders - self.last.folders
        return [
            *(Found(name, Content(b"", "folder"), None) for name in sorted(gone)),
            *found,
            *(Found(name, None, Content(b"", "folder")) for name in sorted(made)),
        ]


class _Contents:
    """Contents on their way into the store, a bounded number at a time."""

    def __init__(self, store: ShadowStore) -> None:
        self._store = store
        self._waiting: dict[str, bytes] = {}
        self._size = 0
        self._stored = 0

    def add(self, oid: str, data: bytes) -> None:
        """Have a content stored, unless it is somewhere already."""
        self._size += len(data)
        self._waiting[oid] = data
        if len(self._waiting) >= _STORED_AT_ONCE or self._size >= _STORED_BYTES_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Store what waits.

        Raises:
            ShadowFailed: that is too much.
        """
        absent = self._store.absent(self._waiting.keys())
        contents = [data for oid, data in self._waiting.items() if oid in absent]
        self._stored += sum(map(len, contents))
        if self._stored > MAX_STORED_BYTES:
            megabytes = MAX_STORED_BYTES // 1_000_000
            raise ShadowFailed(f"the project has more than {megabytes:,} MB of files")
        self._store.store(contents)
        self._waiting.clear()
        self._size = 0


def _with_data(before: Content, data: bytes | None, budget: Budget) -> Content:
    """Return what was there before with its content, if it can be had and there is room."""
    if not budget.take(len(data or b"")):
        return Content(None, before.kind, TOO_MUCH, before.rights)
    return Content(data, before.kind, NOT_SEEN if data is None else "", before.rights)


def _id_in(content: Content | None) -> str:
    """Return the object id that stands in the place of a content, empty if none does."""
    if content is None or content.data is None or content.kind == "folder":
        return ""
    return content.data.decode()
