"""What the last look has seen of a project, kept from one kernel to the next.

The index of the shadow's repository says it of files whose content is covered; a file beside
it says it of what git does not speak of, and another one which turn was under way.

Source: git-update-index.
"""

import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from crush_kernel.history.journal.fileversions import Content
from crush_kernel.history.journal.rows import USUAL_RIGHTS
from crush_kernel.tools.undo.entryreader import MAX_FILE_BYTES, TOO_LARGE
from crush_kernel.tools.undo.shadowstore import ShadowStore, object_id

NOT_SEEN: Final = "what it was before was not kept"

_NOTHING: Final = "0" * 40
_PROGRAM: Final = 0o100755
_FILE: Final = 0o100644
_LINK: Final = 0o120000

_KINDS: Final[Mapping[int, str]] = {_PROGRAM: "program", _FILE: "file", _LINK: "link"}
_MODES: Final[Mapping[str, int]] = {kind: mode for mode, kind in _KINDS.items()}


@dataclass(frozen=True, slots=True)
class Found:
    """Something that has changed since the last look."""

    path: str
    before: Content | None
    after: Content | None


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a file or link whose content is covered."""

    mode: int
    oid: str

    @classmethod
    def of(cls, content: Content) -> "Seen":
        """Return what to remember of a content that is known."""
        return cls(_MODES[content.kind], object_id(content.data or b""))


@dataclass(frozen=True, slots=True)
class Look:
    """One look: what has changed, and what has to be remembered when that was noted."""

    found: tuple[Found, ...] = ()
    seen: Mapping[str, Seen | None] = field(default_factory=dict[str, Seen | None])
    """Of files whose content is covered; `None` where none is any more."""
    folders: frozenset[str] = frozenset()
    others: Mapping[str, list[int] | None] = field(default_factory=dict[str, "list[int] | None"])
    """Of files whose content is not covered; `None` where none is any more."""
    rights: Mapping[str, int] = field(default_factory=dict[str, int])
    """The permission bits of files in `seen`."""


class LastLook:
    """What was seen last; every method blocks and raises `OSError` or what git's failing raises."""

    def __init__(self, store: ShadowStore, root: Path) -> None:
        """Begin with nothing; see `read`."""
        self._store = store
        self._root = root
        self._index = store.index
        self.files: dict[str, Seen] = {}
        """Files and links whose content is covered."""
        self.folders: set[str] = set()
        """Those that git does not speak of: empty ones, and what holds ignored files only."""
        self.others: dict[str, list[int]] = {}
        """Files that are not covered, with what changes when they do."""
        self.rights: dict[str, int] = {}
        """The permission bits of files, where they are unusual."""

    @property
    def is_kept(self) -> bool:
        """Whether an earlier kernel of the session has seen anything."""
        return self._index.exists()

    @property
    def open_turn(self) -> str:
        """The turn that had begun to run a command when it was last heard of; else empty."""
        try:
            return self._beside("turn").read_text("utf-8")
        except (OSError, UnicodeError):
            return ""

    def mark_turn(self, turn_id: str) -> None:
        """Remember that a command of a turn runs; empty if what it did was noted. Never raises."""
        with suppress(OSError):
            if turn_id:
                self._beside("turn").write_text(turn_id, "utf-8", "replace")
            else:
                self._beside("turn").unlink(missing_ok=True)

    def borrow(self) -> bool:
        """Begin with what another session has seen, which is mostly what there is now."""
        found = [path for path in self._index.parent.glob("index-*") if not path.suffix]
        for path in sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True):
            with suppress(OSError):
                shutil.copyfile(path.with_name(f"{path.name}.json"), self._beside("json"))
                shutil.copyfile(path, self._index)
                return True
        return False

    def read(self) -> None:
        """Learn what is kept."""
        for line in split_names(self._store.git("ls-files", "-z", "-s")):
            facts, _, path = line.partition("\t")
            mode, oid, _ = facts.split(" ")
            if int(mode, 8) in _KINDS:
                self.files[path] = Seen(int(mode, 8), oid)
        with suppress(OSError, ValueError, TypeError):
            value = cast("dict[str, object]", json.loads(self._beside("json").read_text("ascii")))
            folders, others = value["folders"], value["others"]
            if isinstance(folders, list) and isinstance(others, dict):
                self.folders = set(cast("list[str]", folders))
                self.others = cast("dict[str, list[int]]", others)
            rights = value["rights"]
            if isinstance(rights, dict):
                self.rights = _rights_in(cast("dict[str, object]", rights))

    def accept(self, look: Look) -> None:
        """Have what `look` saw be what was seen last, and keep it."""
        if look.seen:
            self._write_index(look.seen)
        folders = set(look.folders)
        for each in look.found:
            if each.after is None:
                above = folders_above(each.path)
                folders.update(name for name in above if is_folder(self._root, name))
        others = dict(self.others)
        for path, stamp in look.others.items():
            if stamp is None:
                others.pop(path, None)
            else:
                others[path] = stamp
        if (folders, others) != (self.folders, self.others) or not self._beside("json").exists():
            self.folders, self.others = folders, others
            self._write_beside()
        if look.seen:
            self.note_rights({**self.rights, **look.rights})

    def note_rights(self, rights: Mapping[str, int]) -> None:
        """Remember the permission bits of all files, where they are unusual, and keep them."""
        unusual = {
            path: bits
            for path, bits in rights.items()
            if (seen := self.files.get(path)) and bits != USUAL_RIGHTS.get(_KINDS[seen.mode], bits)
        }
        if unusual != self.rights:
            self.rights = unusual
            self._write_beside()

    def _write_beside(self) -> None:
        known = {"folders": sorted(self.folders), "others": self.others, "rights": self.rights}
        self._beside("json").write_text(json.dumps(known), encoding="ascii")

    def content_of(self, path: str) -> Content | None:
        """Return what was seen last at `path`, its content still by its object id."""
        if path in self.others:
            is_large = self.others[path][0] > MAX_FILE_BYTES
            return Content(None, "", TOO_LARGE if is_large else NOT_SEEN)
        former = self.files.get(path)
        if former is None:
            return None
        kind = _KINDS[former.mode]
        rights = self.rights.get(path, USUAL_RIGHTS.get(kind))
        return Content(former.oid.encode(), kind, rights=rights)

    def _write_index(self, seen: Mapping[str, Seen | None]) -> None:
        lines = [f"0 {_NOTHING}\t{path}" for path, entry in seen.items() if entry is None]
        lines += [f"{e.mode:o} {e.oid}\t{path}" for path, e in seen.items() if e is not None]
        data = b"".join(os.fsencode(line) + b"\0" for line in lines)
        add = ("update-index", "--add", "--remove", "--replace", "-z", "--index-info")
        self._store.git(*add, data=data)
        # What has changed since it was read stays different, since its content is compared.
        self._store.git("update-index", "-q", "--really-refresh", is_checked=False)
        for path, entry in seen.items():
            if entry is None:
                self.files.pop(path, None)
            else:
                self.files[path] = entry

    def _beside(self, suffix: str) -> Path:
        return self._index.with_name(f"{self._index.name}.{suffix}")


def _rights_in(kept: Mapping[str, object]) -> dict[str, int]:
    return {path: bits & 0o777 for path, bits in kept.items() if isinstance(bits, int)}


def is_folder(root: Path, name: str) -> bool:
    """Return whether a folder, and no link to one, is called `name` in the project `root`."""
    try:
        return stat.S_ISDIR((root / name).lstat().st_mode)
    except OSError:
        return False


def folders_above(path: str) -> Iterator[str]:
    """Yield the folders above `path`, from the inside."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def split_names(printed: bytes) -> list[str]:
    """Return what git has printed with a NUL behind each."""
    return [os.fsdecode(each) for each in printed.split(b"\0") if each]
