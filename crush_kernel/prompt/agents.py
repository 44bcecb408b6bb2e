"""Custom agents: found on disk, checked, and known by name.

The user's come first, then the project's, from its root down to the folder of the notebook; of
two with the same name the later one counts, and that is said. Only names and descriptions go
into the prompt. The instructions of an agent are its own system prompt, and grant nothing.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crush_kernel.config.skilldirectories import SkillDirectory, SkillScope
from crush_kernel.prompt.agenttext import AgentText, parse_agent
from crush_kernel.prompt.diskcache import DiskCache, FoundFile, Remembered, files_in
from crush_kernel.prompt.headedfiles import (
    FaultyFile,
    HeadedFiles,
    Override,
    first_notices,
    within_room,
)
from crush_kernel.prompt.system import ListedAgent
from crush_kernel.wording import clipped

SUFFIX: Final = ".md"

MAX_AGENT_BYTES = 100_000
MAX_AGENTS = 100
"""In all directories together."""

MAX_LISTED_BYTES = 20_000
"""What the list in the prompt may come to."""

MAX_LISTED_DESCRIPTION = 600
"""Characters of a description in the list."""


@dataclass(frozen=True, slots=True)
class CustomAgent:
    """An agent that the agent can give a task to."""

    name: str
    description: str
    """When to use it, on one line."""
    tools: tuple[str, ...] | None
    """The names of those it may have; `None`, for those that only look, if its file names none."""
    model: str
    """`large`, `small`, or a `provider/model`."""
    text: str
    """Its system prompt."""
    location: str
    """Its file, as `view` takes it."""
    scope: SkillScope = "project"
    problems: tuple[str, ...] = ()
    """What of the file could not be taken as it is written."""


@dataclass(frozen=True, slots=True)
class CustomAgents:
    """All that was found, by name."""

    active: tuple[CustomAgent, ...] = ()
    faulty: tuple[FaultyFile, ...] = ()
    overrides: tuple[Override, ...] = ()
    is_cut: bool = False
    """Whether there were more files than are read."""

    def named(self, name: str) -> CustomAgent | None:
        """Return the agent `name`, if there is one."""
        return next((agent for agent in self.active if agent.name == name), None)

    @property
    def listed(self) -> tuple[ListedAgent, ...]:
        """Return what the model sees, by name; the project's are the first to have no room."""
        return within_room(
            (
                ListedAgent(
                    agent.name, clipped(agent.description, MAX_LISTED_DESCRIPTION), agent.location
                )
                for agent in sorted(self.active, key=lambda agent: agent.scope == "project")
            ),
            MAX_LISTED_BYTES,
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """Return what the user should hear of, a sentence each."""
        notices = [
            f"The agent {faulty.location} cannot be used: {faulty.faults[0]}."
            for faulty in self.faulty
        ]
        notices += [
            f"The agent {agent.location}: {agent.problems[0]}."
            for agent in self.active
            if agent.problems
        ]
        notices += [
            f"The agent {override.name} is the one in {override.used}, not {override.unused}."
            for override in self.overrides
        ]
        if (unlisted := len(self.active) - len(self.listed)) or self.is_cut:
            what = f"{unlisted} agents" if unlisted else "Some agents"
            notices.append(f"{what} are more than the agent is told of.")
        return first_notices(notices, "agents")


class AgentFiles:
    """Reads the custom agents of one project, again before every request.

    For one thread at a time.
    """

    def __init__(
        self,
        directories: Sequence[SkillDirectory],
        disk: DiskCache,
        *,
        cwd: Path,
        project_root: Path,
    ) -> None:
        """Prepare to read.

        Args:
            directories: where to look, the ones that count most last.
            disk: remembers what was read.
            cwd: the folder, a real path.
            project_root: the project's root, a real path.
        """
        self._directories = tuple(directories)
        self._disk = disk
        self._files = HeadedFiles(disk, cwd=cwd, project_root=project_root)
        self._parsed: dict[tuple[str, str], AgentText | tuple[str, ...]] = {}
        self._agents = Remembered(disk, self._read)

    def read(self) -> CustomAgents:
        """Return the agents as they are now. Blocks for as long as the disk takes."""
        return self._agents.value()

    def _read(self) -> CustomAgents:
        by_name: dict[str, CustomAgent] = {}
        faulty: list[FaultyFile] = []
        overrides: list[Override] = []
        found = self._found()
        for file, directory in found[:MAX_AGENTS]:
            agent = self._read_one(file, directory)
            if isinstance(agent, FaultyFile):
                faulty.append(agent)
                continue
            if former := by_name.get(agent.name):
                overrides.append(Override(agent.name, agent.location, former.location))
            by_name[agent.name] = agent
        return CustomAgents(
            active=tuple(by_name[name] for name in sorted(by_name)),
            faulty=tuple(faulty),
            overrides=tuple(overrides),
            is_cut=len(found) > MAX_AGENTS,
        )

    def _found(self) -> list[tuple[FoundFile, SkillDirectory]]:
        """Return the files in all directories, each once, one more than are read at most."""
        found: dict[Path, tuple[FoundFile, SkillDirectory]] = {}
        for directory in self._directories:
            bounds = self._files.bounds(directory.scope)
            if not bounds.admit(Path(os.path.realpath(directory.path))):
                continue
            for file in files_in(self._disk, directory.path):
                if is_agent_file(file.path.name) and len(found) <= MAX_AGENTS:
                    found.setdefault(file.real, (file, directory))
        return list(found.values())

    def _read_one(self, file: FoundFile, directory: SkillDirectory) -> CustomAgent | FaultyFile:
        found = self._files.read(file, directory.scope, max_bytes=MAX_AGENT_BYTES)
        if isinstance(found, FaultyFile):
            return found
        parsed = self._parse(found.text, file.path.name.removesuffix(SUFFIX))
        if isinstance(parsed, tuple):
            return FaultyFile(found.location, parsed)
        return CustomAgent(
            name=parsed.name,
            description=parsed.description,
            tools=parsed.tools,
            model=parsed.model,
            text=parsed.body,
            location=found.location,
            scope=directory.scope,
            problems=parsed.problems,
        )

    def _parse(self, text: str, stem: str) -> AgentText | tuple[str, ...]:
        """Return what `text` says, parsing it the first time only."""
        key = (text, stem)
        if key not in self._parsed:
            if len(self._parsed) >= 2 * MAX_AGENTS:
                self._parsed.clear()
            self._parsed[key] = parse_agent(text, stem=stem)
        return self._parsed[key]


def is_agent_file(name: str) -> bool:
    """Return whether a file called `name` is meant to be an agent, and not to be about some."""
    return name.endswith(SUFFIX) and not name.startswith(".") and name.lower() != "readme.md"
