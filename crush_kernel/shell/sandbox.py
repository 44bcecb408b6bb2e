"""Run commands where they see no network and can write in few places: bubblewrap, on Linux.

A `Confinement` says what is wished, `survey` finds out what of it there is, and `sandbox_argv`,
which is pure, makes of that the words that go before a command. What is confined sees no other
processes, and all of it ends with its first process: no daemon stays behind.

A folder that is bound cannot be moved away, so that every folder on the way to what is sealed is
bound on itself: otherwise a copy of `.git` could take the place of the real one.

Source: bwrap(1).
"""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import anyio.to_thread

from crush_kernel.errors import ToolError

NOTE: Final = "in the sandbox: no network, writes only in the project and the temporary folder"
"""What a person reads of a command that will be confined."""

PROBE_TIMEOUT_S: Final = 5.0
"""How long it may take to find out whether a sandbox works; it takes some milliseconds."""

MAX_SCANNED: Final = 2_000
"""Entries of a temporary folder that are looked at."""

_RUN: Final = "/run"
"""Where the sockets of services are, through which others would do what one may not."""

_KEPT_OF_RUN: Final = ("/run/current-system", "/run/opengl-driver", "/run/wrappers")
"""Where NixOS has its programs."""

_DEVICES: Final = ("dri", "kfd", "nvidia*")
"""Below /dev: what computes."""

_SOCKET_FOLDERS: Final = (
    ".ICE-unix",
    ".X11-unix",
    ".XIM-unix",
    ".font-unix",
    "dbus-",
    "emacs",
    "pulse-",
    "screen",
    "snap-private-tmp",
    "ssh-",
    "systemd-private-",
    "tmux-",
    "vscode-",
)
"""How the names of folders in a temporary folder begin in which sockets of other programs are."""

_UNSET: Final = (
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "GPG_AGENT_INFO",
    "SSH_AUTH_SOCK",
    "TMUX",
)
"""Variables that only lead to sockets which are hidden."""

_SEALED_OF_PROC: Final = ("acpi", "bus", "fs", "irq", "mtrr", "scsi", "sys", "sysrq-trigger")
"""Below /proc: by which the machine is set up. Root can write there without any rights, such as
which program is run, outside, when one crashes."""

_BASE: Final = (
    "--die-with-parent",
    "--unshare-net",
    "--unshare-pid",
    "--unshare-ipc",
    "--cap-drop",
    "ALL",
    *("--ro-bind", "/", "/"),
    *("--dev", "/dev"),
    *("--proc", "/proc"),
    *(word for name in _SEALED_OF_PROC for word in ("--ro-bind-try", *(f"/proc/{name}",) * 2)),
    *("--tmpfs", _RUN),
)

_BOUND_SOCKETS: Final = Path("/proc/net/unix")
"""The sockets that are bound in this network; those that confined commands bind are in others."""

MAX_SOCKETS: Final = 500
"""That are kept out of sight by their names; each costs a mount."""

_NO_NETWORK: Final = (
    "Could not resolve host",
    "Couldn't connect to server",
    "Name or service not known",
    "Network is unreachable",
    "Temporary failure in name resolution",
    "ENETUNREACH",
    "EAI_AGAIN",
)
_NO_WRITING: Final = ("Read-only file system", "EROFS", "could not write config file")


@dataclass(frozen=True, slots=True)
class Confinement:
    """Where confined commands may write, and what they are not to see. All paths are absolute."""

    writable: tuple[Path, ...]
    """Folders that can be written to, with all that is in them but what is named below."""
    sealed: tuple[Path, ...] = ()
    """What stays as it is although it lies in one of those."""
    sealed_folders: tuple[Path, ...] = ()
    """Folders that stay as they are, and empty if they are not there."""
    hidden: tuple[Path, ...] = ()
    """What looks empty."""


Way = Literal["device", "bind", "hide", "blank", "seal", "empty"]
"""To mount a path: as a device; on itself; as an empty folder; as an empty file; on itself,
read-only; as an empty folder, read-only."""

_ORDER: Final[tuple[Way, ...]] = ("device", "bind", "hide", "blank", "seal", "empty")


@dataclass(frozen=True, slots=True)
class Mount:
    """A real path, and how it is mounted."""

    path: Path
    way: Way


def survey(confinement: Confinement, environ: Mapping[str, str]) -> tuple[Mount, ...]:
    """Return how to mount what there is of `confinement`, whatever is around it first.

    Blocks for some milliseconds, and raises nothing for what it finds.
    """
    roots = tuple(dict.fromkeys(map(_real, confinement.writable)))
    mounts = [Mount(device, "device") for device in _devices()]
    # All of the system cannot be the project.
    mounts += (Mount(root, "bind") for root in roots if root.is_dir() and root != Path("/"))
    mounts += (mount for path in confinement.sealed for mount in _sealed(path, roots))
    mounts += (mount for path in confinement.sealed_folders for mount in _closed(path, roots))
    agent = environ.get("SSH_AUTH_SOCK", "")
    hidden = (*confinement.hidden, Path("/var/run"), *((Path(agent),) if agent else ()))
    mounts += (mount for path in hidden for mount in _hidden(path))
    mounts += (mount for root in roots if _is_temporary(root) for mount in _sockets_in(root))
    mounts += islice(_bound_sockets(mounts), MAX_SOCKETS)
    return _ordered(mounts)


def sandbox_argv(program: str, mounts: Iterable[Mount], *, cwd: Path) -> tuple[str, ...]:
    """Return the words that go before the words of a command to confine it. Pure.

    Args:
        program: bubblewrap.
        mounts: as `survey` gives them.
        cwd: where the command runs.
    """
    argv = [program, *_BASE]
    for path in _KEPT_OF_RUN:
        argv += "--ro-bind-try", path, path
    for mount in mounts:
        argv += _words(mount)
    for name in _UNSET:
        argv += "--unsetenv", name
    return (*argv, "--chdir", str(cwd), "--")


def refusals(output: str) -> tuple[str, ...]:
    """Return what the sandbox has probably refused a command that has failed, for the model."""
    hints: list[str] = []
    if any(words in output for words in _NO_NETWORK):
        hints.append("[the sandbox has no network: commands reach no server, whatever they try]")
    if any(words in output for words in _NO_WRITING):
        hints.append(
            "[the sandbox lets commands write only in the project and the temporary folder, and "
            "not to its git hooks and configuration]"
        )
    if output.startswith("bwrap: "):
        hints.append("[the sandbox could not be set up, so that nothing was run]")
    return tuple(hints)


class Sandbox:
    """Confines commands; found out once, at the first command, whether that works here."""

    def __init__(self, environ: Mapping[str, str], confinement: Confinement) -> None:
        """Prepare a sandbox; nothing is looked for yet.

        Args:
            environ: of the kernel; bubblewrap is looked for on its PATH.
            confinement: of all commands.
        """
        self._environ = environ
        self._confinement = confinement
        self._program = ""
        self._trouble: str | None = None
        """Why there is no sandbox; `None` before anybody has looked."""

    async def prefix(self, cwd: Path) -> tuple[str, ...]:
        """Return the words that go before those of a command in `cwd`.

        Raises:
            ToolError: there is no sandbox; nothing may be run then.
        """
        return await anyio.to_thread.run_sync(self._prefix, cwd, abandon_on_cancel=True)

    async def trouble(self) -> str:
        """Return why there is no sandbox, in a sentence; empty if there is one."""
        return await anyio.to_thread.run_sync(self._look, abandon_on_cancel=True)

    def _prefix(self, cwd: Path) -> tuple[str, ...]:
        if trouble := self._look():
            raise ToolError(
                f"{trouble} The user wants commands to run in a sandbox only, so that nothing was "
                "run. Tell the user: options.sandbox in their own configuration, or the variable "
                "CRUSH_SANDBOX, switches it."
            )
        return sandbox_argv(self._program, survey(self._confinement, self._environ), cwd=cwd)

    def _look(self) -> str:
        if self._trouble is None:
            self._program, self._trouble = find_sandbox(self._environ)
        return self._trouble


def find_sandbox(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return bubblewrap, and in a sentence why it cannot be used, empty if it can.

    Blocks until it has been tried, for `PROBE_TIMEOUT_S` seconds at most.
    """
    if sys.platform != "linux":
        return "", "There is no sandbox on this system: it takes Linux."
    program = shutil.which("bwrap", path=environ.get("PATH"))
    if program is None:
        return "", "There is no sandbox: bubblewrap (bwrap) is not installed."
    argv = (*sandbox_argv(program, (), cwd=Path("/")), "true")
    try:
        tried = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
            env=dict(environ),
        )
    except subprocess.TimeoutExpired:
        return program, f"The sandbox does not start within {PROBE_TIMEOUT_S:g} s."
    except OSError as error:
        return program, f"The sandbox cannot be started: {error.strerror or error}."
    if tried.returncode == 0:
        return program, ""
    said = tried.stderr.decode(errors="replace").strip().partition("\n")[0][:200]
    return program, f"The sandbox does not work here ({said or 'bwrap gave no reason'})."


def _words(mount: Mount) -> tuple[str, ...]:
    path = str(mount.path)
    match mount.way:
        case "device":
            return "--dev-bind", path, path
        case "bind":
            return "--bind", path, path
        case "seal":
            return "--ro-bind", path, path
        case "hide":
            return "--tmpfs", path
        case "blank":
            return "--ro-bind", "/dev/null", path
        case "empty":
            return "--tmpfs", path, "--remount-ro", path


def _ordered(mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    """Return `mounts`, outer ones first; of several of one path the strictest."""
    ordered = sorted(mounts, key=lambda mount: _ORDER.index(mount.way))
    strictest = {mount.path: mount for mount in ordered}
    return tuple(sorted(strictest.values(), key=lambda mount: (len(mount.path.parts), mount.path)))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _named(path: Path) -> Path:
    """Return `path` in its real folder, not followed itself."""
    return _real(path.parent) / path.name


def _sealed(path: Path, roots: tuple[Path, ...]) -> Iterator[Mount]:
    """Yield what keeps `path` as it is, if it is there and could be changed at all."""
    named = _named(path)
    if named.is_symlink():
        # A link cannot be mounted on, and another one could be put in its place.
        if named.parent not in roots:
            yield from _pinned(named.parent, roots)
            yield Mount(named.parent, "seal")
        named = _real(named)
    if _root_of(named, roots) and os.path.lexists(named):
        yield from _pinned(named, roots)
        yield Mount(named, "seal")


def _closed(path: Path, roots: tuple[Path, ...]) -> Iterator[Mount]:
    named = _named(path)
    if os.path.lexists(named):
        yield from _sealed(path, roots)
    elif _root_of(named, roots) and named.parent.is_dir():
        yield from _pinned(named, roots)
        yield Mount(named, "empty")


def _pinned(path: Path, roots: tuple[Path, ...]) -> Iterator[Mount]:
    """Yield the folders between `path` and the writable one that it is in, each on itself."""
    root = _root_of(path, roots)
    for folder in path.parents if root else ():
        if folder == root:
            return
        yield Mount(folder, "bind")


def _root_of(path: Path, roots: tuple[Path, ...]) -> Path | None:
    """Return the outermost writable folder that `path` is in."""
    around = [root for root in roots if path != root and path.is_relative_to(root)]
    return min(around, key=lambda root: len(root.parts), default=None)


def _hidden(path: Path) -> Iterator[Mount]:
    real = _real(path)
    if real != Path(_RUN) and os.path.lexists(real):
        yield Mount(real, "hide" if real.is_dir() else "blank")


def _is_temporary(root: Path) -> bool:
    try:
        return bool(root.stat().st_mode & stat.S_ISVTX)
    except OSError:
        return False


def _sockets_in(root: Path) -> Iterator[Mount]:
    """Yield what hides the sockets of other programs in a folder that all write to."""
    try:
        with os.scandir(root) as entries:
            for entry in islice(entries, MAX_SCANNED):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name.startswith(_SOCKET_FOLDERS):
                        yield Mount(Path(entry.path), "hide")
                elif stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                    yield Mount(Path(entry.path), "blank")
    except OSError:
        return


def _bound_sockets(mounts: Iterable[Mount]) -> Iterator[Mount]:
    """Yield what hides the sockets of other programs anywhere, but where nothing is seen anyway.

    Who answers there is not confined, and no network is needed to talk to it.
    """
    unseen = [mount.path for mount in mounts if mount.way in ("hide", "empty")]
    unseen += map(Path, (_RUN, "/dev", "/proc"))
    try:
        rows = _BOUND_SOCKETS.read_bytes().splitlines()
    except OSError:
        return
    for row in rows:
        _, slash, name = row.partition(b" /")
        path = _real(Path(os.fsdecode(b"/" + name)))
        if slash and _is_socket(path) and not any(map(path.is_relative_to, unseen)):
            yield Mount(path, "blank")


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _devices() -> Iterator[Path]:
    for pattern in _DEVICES:
        yield from Path("/dev").glob(pattern)
