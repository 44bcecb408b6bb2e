"""The agent: owns a conversation and runs its turns, one at a time."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from crush_kernel.agent.callhooks import TurnHooks
from crush_kernel.agent.contents import Contents
from crush_kernel.agent.decisionfacts import decision_facts
from crush_kernel.agent.dispatch import Dispatcher
from crush_kernel.agent.events import Emit, PermissionSettled, TurnEnd, TurnFinished
from crush_kernel.agent.loop import TurnLoop
from crush_kernel.agent.meter import Meter
from crush_kernel.agent.permitting import permission
from crush_kernel.agent.requests import Requests
from crush_kernel.agent.steering import Steering
from crush_kernel.agent.steps import Limits
from crush_kernel.agent.subagents import OpenModel, SubAgents
from crush_kernel.agent.toolsizes import spec_of, tokens_of_tools
from crush_kernel.agent.window import Window
from crush_kernel.errors import CommandError
from crush_kernel.history.conversation import (
    Conversation,
    context_tokens,
    count_calls,
)
from crush_kernel.history.estimate import Gauge
from crush_kernel.history.repairer import Repairer
from crush_kernel.history.summary import is_summary
from crush_kernel.history.todos import TodoReader, is_open, todo_lines, todo_reminder
from crush_kernel.history.turn import Turn
from crush_kernel.messages import Message, Text, ToolResult
from crush_kernel.permissions.gate import Asker, Gate
from crush_kernel.prompt.system import SystemPrompt
from crush_kernel.providers.base import Model, ModelInfo, ModelRequest
from crush_kernel.tools.base import AnyTool, Permit


@dataclass(frozen=True, slots=True)
class Watcher:
    """The other side of a turn: who is told, and who is asked."""

    emit: Emit
    asker: Asker


@dataclass(frozen=True, slots=True)
class TurnKeeper:
    """Keeps what happens to the calls of the running turn in its conversation."""

    conversation: Conversation

    def answer(self, result: ToolResult) -> None:
        """Keep the result of a call whose fellows are still running."""
        self.conversation.answer(result)

    def decide(self, event: PermissionSettled) -> None:
        """Keep by what right something was done, or refused."""
        self.conversation.decide(decision_facts(event))

    def keep_version(self, path: Path, before: bytes | None, after: bytes | None) -> None:
        """Keep a file as it was and as it will be. Any thread."""
        self.conversation.keep_version(path, before, after)


class Agent:
    """Runs prompts against a model with tools; the model may be exchanged between turns."""

    def __init__(
        self,
        *,
        tools: tuple[AnyTool, ...],
        gate: Gate,
        system_prompt: Callable[[], Awaitable[SystemPrompt]],
        conversation: Conversation | None = None,
        limits: Limits | None = None,
        summarizes: bool = True,
        open_model: OpenModel | None = None,
        hooks: TurnHooks | None = None,
    ) -> None:
        """Begin without a turn.

        Args:
            tools: all that the model may call.
            gate: settles what a call may do.
            system_prompt: what the model reads first, asked for before each request.
            conversation: owned by the agent from now on.
            limits: where a turn ends even if the model would go on.
            summarizes: whether a conversation that fills the window is summarized unasked.
            open_model: opens the models of sub-agents; without it they ask that of the turn.
            hooks: are asked about calls, sub-agents' included, and about the ends of turns.
        """
        self.conversation = conversation or Conversation()
        self.gate = gate
        self.steering = Steering()
        self._tools = {tool.name: tool for tool in tools}
        self._specs = tuple(spec_of(self._tools[name]) for name in sorted(self._tools))
        self._tool_tokens = tokens_of_tools(self._specs)
        self._system_prompt = system_prompt
        self._limits = limits or Limits()
        self._summarizes = summarizes
        self._open_model = open_model
        self._hooks = hooks
        self._dispatcher: Dispatcher | None = None
        self._repairer = Repairer()
        self._gauge = Gauge()
        self._explained: set[str] = set()
        self._todos = TodoReader()

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """The tools, by name in the order in which the model reads them."""
        return tuple(self._tools[spec.name] for spec in self._specs)

    async def prompt(self, message: Message, *, model: Model, watcher: Watcher) -> None:
        """Say `message` in the turn that was begun and run it; the last event is `TurnFinished`.

        Raises:
            CrushKernelError: the turn failed; its message is for the user.

        Cancelling ends the turn within its clean-up times: running calls are stopped, the
        partial reply is kept, open calls are answered as interrupted. What the user has said
        to the turn is kept in any case.
        """
        self.conversation.append(message)
        meter = Meter(self.conversation)
        self._dispatcher = Dispatcher(
            tools=self._tools,
            gate=self.gate,
            asker=watcher.asker,
            emit=watcher.emit,
            keeper=TurnKeeper(self.conversation),
            delegates=SubAgents(
                large=model,
                open_model=self._open_model,
                conversation=self.conversation,
                meter=meter,
                limits=self._limits,
                summarizes=self._summarizes,
            ),
            hooks=self._hooks,
        )
        requests = Requests(model, self._repairer, watcher.emit)
        window = self._window(requests, watcher)
        loop = TurnLoop(
            conversation=self.conversation,
            system_prompt=self._system_prompt,
            requests=requests,
            window=window,
            dispatcher=self._dispatcher,
            steering=self.steering,
            emit=watcher.emit,
            limits=self._limits,
            meter=meter,
            reminder=self._reminder,
            hooks=self._hooks,
        )
        self.steering.open()
        try:
            async with self._ending(window, watcher, meter, lambda: loop.steps):
                await loop.run()
        finally:
            self._dispatcher = None

    async def compact(self, wishes: str, *, model: Model, watcher: Watcher) -> None:
        """Have the turn that was begun hold a summary of what is above it.

        Args:
            wishes: what the user wants of the summary, in words; may be empty.
            model: writes it.
            watcher: hears of it; the last event is `TurnFinished`.

        Raises:
            CommandError: there is nothing to summarize.
            CrushKernelError: it cannot be made; its message is for the user.

        Cancelling leaves the turn without a summary.
        """
        requests = Requests(model, self._repairer, watcher.emit)
        window = self._window(requests, watcher)
        meter = Meter(self.conversation)
        meter.note_model(model.info)
        async with self._ending(window, watcher, meter, lambda: 1):
            if all(map(is_summary, self.conversation.context)):
                raise CommandError("There is nothing above this cell that can be summarized.")
            window.enter(await self._system_prompt())
            await window.summarize(wishes=wishes)

    def contents(self, cell_id: str, prompt: SystemPrompt, info: ModelInfo) -> Contents:
        """Return what a prompt in `cell_id` would be sent with, before the prompt itself.

        Args:
            cell_id: sees what is above it.
            prompt: as it is now.
            info: about the model that would be asked.
        """
        shares = self.conversation.shares_above(cell_id)
        messages = tuple(message for _, said in shares for message in said)
        request = ModelRequest(
            system=prompt.text,
            # By a repairer of its own: that of the turns goes on where they have stopped.
            messages=self._repairer.like().repaired(messages),
            tools=self._specs,
            reminder=prompt.reminder,
        )
        return Contents(
            request=request,
            parts=prompt.parts,
            shares=tuple(shares),
            ratio=self._gauge.ratio(info.label),
            window=self.window_of(info),
            summarizes=self._summarizes,
        )

    def window_of(self, info: ModelInfo) -> int:
        """Return the tokens of a model's window, as far as is known by now; zero if nobody knows.

        It is smaller than what is said of the model if a request has taught so.
        """
        return self._gauge.window(info.label, info.context_window)

    @asynccontextmanager
    async def _ending(
        self, window: Window, watcher: Watcher, meter: Meter, steps: Callable[[], int]
    ) -> AsyncGenerator[None]:
        """Have the turn end with the block, whatever happens, and tell so."""
        started = anyio.current_time()
        end: TurnEnd = "error"
        try:
            yield
            end = "end_turn"
        except anyio.get_cancelled_exc_class():
            end = "interrupted"
            raise
        finally:
            for text in self.steering.close():
                self.conversation.append(Message("user", (Text(text),)))
            turn = self.conversation.end(end)
            watcher.emit(
                TurnFinished(
                    end=end,
                    usage=turn.usage,
                    context_tokens=_context_tokens(turn, window),
                    steps=steps(),
                    tool_calls=count_calls(turn.messages),
                    retries=window.requests.retries,
                    duration_s=anyio.current_time() - started,
                    cost_usd=meter.cost(turn.spent),
                )
            )

    def _window(self, requests: Requests, watcher: Watcher) -> Window:
        return Window(
            conversation=self.conversation,
            requests=requests,
            gauge=self._gauge,
            tools=self._specs,
            tool_tokens=self._tool_tokens,
            emit=watcher.emit,
            todos=self._open_todos,
            is_automatic=self._summarizes,
            explained=self._explained,
        )

    def _open_todos(self) -> tuple[str, ...]:
        todos = self._todos.read(self.conversation.everything).todos or ()
        return todo_lines(todos) if is_open(todos) else ()

    def _reminder(self) -> str:
        return todo_reminder(self._todos.read(self.conversation.everything))

    def permission_for(self, watcher: Watcher) -> Permit:
        """Return a way to ask for permission outside of a tool call, such as for a file.

        The turn has begun: what is decided is kept with it.
        """
        keeper = TurnKeeper(self.conversation)

        def tell(event: PermissionSettled) -> None:
            keeper.decide(event)
            watcher.emit(event)

        return permission(self.gate, watcher.asker, tell)

    def stop_tool(self, call_id: str) -> None:
        """Stop one running call, also one of a sub-agent; who made it goes on and is told so."""
        if self._dispatcher is not None:
            self._dispatcher.stop(call_id)


def _context_tokens(turn: Turn, window: Window) -> int:
    """Return what the conversation fills of the window, as the turn leaves it."""
    if turn.messages and is_summary(turn.messages[-1]):
        return window.fill().total
    return context_tokens(turn.messages)
