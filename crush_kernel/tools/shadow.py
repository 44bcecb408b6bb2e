"""What a project's files are like and what has changed since the last look.

A private git repository in the project's data directory has the project as its work tree. Its
index says what was seen last, so that one `git ls-files` tells what is different now, however
large the project is. It has a configuration of its own: no hooks, filters or monitors, and
attributes by which bytes are bytes, whatever the project's repository asks for. A repository
that came with the project is thrown away.

The contents that were seen last are in the project's own objects, where it has a repository;
else in this one, except those with a secret, which stay in memory.

Every method blocks; one thread at a time. Paths are relative to the project, as text with
undecodable bytes as lone surrogates.

Source: git-ls-files, git-update-index, git-fast-import, gitattributes.
"""

import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b, sha1
from pathlib import Path
from typing import Final, cast

from crush_kernel.files.opening import open_real
from crush_kernel.history.fileversions import Content
from crush_kernel.history.folder import make_folder
from crush_kernel.prompt.git import git_environment
from crush_kernel.tools.paths import reason

FOLDER_NAME: Final = "shadow.git"

MAX_FILE_BYTES: Final = 10_000_000
"""Of a file whose content is kept."""

MAX_FILES: Final = 50_000
MAX_STORED_BYTES: Final = 1_000_000_000
"""Of contents that no repository of the project has."""

MAX_CHANGES: Final = 2_000
"""Files whose contents are kept when they change at once; of the others only the names are."""
MAX_CHANGED_BYTES: Final = 200_000_000

MAX_MEMORY_BYTES: Final = 64_000_000
MAX_FOLDERS: Final = 5_000
"""In what is new, that are looked through for empty ones."""

_TOO_LARGE: Final = f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB"
_TOO_MUCH: Final = "too much has changed at once"
_NOT_SEEN: Final = "what it was before was not kept"

_NOTHING: Final = "0" * 40
_PROGRAM: Final = 0o100755
_FILE: Final = 0o100644
_LINK: Final = 0o120000

_KINDS: Final[Mapping[int, str]] = {_PROGRAM: "program", _FILE: "file", _LINK: "link"}

_CONFIG: Final = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"

# In `info`, they go before those of the project.
_ATTRIBUTES: Final = "* -text -eol -filter -ident -working-tree-encoding\n"
_EXCLUDED: Final = ".crush/\n.ipynb_checkpoints/\n.*.crush-tmp\n"

_OPTIONS: Final = tuple(
    word
    for setting in (
        "core.fsmonitor=false",
        f"core.hooksPath={os.devnull}",
        f"core.attributesFile={os.devnull}",
        "core.autocrlf=false",
        "core.safecrlf=false",
        "core.fileMode=true",
        "core.symlinks=true",
        "core.ignoreCase=false",
        "core.precomposeUnicode=false",
        "core.quotePath=false",
        "core.fsync=none",
        "core.compression=1",
        "core.splitIndex=false",
        "core.sparseCheckout=false",
        "core.untrackedCache=false",
        "gc.auto=0",
        "protocol.allow=never",
    )
    for word in ("-c", setting)
)


class ShadowFailed(Exception):
    """The project cannot be looked at; the message says why, in a clause."""


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
        return cls(_mode(content.kind), _oid(content.data or b""))


@dataclass(frozen=True, slots=True)
class _There:
    """What is at a path now."""

    content: Content
    stamp: list[int]
    """What changes when it does, as far as one can tell without reading it."""


@dataclass(slots=True)
class _Draft:
    """A look in the making."""

    found: list[Found] = field(default_factory=list[Found])
    seen: "dict[str, _Seen | None]" = field(default_factory=dict[str, "_Seen | None"])
    others: "dict[str, list[int] | None]" = field(default_factory=dict[str, "list[int] | None"])
    stored: list[bytes] = field(default_factory=list[bytes])
    """Contents to be kept, since they are what was seen last from now on."""


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
        self._directory = directory
        self._folder = directory / FOLDER_NAME
        name = blake2b(session.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        self._index = self._folder / f"index-{name}"
        self._mark = mark
        self._has_secret = has_secret
        self._is_excluded = is_excluded
        environment = git_environment(environ, root)
        self._program = shutil.which("git", path=environment["PATH"])
        self._environ = environment | {
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DIR": str(self._folder),
            "GIT_INDEX_FILE": str(self._index),
            "GIT_WORK_TREE": str(root),
        }
        self._seen: dict[str, _Seen] | None = None
        """`None` before the first look."""
        self._known = _Known()
        self._memory: dict[str, bytes] = {}
        """Contents with a secret, by object id."""
        self.nested: frozenset[str] = frozenset()
        """Folders with repositories of their own, which are not covered."""
        self._deadline_s = 0.0

    @property
    def is_open(self) -> bool:
        """Whether there was a first look."""
        return self._seen is not None

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
        self._deadline_s = time.monotonic() + limit_s
        if self._program is None:
            raise ShadowFailed("git is not installed")
        try:
            self._make()
            is_new = not self._index.exists()
            self._seen = self._entries()
            self._known = self._read_known()
            if is_new:
                self.accept(self._look(is_first=True))
            self._secure()
        except (OSError, subprocess.SubprocessError) as error:
            self._seen = None
            raise _failed(error) from error
        except ShadowFailed:
            self._seen = None
            raise

    def look(self, *, limit_s: float) -> Look:
        """Return what has changed since what was accepted last.

        Raises:
            ShadowFailed: it cannot be looked at in that time.
        """
        self._deadline_s = time.monotonic() + limit_s
        try:
            return self._look(is_first=False)
        except (OSError, subprocess.SubprocessError) as error:
            raise _failed(error) from error

    def accept(self, look: Look, *, without: Collection[str] = ()) -> None:
        """Have what `look` saw be what was seen last, except for some paths.

        Raises:
            ShadowFailed: that cannot be kept.
        """
        seen = {path: entry for path, entry in look.seen.items() if path not in without}
        try:
            self._write_entries(seen)
            self._remember(look, without)
        except (OSError, subprocess.SubprocessError) as error:
            raise _failed(error) from error

    def _look(self, *, is_first: bool) -> Look:
        names, folders = self._different()
        if is_first and len(names) > MAX_FILES:
            raise ShadowFailed(f"the project has more than {MAX_FILES:,} files")
        draft = _Draft()
        budget = _Budget(MAX_FILES if is_first else MAX_CHANGES)
        for path in sorted(names):
            self._require_time()
            self._look_at(path, draft, self._read(path, budget, is_first=is_first))
        for path in self._known.others.keys() - names:
            if not os.path.lexists(self._root / path):
                draft.others[path] = None
                draft.found.append(Found(path, self._before(path), None))
        found: list[Found] = []
        if not is_first:
            found += self._with_contents(draft.found)
            found = self._with_folders(found, folders)
            self._store(draft.stored)
        return Look(tuple(found), draft.seen, frozenset(folders), draft.others)

    def _look_at(self, path: str, draft: "_Draft", there: "_There | None") -> None:
        """Note in `draft` what has changed at `path`."""
        former = (self._seen or {}).get(path)
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
            draft.stored.append(there.content.data)
        # What was not covered so far need not have changed.
        if known is None or there is None or known != there.stamp:
            draft.found.append(Found(path, self._before(path), there and there.content))

    def _before(self, path: str) -> Content | None:
        """Return what was seen last at `path`, its content still by its object id."""
        if path in self._known.others:
            is_large = self._known.others[path][0] > MAX_FILE_BYTES
            return Content(None, "", _TOO_LARGE if is_large else _NOT_SEEN)
        former = (self._seen or {}).get(path)
        if former is None:
            return None
        return Content(former.oid.encode(), _KINDS[former.mode])

    def _with_contents(self, found: Iterable[Found]) -> Iterator[Found]:
        """Yield `found` with the contents that were seen last in place of their ids."""
        waiting = list(found)
        budget = _Budget(MAX_CHANGES)
        for start in range(0, len(waiting), _FETCHED_AT_ONCE):
            chunk = waiting[start : start + _FETCHED_AT_ONCE]
            ids = [_id_of(each.before) for each in chunk]
            contents = self._fetch([oid for oid in ids if oid]) if budget.has_room else {}
            for each, oid in zip(chunk, ids, strict=True):
                if oid and each.before is not None:
                    data = contents.get(oid)
                    if not budget.take(len(data or b"")):
                        before = Content(None, each.before.kind, _TOO_MUCH)
                    elif data is None:
                        before = Content(None, each.before.kind, _NOT_SEEN)
                    else:
                        before = Content(data, each.before.kind)
                    yield Found(each.path, before, each.after)
                else:
                    yield each

    def _different(self) -> tuple[set[str], set[str]]:
        """Return the files that may differ from what was seen last, and folders without any."""
        listed = self._list("-m", "-d", "-o", "--directory")
        names = {name for name in listed if not name.endswith("/")}
        roots = {name for name in listed if name.endswith("/")}
        nested = {name for name in roots if self._is_nested(name)}
        folders: set[str] = set()
        unlisted = [name for name in sorted(roots - nested) if self._walk(name, folders)]
        if unlisted:
            inner = self._list("-o", "--", *unlisted) if len(unlisted) < 500 else self._list("-o")
            names |= {name for name in inner if not name.endswith("/")}
            nested |= {name for name in inner if name.endswith("/") and self._is_nested(name)}
        self.nested = frozenset(name.rstrip("/") for name in nested)
        folders = {name for name in folders if not f"{name}/".startswith(tuple(nested))}
        return {name for name in names if not self._is_excluded(name)}, folders

    def _list(self, *arguments: str) -> list[str]:
        command = ("ls-files", "-z", *arguments)
        at = command.index("--") if "--" in command else len(command)
        command = (*command[:at], "--exclude-standard", *command[at:])
        return _texts(self._git(*command))

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

    def _read(self, path: str, budget: "_Budget", *, is_first: bool) -> "_There | None":
        """Return what is at `path`; `None` if that is nothing, or nothing that can be kept."""
        place = self._root / path
        try:
            facts = place.lstat()
            stamp = [facts.st_size, facts.st_mtime_ns, facts.st_mode]
            if stat.S_ISLNK(facts.st_mode):
                # As it is: a `Path` would leave out a `./`.
                target = os.fsencode(os.readlink(place))  # noqa: PTH115
                return _There(Content(target, "link"), stamp)
            if not stat.S_ISREG(facts.st_mode):
                return None
            kind = "program" if facts.st_mode & stat.S_IXUSR else "file"
            if facts.st_size > MAX_FILE_BYTES:
                return _There(Content(None, kind, _TOO_LARGE), stamp)
            if not budget.take(0 if is_first else facts.st_size):
                return _There(Content(None, kind, _TOO_MUCH), stamp)
            with os.fdopen(open_real(place), "rb") as file:
                return _There(Content(file.read(MAX_FILE_BYTES), kind), stamp)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return _There(Content(None, "", f"it cannot be read: {reason(error)}"), [0])

    # What was seen

    def _entries(self) -> dict[str, _Seen]:
        """Return what the index says."""
        entries: dict[str, _Seen] = {}
        for line in _texts(self._git("ls-files", "-z", "-s")):
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
        self._git("update-index", "--add", "--remove", "--replace", "-z", "--index-info", data=data)
        # What has changed since it was read stays different, since its content is compared.
        self._git("update-index", "-q", "--really-refresh", is_checked=False)
        entries = self._seen if self._seen is not None else {}
        for path, entry in seen.items():
            if entry is None:
                entries.pop(path, None)
            else:
                entries[path] = entry
        self._seen = entries

    def _remember(self, look: Look, without: Collection[str]) -> None:
        folders = set(look.folders)
        for each in look.found:
            if each.after is None:
                folders.update(name for name in _parents(each.path) if self._is_folder(name))
        others = dict(self._known.others)
        for path, stamp in look.others.items():
            if path in without:
                continue
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

    # Contents

    def _secure(self) -> None:
        """See to it that the contents that were seen last can be had when they change."""
        entries = self._seen or {}
        absent = self._absent({entry.oid for entry in entries.values()})
        waiting: list[bytes] = []
        size = 0
        for path, entry in entries.items():
            if entry.oid not in absent:
                continue
            self._require_time()
            there = self._read(path, _Budget(1), is_first=True)
            if there is None or there.content.data is None or _Seen.of(there.content) != entry:
                continue
            absent.discard(entry.oid)
            waiting.append(there.content.data)
            size += len(there.content.data)
            if size > MAX_STORED_BYTES:
                raise ShadowFailed(
                    f"the project has more than {MAX_STORED_BYTES // 1_000_000:,} MB of files"
                )
            if len(waiting) >= _STORED_AT_ONCE:
                self._store(waiting)
                waiting = []
        self._store(waiting)

    def _absent(self, oids: Collection[str]) -> set[str]:
        """Return which objects nobody has."""
        data = "".join(f"{oid}\n" for oid in oids).encode()
        printed = self._git("cat-file", "--batch-check", "--buffer", data=data) if oids else b""
        return {line[:40].decode() for line in printed.splitlines() if line.endswith(b" missing")}

    def _store(self, contents: Collection[bytes]) -> None:
        """Keep `contents`, those with a secret in memory."""
        parts: list[bytes] = []
        for data in contents:
            if self._has_secret(data):
                self._memorize(data)
            else:
                parts += b"blob\ndata %d\n" % len(data), data, b"\n"
        if parts:
            self._git("fast-import", "--quiet", "--force", data=b"".join(parts))

    def _memorize(self, data: bytes) -> None:
        self._memory[_oid(data)] = data
        while sum(map(len, self._memory.values())) > MAX_MEMORY_BYTES:
            del self._memory[next(iter(self._memory))]

    def _fetch(self, oids: Iterable[str]) -> dict[str, bytes]:
        """Return the contents that can be had, each as its id says."""
        wanted = set(oids)
        fetched = {oid: self._memory[oid] for oid in wanted if oid in self._memory}
        data = "".join(f"{oid}\n" for oid in wanted - fetched.keys()).encode()
        printed = self._git("cat-file", "--batch", "--buffer", data=data) if data else b""
        position = 0
        while position < len(printed):
            end = printed.index(b"\n", position)
            words = printed[position:end].split(b" ")
            position = end + 1
            if words[1] == b"missing":
                continue
            size = int(words[2])
            content = printed[position : position + size]
            position += size + 1
            if _oid(content) == words[0].decode():
                fetched[words[0].decode()] = content
        return fetched

    # The repository

    def _make(self) -> None:
        """Make the repository, unless ours is there."""
        make_folder(self._directory)
        mark = self._folder / "crush-mark"
        is_ours = False
        with suppress(OSError, UnicodeError):
            is_real = not self._folder.is_symlink() and not mark.is_symlink()
            is_ours = is_real and bool(self._mark) and mark.read_text("ascii") == self._mark
        if not is_ours:
            self._remove()
            for name in ("objects/info", "objects/pack", "refs", "info"):
                (self._folder / name).mkdir(mode=0o700, parents=True)
            self._folder.chmod(0o700)
            self._write("HEAD", "ref: refs/heads/none\n")
            self._write("crush-mark", self._mark)
        self._write("config", _CONFIG)
        self._write("info/attributes", _ATTRIBUTES)
        self._write("info/exclude", _EXCLUDED + self._own_exclusions())
        self._write("objects/info/alternates", self._alternates())
        # Left by a git that was killed: the session, and with it the index, is ours alone.
        self._index.with_name(f"{self._index.name}.lock").unlink(missing_ok=True)

    def _remove(self) -> None:
        if self._folder.is_symlink() or self._folder.is_file():
            self._folder.unlink()
        elif self._folder.exists():
            shutil.rmtree(self._folder)

    def _own_exclusions(self) -> str:
        """Return what the project's repository ignores on this machine."""
        path = self._root / ".git" / "info" / "exclude"
        with suppress(OSError, ValueError), os.fdopen(open_real(path), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return os.fsdecode(file.read(100_000))
        return ""

    def _alternates(self) -> str:
        """Return where the project's own objects are, if they can be used."""
        git = self._root / ".git"
        objects = git / "objects"
        if git.is_symlink() or objects.is_symlink() or not objects.is_dir():
            return ""
        try:
            is_other = "objectformat" in (git / "config").read_text("utf-8", "replace").lower()
        except OSError:
            return ""
        return "" if is_other or "\n" in str(objects) else f"{objects}\n"

    def _write(self, name: str, text: str) -> None:
        (self._folder / name).write_bytes(os.fsencode(text))

    def _beside(self, suffix: str) -> Path:
        return self._index.with_name(f"{self._index.name}.{suffix}")

    def _git(self, *arguments: str, data: bytes = b"", is_checked: bool = True) -> bytes:
        """Run one git command and return what it printed."""
        self._require_time()
        ran = subprocess.run(
            [self._program or "git", *_OPTIONS, *arguments],
            cwd=self._root,
            env=self._environ,
            input=data,
            capture_output=True,
            check=False,
            start_new_session=True,
            timeout=self._deadline_s - time.monotonic(),
        )
        if is_checked and ran.returncode:
            said = ran.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
            raise ShadowFailed(f"git failed: {said}")
        return ran.stdout

    def _require_time(self) -> None:
        if time.monotonic() >= self._deadline_s:
            raise ShadowFailed("looking at it takes too long")


_FETCHED_AT_ONCE: Final = 100
_STORED_AT_ONCE: Final = 500


@dataclass(slots=True)
class _Budget:
    """How much may still be read."""

    files: int
    size: int = MAX_CHANGED_BYTES

    @property
    def has_room(self) -> bool:
        return self.files > 0 and self.size > 0

    def take(self, size: int) -> bool:
        """Take a file of `size` bytes, and return whether there was room for it."""
        if not self.has_room:
            return False
        self.files -= 1
        self.size -= size
        return True


def _failed(error: OSError | subprocess.SubprocessError) -> ShadowFailed:
    if isinstance(error, subprocess.TimeoutExpired):
        return ShadowFailed("looking at it takes too long")
    return ShadowFailed(reason(error) if isinstance(error, OSError) else str(error))


def _texts(printed: bytes) -> list[str]:
    return [os.fsdecode(each) for each in printed.split(b"\0") if each]


def _oid(data: bytes) -> str:
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _id_of(content: Content | None) -> str:
    is_id = content is not None and content.data is not None and not content.reason
    return content.data.decode() if is_id and content and content.data else ""


def _mode(kind: str) -> int:
    return next(mode for mode, name in _KINDS.items() if name == kind)


def _parents(path: str) -> Iterator[str]:
    """Yield the folders above `path`, from the inside."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
