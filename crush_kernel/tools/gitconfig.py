"""Whether git, looking at a repository, would run what the repository's own configuration names.

A repository that came as an archive, or lies in a shared folder, brings its `.git/config` along;
monitors, filters and text conversions in it are programs that even `git status` starts. The file
is read here, not by git, and only settings that are known to start nothing are let pass.

Source: git-config.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crush_kernel.errors import ToolError
from crush_kernel.tools.diskfile import read_file

MAX_BYTES: Final = 1_000_000
UNREADABLE: Final = "?"
"""Makes no sense as a configuration, and so counts as one that names programs."""

_SECTIONS: Final = """
advice branch color column fetch format gc gui help http index init lfs pack pull push rebase
receive rerere status tag transfer user versionsort
"""
"""Of these nothing is started by a command that only looks."""

_KEYS: Final = """
core.abbrev core.autocrlf core.bare core.checkstat core.compression core.eol core.filemode
core.fscache core.hookspath core.ignorecase core.logallrefupdates core.longpaths
core.precomposeunicode
core.preloadindex core.protecthfs core.protectntfs core.quotepath core.repositoryformatversion
core.safecrlf core.sharedrepository core.splitindex core.symlinks core.trustctime
core.untrackedcache core.whitespace commit.gpgsign commit.template commit.verbose diff.algorithm
diff.colormoved diff.mnemonicprefix diff.renamelimit diff.renames extensions.objectformat
extensions.refstorage extensions.worktreeconfig log.date log.decorate log.follow
merge.conflictstyle merge.ff merge.log merge.renames remote.fetch remote.prune remote.pushurl
remote.skipdefaultupdate remote.tagopt remote.url
"""

_HARMLESS_SECTIONS: Final = frozenset(_SECTIONS.split())
_HARMLESS_KEYS: Final = frozenset(_KEYS.split())

_SECTION: Final = re.compile(r"""\s*\[\s*([A-Za-z0-9.-]+)\s*(?:"(?:[^"\\\n]|\\.)*")?\s*\]""")
_KEY: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=|$)")


def names_programs(text: str) -> bool:
    """Return whether a configuration has anything that is not known to start nothing."""
    return any(
        name not in _HARMLESS_KEYS and name.partition(".")[0] not in _HARMLESS_SECTIONS
        for name in _settings(text)
    )


def repository_names_programs(folder: Path) -> bool:
    """Return whether git, run in `folder`, could be made to run something. Looks at the disk.

    What cannot be read for certain counts as yes. Without a repository the answer is no.
    """
    # Git goes up from where a link leads, not from where it stands.
    folder = Path(os.path.realpath(folder))
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_symlink():
            return True
        if os.path.lexists(place / ".gitmodules"):
            return True  # each of them has a configuration of its own
        if git.is_dir():
            return _any_names_programs(git)
        if git.exists():
            return _is_linked_to_programs(git)
        if (place / "HEAD").exists() and (place / "objects").is_dir():
            return True  # a bare repository, which can lie within another one's files
    return False


def _is_linked_to_programs(link: Path) -> bool:
    """Return whether the repository that the file `.git` leads to names programs."""
    said = _text(link) or ""
    if not said.startswith("gitdir: "):
        return True
    git = Path(os.path.realpath(link.parent / said[8:].rstrip("\n")))
    common = _text(git / "commondir")
    if common is not None:
        return _any_names_programs(Path(os.path.realpath(git / common.rstrip("\n")))) or (
            _file_names_programs(git / "config.worktree")
        )
    return _any_names_programs(git)


def _any_names_programs(git: Path) -> bool:
    return any(map(_file_names_programs, (git / "config", git / "config.worktree")))


def _file_names_programs(path: Path) -> bool:
    text = _text(path)
    return text is not None and names_programs(text)


def _text(path: Path) -> str | None:
    """Return what `path` says, `None` without such a file; what cannot be read names programs."""
    try:
        file = read_file(Path(os.path.realpath(path)), max_bytes=MAX_BYTES)
    except ToolError:
        return UNREADABLE
    return None if file is None else file.data.decode("utf-8", "surrogateescape")


def _settings(text: str) -> Iterator[str]:
    """Yield `section.key` of each setting, in lower case; of what makes no sense an empty name."""
    section = ""
    is_continued = False
    for line in text.split("\n"):
        was_continued, is_continued = is_continued, line.rstrip("\r").endswith("\\")
        if was_continued:
            continue
        rest = line
        if head := _SECTION.match(line):
            section, rest = head[1].lower(), line[head.end() :]
        rest = rest.strip()
        if not rest or rest[0] in "#;":
            continue
        key = _KEY.match(rest)
        yield f"{section}.{key[1].lower()}" if key and section else ""
