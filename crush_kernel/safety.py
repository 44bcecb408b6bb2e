"""What people have said about what may be done here: configuration, trust, rules, mode, hooks.

It is read once, when a kernel starts. What the user changes by a command counts at once; what
changes on disk does not, whoever has changed it.

Source: design §§2, 5.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import anyio.from_thread

from crush_kernel.config.configfiles import ConfigFiles, IsTrusted, read_config_files
from crush_kernel.config.hooks import ReadHooks, read_hooks
from crush_kernel.config.permissionrules import (
    WrittenPermissions,
    opening_mode,
    read_permissions,
)
from crush_kernel.config.sandbox import confinement_for, wants_sandbox
from crush_kernel.config.settings import Settings
from crush_kernel.config.trust import ProjectTrust, TrustStore
from crush_kernel.hooks.hooks import Hooks
from crush_kernel.permissions.gate import Gate
from crush_kernel.permissions.rulebook import RuleBook, open_policy
from crush_kernel.shell.sandbox import Sandbox
from crush_kernel.tools.paths import PathPolicy

MAX_WARNINGS: Final = 20
"""That are told; a project's file can have thousands of mistakes in it."""


@dataclass(frozen=True, slots=True)
class Configured:
    """What configuration files say, those of the project as far as they count."""

    permissions: WrittenPermissions
    hooks: ReadHooks
    warnings: tuple[str, ...]
    """One sentence for each thing that does not count."""

    @classmethod
    def in_files(cls, files: ConfigFiles) -> "Configured":
        """Read `files`."""
        permissions, hooks = read_permissions(files.files), read_hooks(files.files)
        return cls(permissions, hooks, (*files.warnings, *hooks.warnings))


@dataclass(slots=True)
class Safety:
    """All of it for one kernel, and how it changes."""

    trust: ProjectTrust
    """The configuration in force, and how a project's part of it is trusted."""
    rules: RuleBook
    gate: Gate
    configured: Configured
    sandbox: Sandbox | None
    """Confines commands; `None` lets them run free."""
    disabled_tools: frozenset[str]
    """Names of tools that nobody is given."""
    hooks: Hooks | None = None
    """Runs those that are configured, once there is a shell."""

    def __post_init__(self) -> None:
        self.trust.on_change = self._changed

    def _changed(self, files: ConfigFiles) -> None:
        """Have other files in force. In a worker thread, where they were read."""
        anyio.from_thread.run_sync(self.take, files)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence for each thing that was written and does not count; of many the first."""
        found = tuple(dict.fromkeys((*self.configured.warnings, *self.rules.page.warnings)))
        if len(found) <= MAX_WARNINGS:
            return found
        more = f"{len(found) - MAX_WARNINGS:,} more things in configuration files do not count."
        return (*found[:MAX_WARNINGS], more)

    def run_hooks(self, hooks: Hooks) -> None:
        """Have `hooks` run what is configured, now and after each change."""
        self.hooks = hooks
        hooks.hooks = self.configured.hooks.hooks

    def take(self, files: ConfigFiles) -> None:
        """Have the rules and hooks of other files in force. On the engine; blocks shortly.

        Tools and the sandbox stay as they are: the model was told about them.
        """
        self.configured = Configured.in_files(files)
        self.gate.policy = self.rules.configure(self.configured.permissions)
        if self.hooks is not None:
            self.hooks.hooks = self.configured.hooks.hooks


def open_safety(settings: Settings, paths: PathPolicy, *, data: Path) -> Safety:
    """Return what holds in a project. Blocks; never raises for what is in files.

    Args:
        settings: the user's.
        paths: of the project.
        data: the project's own data directory.
    """
    environ, directories = settings.environ, settings.directories
    read = partial(_read, settings, paths, data)
    trust = ProjectTrust(read, TrustStore(directories.data), root=paths.root)
    configured = Configured.in_files(trust.files)
    rules = open_policy(
        configured.permissions, directories, environ=environ, project_root=paths.root
    )
    is_wanted, warnings = wants_sandbox(environ, trust.files.files)
    confinement = confinement_for(environ, directories, root=paths.root, cwd=paths.cwd, data=data)
    return Safety(
        trust=trust,
        rules=rules,
        gate=Gate(
            opening_mode(settings, configured.permissions), rules.page.policy, keep_rules=rules.keep
        ),
        configured=replace(configured, warnings=(*configured.warnings, *warnings)),
        sandbox=Sandbox(environ, confinement) if is_wanted else None,
        disabled_tools=frozenset(configured.permissions.disabled_tools),
    )


def _read(settings: Settings, paths: PathPolicy, data: Path, trust: IsTrusted) -> ConfigFiles:
    return read_config_files(
        settings.environ,
        settings.directories,
        cwd=paths.cwd,
        project_root=paths.root,
        data_directory=data,
        trust=trust,
    )
