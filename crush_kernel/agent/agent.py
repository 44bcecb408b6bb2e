"""The agent: owns a conversation and runs its turns, one at a time."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio

from crush_kernel.agent.dispatch import Dispatcher, permission
from crush_kernel.agent.events import Emit, PermissionSettled, TurnEnd, TurnFinished
from crush_kernel.agent.loop import TurnLoop
from crush_kernel.agent.steps import Limits
from crush_kernel.history.conversation import (
    Conversation,
    context_tokens,
    count_calls,
)
from crush_kernel.history.repairer import Repairer
from crush_kernel.history.turn import Turn
from crush_kernel.messages import Message, ToolResult
from crush_kernel.permissions.gate import Asker, Gate
from crush_kernel.prompt.system import SystemPrompt
from crush_kernel.providers.base import Model, ToolSpec
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
        request = event.request
        self.conversation.decide(
            {
                "call_id": request.call_id,
                "tool": request.tool,
                "action": request.action,
                "title": request.title,
                "paths": [str(path) for path in request.paths],
                "is_allowed": event.is_allowed,
                "rule": event.rule,
                "reason": event.reason,
            }
        )

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
    ) -> None:
        self.conversation = conversation or Conversation()
        self.gate = gate
        self._tools = {tool.name: tool for tool in tools}
        self._specs = tuple(spec_of(self._tools[name]) for name in sorted(self._tools))
        self._system_prompt = system_prompt
        self._limits = limits or Limits()
        self._dispatcher: Dispatcher | None = None
        self._repairer = Repairer()

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """The tools, by name in the order in which the model reads them."""
        return tuple(self._tools[spec.name] for spec in self._specs)

    async def prompt(self, message: Message, *, model: Model, watcher: Watcher) -> None:
        """Say `message` in the turn that was begun and run it; the last event is `TurnFinished`.

        Raises:
            CrushKernelError: the turn failed; its message is for the user.

        Cancelling ends the turn within its clean-up times: running calls are stopped, the
        partial reply is kept, open calls are answered as interrupted.
        """
        self.conversation.append(message)
        self._dispatcher = Dispatcher(
            tools=self._tools,
            gate=self.gate,
            asker=watcher.asker,
            emit=watcher.emit,
            keeper=TurnKeeper(self.conversation),
        )
        loop = TurnLoop(
            conversation=self.conversation,
            model=model,
            system_prompt=self._system_prompt,
            tools=self._specs,
            dispatcher=self._dispatcher,
            repairer=self._repairer,
            emit=watcher.emit,
            limits=self._limits,
        )
        started = anyio.current_time()
        end: TurnEnd = "error"
        try:
            await loop.run()
            end = "end_turn"
        except anyio.get_cancelled_exc_class():
            end = "interrupted"
            raise
        finally:
            self._dispatcher = None
            turn = self.conversation.end(end)
            watcher.emit(_finished(turn, end, loop, anyio.current_time() - started))

    def permission_for(self, watcher: Watcher) -> Permit:
        """Return a way to ask for permission outside of a tool call, such as for a file."""
        return permission(self.gate, watcher.asker, watcher.emit)

    def stop_tool(self, call_id: str) -> None:
        """Stop one running call; the turn goes on with the model told so."""
        if self._dispatcher is not None:
            self._dispatcher.stop(call_id)


def _finished(turn: Turn, end: TurnEnd, loop: TurnLoop, duration_s: float) -> TurnFinished:
    return TurnFinished(
        end=end,
        usage=turn.usage,
        context_tokens=context_tokens(turn.messages),
        steps=loop.steps,
        tool_calls=count_calls(turn.messages),
        retries=loop.retries,
        duration_s=duration_s,
    )


def spec_of(tool: AnyTool) -> ToolSpec:
    """Return `tool` as the model reads it."""
    schema = tool.arguments.model_json_schema()
    schema.pop("title", None)
    return ToolSpec(name=tool.name, description=tool.description, input_schema=schema)
