"""Files by which other programs, or this agent, are told what to do: changing one always asks.

Pure: a real path goes in, a reason or nothing comes out. What counts is the name, wherever it
stands, so that a file which a link in the home folder leads to is known too; of some folders only
those of the user or of the machine. A folder that holds such a file counts like the file. Names
are compared as the most forgiving file system would.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Final

from crush_kernel.files.keyplaces import KEY_FOLDERS, KEYS_IN_HOME
from crush_kernel.files.names import printable

_GIT: Final = "which git goes by: it can have git run programs"
_COMMIT: Final = "which is run when something is committed"
_AGENT: Final = "which says what an agent may do or runs"
_MEMORY: Final = "which agents read as instructions"
_KEYS: Final = "where keys are kept"
_LOGIN: Final = "which is run when a shell, a session or a program starts"
_EDITOR: Final = "by which an editor runs programs"
_SOURCES: Final = "which says where programs come from, and may hold keys"
_VALUES: Final = "which may hold keys, and sets what programs run with"
_PYTHON: Final = "which is run by every Python"
_KERNEL: Final = "which says what starts as a Jupyter kernel"
_MACHINE: Final = "which belongs to the system"
_PROGRAMS: Final = "where programs are that are run by their name"

_FOLDERS: Final[Mapping[str, str]] = {
    ".git": _GIT,
    "git~1": _GIT,  # what Windows also calls it
    ".husky": _COMMIT,
    ".githooks": _COMMIT,
    ".lefthook": _COMMIT,
    ".crush": _AGENT,
    ".claude": _AGENT,
    ".agents": _AGENT,
    ".cursor": _AGENT,
    ".devcontainer": _EDITOR,
    ".jupyter": _LOGIN,
    ".ipython": _LOGIN,
    ".direnv": _LOGIN,
    **dict.fromkeys(KEY_FOLDERS, _KEYS),
}
"""Folders by name, and all that is in them."""

_FILES: Final[Mapping[str, str]] = {
    "crush.json": _AGENT,
    ".crush.json": _AGENT,
    "crushrc": _AGENT,
    ".crushrc": _AGENT,
    ".mcp.json": _AGENT,
    ".gitmodules": _GIT,
    ".gitconfig": _GIT,
    ".pre-commit-config.yaml": _COMMIT,
    ".pre-commit-config.yml": _COMMIT,
    "lefthook.yml": _COMMIT,
    "lefthook.yaml": _COMMIT,
    ".lefthook.yml": _COMMIT,
    ".overcommit.yml": _COMMIT,
    ".env": _VALUES,
    ".envrc": _LOGIN,
    **dict.fromkeys(
        (
            *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases"),
            *(".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc"),
            *(".cshrc", ".tcshrc", ".login", ".logout", ".inputrc", ".xprofile", ".xinitrc"),
            *(".xsession", ".xsessionrc", ".xserverrc", ".pam_environment", ".vimrc", ".gvimrc"),
            *(".exrc", ".nvimrc", ".emacs", ".tmux.conf", ".screenrc", ".pythonrc", ".pdbrc"),
            *(".pythonrc.py", ".gdbinit", ".lldbinit", ".hgrc", ".mailcap", ".lesskey", ".irbrc"),
            *(".rprofile", ".renviron", ".curlrc", ".wgetrc", ".dir-locals.el"),
            "microsoft.powershell_profile.ps1",
        ),
        _LOGIN,
    ),
    **dict.fromkeys(
        (
            *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pypirc", ".netrc", "_netrc"),
            *("pip.conf", "pip.ini", ".condarc", ".git-credentials", ".dockercfg", ".pgpass"),
        ),
        _SOURCES,
    ),
    "sitecustomize.py": _PYTHON,
    "usercustomize.py": _PYTHON,
    "pyvenv.cfg": _PYTHON,
    "kernel.json": _KERNEL,
    ".cursorrules": _MEMORY,
    **{
        f"{stem}{kind}.md": _MEMORY
        for stem in ("agents", "claude", "crush", "gemini")
        for kind in ("", ".local")
    },
}
"""Files by name."""

_BELOW: Final[Mapping[tuple[str, str], str]] = {
    (".vscode", "tasks.json"): _EDITOR,
    (".vscode", "settings.json"): _EDITOR,
    (".vscode", "launch.json"): _EDITOR,
    (".idea", "workspace.xml"): _EDITOR,
    (".idea", "runconfigurations"): _EDITOR,
    (".github", "copilot-instructions.md"): _MEMORY,
}
"""Files and folders that are told by the folder they are in."""

_HOLDERS: Final = {folder for folder, _ in _BELOW}

_PATTERNS: Final[Mapping[str, str]] = {
    ".env.*": _VALUES,
    ".envrc.*": _LOGIN,
    "*.code-workspace": _EDITOR,
}

_EXAMPLES: Final = (".example", ".sample", ".template", ".dist")
"""How files end that are there to be copied, and hold nothing."""

_HOME: Final[Mapping[str, str]] = {
    **dict.fromkeys(KEYS_IN_HOME, _KEYS),
    **dict.fromkeys(
        (
            *(".config/autostart", ".config/systemd", ".config/environment.d", ".config/fish"),
            *(".config/nvim", ".config/plasma-workspace", ".config/hypr", ".config/sway"),
            *(".config/i3", ".config/powershell", ".local/share/systemd", ".emacs.d", ".vim"),
            *(".local/share/dbus-1", ".local/share/applications", ".oh-my-zsh", ".zsh"),
            *("library/launchagents", "library/launchdaemons", ".bashrc.d", ".config/direnv"),
            "appdata/roaming/microsoft/windows/start menu/programs/startup",
        ),
        _LOGIN,
    ),
    **dict.fromkeys((".config/git",), _GIT),
    **dict.fromkeys((".config/crush", ".local/share/crush", ".cache/crush"), _AGENT),
    **dict.fromkeys((".local/share/jupyter", "library/jupyter"), _KERNEL),
    **dict.fromkeys((".local/bin", "bin", ".cargo/bin"), _PROGRAMS),
    **dict.fromkeys(
        (
            *(".cargo/config", ".cargo/config.toml", ".config/pip", ".config/uv", ".gradle", ".m2"),
            *(".pip", ".terraform.d", "library/keychains"),
        ),
        _SOURCES,
    ),
}
"""Folders and files of the user, from the home folder."""

_SYSTEM: Final = (
    *("/etc", "/boot", "/proc", "/sys", "/dev", "/var/spool/cron", "/var/spool/at", "/usr"),
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/library/launchagents"),
    *("/library/launchdaemons", "/system", "/private/etc", "/private/var/at"),
)
_FREE: Final = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdin", "/dev/stdout"),
    *("/dev/stderr", "/dev/fd", "/dev/shm", "/dev/pts", "/usr/src", "/usr/local/src"),  # noqa: S108 - a name
)

_IGNORED: Final = re.compile("[\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
"""What some file systems do not see in a name."""


@dataclass(frozen=True, slots=True)
class ControlFiles:
    """What is a control file for one user, in one project."""

    home: Path
    root: Path
    """The project's. Both are real paths."""
    own: tuple[Path, ...] = ()
    """Further folders of this program: the user's configuration and data, real paths."""

    def danger(self, path: Path) -> str:
        """Return what is dangerous about writing to `path`, empty if nothing is.

        It goes after "it". `path` is real and absolute, and need not exist.
        """
        reason = self._reason(path)
        return f"writes to {self._shown(path)}, {reason}" if reason else ""

    def dangers(self, paths: Iterable[Path]) -> tuple[str, ...]:
        """Return what is dangerous about writing to any of `paths`, each once."""
        return tuple(dict.fromkeys(filter(None, map(self.danger, paths))))

    def _reason(self, path: Path) -> str:
        parts = _folded(path.parts)
        root = _folded(self.root.parts)
        # What the project itself is in says nothing of the files in it.
        named = parts[len(root) :] if parts[: len(root)] == root else parts
        return (
            (_by_name(named) if named else "")
            or self._above(parts, root)
            or self._in_home(parts)
            or self._of_own(parts)
            or _of_system(parts)
        )

    def _in_home(self, parts: tuple[str, ...]) -> str:
        home = _folded(self.home.parts)
        if parts[: len(home)] != home:
            return ""
        return _reaches(parts[len(home) :], _HOME_PARTS)

    def _of_own(self, parts: tuple[str, ...]) -> str:
        for folder in self.own:
            if _meet(parts, _folded(folder.parts)):
                return _AGENT
        return ""

    def _above(self, parts: tuple[str, ...], root: tuple[str, ...]) -> str:
        """Return what `parts` hold if they are a folder above the project, or the home."""
        home = _folded(self.home.parts)
        if parts == home[: len(parts)]:
            return "which holds all that is the user's"
        if len(parts) < len(root) and parts == root[: len(parts)]:
            return "which holds the whole project"
        return ""

    def _shown(self, path: Path) -> str:
        if path.is_relative_to(self.root) and path != self.root:
            return printable(str(path.relative_to(self.root)))
        if path == self.home:
            return "~"
        if path.is_relative_to(self.home):
            return printable(str("~" / path.relative_to(self.home)))
        return printable(str(path))


def _folded(parts: Iterable[str]) -> tuple[str, ...]:
    """Return names as the most forgiving file system takes them."""
    return tuple(map(_fold, parts))


def _fold(name: str) -> str:
    if name.isascii() and name.islower() and name[-1] not in ". ":
        return name
    plain = unicodedata.normalize("NFKC", _IGNORED.sub("", name)).casefold()
    return plain.rstrip(". ") or name


def _by_name(parts: tuple[str, ...]) -> str:
    for part in parts:
        if reason := _FOLDERS.get(part):
            return reason
    name = parts[-1]
    return _FILES.get(name) or _by_neighbors(parts) or _by_pattern(name)


def _by_neighbors(parts: tuple[str, ...]) -> str:
    """Return what a name is for below a folder of another name."""
    for pair in pairwise(parts):
        if reason := _BELOW.get(pair):
            return reason
    name = parts[-1]
    if name in _HOLDERS:
        return _EDITOR
    is_installed = not {"site-packages", "dist-packages"}.isdisjoint(parts)
    return _PYTHON if is_installed and name.endswith(".pth") else ""


def _by_pattern(name: str) -> str:
    if name.endswith(_EXAMPLES):
        return ""
    return next((why for like, why in _PATTERNS.items() if fnmatchcase(name, like)), "")


def _of_system(parts: tuple[str, ...]) -> str:
    if any(parts[: len(free)] == free for free in _FREE_PARTS):
        return ""
    return _reaches(parts, _SYSTEM_PARTS)


def _reaches(parts: tuple[str, ...], table: Mapping[tuple[str, ...], str]) -> str:
    """Return the reason of the first place in `table` that is at, above or below `parts`."""
    return next((why for place, why in table.items() if _meet(parts, place)), "")


def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether one of the two is at or below the other."""
    length = min(len(one), len(other))
    return one[:length] == other[:length]


_HOME_PARTS: Final = {tuple(place.split("/")): why for place, why in _HOME.items()}
_SYSTEM_PARTS: Final = {Path(place).parts: _MACHINE for place in _SYSTEM}
_FREE_PARTS: Final = tuple(Path(place).parts for place in _FREE)
