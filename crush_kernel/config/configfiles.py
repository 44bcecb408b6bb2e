"""The configuration files that there are, the user's and the project's.

Whatever a project's file claims is not in its document unless the user has trusted it: nobody who
reads these documents has to ask again. A file is read once; what was shown and hashed is what
counts. A file that cannot be used is one sentence, never a dead kernel.

Source: Crush, config discovery; but what people write goes before what the program writes.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from crush_kernel.config.claims import Claim, claims_of, digest_of, inert
from crush_kernel.config.directories import Directories
from crush_kernel.config.documents import parse_document, read_source
from crush_kernel.errors import ConfigError
from crush_kernel.messages import JsonObject

SYSTEM_FILE: Final = Path("/etc/crush/crush.json")
NAME: Final = "crush.json"
PROJECT_NAMES: Final = (NAME, ".crush.json")
"""In one folder; of two the later goes before."""
SCRIPT_NAMES: Final = ("crushrc", ".crushrc")
"""Configuration that is a shell script."""

Scope = Literal["user", "project"]

IsTrusted = Callable[[Path, str], bool]
"""Whether the user trusts the claims of this hash in the project at this real path."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """One file, as it counts."""

    path: Path
    scope: Scope
    document: JsonObject = field(repr=False)
    """Without what it claims, in a project that is not trusted. May hold keys."""
    digest: str
    """SHA-256 of the file's bytes, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    """All files that there are, and what the project wants to be trusted with."""

    files: tuple[ConfigFile, ...] = ()
    """The lowest priority first."""
    warnings: tuple[str, ...] = ()
    """One sentence for each file that could not be used."""
    claims: tuple[Claim, ...] = ()
    """Of the project's files, in the files' order."""
    digest: str = ""
    """Of the claims; what is trusted. Empty without any."""
    is_trusted: bool = True
    """Whether the claims count."""

    def of(self, scope: Scope) -> tuple[ConfigFile, ...]:
        """Return the files of the user or of the project, the lowest priority first."""
        return tuple(file for file in self.files if file.scope == scope)


def trust_nothing(project: Path, digest: str) -> bool:  # noqa: ARG001 - an `IsTrusted`
    """Trust no project."""
    return False


def read_config_files(
    environ: Mapping[str, str],  # noqa: ARG001 - for the keys that name files, once there are some
    directories: Directories,
    *,
    cwd: Path,
    project_root: Path,
    data_directory: Path,
    trust: IsTrusted = trust_nothing,
    system_file: Path = SYSTEM_FILE,
) -> ConfigFiles:
    """Return the files as they are now; blocks, and never raises for what is in them.

    Args:
        environ: the user's environment.
        directories: the user's directories.
        cwd: the folder, a real path.
        project_root: the project's root, a real path.
        data_directory: the project's.
        trust: whether the project's claims count.
        system_file: of the machine.
    """
    reading = _Reading()
    user = (directories.data / NAME, directories.config / NAME)
    for path in (*((system_file,) if os.name != "nt" else ()), *user):
        reading.take(path, "user")
    owners = _owners(cwd)
    for folder in folders_of_project(cwd, project_root):
        for name in PROJECT_NAMES:
            reading.take(folder / name, "project", owners)
    reading.take(data_directory / NAME, "project", owners)
    return _judged(reading, project_root, trust)


def folders_of_project(cwd: Path, project_root: Path) -> Iterator[Path]:
    """Yield the folders from the root down to `cwd`; never one above the root."""
    if not cwd.is_relative_to(project_root):
        yield cwd
        return
    folder = project_root
    yield folder
    for name in cwd.relative_to(project_root).parts:
        folder /= name
        yield folder


class _Reading:
    """The files that were read so far, each once, by whatever name it is found again."""

    def __init__(self) -> None:
        self.files: list[ConfigFile] = []
        self.warnings: list[str] = []
        self._known: set[str] = set()

    def take(self, path: Path, scope: Scope, owners: tuple[int, ...] = ()) -> None:
        real = os.path.realpath(path)
        if real in self._known:
            return
        self._known.add(real)
        try:
            if source := read_source(path, owners=owners):
                document = parse_document(source.text, path)
                self.files.append(ConfigFile(path, scope, document, source.digest))
        except ConfigError as error:
            self.warnings.append(f"{error}.")


def _judged(reading: _Reading, root: Path, trust: IsTrusted) -> ConfigFiles:
    claims = tuple(
        claim
        for file in reading.files
        if file.scope == "project"
        for claim in claims_of(file.document, _name(file.path, root))
    )
    digest = digest_of(claims) if claims else ""
    is_trusted = not claims or trust(root, digest)
    return ConfigFiles(
        files=tuple(reading.files if is_trusted else map(_inert, reading.files)),
        warnings=tuple(reading.warnings),
        claims=claims,
        digest=digest,
        is_trusted=is_trusted,
    )


def _inert(file: ConfigFile) -> ConfigFile:
    if file.scope == "user":
        return file
    return ConfigFile(file.path, file.scope, inert(file.document), file.digest)


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _owners(cwd: Path) -> tuple[int, ...]:
    """Return whose files in a project count; on Windows everybody's do."""
    if os.name == "nt":
        return ()
    try:
        return (os.getuid(), cwd.stat().st_uid)
    except OSError:
        return (os.getuid(),)
