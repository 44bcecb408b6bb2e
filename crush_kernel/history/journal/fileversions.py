"""The versions of files that a session has made, and which turn has taken back which.

Contents are in the blobs. What must not be written there, since it holds a secret, is kept in
memory as long as the kernel lives and there is room for it.

All methods may be called from any thread; none raises for disk trouble.
"""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol, TypeVar

from crush_kernel.history.blobs import Blobs
from crush_kernel.history.journal import rows
from crush_kernel.history.journal.entries import Clean
from crush_kernel.history.journal.migrations import transaction
from crush_kernel.history.journal.rows import USUAL_RIGHTS, FileVersion, Undone
from crush_kernel.messages import well_formed

T = TypeVar("T")

MAX_WITHHELD_BYTES: Final = 64_000_000
"""Of contents that are kept in memory only; the oldest are forgotten first."""

SECRET: Final = "it contains a secret"  # noqa: S105 - a reason
UNKEPT: Final = "the journal could not keep it"


@dataclass(frozen=True, slots=True)
class Content:
    """What is at a path at one moment."""

    data: bytes | None
    """The bytes of a file, the target of a link; `None` if they are not known."""
    kind: str = ""
    """As in `FileVersion`, without the rights."""
    reason: str = ""
    """Why `data` is not known, in a clause."""
    rights: int | None = None
    """The permission bits of a file, if they are known."""

    @property
    def full_kind(self) -> str:
        """The kind as a `FileVersion` has it: with the rights, where they are unusual."""
        is_usual = self.rights in (None, USUAL_RIGHTS.get(self.kind))
        return self.kind if is_usual else f"{self.kind} {self.rights:o}"


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happened at a path; `None` is nothing there."""

    path: str
    before: Content | None
    after: Content | None


def content_of(data: bytes | None) -> Content | None:
    """Return a file with the bytes `data` and any rights; `None` if there is none."""
    return None if data is None else Content(data)


class Read(Protocol):
    """Reads from the journal's file; see `Database.read`."""

    def __call__(self, work: Callable[[sqlite3.Connection], T], default: T, /) -> T:
        """Return what `work` reads."""
        ...


class FileVersions:
    """The part of a journal that is about files."""

    def __init__(
        self,
        blobs: Blobs,
        *,
        clean: Clean,
        read: Read,
        write: Callable[[Callable[[sqlite3.Connection], None]], bool],
    ) -> None:
        self._blobs = blobs
        self._clean = clean
        self._read = read
        self._write = write
        self._lock = threading.Lock()
        self._withheld: OrderedDict[str, bytes] = OrderedDict()
        """By hash, oldest first."""
        self._whole: dict[tuple[str, int], FileVersion] = {}
        """What rows say in full from which something was withheld, by session and number."""
        self.on_tool_change: Callable[[FileChange], None] = lambda _: None
        """Is told before a tool changes a file; may take its time. Any thread."""

    def add_by_tool(self, session: str, turn_id: str, change: FileChange) -> None:
        """Note a change that a tool is about to make, and the folders that it makes for it."""
        change = _with_rights(change)
        self.on_tool_change(change)
        made = _missing_folders(change.path) if change.before is None else ()
        folders = (FileChange(folder, None, Content(b"", "folder")) for folder in made)
        self.add(session, turn_id, (*folders, change))

    def add(self, session: str, turn_id: str, changes: Sequence[FileChange]) -> None:
        """Note changes of files by a turn, in one transaction; stays for ever."""
        turn = well_formed(turn_id)
        versions = [self._version(turn, change) for change in changes]
        name = well_formed(session)

        def work(connection: sqlite3.Connection) -> None:
            numbers: list[int] = []
            with transaction(connection):
                numbers += (rows.add_file_version(connection, name, kept) for kept, _ in versions)
            for number, (kept, whole) in zip(numbers, versions, strict=True):
                if kept != whole:
                    self._whole[name, number] = whole

        if versions:
            self._write(work)

    def all(self, session: str) -> list[FileVersion]:
        """Return all changes of files in a session, oldest first."""
        name = well_formed(session)
        found = self._read(lambda c: rows.file_versions(c, name), [])
        return [self._whole.get((name, number), version) for number, version in found]

    def content(self, name: str) -> bytes | None:
        """Return the content whose hash is `name`, `None` if it is not kept any more."""
        with self._lock:
            withheld = self._withheld.get(name)
        return self._blobs.fetch(name) if withheld is None else withheld

    def has_secret(self, data: bytes) -> bool:
        """Return whether `data` must not be written anywhere."""
        text = data.decode("utf-8", "replace")
        return self._clean(text) != text

    def add_undone(self, session: str, undone: Undone) -> bool:
        """Note that a turn takes back another one; return whether that is kept."""
        name = well_formed(session)
        return self._write(lambda c: rows.add_undone(c, name, undone))

    def undone(self, session: str) -> list[Undone]:
        """Return which turns have taken back which, oldest first."""
        name = well_formed(session)
        return self._read(lambda c: rows.undone_of(c, name), [])

    def _version(self, turn_id: str, change: FileChange) -> tuple[FileVersion, FileVersion]:
        """Return the version as the disk gets it, and in full."""
        before, whole_before, why_before = self._keep(change.before)
        after, whole_after, why_after = self._keep(change.after)
        whole = FileVersion(
            turn_id=turn_id,
            path=change.path,
            before=whole_before,
            after=whole_after,
            before_kind=change.before.full_kind if change.before else "",
            after_kind=change.after.full_kind if change.after else "",
            reason=why_before or why_after,
        )
        path = str(self._clean(well_formed(change.path)))
        if path != change.path:
            # Under another name nothing can be put back.
            before, after = (None if h is None else "" for h in (before, after))
            return replace(whole, path=path, before=before, after=after, reason=SECRET), whole
        return replace(whole, before=before, after=after), whole

    def _keep(self, content: Content | None) -> tuple[str | None, str | None, str]:
        """Keep a content; return its hash on disk, in full, and why they differ or are empty."""
        if content is None:
            return None, None, ""
        if content.kind == "folder":
            return "", "", ""
        if content.data is None:
            return "", "", content.reason
        if not self.has_secret(content.data):
            name = self._blobs.keep(content.data)
            return name, name, "" if name else UNKEPT
        return "", self._withhold(content.data), SECRET

    def _withhold(self, data: bytes) -> str:
        name = sha256(data).hexdigest()
        with self._lock:
            self._withheld[name] = data
            self._withheld.move_to_end(name)
            size = sum(map(len, self._withheld.values()))
            while size > MAX_WITHHELD_BYTES:
                _, oldest = self._withheld.popitem(last=False)
                size -= len(oldest)
        return name


def _with_rights(change: FileChange) -> FileChange:
    """Return `change` of a file, which has not been made yet, with the rights that stay."""
    before, after = change.before, change.after
    if before is None or before.rights is not None:
        return change
    with suppress(OSError, ValueError):
        rights = Path(change.path).stat().st_mode & 0o777
        before = replace(before, rights=rights)
        after = after and replace(after, rights=rights)
    return replace(change, before=before, after=after)


def _missing_folders(path: str) -> tuple[str, ...]:
    """Return the folders above `path` that are not there, from the outside."""
    missing: list[str] = []
    with suppress(OSError, ValueError):
        folder = Path(path).parent
        while not folder.exists():
            missing.append(str(folder))
            folder = folder.parent
    return tuple(reversed(missing))
