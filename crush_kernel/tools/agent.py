"""`agent`: give a task to a sub-agent, which works in a conversation of its own."""

from collections.abc import Callable
from typing import Protocol

from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.prompt.agents import CustomAgent, CustomAgents
from crush_kernel.prompt.system import SystemPrompt
from crush_kernel.tools.base import (
    AnyTool,
    Arguments,
    Delegation,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.subagentresult import output_of
from crush_kernel.wording import clipped

TASK = "task"
"""The agent that comes with the program."""

TASK_TOOLS = frozenset(
    (
        *("glob", "grep", "ls", "view", "sourcegraph"),
        *("lsp_symbols", "lsp_definition", "lsp_references", "lsp_call_hierarchy"),
    )
)
"""What it has: all that looks and changes nothing."""

MAX_SHOWN_CHARACTERS = 100
MAX_NAMED = 10
"""Agents and tools that are named in a message."""


class AgentArguments(Arguments):
    """What to have done, and by whom."""

    prompt: str = Field(
        description="The whole task: what to find out, where to look, what to report."
    )
    agent: str = Field(
        default=TASK, description="Who does it: `task`, or one of the listed agents."
    )
    description: str = Field(default="", description="The task in three to six words, for people.")


class AgentPrompts(Protocol):
    """Knows custom agents, and what sub-agents read first."""

    async def found_agents(self) -> CustomAgents:
        """Return the custom agents as they are now."""
        ...

    async def for_subagent(self, instructions: str = "") -> SystemPrompt:
        """Return the system prompt of one, with `instructions` if it is a custom one."""
        ...


def agent_tool(
    tools: Callable[[], tuple[AnyTool, ...]], prompts: AgentPrompts
) -> Tool[AgentArguments]:
    """Return the tool.

    Args:
        tools: makes all that sub-agents may have, apart from those of the agent and of each
            other: what one has read another one has not.
        prompts: of sub-agents.
    """

    async def run(arguments: AgentArguments, context: ToolContext) -> ToolOutput:
        prompt, name = arguments.prompt.strip(), arguments.agent.strip() or TASK
        if not prompt:
            raise ToolError("The prompt is empty. Write the whole task.")
        custom = None if name == TASK else await _custom(name, prompts)
        system = await prompts.for_subagent("" if custom is None else custom.text)
        available = {tool.name: tool for tool in tools()}
        wanted = _wanted(custom, available)
        missing = [tool for tool in wanted if tool not in available]
        done = await context.delegate(
            Delegation(
                agent=name,
                prompt=prompt,
                system=system.text,
                reminder=system.reminder,
                tools=tuple(available[tool] for tool in wanted if tool in available),
                model="large" if custom is None else custom.model,
            )
        )
        return output_of(done, who=f"The agent {name}", notes=_notes(missing))

    return Tool(
        name="agent",
        description=description_of("agent"),
        arguments=AgentArguments,
        run=run,
        describe=_describe,
        is_read_only=True,
        is_harmless=True,
    )


async def _custom(name: str, prompts: AgentPrompts) -> CustomAgent:
    found = await prompts.found_agents()
    agent = found.named(name)
    if agent is None:
        names = ", ".join((TASK, *(each.name for each in found.active[:MAX_NAMED])))
        shown = printable(name[:MAX_SHOWN_CHARACTERS])
        raise ToolError(f"There is no agent '{shown}'. There are: {names}.")
    return agent


def _wanted(custom: CustomAgent | None, available: dict[str, AnyTool]) -> tuple[str, ...]:
    """Return the names of the tools that an agent is to have."""
    if custom is None or custom.tools is None:
        return tuple(name for name in available if name in TASK_TOOLS)
    return custom.tools


def _notes(missing: list[str]) -> tuple[str, ...]:
    if not missing:
        return ()
    names = ", ".join(missing[:MAX_NAMED])
    return (f"Its file gives it tools that a sub-agent does not have here: {names}.",)


def _describe(arguments: AgentArguments) -> str:
    first = next((line for line in arguments.prompt.splitlines() if line.strip()), "")
    words = " ".join((arguments.description or first).split())
    shown = clipped(words, MAX_SHOWN_CHARACTERS)
    return printable(f"{arguments.agent.strip() or TASK} · {shown}")
