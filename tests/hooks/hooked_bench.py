"""A turn with hooks that say what a test wants, and that keep what they were asked."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from crush_kernel.agent.agent import Agent, Watcher
from crush_kernel.agent.events import Event, HookTold, PermissionSettled
from crush_kernel.config.hooks import Hook, HookEvent
from crush_kernel.history.conversation import CellRun
from crush_kernel.hooks.matcher import MatchedHook
from crush_kernel.hooks.outcome import Outcome
from crush_kernel.hooks.payload import ToolAnswer, ToolUse
from crush_kernel.hooks.verdict import SILENCE, HookRun, Verdict, verdict
from crush_kernel.messages import JsonObject, Message, Text, ToolResult
from crush_kernel.permissions.gate import Answer, Gate
from crush_kernel.prompt.system import PromptPart, SystemPrompt
from crush_kernel.providers.base import ModelInfo
from crush_kernel.tools.base import AnyTool
from tests.agent.subagent_bench import Openings, ScriptedAsker
from tests.fakes.model import FakeModel, Item

Said = Outcome | Callable[[ToolUse], Awaitable[Outcome]] | None


@dataclass
class ScriptedHooks:
    """One hook for each event; what it says of calls depends on the tool."""

    pre: dict[str, Said] = field(default_factory=dict[str, Said])
    post: dict[str, Said] = field(default_factory=dict[str, Said])
    prompts: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    """What it says of what the user says."""
    stop: list[Outcome] = field(default_factory=list[Outcome])
    """What it says of one end after the other, then nothing."""
    seen: list[ToolUse] = field(default_factory=list[ToolUse])
    answers: list[tuple[ToolUse, ToolAnswer]] = field(
        default_factory=list[tuple[ToolUse, ToolAnswer]]
    )
    again: list[bool] = field(default_factory=list[bool])

    def has_any_for(self, tool: str) -> bool:
        return tool in self.pre or tool in self.post

    async def before(self, use: ToolUse) -> Verdict:
        self.seen.append(use)
        return await self._say("PreToolUse", self.pre.get(use.tool), use, use.input)

    async def after(self, use: ToolUse, answer: ToolAnswer) -> Verdict:
        self.answers.append((use, answer))
        return await self._say("PostToolUse", self.post.get(use.tool), use, None)

    async def prompted(self, text: str) -> Verdict:
        await anyio.lowlevel.checkpoint()
        said = self.prompts.get(text)
        return SILENCE if said is None else _verdict("UserPromptSubmit", said, None)

    async def stopping(self, *, is_again: bool) -> Verdict:
        await anyio.lowlevel.checkpoint()
        self.again.append(is_again)
        return _verdict("Stop", self.stop.pop(0), None) if self.stop else SILENCE

    async def _say(
        self, event: HookEvent, said: Said, use: ToolUse, given: JsonObject | None
    ) -> Verdict:
        await anyio.lowlevel.checkpoint()
        if said is None:
            return SILENCE
        return _verdict(event, said if isinstance(said, Outcome) else await said(use), given)


def _verdict(event: HookEvent, said: Outcome, given: JsonObject | None) -> Verdict:
    return verdict((HookRun(MatchedHook(Hook(event, "h.sh"), "x"), said),), given)


@dataclass
class Bench:
    """A turn, and what it told."""

    agent: Agent
    model: FakeModel
    asker: ScriptedAsker
    hooks: ScriptedHooks
    events: list[Event] = field(default_factory=list[Event])

    async def run(self) -> None:
        with anyio.fail_after(10):
            self.agent.conversation.begin(CellRun("a"))
            await self.agent.prompt(
                Message("user", (Text("go"),)),
                model=self.model,
                watcher=Watcher(self.events.append, self.asker),
            )

    @property
    def results(self) -> list[ToolResult]:
        said = [part for message in self.agent.conversation.running for part in message.parts]
        return [part for part in said if isinstance(part, ToolResult)]

    @property
    def told(self) -> list[str]:
        """The lines that people are told of hooks."""
        return [event.text for event in self.events if isinstance(event, HookTold)]

    @property
    def settled(self) -> list[PermissionSettled]:
        return [event for event in self.events if isinstance(event, PermissionSettled)]

    def hook_facts(self, key: str = "hook") -> JsonObject:
        """What the first result records of hooks."""
        facts = self.results[0].metadata[key]
        assert isinstance(facts, dict)
        return facts


def hooked(
    hooks: ScriptedHooks,
    replies: list[list[Item]],
    *tools: AnyTool,
    helper: list[list[Item]] | None = None,
    answers: list[Answer] | None = None,
    gate: Gate | None = None,
) -> Bench:
    """Return a turn of a model that says `replies`, its sub-agents saying `helper`."""

    async def system_prompt() -> SystemPrompt:
        return SystemPrompt((PromptPart("instructions", "be good"),))

    agent = Agent(
        tools=tools,
        gate=gate or Gate(),
        system_prompt=system_prompt,
        open_model=Openings([FakeModel(helper or [], info=ModelInfo("fake", "small"))]),
        hooks=hooks,
    )
    model = FakeModel(replies, info=ModelInfo("fake", "big"))
    return Bench(agent, model, ScriptedAsker(answers or []), hooks)
