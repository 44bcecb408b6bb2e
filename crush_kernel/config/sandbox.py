"""Whether commands are confined, and where they may write then.

The environment and the user's own files decide in either direction; a project can only switch the
sandbox on for a user who has said nothing: what a project says may tighten and not loosen.

Source: design §5.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from crush_kernel.config.configfiles import NAME as CONFIG_NAME
from crush_kernel.config.configfiles import (
    PROJECT_NAMES,
    SCRIPT_NAMES,
    ConfigFile,
    folders_of_project,
)
from crush_kernel.config.directories import Directories, home_directory
from crush_kernel.config.settings import read_flag
from crush_kernel.files.keyplaces import KEY_FOLDERS, KEYS_IN_HOME
from crush_kernel.files.names import printable
from crush_kernel.shell.sandbox import Confinement

VARIABLE: Final = "CRUSH_SANDBOX"

_JUPYTER: Final = ".local/share/jupyter/runtime"
"""Below the home: keys and sockets of kernels that run."""

_STARTED: Final = (
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".gitconfig",
    ".profile",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
)
"""Below the home: what others run. It can only be written to where the home is the project."""


def wants_sandbox(
    environ: Mapping[str, str], files: Iterable[ConfigFile]
) -> tuple[bool, tuple[str, ...]]:
    """Return whether commands are to be confined, and a sentence for each value set aside.

    Args:
        environ: the user's; goes before all files.
        files: the lowest priority first.
    """
    warnings: list[str] = []
    said = read_flag(environ, VARIABLE, warnings)
    by_user: bool | None = None
    by_project = False
    for file in files:
        value = _option(file, warnings)
        if file.scope == "user":
            by_user = by_user if value is None else value
        else:
            by_project |= value is True
            if value is False:
                warnings.append(
                    f"{printable(str(file.path))} is the project's and cannot switch the sandbox "
                    "off; that stands in your own configuration."
                )
    chosen = next((each for each in (said, by_user) if each is not None), by_project)
    return chosen, tuple(warnings)


def confinement_for(
    environ: Mapping[str, str], directories: Directories, *, root: Path, cwd: Path, data: Path
) -> Confinement:
    """Return where confined commands of a project may write, and what they do not see. Blocks.

    Args:
        environ: the user's.
        directories: the user's.
        root: of the project, a real path.
        cwd: where the notebook is, a real path.
        data: the project's own data directory.
    """
    home = home_directory(environ)
    names = (*PROJECT_NAMES, *SCRIPT_NAMES)
    folders = tuple(folders_of_project(cwd, root))
    return Confinement(
        writable=(root, *_temporary(environ, home)),
        sealed=(
            *(folder / name for folder in folders for name in names),
            *(home / name for name in _STARTED),
            *(root / ".git" / name for name in ("config", "config.worktree")),
            *(folder / ".git" for folder in folders if _is_file(folder / ".git")),
            data,
        ),
        sealed_folders=(root / ".git" / "hooks",),
        hidden=(
            *(home / name for name in (*sorted(KEY_FOLDERS), *KEYS_IN_HOME, _JUPYTER)),
            directories.data,
            # And not its folder: skills, which stand there, may bring programs along.
            *(directories.config / name for name in (CONFIG_NAME, *SCRIPT_NAMES)),
        ),
    )


def _is_file(path: Path) -> bool:
    """Return whether `path` is a file, as `.git` is in a worktree: it says where git's own is."""
    try:
        return path.is_file()
    except OSError:
        return False


def _option(file: ConfigFile, warnings: list[str]) -> bool | None:
    options = file.document.get("options")
    value = options.get("sandbox") if isinstance(options, dict) else None
    if value is None or isinstance(value, bool):
        return value
    warnings.append(
        f"options.sandbox in {printable(str(file.path))} is neither true nor false; commands are "
        "confined."
    )
    return True


def _temporary(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the folders for temporary files; none that the home is in."""
    for name in (environ.get("TMPDIR", ""), "/tmp"):  # noqa: S108 - what programs use
        path = Path(name)
        if path.is_absolute() and not home.is_relative_to(path):
            yield path
