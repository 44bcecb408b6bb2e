"""Where things are: the user's directories, the project's root and the project's data.

The user's directories are Crush's, on every platform, so that one set-up serves both
programs; `platformdirs` would send macOS elsewhere. Looking for a root reads names and
owners only, never a file that a repository brings along.

Source: Crush, file locations.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

DATA_DIRECTORY_NAME = ".crush"


@dataclass(frozen=True, slots=True)
class Directories:
    """The three directories of a user, absolute; they need not exist."""

    config: Path
    """What people write: `crush.json`, `crushrc`, `CRUSH.md`, `skills/`."""
    data: Path
    """What the program writes: the remembered models."""
    cache: Path
    """What may be deleted at any time."""


def read_directories(
    environ: Mapping[str, str], *, is_windows: bool = os.name == "nt"
) -> tuple[Directories, tuple[str, ...]]:
    """Return the user's directories and a sentence for each setting that cannot be used.

    A relative path cannot: it would mean another place for every notebook.
    """
    home = home_directory(environ)
    local = _absolute(environ.get("LOCALAPPDATA", "")) or home / "AppData" / "Local"
    windows = local / "crush"
    warnings: list[str] = []

    def choose(name: str, xdg_name: str, default: Path) -> Path:
        if value := environ.get(name, "").strip():
            if path := _absolute(value, home=home):
                return path
            warnings.append(f"{name} is not an absolute path: {value!r}; it is ignored")
        # The XDG specification has relative values ignored without a word.
        xdg = _absolute(environ.get(xdg_name, "").strip(), home=home)
        return xdg / "crush" if xdg else default

    directories = Directories(
        config=choose("CRUSH_GLOBAL_CONFIG", "XDG_CONFIG_HOME", home / ".config" / "crush"),
        data=choose(
            "CRUSH_GLOBAL_DATA",
            "XDG_DATA_HOME",
            windows if is_windows else home / ".local" / "share" / "crush",
        ),
        cache=choose(
            "CRUSH_CACHE_DIR",
            "XDG_CACHE_HOME",
            windows / "cache" if is_windows else home / ".cache" / "crush",
        ),
    )
    return directories, tuple(warnings)


def home_directory(environ: Mapping[str, str]) -> Path:
    """Return the user's home, or a temporary directory for a user who has none."""
    if home := _absolute(environ.get("HOME", "")):
        return home
    try:
        return Path.home()
    except RuntimeError:  # a container whose user id is in no user database
        return Path(tempfile.gettempdir())


def project_root(cwd: Path, *, home: Path | None = None) -> Path:
    """Return the top of the git work tree that contains `cwd`, else `cwd`.

    Neither `home` nor anything above it is ever a root, even if a work tree, unless `cwd`
    itself is: all that is in the root may be read unasked. For the same reason a `.git`
    counts only if it belongs to this user or to the owner of `cwd`.

    Args:
        cwd: the folder to start from.
        home: the user's home; the process's own by default.
    """
    start = Path(os.path.realpath(cwd))
    for folder in _upward(start, home or home_directory(os.environ)):
        if _is_git_top(folder) and _is_trusted(folder / ".git", start):
            return folder
    return start


def project_data_directory(cwd: Path, root: Path) -> Path:
    """Return the nearest `.crush` directory from `cwd` up to `root`, else the one to make.

    One that belongs to somebody else is passed over.
    """
    start, top = Path(os.path.realpath(cwd)), Path(os.path.realpath(root))
    inside = start.is_relative_to(top)
    for folder in (start, *start.parents) if inside else (top,):
        candidate = folder / DATA_DIRECTORY_NAME
        if _is_directory(candidate) and _is_trusted(candidate, start):
            return candidate
        if folder == top:
            break
    return top / DATA_DIRECTORY_NAME


def log_file(data_directory: Path) -> Path:
    """Return where the kernel logs to, below a project's data directory."""
    return data_directory / "logs" / "kernel.log"


def _absolute(value: str, *, home: Path | None = None) -> Path | None:
    """Return `value` as a path if it is absolute, a leading `~` expanded."""
    if home is not None and (value == "~" or value.startswith("~/")):
        return home / value[2:]
    if "\0" in value:
        return None
    path = Path(value)
    return path if value and path.is_absolute() else None


def _upward(start: Path, home: Path) -> Iterator[Path]:
    """Yield `start` and the folders above it, up to but without the home and the top."""
    home = Path(os.path.realpath(home))
    for folder in (start, *start.parents):
        if folder in (home, folder.parent) or home.is_relative_to(folder):
            return
        yield folder


def _is_git_top(folder: Path) -> bool:
    """Return whether `folder` is the top of a work tree, a linked one or a submodule included."""
    git = folder / ".git"
    try:
        return git.is_file() or (git / "HEAD").exists()
    except OSError:
        return False


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # in a folder that this user may not look into
        return False


def _is_trusted(path: Path, start: Path) -> bool:
    if os.name == "nt":
        return True
    try:
        return path.stat().st_uid in (os.getuid(), start.stat().st_uid)
    except OSError:
        return False
