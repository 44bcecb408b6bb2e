"""An agent with a tool that delegates, and models by the part that they play."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from crush_kernel.agent.agent import Agent, Watcher
from crush_kernel.agent.events import Event
from crush_kernel.agent.steps import Limits
from crush_kernel.errors import CommandError
from crush_kernel.history.conversation import CellRun, Conversation
from crush_kernel.history.subagentrecord import SubagentRecord, subagent_of
from crush_kernel.messages import Message, Text, ToolResult
from crush_kernel.permissions.decision import Bounds, no_bounds
from crush_kernel.permissions.gate import Answer, Asker, Gate
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.prompt.system import PromptPart, SystemPrompt
from crush_kernel.providers.base import Model, ModelInfo
from crush_kernel.tools.base import AnyTool, Delegation, ToolContext, ToolOutput
from crush_kernel.tools.subagentresult import output_of
from tests.fakes.model import AnsweringModel, FakeModel, Item
from tests.fakes.tools import EchoArguments, tool

BIG = ModelInfo("fake", "big", input_price=10.0, output_price=10.0)
SMALL = ModelInfo("fake", "small", input_price=1.0, output_price=1.0)


@dataclass
class ScriptedAsker:
    """Gives its answers one after the other and keeps the questions."""

    answers: list[Answer] = field(default_factory=list[Answer])
    asked: list[PermissionRequest] = field(default_factory=list[PermissionRequest])

    async def ask(self, request: PermissionRequest) -> Answer:
        self.asked.append(request)
        return self.answers.pop(0)


@dataclass
class Openings:
    """Opens models for sub-agents, and counts those that are open."""

    models: list[FakeModel | AnsweringModel]
    """For one sub-agent after the other, the last for all that follow."""
    asked: list[str] = field(default_factory=list[str])
    open: int = 0

    @asynccontextmanager
    async def __call__(self, name: str, large: ModelInfo) -> AsyncGenerator[Model]:
        if name == "unknown/one":
            raise CommandError("There is no such model.")
        assert large.label == BIG.label
        self.asked.append(name)
        self.open += 1
        try:
            yield self.models[min(len(self.asked), len(self.models)) - 1]
        finally:
            self.open -= 1


def delegating(
    *tools: AnyTool, model: str = "large", bounds: Bounds = no_bounds, name: str = "delegate"
) -> AnyTool:
    """Gives its text to a sub-agent that has `tools`."""

    async def run(arguments: EchoArguments, context: ToolContext) -> ToolOutput:
        task = Delegation(
            agent="helper",
            prompt=arguments.text,
            system="Help.",
            tools=tools,
            model=model,
            bounds=bounds,
        )
        return output_of(await context.delegate(task), who="The helper")

    return tool(name, run, is_read_only=True)


@dataclass
class Bench:
    """A turn, what it told, and who took part in it."""

    agent: Agent
    model: FakeModel
    openings: Openings
    asker: ScriptedAsker
    """Who is asked, as long as there is somebody."""
    events: list[Event] = field(default_factory=list[Event])

    async def run(self, text: str = "go", *, asker: Asker | None = None) -> None:
        with anyio.fail_after(5):
            self.agent.conversation.begin(CellRun("a"))
            await self.agent.prompt(
                Message("user", (Text(text),)),
                model=self.model,
                watcher=Watcher(self.events.append, asker or self.asker),
            )

    def results(self) -> list[ToolResult]:
        return [
            part
            for message in self.agent.conversation.running
            for part in message.parts
            if isinstance(part, ToolResult)
        ]

    def record(self) -> SubagentRecord:
        """Return what the first result tells of its sub-agent."""
        record = subagent_of(self.results()[0])
        assert record is not None
        return record

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


def bench(
    replies: list[list[Item]],
    *helpers: list[list[Item]],
    tools: tuple[AnyTool, ...],
    answers: list[Answer] | None = None,
    limits: Limits | None = None,
    gate: Gate | None = None,
    conversation: Conversation | None = None,
) -> Bench:
    """Return a turn of a model that says `replies`, with a sub-agent for each of `helpers`."""

    async def system_prompt() -> SystemPrompt:
        return SystemPrompt((PromptPart("instructions", "be good"),))

    openings = Openings([FakeModel(each, info=SMALL) for each in helpers])
    agent = Agent(
        tools=tools,
        gate=gate or Gate(),
        system_prompt=system_prompt,
        conversation=conversation,
        limits=limits,
        open_model=openings,
    )
    return Bench(agent, FakeModel(replies, info=BIG), openings, ScriptedAsker(answers or []))
