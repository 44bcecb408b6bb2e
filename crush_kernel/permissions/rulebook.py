"""All rules that hold in a project, wherever they were written, and the way to store more.

What files say is read once, when the kernel starts or a project is trusted; what is stored is read
again before every change, since other kernels store too.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from anyio.to_thread import run_sync

from crush_kernel.config.directories import Directories, home_directory
from crush_kernel.config.permissionrules import WrittenPermissions
from crush_kernel.config.rulestore import FILE_NAME, RuleStore
from crush_kernel.config.ruletexts import RuleScope, StoredRule, Verdict
from crush_kernel.files.names import printable
from crush_kernel.permissions.match import BadRule
from crush_kernel.permissions.pathpattern import Place
from crush_kernel.permissions.policy import Policy, StandingRule
from crush_kernel.permissions.rule import Rule, nearest_tool, parse_rule
from crush_kernel.toolnames import KNOWN


@dataclass(frozen=True, slots=True)
class Page:
    """The rules as they are now."""

    policy: Policy
    stored: tuple[StoredRule, ...]
    """Those of them that a person has stored, in the order in which they are numbered; some may
    not be understood."""
    written: int
    """How many rules of the policy stand in configuration files: the first ones."""
    warnings: tuple[str, ...]
    """One sentence for each thing that does not count."""


class RuleBook:
    """The rules of one project.

    Args:
        written: what configuration files say.
        store: what people have stored.
        place: where patterns of paths begin.
    """

    def __init__(self, written: WrittenPermissions, store: RuleStore, place: Place) -> None:
        self._written = written
        self._store = store
        self._place = place
        self._page = self._made()

    @property
    def page(self) -> Page:
        """The rules as they were last read."""
        return self._page

    def configure(self, written: WrittenPermissions) -> Policy:
        """Have other files count, such as those of a project that is trusted now. Blocks."""
        self._written = written
        return self.read()

    def read(self) -> Policy:
        """Read again what is stored, and return what holds. Blocks; never raises."""
        self._page = self._made()
        return self._page.policy

    async def keep(self, rules: tuple[str, ...], scope: RuleScope) -> Policy:
        """Store what is allowed from now on, and return what holds with it; a `KeepRules`.

        Raises:
            ConfigError: one of the rules is none, or they cannot be stored; nothing is.
        """
        return await self.store("allow", rules, scope)

    async def store(self, verdict: Verdict, rules: Iterable[str], scope: RuleScope) -> Policy:
        """Store `rules`, and return what holds with them.

        Raises:
            ConfigError: one of the rules is none, or they cannot be stored; nothing is.
        """
        texts = tuple(dict.fromkeys(parse_rule(rule).text for rule in rules))
        wanted = tuple(StoredRule(verdict, text, scope) for text in texts)

        def add() -> Policy:
            self._store.add(wanted)
            return self.read()

        return await run_sync(add)

    async def forget(self, rule: StoredRule) -> Policy:
        """Forget a rule that was stored, and return what holds without it.

        Raises:
            ConfigError: it cannot be forgotten.
        """

        def remove() -> Policy:
            self._store.remove(rule)
            return self.read()

        return await run_sync(remove)

    def _made(self) -> Page:
        found = self._store.read()
        warnings = [*self._written.warnings, *found.warnings]
        rules: list[StandingRule] = []
        for each in self._written.rules:
            where = self._shown(each.path)
            if rule := _parsed(each.text, where, warnings):
                rules.append(StandingRule(each.verdict, rule, where, each.scope))
        written = len(rules)
        rules += (
            StandingRule(each.verdict, rule, source_of(each.scope))
            for each in found.rules
            if (rule := _parsed(each.text, "stored rules", warnings))
        )
        return Page(Policy(tuple(rules), self._place), found.rules, written, tuple(warnings))

    def _shown(self, path: Path) -> str:
        """Return a configuration file as people know it."""
        root, home = self._place.root, self._place.home
        if path.is_relative_to(root):
            return printable(path.relative_to(root).as_posix())
        return printable(f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path))


def open_policy(
    written: WrittenPermissions,
    directories: Directories,
    *,
    environ: Mapping[str, str],
    project_root: Path,
) -> RuleBook:
    """Return the rules that hold in a project. Blocks; never raises for what is in files.

    Args:
        written: what configuration files say.
        directories: the user's; stored rules are in the one for data.
        environ: the user's environment, for the home folder.
        project_root: the project's root, a real path.
    """
    home = Path(os.path.realpath(home_directory(environ)))
    store = RuleStore(directories.data / FILE_NAME, project_root)
    return RuleBook(written, store, Place(project_root, home))


def source_of(scope: RuleScope) -> str:
    """Return where a rule comes from that was stored, for people."""
    return "stored for this project" if scope == "project" else "stored for everywhere"


def _parsed(text: str, where: str, warnings: list[str]) -> Rule | None:
    """Return the rule that `text` is, and warn if it is none, or none that can ever matter."""
    try:
        rule = parse_rule(text)
    except BadRule as error:
        warnings.append(f"{where}: {printable(str(error))}; the rule is ignored.")
        return None
    warnings += (f"{where}: {problem}" for problem in _doubts(rule))
    return rule


def _doubts(rule: Rule) -> Iterator[str]:
    is_known = rule.tool in KNOWN or rule.tool.startswith("mcp_")
    if is_known or "*" in rule.tool or "?" in rule.tool:
        return
    near = nearest_tool(rule.tool)
    meant = f"; is {near} meant?" if near else "."
    yield f"the rule {printable(rule.text)} is for a tool that does not exist{meant}"
