"""Look at files as checkpoints know them, and have them be as they were.

Nothing is followed: a link is a file that says where it leads, and a path in which a link was
put since is not gone through. Each path is changed at once or not at all. All functions block.
"""

import os
import secrets
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from crush_kernel.errors import ToolError
from crush_kernel.files.opening import open_real
from crush_kernel.history.checkpoints import Action, Entry, Kind, State
from crush_kernel.tools.diskfile import replace_file
from crush_kernel.tools.paths import kind_of, reason

MAX_BYTES: Final = 100_000_000
"""The largest file that is looked at: larger than any version that is kept."""

Content = Callable[[str], bytes | None]
"""Returns what has a hash; `None` if it is not kept any more."""

_ALL_MAY_RUN: Final = 0o111


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one path."""

    action: Action
    error: str = ""
    """Why it stays as it was, in a clause; empty if it was done."""


def look(path: Path) -> State:
    """Return what is at `path` now.

    What is not to be touched is of kind `other`, and its content is the reason, a clause.
    """
    try:
        if Path(os.path.realpath(path.parent)) != path.parent:
            return Entry("there is a link in its path now", "other")
        facts = path.lstat()
        if stat.S_ISDIR(facts.st_mode):
            return Entry("", "folder")
        if stat.S_ISLNK(facts.st_mode):
            # As it is: a `Path` would leave out a `./`.
            return Entry(_hash(os.fsencode(os.readlink(path))), "link")  # noqa: PTH115
        if not stat.S_ISREG(facts.st_mode):
            return Entry(f"it is a {kind_of(facts)} now", "other")
        return Entry(_hash_of_file(path), _kind(facts.st_mode), facts.st_mode & 0o777)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Entry(f"it cannot be read: {reason(error)}", "other")
    except ValueError:  # a NUL in the path
        return Entry("it has no name that a file can have", "other")


def carry_out(actions: Iterable[Action], content: Content) -> Iterator[Outcome]:
    """Carry out `actions` in their order, and yield what became of each."""
    for action in actions:
        try:
            _carry_out(action, content)
        except (OSError, ToolError) as error:
            why = reason(error) if isinstance(error, OSError) else str(error).rstrip(".")
            yield Outcome(action, why)
        else:
            yield Outcome(action)


def missing(actions: Iterable[Action], content: Content) -> frozenset[str]:
    """Return the paths of the `actions` whose content is not kept any more."""
    return frozenset(
        action.path
        for action in actions
        if action.want is not None
        and action.want.kind != "folder"
        and content(action.want.content) is None
    )


def _carry_out(action: Action, content: Content) -> None:
    path = Path(action.path)
    # Whoever changed it since it was looked at is not overwritten.
    if look(path) != action.had:
        raise ToolError("it was changed by something else just now")
    want, had = action.want, action.had
    if had is not None and had.kind == "folder":
        _remove_folder(path, must_go=want is not None)
    elif had is not None and (want is None or want.kind == "folder"):
        path.unlink()
    if want is None:
        return
    if want.kind == "folder":
        path.mkdir(parents=True, exist_ok=True)
    else:
        _write(path, want, content(want.content), had)


def _write(path: Path, want: Entry, data: bytes | None, had: State) -> None:
    if data is None:
        raise ToolError("its content is not kept any more")
    if want.kind == "link":
        path.parent.mkdir(parents=True, exist_ok=True)
        with _beside(path) as temporary:
            temporary.symlink_to(os.fsdecode(data))
    elif had is not None and had.kind == "link":
        # Beside it first, so that it takes nothing over from what the link leads to.
        with _beside(path) as temporary:
            replace_file(temporary, data, rights=_rights(want, None))
    else:
        replace_file(path, data, rights=_rights(want, had))


@contextmanager
def _beside(path: Path) -> Generator[Path]:
    """Give a name for what takes the place of `path` at once when the block has made it."""
    temporary = path.with_name(f".{secrets.token_hex(8)}.crush-tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_folder(path: Path, *, must_go: bool) -> None:
    """Remove a folder that is empty; one that is not may stay unless `must_go`."""
    try:
        path.rmdir()
    except OSError:
        if must_go:
            raise


def _rights(want: Entry, had: State) -> int | None:
    """Return the permission bits of a file that takes the place of `had`.

    Those that it had, if they are known; else `had` tells, and who may read it may run it, or
    nobody. `None` leaves them as they are.
    """
    if want.rights is not None:
        return want.rights
    present = None if had is None else had.rights
    if present is None or not want.kind:
        return None
    mode = present & ~_ALL_MAY_RUN
    return mode | ((mode & 0o444) >> 2) if want.kind == "program" else mode


def _kind(mode: int) -> Kind:
    return "program" if mode & stat.S_IXUSR else "file"


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def _hash_of_file(path: Path) -> str:
    with os.fdopen(open_real(path), "rb") as file:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            return ""
        return _hash(file.read(MAX_BYTES))
