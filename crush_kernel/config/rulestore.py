"""The rules that a person has stored: in the user's own data, never in a project or a notebook.

A rule holds in one project, by its real root, or everywhere. A file that is not understood holds
no rules and is never overwritten; unknown keys in it are kept.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crush_kernel.config.ruletexts import SCOPES, VERDICTS, RuleScope, StoredRule, Verdict
from crush_kernel.config.statefile import StateFile
from crush_kernel.errors import ConfigError
from crush_kernel.messages import JsonObject

FILE_NAME: Final = "permissions.json"


class _Section(BaseModel):
    """The rules of one project, or those for everywhere."""

    model_config = ConfigDict(extra="allow", strict=True)

    allow: list[str] = Field(default_factory=list[str])
    ask: list[str] = Field(default_factory=list[str])
    deny: list[str] = Field(default_factory=list[str])

    def texts(self, verdict: Verdict) -> list[str]:
        """Return the list to read or to change."""
        match verdict:
            case "allow":
                return self.allow
            case "ask":
                return self.ask
            case "deny":
                return self.deny


class _Document(BaseModel):
    """The file."""

    model_config = ConfigDict(extra="allow", strict=True)

    version: Literal[1] = 1
    everywhere: _Section = Field(default_factory=_Section)
    projects: dict[str, _Section] = Field(default_factory=dict[str, _Section])


@dataclass(frozen=True, slots=True)
class StoredRules:
    """The rules that hold in one project."""

    rules: tuple[StoredRule, ...] = ()
    """Those of the project first; what allows before what asks and denies, in the order in which
    they were stored."""
    warnings: tuple[str, ...] = ()
    """One sentence if the file could not be used."""


class RuleStore:
    """The file, as one project sees it.

    Args:
        path: of the file.
        root: the project's, a real path.
    """

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self._root = str(root)
        self._file = StateFile(
            path,
            loss="the rules in it do not hold and none are stored",
            hint="Mend or remove the file.",
        )

    def read(self) -> StoredRules:
        """Return what is stored; never raises for what is in the file. Blocks."""
        try:
            document = self._parsed(self._file.read())
        except ConfigError as error:
            return StoredRules(warnings=(f"{error}.",))
        return StoredRules(
            tuple(
                StoredRule(verdict, text, scope)
                for scope in SCOPES
                for verdict in VERDICTS
                for text in self._section(document, scope).texts(verdict)
            )
        )

    def add(self, rules: Iterable[StoredRule]) -> None:
        """Store `rules`; what else is said of the same text in the same scope goes. Blocks.

        Raises:
            ConfigError: they cannot be stored; the file is as it was.
        """
        wanted = tuple(rules)

        def added(document: _Document) -> None:
            for rule in wanted:
                section = self._section(document, rule.scope)
                for verdict in VERDICTS:
                    _drop(section.texts(verdict), rule.text)
                section.texts(rule.verdict).append(rule.text)

        self._change(added)

    def remove(self, rule: StoredRule) -> None:
        """Forget `rule`, if it is still there. Blocks.

        Raises:
            ConfigError: it cannot be forgotten; the file is as it was.
        """

        def removed(document: _Document) -> None:
            _drop(self._section(document, rule.scope).texts(rule.verdict), rule.text)
            projects = document.projects
            if not projects[self._root].model_dump(exclude_defaults=True):
                del projects[self._root]

        self._change(removed)

    def _change(self, change: Callable[[_Document], None]) -> None:
        def changed(content: JsonObject) -> JsonObject:
            document = self._parsed(content)
            # The section of this project is there to be changed.
            document.projects.setdefault(self._root, _Section())
            change(document)
            dumped: JsonObject = document.model_dump(exclude_defaults=True)
            return {"version": 1, **dumped}

        self._file.change(changed)

    def _section(self, document: _Document, scope: RuleScope) -> _Section:
        if scope == "everywhere":
            return document.everywhere
        return document.projects.get(self._root) or _Section()

    def _parsed(self, content: JsonObject) -> _Document:
        try:
            return _Document.model_validate(content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise ConfigError(
                f"the state file {str(self.path)!r} is not understood ({where}: {first['msg']}), "
                "so the rules in it do not hold and none are stored",
                path=self.path,
                hint="Mend or remove the file.",
            ) from error


def _drop(texts: list[str], text: str) -> None:
    while text in texts:
        texts.remove(text)
