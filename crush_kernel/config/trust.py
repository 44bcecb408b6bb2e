"""What the user has trusted a project with: this very content of its configuration, in this folder.

It is kept in the user's own state and nowhere else: no project and no notebook says that it is
trusted. A project that is moved or copied is another one, and so is one in which anything has
changed that it claims.

Source: Crush, trust considerations.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from crush_kernel.config.configfiles import ConfigFiles, IsTrusted, trust_nothing
from crush_kernel.config.statefile import StateFile
from crush_kernel.errors import ConfigError
from crush_kernel.files.names import printable
from crush_kernel.messages import JsonObject
from crush_kernel.wording import clipped

FILE_NAME: Final = "trust.json"

SHORT: Final = 12
"""How much of a hash a person writes: 48 bits, of content that nobody has looked for yet."""

_PROJECTS: Final = "projects"
_VERSION: Final = "version"

_MAX_WORD: Final = 40
_MAX_WORDS: Final = 5


class TrustStore:
    """The projects that are trusted, each with the hash of what it claims."""

    def __init__(self, data: Path) -> None:
        """Keep them in `data`, the user's directory; it need not exist."""
        self._file = StateFile(
            data / FILE_NAME,
            loss="nothing that projects bring along is trusted",
            hint="Mend or remove the file, and run /trust again.",
        )

    def is_trusted(self, project: Path, digest: str) -> bool:
        """Return whether the user trusts what has this hash in `project`; never raises."""
        try:
            known = self._projects(self._file.read()).get(_key(project))
        except ConfigError:
            return False
        return bool(digest) and known == digest

    def trust(self, project: Path, digest: str) -> None:
        """Trust what has this hash in `project`, and nothing else there any more. Blocks.

        Raises:
            ConfigError: it cannot be kept.
        """
        self._change(lambda projects: {**projects, _key(project): digest})

    def forget(self, project: Path) -> None:
        """Trust `project` with nothing. Blocks.

        Raises:
            ConfigError: the file cannot be changed.
        """
        key = _key(project)
        self._change(lambda projects: {name: projects[name] for name in projects if name != key})

    def _change(self, changed: Callable[[JsonObject], dict[str, JsonValue]]) -> None:
        self._file.change(
            lambda document: {**document, _PROJECTS: changed(self._projects(document))}
        )

    def _projects(self, document: JsonObject) -> JsonObject:
        """Return what `document` says of projects.

        Raises:
            ConfigError: another version has written it, and may mean something else by it.
        """
        projects = document.get(_PROJECTS, {})
        if not isinstance(projects, dict) or document.get(_VERSION, 1) != 1:
            raise self._file.trouble("is not understood")
        return projects


class ProjectTrust:
    """The configuration in force, and how a person has the project's part of it count.

    What is in force are the files as they were when the kernel started. A change on disk does
    not come into force by itself, whoever has made it; `/trust` brings the project's in.
    """

    def __init__(
        self, read: Callable[[IsTrusted], ConfigFiles], store: TrustStore, *, root: Path
    ) -> None:
        """Begin with what `read` gives. Blocks.

        Args:
            read: reads the files as they are now, the project's trusted or not.
            store: what is trusted.
            root: the project's real root.
        """
        self._read = read
        self._store = store
        self._root = root
        self._files = read(store.is_trusted)
        self._shown: set[str] = set()
        self.on_change: Callable[[ConfigFiles], None] = _nobody_listens
        """Called with the files in force when these have become others."""

    @property
    def files(self) -> ConfigFiles:
        """The files in force."""
        return self._files

    def look(self) -> ConfigFiles:
        """Return the files as they are now, which are not in force by that. Blocks."""
        return self._read(self._store.is_trusted)

    def show(self, files: ConfigFiles) -> None:
        """Note that a person is shown all that the project claims in `files`."""
        self._shown.add(files.digest)

    def was_shown(self, files: ConfigFiles) -> bool:
        """Return whether this kernel has shown exactly that.

        The few letters that a person writes do not tell contents apart that were made to look
        alike.
        """
        return files.digest in self._shown

    def trust(self, files: ConfigFiles) -> ConfigFiles:
        """Trust what the project claims in `files`, have it in force and return what is. Blocks.

        What has changed meanwhile is not trusted, and nothing of the project is in force then.

        Raises:
            ConfigError: it cannot be kept.
        """
        self._store.trust(self._root, files.digest)
        return self._take(self.look())

    def forget(self) -> ConfigFiles:
        """Have nothing that the project claims in force, and return what is. Blocks.

        Raises:
            ConfigError: it cannot be kept; it is out of force for this kernel all the same.
        """
        try:
            self._store.forget(self._root)
        finally:
            taken = self._take(self._read(trust_nothing))
        return taken

    def _take(self, now: ConfigFiles) -> ConfigFiles:
        # The user's own stay as they were: an agent may have had a hand in what they are now.
        files = (*self._files.of("user"), *now.of("project"))
        self._files = replace(now, files=files)
        self.on_change(self._files)
        return self._files


def untrusted_notice(files: ConfigFiles) -> str:
    """Return what to tell before the first turn, empty if all that is claimed counts."""
    if files.is_trusted:
        return ""
    kinds = dict.fromkeys(clipped(printable(claim.keys[0]), _MAX_WORD) for claim in files.claims)
    names = ", ".join(list(kinds)[:_MAX_WORDS]) + (", …" if len(kinds) > _MAX_WORDS else "")
    places = ", ".join(dict.fromkeys(printable(claim.file) for claim in files.claims))
    return (
        "This project brings along configuration that has no effect until you trust it "
        f"({names}, in {clipped(places, 200)}); run /trust to see it."
    )


def _key(project: Path) -> str:
    return os.path.realpath(project)


def _nobody_listens(_: ConfigFiles) -> None:
    pass
