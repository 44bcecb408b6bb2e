"""`agent`: who does a task with which tools, and what the model is told of it."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from crush_kernel.agent.subagents import NEVER_HANDED_OVER
from crush_kernel.agent.toolbelt import SubAgentParts, ToolBelt
from crush_kernel.config.settings import read_settings
from crush_kernel.permissions.gate import Gate
from crush_kernel.prompt.agents import CustomAgent, CustomAgents
from crush_kernel.prompt.prompts import open_prompts
from crush_kernel.prompt.system import PromptPart, SystemPrompt
from crush_kernel.tools.agent import AgentArguments, agent_tool
from crush_kernel.tools.base import AnyTool, Delegated, ToolContext, ToolOutput, erase
from crush_kernel.tools.subagentresult import MAX_ACTIVITY_LINES, output_of
from tests.agent.subagent_bench import Bench, bench
from tests.fakes.belt import ENVIRON, by_name, tool_belt
from tests.fakes.model import Item, calls, says
from tests.fakes.tools import EchoArguments, echo, tool

pytestmark = pytest.mark.anyio


def custom(
    name: str = "reviewer", *, tools: tuple[str, ...] | None = None, model: str = "large"
) -> CustomAgent:
    return CustomAgent(
        name=name,
        description="Reviews.",
        tools=tools,
        model=model,
        text="Review with care.",
        location=f".crush/agents/{name}.md",
    )


@dataclass
class FakePrompts:
    agents: tuple[CustomAgent, ...] = ()
    asked: list[str] = field(default_factory=list[str])

    async def found_agents(self) -> CustomAgents:
        await anyio.lowlevel.checkpoint()
        return CustomAgents(self.agents)

    async def for_subagent(self, instructions: str = "") -> SystemPrompt:
        await anyio.lowlevel.checkpoint()
        self.asked.append(instructions)
        text = instructions or "Find things."
        return SystemPrompt((PromptPart("instructions", text),), "It is Friday.")


NAMES = ("view", "grep", "bash", "edit", "sourcegraph")


def turn_of(
    *helper: list[Item],
    agents: tuple[CustomAgent, ...] = (),
    tools: tuple[AnyTool, ...] = tuple(map(echo, NAMES)),
    asked: Mapping[str, str | None] | None = None,
) -> Bench:
    arguments = {"prompt": "Find it.", **(asked or {})}
    return bench(
        [calls(("p1", "agent", json.dumps(arguments))), says("done")],
        [*helper, says("In a.py.")],
        tools=(erase(agent_tool(lambda: tools, FakePrompts(agents))),),
    )


async def test_the_task_agent_reads_and_changes_nothing() -> None:
    turn = turn_of()
    await turn.run()
    (result,) = turn.results()
    assert (result.content, result.metadata["summary"]) == ("In a.py.", "0 calls")
    (request,) = turn.openings.models[0].requests
    assert [tool.name for tool in request.tools] == ["grep", "sourcegraph", "view"]
    assert (request.system, request.reminder) == ("Find things.", "It is Friday.")
    assert (turn.record().name, turn.openings.asked) == ("task", ["large"])


@pytest.mark.parametrize(
    ("tools", "names", "note"),
    [
        pytest.param(None, ["grep", "sourcegraph", "view"], "", id="as the task agent"),
        pytest.param((), [], "", id="none"),
        pytest.param(("bash", "edit"), ["bash", "edit"], "", id="those it names"),
        pytest.param(("view", "web_search"), ["view"], ": web_search.", id="one that is not there"),
        pytest.param(("view", "todos"), ["view"], ": todos.", id="one that is the agent's own"),
    ],
)
async def test_a_custom_agent_has_the_tools_that_its_file_names(
    tools: tuple[str, ...] | None, names: list[str], note: str
) -> None:
    agent = custom(tools=tools, model="small")
    turn = turn_of(agents=(agent,), asked={"agent": "reviewer"})
    await turn.run()
    (request,) = turn.openings.models[0].requests
    assert [tool.name for tool in request.tools] == names
    assert request.system == "Review with care."
    assert (turn.record().name, turn.openings.asked) == ("reviewer", ["small"])
    content = turn.results()[0].content
    assert content.startswith("In a.py.")
    assert note in content


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param({"prompt": " \n"}, "The prompt is empty.", id="empty prompt"),
        pytest.param({"agent": "nobody"}, "There are: task, reviewer.", id="unknown agent"),
        pytest.param({"agent": "x\u202ey" * 900}, "There is no agent", id="a long name"),
        pytest.param({"prompt": None}, "prompt", id="no prompt"),
    ],
)
async def test_a_call_that_makes_no_sense_starts_nobody(
    arguments: dict[str, str | None], said: str
) -> None:
    turn = turn_of(agents=(custom(),), asked=arguments)
    await turn.run()
    (result,) = turn.results()
    assert result.is_error
    assert said in result.content
    assert "\u202e" not in result.content
    assert len(result.content) < 2_000
    assert turn.openings.asked == []


async def test_tasks_of_one_reply_are_done_together() -> None:
    arrived: list[str] = []
    everyone = anyio.Event()

    async def meet(arguments: EchoArguments, _: ToolContext) -> ToolOutput:
        arrived.append(arguments.text)
        if len(arrived) == 2:
            everyone.set()
        await everyone.wait()
        return ToolOutput("met")

    helper = [calls(("c1", "view", '{"text": "x"}')), says("ok")]
    delegate = erase(agent_tool(lambda: (tool("view", meet),), FakePrompts()))
    both = calls(*((f"p{n}", "agent", '{"prompt": "go"}') for n in range(2)))
    turn = bench([both, says("done")], helper, helper, tools=(delegate,))
    await turn.run()
    assert [result.content for result in turn.results()] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        pytest.param({"prompt": "\n  Find it.\nNow."}, "task · Find it.", id="first line"),
        pytest.param(
            {"prompt": "x", "description": "look for it"}, "task · look for it", id="in short"
        ),
        pytest.param({"prompt": "a\x1bb", "agent": "r"}, "r · a\\x1bb", id="who does it"),
        pytest.param({"prompt": "x" * 500}, "task · " + "x" * 99 + "…", id="cut"),
    ],
)
def test_a_call_is_described_on_one_line(arguments: dict[str, str], shown: str) -> None:
    made = agent_tool(tuple, FakePrompts())
    assert made.describe(AgentArguments(**arguments)) == shown


DONE = Delegated(text="It is so.", model="fake/m", tool_calls=1)


@pytest.mark.parametrize(
    ("done", "text", "is_error"),
    [
        pytest.param(DONE, "It is so.", False, id="done"),
        pytest.param(
            Delegated("", "fake/m"), "The helper ended without an answer.", True, id="without words"
        ),
        pytest.param(
            Delegated("I look.", "fake/m", failure="No key.", activity=("view a.py · 3 lines",)),
            "The helper did not finish: No key.\n\nUntil then it had said:\nI look.\n\n"
            "It had called:\n- view a.py · 3 lines",
            True,
            id="failed on the way",
        ),
    ],
)
def test_what_the_model_reads_of_a_delegation(
    done: Delegated, text: str, *, is_error: bool
) -> None:
    output = output_of(done, who="The helper")
    assert (output.text, output.is_error) == (text, is_error)


def test_what_the_model_reads_of_a_delegation_is_bounded() -> None:
    activity = tuple(f"view {number}" for number in range(1_000))
    failed = output_of(Delegated("", "m", failure="No.", activity=activity), who="It")
    assert failed.text.count("\n- ") == MAX_ACTIVITY_LINES
    assert len(output_of(Delegated("word " * 90_000, "m"), who="It").text) < 31_000


async def test_what_a_sub_agent_has_read_the_agent_has_not(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    edit = {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
    async with runtime_belt(tmp_path) as belt:
        turn = bench(
            [
                calls(("p1", "agent", '{"prompt": "Read a.txt."}')),
                calls(("e1", "edit", json.dumps(edit))),
                says("done"),
            ],
            [calls(("c1", "view", '{"file_path": "a.txt"}')), says("It says one.")],
            tools=belt.for_agent(),
            gate=Gate("yolo"),
        )
        await turn.run()
    read, changed = turn.results()
    assert read.content == "It says one."
    assert changed.is_error
    assert "view" in changed.content
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "one\n"


@asynccontextmanager
async def runtime_belt(folder: Path) -> AsyncGenerator[ToolBelt]:
    """Give the tools of a project with those that start sub-agents."""
    async with tool_belt(folder) as belt, anyio.create_task_group() as tasks:
        prompts = open_prompts(read_settings(ENVIRON), cwd=folder, project_root=folder, tasks=tasks)
        yield replace(belt, subagents=SubAgentParts(prompts, folder / ".crush"))
        tasks.cancel_scope.cancel()


async def test_the_belt_gives_sub_agents_all_but_what_is_the_agents_own(tmp_path: Path) -> None:
    async with runtime_belt(tmp_path) as belt:
        own = by_name(belt.for_agent()).keys() - by_name(belt.for_subagent()).keys()
    assert own == NEVER_HANDED_OVER
