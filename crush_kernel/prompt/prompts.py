"""Prompts: the system prompt of one project, gathered anew for every request.

Files are looked at in a thread, one look at a time, and read only if they have changed. Git is
asked once a turn, beside what else the turn begins with.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from crush_kernel.config.agentdirectories import agent_directories
from crush_kernel.config.directories import home_directory
from crush_kernel.config.settings import Settings
from crush_kernel.config.skilldirectories import skill_directories
from crush_kernel.prompt.agents import AgentFiles, CustomAgents
from crush_kernel.prompt.diskcache import DiskCache
from crush_kernel.prompt.git import Git
from crush_kernel.prompt.memory import Memory, MemoryFiles, MemoryPlaces
from crush_kernel.prompt.place import gather_place
from crush_kernel.prompt.reminder import describe_now
from crush_kernel.prompt.skills import SkillFiles, Skills
from crush_kernel.prompt.system import (
    Facts,
    GitWays,
    Instructions,
    MemoryText,
    Place,
    PromptPart,
    SystemPrompt,
    render,
    render_subagent,
)


@dataclass(frozen=True, slots=True)
class _Look:
    """What was seen in one look at the disk."""

    place: Place
    memory: Memory
    skills: Skills
    agents: CustomAgents


@dataclass(slots=True)
class Prompts:
    """Gathers and renders. To be used on one event loop."""

    cwd: Path
    project_root: Path
    memory: MemoryFiles
    skills: SkillFiles
    agents: AgentFiles
    git: Git
    tasks: TaskGroup
    """Where git is asked; whoever opened it outlives this."""
    now: Callable[[], datetime]
    language_servers: tuple[str, ...] = ()
    """Those that are connected, as the model should know them."""
    mcp: tuple[Instructions, ...] = ()
    """What the connected servers want the model to know."""
    model: Callable[[], str] = lambda: ""
    """Tells the id of the model in use, once it is known."""
    path: str = ""
    """Where programs are looked for, as `PATH` has it."""
    _has_gh: bool | None = None
    _looking: anyio.Lock = field(default_factory=anyio.Lock)
    _rendered: tuple[Facts, tuple[PromptPart, ...]] | None = None
    _told: frozenset[str] = frozenset()
    """The notices that hold and that the user has heard."""

    def begin_turn(self) -> None:
        """Begin to ask git, so that it has answered when the first request is sent."""
        self.git.ask(self.tasks)

    def end_turn(self) -> None:
        """Have an answer for next time, if this one came too late."""
        self.git.ask_again_if_late(self.tasks)

    async def system_prompt(self) -> SystemPrompt:
        """Return the prompt for a request that is sent now.

        Its notices are given once for as long as they hold.
        """
        look = await self._look()
        notices = (*look.memory.notices, *look.skills.notices, *look.agents.notices)
        fresh = tuple(notice for notice in notices if notice not in self._told)
        self._told = frozenset(notices)
        return SystemPrompt(self._parts(look), await self._reminder(), fresh)

    async def preview(self) -> SystemPrompt:
        """Return the prompt as it would be sent now; its notices are left for a turn to give."""
        return SystemPrompt(self._parts(await self._look()), await self._reminder())

    async def found_memory(self) -> tuple[MemoryText, ...]:
        """Return the memory files as they are on disk now."""
        return (await self._look()).memory.files

    async def found_skills(self) -> Skills:
        """Return the skills as they are on disk now."""
        return (await self._look()).skills

    async def found_agents(self) -> CustomAgents:
        """Return the custom agents as they are on disk now."""
        return (await self._look()).agents

    async def for_subagent(self, instructions: str = "") -> SystemPrompt:
        """Return the prompt of a sub-agent that works in the project.

        Args:
            instructions: of a custom one; without them it is the one that looks things up.
        """
        look = await self._look()
        facts = Facts(place=look.place, memory=look.memory.files)
        parts = render_subagent(facts, instructions=instructions)
        return SystemPrompt(parts, await self._reminder())

    async def for_reader(self, folder: Path) -> SystemPrompt:
        """Return the prompt of the sub-agent that reads the web and sees only `folder`."""
        place = await anyio.to_thread.run_sync(
            partial(gather_place, cwd=folder, project_root=folder)
        )
        parts = render_subagent(Facts(place=place), kind="reader")
        return SystemPrompt(parts, describe_now(self.now(), None))

    async def _look(self) -> _Look:
        async with self._looking:
            return await anyio.to_thread.run_sync(self._look_now)

    def _look_now(self) -> _Look:
        place = gather_place(cwd=self.cwd, project_root=self.project_root)
        if self._has_gh is None:
            # Once: what comes and goes would make every request be read anew.
            self._has_gh = shutil.which("gh", path=self.path) is not None
        return _Look(place, self.memory.read(), self.skills.read(), self.agents.read())

    def _parts(self, look: _Look) -> tuple[PromptPart, ...]:
        facts = Facts(
            place=look.place,
            skills=look.skills.listed,
            memory=look.memory.files,
            left_out=look.memory.left_out,
            language_servers=self.language_servers,
            mcp=self.mcp,
            agents=look.agents.listed,
            git=GitWays(self.model(), has_gh=bool(self._has_gh))
            if look.place.is_git
            else GitWays(),
        )
        if self._rendered is None or self._rendered[0] != facts:
            self._rendered = (facts, render(facts))
        return self._rendered[1]

    async def _reminder(self) -> str:
        news = await self.git.news()
        now = self.now()
        if news is None:
            return describe_now(now, None)
        return describe_now(now, news.facts, age_s=news.age_s)


def open_prompts(settings: Settings, *, cwd: Path, project_root: Path, tasks: TaskGroup) -> Prompts:
    """Return the prompts of a project with the user's settings; nothing is looked at yet.

    Args:
        settings: the user's.
        cwd: the folder, a real path.
        project_root: the project's root, a real path.
        tasks: where git is asked.
    """
    disk = DiskCache()
    places = MemoryPlaces(
        cwd=cwd,
        project_root=project_root,
        config=settings.directories.config,
        home=home_directory(settings.environ),
        environ=settings.environ,
        context_paths=settings.context_paths,
        global_context_paths=settings.global_context_paths,
    )
    directories = skill_directories(
        settings.environ,
        settings.directories,
        cwd=cwd,
        project_root=project_root,
        extra=settings.skills_paths,
    )
    agents = agent_directories(
        settings.environ, settings.directories, cwd=cwd, project_root=project_root
    )
    disabled = settings.disabled_skills
    return Prompts(
        cwd=cwd,
        project_root=project_root,
        memory=MemoryFiles(places, disk),
        skills=SkillFiles(directories, disk, cwd=cwd, project_root=project_root, disabled=disabled),
        agents=AgentFiles(agents, disk, cwd=cwd, project_root=project_root),
        git=Git(cwd=cwd, project_root=project_root, environ=settings.environ),
        tasks=tasks,
        path=settings.environ.get("PATH", ""),
        now=lambda: datetime.now().astimezone(),
    )
