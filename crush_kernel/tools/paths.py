"""Where a path that the model wrote leads, and whether that is inside the project.

The model's text becomes a `Target`: a real, absolute path with every link resolved, also
where the file does not exist yet. Inside or outside is decided on that path alone, by its
components, so neither `..`, nor a link, nor a folder whose name begins like the project's
gets past it. Every tool that takes a path takes it through `PathPolicy`, which also words the
questions whether it may be read or written.
"""

import errno
import os
import re
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from crush_kernel.config.directories import home_directory
from crush_kernel.errors import ToolError
from crush_kernel.files.keyplaces import KEY_FOLDERS
from crush_kernel.files.names import printable
from crush_kernel.permissions.controlfiles import ControlFiles
from crush_kernel.permissions.request import PermissionRequest

MAX_PATH_BYTES = 4_096
MAX_NAME_BYTES = 255
"""What Linux and macOS accept; longer paths would fail later with a riddle."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_DEVICE = ("\\\\?\\", "\\\\.\\", "//?/", "//./")


@dataclass(frozen=True, slots=True)
class Target:
    """A place in the file system, which may or may not exist."""

    path: Path
    """Real and absolute: what is checked, shown for permission, and opened."""
    shown: str
    """How to name it to people and models: from the working directory if it is inside the
    project, else in full. One line; the model can pass it back."""
    is_outside: bool
    """Whether it lies outside the project, or in a folder for keys inside it."""
    named: Path | None = field(default=None, compare=False)
    """What led there, links and all."""


@dataclass(frozen=True, slots=True)
class PathPolicy:
    """The project's folder and the folder that relative paths start from."""

    root: Path
    """The project: what is below it is inside. It may be reached through a link."""
    cwd: Path
    own: tuple[Path, ...] = ()
    """The user's folders for this program, where nothing is written without a question."""
    control: ControlFiles = field(init=False, repr=False, compare=False)
    """By what programs are told what to do."""

    def __post_init__(self) -> None:
        root = Path(os.path.realpath(self.root))
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "cwd", Path(os.path.realpath(self.cwd)))
        own = tuple(Path(os.path.realpath(folder)) for folder in self.own)
        home = Path(os.path.realpath(home_directory(os.environ)))
        object.__setattr__(self, "control", ControlFiles(home, root, own))

    def resolve(self, text: str) -> Target:
        """Return where `text` leads, `~` and links resolved; nothing has to exist.

        Raises:
            ToolError: no file can have that name; the message says what to write instead.
        """
        text = _without_scheme(text)
        _check(text)
        return self.target(self.cwd / _expand_home(text))

    def named(self, text: str) -> str:
        """Return a path that the model wrote as people should see it; never looks at the disk.

        It may lead somewhere else, by a link.
        """
        try:
            text = _without_scheme(text)
            _check(text)
            path = os.path.normpath(self.cwd / _expand_home(text))
        except ToolError:
            return printable(text)
        is_inside = self._is_inside(Path(path))
        return printable(os.path.relpath(path, self.cwd) if is_inside else path)

    def target(self, path: Path) -> Target:
        """Return `path`, which is absolute, as a target.

        Raises:
            ToolError: the path runs in a circle of links, or is just being changed.
        """
        try:
            real = os.path.realpath(path)
            is_circular = _is_circular(real)
        except OSError as error:  # what was a link is none any more
            raise ToolError(f"{printable(str(path))} cannot be found: {reason(error)}.") from error
        if is_circular:
            raise ToolError(f"{printable(str(path))} runs in a circle of symbolic links.")
        is_outside = not self._is_inside(Path(real))
        shown = real if is_outside else os.path.relpath(real, self.cwd)
        return Target(Path(real), shown=printable(shown), is_outside=is_outside, named=path)

    def _is_inside(self, real: Path) -> bool:
        if not real.is_relative_to(self.root):
            return False
        return KEY_FOLDERS.isdisjoint(real.relative_to(self.root).parts)

    def dangers(self, target: Target) -> tuple[str, ...]:
        """Return why writing to `target` always asks, in whatever mode; nothing for most."""
        named = () if target.named is None else (Path(os.path.normpath(target.named)),)
        found = self.control.dangers((target.path, *named))
        # One file, however it was reached, is one reason.
        return found[:1]

    def write_request(
        self,
        target: Target,
        *,
        call_id: str,
        tool: str,
        title: str,
        diff: str = "",
        notes: tuple[str, ...] = (),
    ) -> PermissionRequest:
        """Return the question whether `tool` may write to `target`."""
        return PermissionRequest(
            call_id=call_id,
            tool=tool,
            action="write",
            title=title,
            paths=(target.path,),
            is_outside=target.is_outside,
            dangers=self.dangers(target),
            diff=diff,
            notes=notes,
        )

    @staticmethod
    def read_request(
        target: Target, *, call_id: str, tool: str, action: Literal["read", "list"] = "read"
    ) -> PermissionRequest:
        """Return the question whether `tool` may read or list `target`."""
        return PermissionRequest(
            call_id=call_id,
            tool=tool,
            action=action,
            title=f"{action} {target.shown}",
            paths=(target.path,),
            is_outside=target.is_outside,
        )


def _is_circular(real: str) -> bool:
    """Return whether `realpath` gave up half-way, so that links are left in `real`."""
    try:
        Path(real).stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return True
    return os.path.realpath(real) != real


def kind_of(status: os.stat_result) -> str:
    """Return what sort of file `status` describes, as a noun such as `directory`."""
    mode = status.st_mode
    kinds = (
        (stat.S_ISREG, "file"),
        (stat.S_ISDIR, "directory"),
        (stat.S_ISLNK, "symbolic link"),
        (stat.S_ISFIFO, "named pipe"),
        (stat.S_ISSOCK, "socket"),
        (stat.S_ISCHR, "character device"),
        (stat.S_ISBLK, "block device"),
    )
    return next((name for is_kind, name in kinds if is_kind(mode)), "special file")


def reason(error: OSError) -> str:
    """Return why the system refused, in lower case: `permission denied`."""
    return (error.strerror or str(error)).lower()


def _without_scheme(text: str) -> str:
    """Return the path that a `file:` URL of this machine stands for; other text as it is."""
    if text[:7].lower() != "file://":
        return text
    try:
        url = urlsplit(text)
    except ValueError:
        return text
    if url.netloc.lower() not in ("", "localhost"):
        raise ToolError(
            f"'{printable(text[:200])}' is a file of another machine. Write a plain path instead."
        )
    # A name may hold what begins a query or a fragment elsewhere.
    rest = text[7 + len(url.netloc) :]
    return unquote(rest, errors="surrogateescape")


def _check(text: str) -> None:
    """Refuse what cannot name a file, with a sentence that helps."""
    shown = printable(text[:200])
    if not text.strip():
        raise ToolError("The path is empty. Write one relative to the working directory.")
    if "\0" in text:
        raise ToolError(f"The path '{shown}' contains a NUL character. Write it without.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ToolError(f"The path '{shown}' is not valid Unicode. List the folder for its names.")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise ToolError(
            f"No file can have the name '{shown}' here: the kernel runs with file names in "
            f"{sys.getfilesystemencoding()}. The user can set LANG to C.UTF-8 and restart it."
        ) from None
    if text.startswith(_DEVICE):
        raise ToolError(f"'{shown}' is a device path. Write a plain path instead.")
    if _SCHEME.match(text):
        raise ToolError(f"'{shown}' is a URL. Write a plain path instead.")
    if os.name != "nt" and _DRIVE.match(text):
        raise ToolError(f"'{shown}' is a Windows path, but this system is not Windows.")
    _check_length(text)


def _check_length(text: str) -> None:
    size = len(text.encode())
    longest = max(len(name.encode()) for name in text.split("/"))
    if size > MAX_PATH_BYTES or longest > MAX_NAME_BYTES:
        raise ToolError(
            f"The path is too long: {size} bytes, its longest name {longest}; at most "
            f"{MAX_PATH_BYTES} and {MAX_NAME_BYTES} are possible."
        )


def _expand_home(text: str) -> Path:
    """Return `text` with a leading `~` replaced; `~name` stays a name like any other."""
    if text != "~" and not text.startswith("~/"):
        return Path(text)
    try:
        return Path.home() / text[2:].lstrip("/")
    except RuntimeError as error:
        raise ToolError("The home directory is not known. Write a full path.") from error
