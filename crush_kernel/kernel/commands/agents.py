"""`/agents`: who the agent can give tasks to, and what is wrong with the files of others.

It runs on the engine thread.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from crush_kernel.errors import CommandError
from crush_kernel.kernel.commands.call import CommandCall
from crush_kernel.kernel.plaintext import code_span, escape
from crush_kernel.kernel.render import short
from crush_kernel.prompt.agents import CustomAgent, CustomAgents

_BUILT_IN: Final = (
    "| `task` | looks into the project and answers a question | reading ones | large | built-in |",
    "| web reader | reads the web for `agentic_fetch` | searching ones | small | built-in |",
)


async def agents(call: CommandCall) -> str:
    """Show all agents, the built-in ones first."""
    if call.arguments:
        raise CommandError(
            f"/agents takes nothing, and {call.arguments!r} came with it.",
            hint=(
                "Write /agents alone. To have an agent do something, say so in a cell: "
                f"Have {call.arguments.split()[0]} do it."
            ),
        )
    return "\n\n".join(sections(await call.runtime.prompts.found_agents()))


def sections(found: CustomAgents) -> Iterator[str]:
    """Yield the parts of the page, as Markdown."""
    rows = "\n".join((*_BUILT_IN, *map(_row, found.active)))
    yield f"| agent | for | tools | model | from |\n|---|---|---|---|---|\n{rows}"
    if problems := list(_problems(found)):
        yield "Something is wrong with these:\n\n" + "\n".join(problems)
    if found.overrides:
        yield "\n".join(_overrides(found))
    if found.is_cut:
        yield "There are more files than are read; some agents may be missing."
    yield (
        "The agent gives a task to one of them when it fits, or when you say so. Your own are "
        "files such as `.crush/agents/reviewer.md`: a header with `description`, and if you like "
        "`tools` and `model`, and below it what the agent is to know. Permissions are asked as "
        "always."
    )


def _row(agent: CustomAgent) -> str:
    tools = (
        "reading ones" if agent.tools is None else ", ".join(map(code_span, agent.tools)) or "none"
    )
    about = escape(short(agent.description))
    model = code_span(agent.model) if "/" in agent.model else agent.model
    return (
        f"| {code_span(agent.name)} | {about} | {tools} | {model} | {code_span(agent.location)} |"
    )


def _problems(found: CustomAgents) -> Iterator[str]:
    for faulty in found.faulty:
        text = escape("; ".join(faulty.faults))
        yield f"- {code_span(faulty.location)} cannot be used: {text}"
    for agent in found.active:
        if agent.problems:
            yield f"- {code_span(agent.location)}: {escape('; '.join(agent.problems))}"


def _overrides(found: CustomAgents) -> Iterator[str]:
    yield "Of several agents with one name the nearest counts:\n"
    for name, group in groupby(
        sorted(found.overrides, key=lambda each: each.name), key=lambda each: each.name
    ):
        unused = ", ".join(code_span(each.unused) for each in group)
        agent = found.named(name)
        used = code_span(agent.location) if agent is not None else ""
        yield f"- {escape(name)}: {used}, not {unused}"
