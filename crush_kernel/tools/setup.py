"""How Crush is set up, as sections of `crush_info`.

Values of the environment are never told, only what was made of them; an address is told without
its password.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crush_kernel.config.directories import log_file
from crush_kernel.config.settings import Settings
from crush_kernel.errors import CrushKernelError
from crush_kernel.prompt.agents import CustomAgents
from crush_kernel.prompt.skills import Skill, Skills
from crush_kernel.providers.base import ModelInfo
from crush_kernel.providers.selection import Providers
from crush_kernel.shell.jobs import Jobs
from crush_kernel.tools.base import AnyTool, erase
from crush_kernel.tools.commandtext import first_line, state
from crush_kernel.tools.crush_info import Section, Sections, crush_info_tool
from crush_kernel.tools.crush_logs import crush_logs_tool
from crush_kernel.wording import counted

NO_FILES = "none = there is no configuration file; the environment is the configuration"


@dataclass(frozen=True, slots=True)
class Setup:
    """What there is to know about one kernel."""

    settings: Settings
    data_directory: Path
    """Of the project."""
    providers: Providers
    model: Callable[[], ModelInfo | None]
    """Tells which model is in use; `None` if none is open."""
    mode: Callable[[], str]
    """Tells the permission mode."""
    skills: Callable[[], Awaitable[Skills]]
    agents: Callable[[], Awaitable[CustomAgents]]
    jobs: Jobs
    config_files: Sequence[str] = ()
    """Those that were read, in the order in which they count."""
    disabled_tools: Sequence[str] = ()

    async def sections(self) -> Iterable[Section]:
        """Return how things are now."""
        return (
            Section("config_files", tuple(self.config_files) or (NO_FILES,)),
            Section("config", tuple(_config(self.settings))),
            Section("model", await self._models()),
            Section("providers", tuple(self._providers())),
            Section("skills", tuple(_skills(await self.skills()))),
            Section("agents", tuple(_agents(await self.agents()))),
            Section("permissions", (f"mode = {self.mode()}",)),
            Section("tools", tuple(f"{name} = disabled" for name in sorted(self.disabled_tools))),
            Section("options", tuple(_options(self.settings, self.data_directory))),
            Section("jobs", tuple(_jobs(self.jobs))),
        )

    async def _models(self) -> tuple[str, ...]:
        large = self.model()
        if large is None:
            return ("large = none is open",)
        try:
            small = _named(await self.providers.small(large))
        except CrushKernelError as error:
            small = f"none: {error}"
        return (f"large = {_named(large)}", f"small = {small}")

    def _providers(self) -> Iterator[str]:
        known = Counter(info.provider for info in self.providers.known())
        for status in self.providers.status():
            if status.is_usable:
                models = counted(known[status.id], "model")
                yield f"{status.id} = {models}, {status.reason}"


def setup_tools(
    setup: Setup, *, redact: Callable[[str], str], more: Sequence[Sections] = ()
) -> tuple[AnyTool, ...]:
    """Return the tools by which the model looks at Crush itself.

    Args:
        setup: what is asked.
        redact: returns a text without the secrets in it.
        more: who else has something to say.
    """
    return (
        erase(crush_info_tool((setup.sections, *more), redact=redact)),
        erase(crush_logs_tool(log_file(setup.data_directory), redact=redact)),
    )


def _named(info: ModelInfo) -> str:
    return f"{info.id} ({info.provider})"


def _config(settings: Settings) -> Iterator[str]:
    yield "dirty = false"
    yield f"config_directory = {settings.directories.config}"
    for warning in settings.warnings:
        yield f"warning = {warning}"


def _skills(skills: Skills) -> Iterator[str]:
    if not (skills.active or skills.disabled or skills.faulty):
        return
    yield f"# {len(skills.active)} active, {len(skills.disabled)} disabled"
    rows = [*((each, "active") for each in skills.active)]
    rows += ((each, "disabled") for each in skills.disabled)
    yield from sorted(_skill(skill, condition) for skill, condition in rows)
    for faulty in sorted(skills.faulty, key=lambda each: each.location):
        yield f"{faulty.location} = faulty: {faulty.faults[0]}"


def _skill(skill: Skill, condition: str) -> str:
    return f"{skill.name} = {skill.scope}, {condition}"


def _agents(agents: CustomAgents) -> Iterator[str]:
    yield from sorted(f"{agent.name} = {agent.location}" for agent in agents.active)
    for faulty in sorted(agents.faulty, key=lambda each: each.location):
        yield f"{faulty.location} = faulty: {faulty.faults[0]}"


def _options(settings: Settings, data_directory: Path) -> Iterator[str]:
    yield f"auto_summarize = {_truth(is_true=not settings.disables_summaries)}"
    yield f"data_directory = {data_directory}"
    yield f"log = {log_file(data_directory)}"
    limits = (
        ("cost_usd", settings.max_turn_cost),
        ("minutes", settings.max_turn_minutes),
        ("steps", settings.max_turn_steps),
        ("tokens", settings.max_turn_tokens),
    )
    for name, value in limits:
        if value:
            yield f"max_turn_{name} = {value:g}"
    yield f"prompt_cache = {_truth(is_true=settings.uses_prompt_cache)}"


def _jobs(jobs: Jobs) -> Iterator[str]:
    for job in jobs.listed:
        yield f"{job.id} = {state(job)}: {first_line(job.command)}"


def _truth(*, is_true: bool) -> str:
    return "true" if is_true else "false"
