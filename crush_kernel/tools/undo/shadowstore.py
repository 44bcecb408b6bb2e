"""The private repository in which a project's files are remembered, and how git is run on it.

It has a configuration of its own: no hooks, filters or monitors, and attributes by which bytes
are bytes, whatever the project's repository asks for. One that came with the project is thrown
away. Contents are looked for in the project's own objects too, so that only what is not there
is stored; what contains a secret stays in memory.

Every method blocks; one thread at a time.

Source: git-fast-import, git-cat-file, gitattributes, gitrepository-layout.
"""

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from hashlib import sha1
from pathlib import Path
from typing import Final

from crush_kernel.files.opening import open_real
from crush_kernel.history.folder import make_folder
from crush_kernel.history.ownership import alone
from crush_kernel.prompt.gitcommand import git_environment
from crush_kernel.tools.paths import reason

FOLDER_NAME: Final = "shadow.git"

MAX_MEMORY_BYTES: Final = 64_000_000
"""Of contents that must not be stored; the oldest are forgotten first."""

_MARK_NAME: Final = "crush-mark"
_LOCK_LIMIT_S: Final = 5.0
_MAX_READ: Final = 100_000
"""Of what the project's repository says about itself."""

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


class ShadowStore:
    """The repository of one project, as one session uses it."""

    def __init__(
        self,
        *,
        root: Path,
        directory: Path,
        index_name: str,
        mark: str,
        environ: Mapping[str, str],
        has_secret: Callable[[bytes], bool],
    ) -> None:
        """Prepare; nothing is made on disk yet. For the arguments see `Shadow`."""
        self._root = root
        self._directory = directory
        self._folder = directory / FOLDER_NAME
        self.index = self._folder / index_name
        self._mark = mark
        self._has_secret = has_secret
        environment = git_environment(environ, root)
        self._program = shutil.which("git", path=environment["PATH"])
        self._environ = environment | {
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DIR": str(self._folder),
            "GIT_INDEX_FILE": str(self.index),
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_WORK_TREE": str(root),
        }
        self._memory: dict[str, bytes] = {}
        """Contents with a secret, by object id."""
        self.deadline_s = 0.0
        """When git is given up, on the monotonic clock."""

    def make(self) -> None:
        """Make the repository, unless ours is there.

        Raises:
            ShadowFailed: there is no git.
            OSError: it cannot be made.
        """
        if self._program is None:
            raise ShadowFailed("git is not installed")
        make_folder(self._directory)
        # Nobody is to throw away what another kernel has just begun to make.
        with alone(self._directory, "shadow", wait_s=_LOCK_LIMIT_S):
            self._make()

    def _make(self) -> None:
        mark = self._folder / _MARK_NAME
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
            self._write(_MARK_NAME, self._mark)
        self._write("config", _CONFIG)
        self._write("info/attributes", _ATTRIBUTES)
        self._write("info/exclude", _EXCLUDED + self._own_exclusions())
        self._write("objects/info/alternates", self._alternates())
        # Left by a git that was killed: the session, and with it the index, is ours alone.
        self.index.with_name(f"{self.index.name}.lock").unlink(missing_ok=True)

    def git(self, *arguments: str, data: bytes = b"", is_checked: bool = True) -> bytes:
        """Run one git command on the project and return what it printed.

        Raises:
            ShadowFailed: it failed, if that is checked, or there is no time left.
            OSError: it cannot be run.
            subprocess.SubprocessError: the same, or it took too long.
        """
        self.require_time()
        ran = subprocess.run(
            [self._program or "git", *_OPTIONS, *arguments],
            cwd=self._root,
            env=self._environ,
            input=data,
            capture_output=True,
            check=False,
            start_new_session=True,
            timeout=self.deadline_s - time.monotonic(),
        )
        if is_checked and ran.returncode:
            said = ran.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
            raise ShadowFailed(f"git failed: {said}")
        return ran.stdout

    def require_time(self) -> None:
        """Raise `ShadowFailed` if there is no time left."""
        if time.monotonic() >= self.deadline_s:
            raise ShadowFailed("looking at it takes too long")

    def absent(self, oids: Collection[str]) -> set[str]:
        """Return which objects nobody has."""
        data = "".join(f"{oid}\n" for oid in oids).encode()
        printed = self.git("cat-file", "--batch-check", "--buffer", data=data) if oids else b""
        return {line[:40].decode() for line in printed.splitlines() if line.endswith(b" missing")}

    def store(self, contents: Collection[bytes]) -> None:
        """Keep `contents`, those with a secret in memory."""
        parts: list[bytes] = []
        for data in contents:
            if self._has_secret(data):
                self._memorize(data)
            else:
                parts += b"blob\ndata %d\n" % len(data), data, b"\n"
        if parts:
            self.git("fast-import", "--quiet", "--force", data=b"".join(parts))

    def _memorize(self, data: bytes) -> None:
        self._memory[object_id(data)] = data
        while sum(map(len, self._memory.values())) > MAX_MEMORY_BYTES:
            del self._memory[next(iter(self._memory))]

    def fetch(self, oids: Iterable[str]) -> dict[str, bytes]:
        """Return the contents that can be had, each as its id says."""
        wanted = set(oids)
        fetched = {oid: self._memory[oid] for oid in wanted if oid in self._memory}
        data = "".join(f"{oid}\n" for oid in wanted - fetched.keys()).encode()
        printed = self.git("cat-file", "--batch", "--buffer", data=data) if data else b""
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
            if object_id(content) == words[0].decode():
                fetched[words[0].decode()] = content
        return fetched

    def _remove(self) -> None:
        if self._folder.is_symlink() or self._folder.is_file():
            self._folder.unlink()
        elif self._folder.exists():
            shutil.rmtree(self._folder)

    def _own_exclusions(self) -> str:
        """Return what the project's repository ignores on this machine."""
        return os.fsdecode(self._told("info/exclude"))

    def _alternates(self) -> str:
        """Return where the project's own objects are, if they can be used."""
        git = self._root / ".git"
        objects = git / "objects"
        if git.is_symlink() or objects.is_symlink() or not objects.is_dir():
            return ""
        # By other hashes than ours, its objects have other names.
        is_other = b"objectformat" in self._told("config").lower()
        return "" if is_other or "\n" in str(objects) else f"{objects}\n"

    def _told(self, name: str) -> bytes:
        """Return what a file of the project's repository says, empty if there is none."""
        with suppress(OSError), os.fdopen(open_real(self._root / ".git" / name), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read(_MAX_READ)
        return b""

    def _write(self, name: str, text: str) -> None:
        (self._folder / name).write_bytes(os.fsencode(text))


def failed(error: OSError | subprocess.SubprocessError) -> ShadowFailed:
    """Return the error for a failure to run git or to read."""
    if isinstance(error, subprocess.TimeoutExpired):
        return ShadowFailed("looking at it takes too long")
    return ShadowFailed(reason(error) if isinstance(error, OSError) else str(error))


def object_id(data: bytes) -> str:
    """Return the id by which git knows a content."""
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
