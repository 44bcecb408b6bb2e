"""The tools of the agent: built once, from what they share."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from crush_kernel.prompt.prompts import Prompts
from crush_kernel.prompt.skills import SkillFiles
from crush_kernel.shell.jobs import Jobs
from crush_kernel.tools.agent import agent_tool
from crush_kernel.tools.agentic_fetch import agentic_fetch_tool
from crush_kernel.tools.base import AnyTool, erase
from crush_kernel.tools.bash import NoWatch, Watch, bash_tool
from crush_kernel.tools.edit import edit_tool
from crush_kernel.tools.filechange import Files, OpenNotebook
from crush_kernel.tools.glob import glob_tool
from crush_kernel.tools.grep import grep_tool
from crush_kernel.tools.job_kill import job_kill_tool
from crush_kernel.tools.job_output import job_output_tool
from crush_kernel.tools.ls import ls_tool
from crush_kernel.tools.multiedit import multiedit_tool
from crush_kernel.tools.network import NetworkTools
from crush_kernel.tools.notebook.openpage import NotebookDesk
from crush_kernel.tools.notebook_edit import notebook_edit_tool
from crush_kernel.tools.paths import PathPolicy
from crush_kernel.tools.present_plan import Modes, present_plan_tool
from crush_kernel.tools.question import QuestionDesk, question_tool
from crush_kernel.tools.todos import todos_tool
from crush_kernel.tools.tracker import ReadTracker
from crush_kernel.tools.view import view_tool
from crush_kernel.tools.write import write_tool


@dataclass(frozen=True, slots=True)
class SubAgentParts:
    """What the tools need that start sub-agents."""

    prompts: Prompts
    """What sub-agents read first."""
    data_directory: Path
    """Where the folders are made of those that read the web."""


@dataclass(frozen=True, slots=True)
class ToolBelt:
    """What the tools share, and the tools made of it."""

    paths: PathPolicy
    jobs: Jobs
    network: NetworkTools
    questions: QuestionDesk
    skills: SkillFiles
    accepts: Callable[[str], bool]
    """Whether the model in use takes files of a media type."""
    notebook: OpenNotebook
    """Tells where the notebook is whose cells run."""
    desk: NotebookDesk = field(default_factory=NotebookDesk)
    """Where its page is."""
    tracker: ReadTracker = field(default_factory=ReadTracker)
    watch: Watch = field(default_factory=NoWatch)
    """Finds out what commands change."""
    about: tuple[AnyTool, ...] = ()
    """What tells about Crush itself."""
    subagents: SubAgentParts | None = None
    """Without it nothing starts any."""
    modes: Modes | None = None
    """Has the permission mode, which an approved plan changes; without it none is presented."""
    disabled: frozenset[str] = frozenset()
    """Names of tools that nobody is given."""

    def for_agent(self) -> tuple[AnyTool, ...]:
        """Return the tools of the agent itself."""
        return (*self.for_subagent(), *self._enabled(self._own()))

    def for_subagent(self) -> tuple[AnyTool, ...]:
        """Return all that a sub-agent may have of them."""
        return self._enabled((*self._files(), *self._shell(), *self._others()))

    def _enabled(self, tools: tuple[AnyTool, ...]) -> tuple[AnyTool, ...]:
        return tuple(tool for tool in tools if tool.name not in self.disabled)

    def _files(self) -> tuple[AnyTool, ...]:
        paths = self.paths
        files = Files(paths, self.tracker, notebook=self.notebook, desk=self.desk)
        return (
            erase(view_tool(files, accepts=self.accepts, skills=self.skills)),
            erase(ls_tool(paths)),
            erase(glob_tool(paths)),
            erase(grep_tool(paths, tracker=self.tracker)),
            erase(edit_tool(files)),
            erase(multiedit_tool(files)),
            erase(write_tool(files)),
            erase(notebook_edit_tool(files)),
        )

    def _shell(self) -> tuple[AnyTool, ...]:
        return (
            erase(bash_tool(self.jobs, self.paths, self.watch, notebook=self.notebook)),
            erase(job_output_tool(self.jobs)),
            erase(job_kill_tool(self.jobs)),
        )

    def _others(self) -> tuple[AnyTool, ...]:
        return (
            *self.network.for_agent(self.paths, self.notebook),
            *self.about,
        )

    def _own(self) -> tuple[AnyTool, ...]:
        """Return what the agent shares with no sub-agent."""
        own: tuple[AnyTool, ...] = (erase(todos_tool()), erase(question_tool(self.questions)))
        if self.modes is not None:
            own = (*own, erase(present_plan_tool(self.questions, self.modes)))
        parts = self.subagents
        if parts is None:
            return own

        def fresh() -> tuple[AnyTool, ...]:
            # Apart from the agent's: it may not edit what only a sub-agent has read.
            return replace(self, tracker=ReadTracker()).for_subagent()

        return (
            *own,
            erase(agent_tool(fresh, parts.prompts)),
            erase(agentic_fetch_tool(self.network, parts.data_directory, parts.prompts.for_reader)),
        )
