"""What a project's files are like and what has changed since the last look.

A private git repository has the project as its work tree. Its index says what was seen last,
so that one `git ls-files` tells what is different now, however large the project is; only that
is read. The contents that were seen last are in the repository too, see `shadowstore`.

Every method blocks; one thread at a time. Paths are relative to the project, as text with
undecodable bytes as lone surrogates.

Source: git-ls-files, git-update-index.
"""

import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Final, cast

from crush_kernel.history.journal.fileversions import Content
from crush_kernel.tools.undo.entryreader import (
    MAX_FILE_BYTES,
    TOO_LARGE,
    TOO_MUCH,
    Budget,
    EntryReader,
    There,
)
from crush_kernel.tools.undo.shadowstore import ShadowFailed, ShadowStore, failed, object_id

MAX_FILES: Final = 50_000
MAX_STORED_BYTES: Final = 1_000_000_000
"""Of contents that no repository of the project has."""

MAX_CHANGES: Final = 2_000
"""Files whose contents are kept when they change at once; of the others only the names are."""
MAX_CHANGED_BYTES: Final = 200_000_000

MAX_FOLDERS: Final = 5_000
"""In what is new, that are looked through for empty ones."""

_NOT_SEEN: Final = "what it was before was not kept"

_NOTHING: Final = "0" * 40
_PROGRAM: Final = 0o100755
_FILE: Final = 0o100644
_LINK: Final = 0o120000

_KINDS: Final[Mapping[int, str]] = {_PROGRAM: "program", _FILE: "file", _LINK: "link"}
_MODES: Final[Mapping[str, int]] = {kind: mode for mode, kind in _KINDS.items()}

_FETCHED_AT_ONCE: Final = 100
_STORED_AT_ONCE: Final = 1_000
_STORED_BYTES_AT_ONCE: Final = 32_000_000
_NAMED_AT_ONCE: Final = 500
"""Folders that are named on a command line."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something that has changed since the last look."""

    path: str
    before: Content | None
    after: Content | None


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the last look saw of a file or link whose content is covered."""

    mode: int
    oid: str

    @classmethod
    def of(cls, content: Content) -> "_Seen":
        """Return what to remember of a content that is known."""
        return cls(_MODES[content.kind], object_id(content.data or b""))


@dataclass(slots=True)
class _Draft:
    """A look in the making."""

    found: list[Found] = field(default_factory=list[Found])
    seen: "dict[str, _Seen | None]" = field(default_factory=dict[str, "_Seen | None"])
    others: "dict[str, list[int] | None]" = field(default_factory=dict[str, "list[int] | None"])
    contents: list[bytes] = field(default_factory=list[bytes])
    """What was seen last from now on, to be stored."""


@dataclass(slots=True)
class _Known:
    """What is remembered beside the index, from one kernel to the next."""

    folders: set[str] = field(default_factory=set[str])
    """Those that git does not speak of: empty ones, and what holds ignored files only."""
    others: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Files that are not covered, with what changes when they do."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look: what has changed, and what has to be remembered when that was noted."""

    found: tuple[Found, ...] = ()
    seen: Mapping[str, _Seen | None] = field(default_factory=dict[str, "_Seen | None"])
    folders: frozenset[str] = frozenset()
    others: Mapping[str, list[int] | None] = field(default_factory=dict[str, "list[int] | None"])


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
        self._index = self._store.index
        self._is_excluded = is_excluded
        self._seen: dict[str, _Seen] = {}
        self._known = _Known()
        self.nested: frozenset[str] = frozenset()
        """Folders with repositories of their own, which are not covered."""

    @property
    def uncovered_files(self) -> int:
        """How many files were seen whose content is not covered."""
        return len(self._known.others)

    # The turn that was under way

    @property
    def open_turn(self) -> str:
        """The turn that had begun to run a command when it was last heard of; else empty."""
        try:
            return self._beside("turn").read_text("utf-8")
        except (OSError, UnicodeError):
            return ""

    def mark_turn(self, turn_id: str) -> None:
        """Remember that a command of a turn runs; empty if what it did was noted."""
        with suppress(OSError):
            if turn_id:
                self._beside("turn").write_text(turn_id, "utf-8", "replace")
            else:
                self._beside("turn").unlink(missing_ok=True)

    # Looking

    def open(self, *, limit_s: float) -> None:
        """See the project for the first time in this kernel.

        What an earlier kernel of the session has seen last counts as seen last.

        Raises:
            ShadowFailed: it cannot be looked at; nothing was seen.
        """
        self._store.deadline_s = time.monotonic() + limit_s
        try:
            self._store.make()
            is_new = not self._index.exists()
            is_borrowed = is_new and self._borrow()
            self._seen = self._entries()
            self._known = self._read_known()
            if is_new and not is_borrowed:
                self._begin()
                return
            self._secure()
            if is_borrowed:
                self.accept(self._look())
        except (OSError, subprocess.SubprocessError) as error:
            raise failed(error) from error

    def look(self, *, limit_s: float) -> Look:
        """Return what has changed since what was accepted last.

        Raises:
            ShadowFailed: it cannot be looked at in that time.
        """
        self._store.deadline_s = time.monotonic() + limit_s
        try:
            return self._look()
        except (OSError, subprocess.SubprocessError) as error:
            raise failed(error) from error

    def accept(self, look: Look) -> None:
        """Have what `look` saw be what was seen last.

        Raises:
            ShadowFailed: that cannot be kept.
        """
        try:
            self._write_entries(look.seen)
            self._remember(look)
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
                    seen = draft.seen[path] = _Seen.of(there.content)
                    contents.add(seen.oid, there.content.data)
        contents.flush()
        self.accept(Look((), draft.seen, frozenset(folders), draft.others))

    def _secure(self) -> None:
        """See to it that the contents that were seen last can be had when they change."""
        absent = self._store.absent({entry.oid for entry in self._seen.values()})
        contents = _Contents(self._store)
        with EntryReader(self._root) as reader:
            for path, entry in self._seen.items():
                if entry.oid not in absent:
                    continue
                self._store.require_time()
                there = reader.read(path, Budget(1, MAX_FILE_BYTES + 1))
                if there is None or there.content.data is None:
                    continue
                if _Seen.of(there.content).oid == entry.oid:
                    contents.add(entry.oid, there.content.data)
        contents.flush()

    def _borrow(self) -> bool:
        """Begin with what another session has seen, which is mostly what there is now."""
        found = [path for path in self._index.parent.glob("index-*") if not path.suffix]
        for path in sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True):
            with suppress(OSError):
                shutil.copyfile(path.with_name(f"{path.name}.json"), self._beside("json"))
                shutil.copyfile(path, self._index)
                return True
        return False

    def _look(self) -> Look:
        names, folders = self._different()
        draft = _Draft()
        budget = Budget(MAX_CHANGES, MAX_CHANGED_BYTES)
        with EntryReader(self._root) as reader:
            for path in sorted(names):
                self._store.require_time()
                self._look_at(path, draft, reader.read(path, budget))
        for path in self._known.others.keys() - names:
            if not os.path.lexists(self._root / path):
                draft.others[path] = None
                draft.found.append(Found(path, self._before(path), None))
        found = self._with_folders(list(self._with_contents(draft.found)), folders)
        self._store.store(draft.contents)
        return Look(tuple(found), draft.seen, frozenset(folders), draft.others)

    def _look_at(self, path: str, draft: "_Draft", there: "There | None") -> None:
        """Note in `draft` what has changed at `path`."""
        former = self._seen.get(path)
        known = self._known.others.get(path)
        if there is not None and there.content.data is None:
            if known != there.stamp:
                draft.others[path] = there.stamp
                draft.found.append(Found(path, self._before(path), there.content))
                if former is not None:
                    draft.seen[path] = None
            return
        now = None if there is None else _Seen.of(there.content)
        if known is not None:
            draft.others[path] = None
        elif now == former:
            return
        draft.seen[path] = now
        if there is not None and there.content.data is not None:
            draft.contents.append(there.content.data)
        # What was not covered so far need not have changed.
        if known is None or there is None or known != there.stamp:
            draft.found.append(Found(path, self._before(path), there and there.content))

    def _before(self, path: str) -> Content | None:
        """Return what was seen last at `path`, its content still by its object id."""
        if path in self._known.others:
            is_large = self._known.others[path][0] > MAX_FILE_BYTES
            return Content(None, "", TOO_LARGE if is_large else _NOT_SEEN)
        former = self._seen.get(path)
        if former is None:
            return None
        return Content(former.oid.encode(), _KINDS[former.mode])

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
        self.nested = frozenset(name.rstrip("/") for name in nested)
        folders = {name for name in folders if not f"{name}/".startswith(tuple(nested))}
        return {name for name in names if not self._is_excluded(name)}, folders

    def _list(self, *arguments: str) -> list[str]:
        command = ("ls-files", "-z", *arguments)
        at = command.index("--") if "--" in command else len(command)
        command = (*command[:at], "--exclude-standard", *command[at:])
        return _texts(self._store.git(*command))

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
        gone: set[str] = {name for name in self._known.folders if not self._is_folder(name)}
        for each in found:
            if each.after is None:
                gone.update(name for name in _parents(each.path) if not self._is_folder(name))
        made = folders - self._known.folders
        return [
            *(Found(name, Content(b"", "folder"), None) for name in sorted(gone)),
            *found,
            *(Found(name, None, Content(b"", "folder")) for name in sorted(made)),
        ]

    def _is_folder(self, name: str) -> bool:
        try:
            return stat.S_ISDIR((self._root / name).lstat().st_mode)
        except OSError:
            return False

    # What was seen

    def _entries(self) -> dict[str, _Seen]:
        """Return what the index says."""
        entries: dict[str, _Seen] = {}
        for line in _texts(self._store.git("ls-files", "-z", "-s")):
            facts, _, path = line.partition("\t")
            mode, oid, _ = facts.split(" ")
            if int(mode, 8) in _KINDS:
                entries[path] = _Seen(int(mode, 8), oid)
        return entries

    def _write_entries(self, seen: Mapping[str, _Seen | None]) -> None:
        if not seen:
            return
        lines = [f"0 {_NOTHING}\t{path}" for path, entry in seen.items() if entry is None]
        lines += [f"{e.mode:o} {e.oid}\t{path}" for path, e in seen.items() if e is not None]
        data = b"".join(os.fsencode(line) + b"\0" for line in lines)
        add = ("update-index", "--add", "--remove", "--replace", "-z", "--index-info")
        self._store.git(*add, data=data)
        # What has changed since it was read stays different, since its content is compared.
        self._store.git("update-index", "-q", "--really-refresh", is_checked=False)
        for path, entry in seen.items():
            if entry is None:
                self._seen.pop(path, None)
            else:
                self._seen[path] = entry

    def _remember(self, look: Look) -> None:
        folders = set(look.folders)
        for each in look.found:
            if each.after is None:
                folders.update(name for name in _parents(each.path) if self._is_folder(name))
        others = dict(self._known.others)
        for path, stamp in look.others.items():
            if stamp is None:
                others.pop(path, None)
            else:
                others[path] = stamp
        known = _Known(folders, others)
        if known != self._known or not self._beside("json").exists():
            self._known = known
            text = json.dumps({"folders": sorted(folders), "others": others})
            self._beside("json").write_text(text, encoding="ascii")

    def _read_known(self) -> _Known:
        with suppress(OSError, ValueError, TypeError):
            value = cast("dict[str, object]", json.loads(self._beside("json").read_text("ascii")))
            folders, others = value["folders"], value["others"]
            if isinstance(folders, list) and isinstance(others, dict):
                return _Known(set(cast("list[str]", folders)), cast("dict[str, list[int]]", others))
        return _Known()

    def _beside(self, suffix: str) -> Path:
        return self._index.with_name(f"{self._index.name}.{suffix}")


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
        return Content(None, before.kind, TOO_MUCH)
    return Content(data, before.kind, _NOT_SEEN if data is None else "")


def _id_in(content: Content | None) -> str:
    """Return the object id that stands in the place of a content, empty if none does."""
    if content is None or content.data is None or content.kind == "folder":
        return ""
    return content.data.decode()


def _texts(printed: bytes) -> list[str]:
    return [os.fsdecode(each) for each in printed.split(b"\0") if each]


def _parents(path: str) -> Iterator[str]:
    """Yield the folders above `path`, from the inside."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
