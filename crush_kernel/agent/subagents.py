"""Sub-agents: a task in a conversation of its own, carried out inside one call of a turn.

A sub-agent runs by the same loop as the turn and under the same gate, limits and journal. What
it uses counts for the turn at once. Only its last words become the result of the call; what it
did is kept beside them, for people, however it ended.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace

import anyio

from crush_kernel.agent.dispatch import Inside
from crush_kernel.agent.events import TurnEnd
from crush_kernel.agent.loop import TurnLoop
from crush_kernel.agent.meter import Meter
from crush_kernel.agent.requests import Requests
from crush_kernel.agent.steering import Steering
from crush_kernel.agent.steps import Limits
from crush_kernel.agent.subagentactivity import Activity
from crush_kernel.agent.toolsizes import spec_of, tokens_of_tools
from crush_kernel.agent.window import Window
from crush_kernel.errors import CrushKernelError
from crush_kernel.history.conversation import CellRun, Conversation, NoRecorder, count_calls
from crush_kernel.history.estimate import Gauge
from crush_kernel.history.repairer import Repairer
from crush_kernel.history.subagentmessages import Nested, facts_of
from crush_kernel.history.turn import Turn
from crush_kernel.messages import Message, Text, text_of
from crush_kernel.prompt.system import PromptPart, SystemPrompt
from crush_kernel.providers.base import Model, ModelInfo
from crush_kernel.tools.base import AnyTool, Delegated, Delegation

logger = logging.getLogger(__name__)

NEVER_HANDED_OVER = frozenset(("agent", "agentic_fetch", "question", "todos"))
"""Tools that are the agent's alone: sub-agents have no agents of their own, ask the user nothing
but for permission, and keep no list that the user watches."""

LARGE = "large"

HALTED_AGENT = "A hook of the user's has ended the turn."

OpenModel = Callable[[str, ModelInfo], AbstractAsyncContextManager[Model]]
"""Opens the model that a sub-agent wants, `large`, `small` or a label, beside the one in use;
raises a `CrushKernelError` if there is none."""


@dataclass(frozen=True, slots=True)
class SubAgents:
    """Runs the sub-agents of one turn; several may run at the same time."""

    large: Model
    """The model of the turn."""
    open_model: OpenModel | None
    """`None` has the model of the turn do everything."""
    conversation: Conversation
    """Of the notebook: counts what sub-agents use, and keeps what they say."""
    meter: Meter
    limits: Limits
    summarizes: bool
    """Whether a sub-agent that fills its window has a summary made."""

    async def run(self, delegation: Delegation, inside: Inside) -> Delegated:
        """Have a sub-agent do `delegation`; what fails is told and not raised.

        Args:
            delegation: the task.
            inside: the call that it is done for. What the sub-agent did is given to it, also
                when the call is cancelled.
        """
        async with AsyncExitStack() as stack:
            model, notes = await self._model(delegation.model, stack)
            done = await self._converse(delegation, inside, model)
        return replace(done, notes=notes)

    async def _model(self, name: str, stack: AsyncExitStack) -> tuple[Model, tuple[str, ...]]:
        """Return the model `name`, or the one of the turn and a note if there is none."""
        if self.open_model is None:
            return self.large, ()
        info = self.large.info
        try:
            return await stack.enter_async_context(self.open_model(name, info)), ()
        except CrushKernelError as error:
            logger.info("no model %r for a sub-agent: %s", name, type(error).__name__)
        note = f"The model {name!r} cannot be used here, so {info.label} did it."
        return await stack.enter_async_context(self.open_model(LARGE, info)), (note,)

    async def _converse(self, delegation: Delegation, inside: Inside, model: Model) -> Delegated:
        kept = _Kept(inside.call_id, delegation.agent, model.info.label, self.conversation.nest)
        talk = Conversation(kept, tell_spent=self.conversation.use)
        activity = Activity(inside.progress, inside.tell)
        loop = self._loop(delegation, inside, talk, activity, model)
        end: TurnEnd = "error"
        failure = ""
        talk.begin(CellRun(delegation.agent), Message("user", tuple(_asked(delegation))))
        try:
            await loop.run()
            end = "end_turn"
            failure = HALTED_AGENT if loop.dispatcher.halt.is_called else ""
        except CrushKernelError as error:
            failure = str(error)
        except anyio.get_cancelled_exc_class():
            end = "interrupted"
            raise
        finally:
            talk.end(end)
            inside.keep(facts_of(kept.said_so_far, end=end, usage=talk.spent_by_model))
        replies = [message for message in talk.running if message.role == "assistant"]
        return Delegated(
            text=_words(replies if failure else replies[-1:]),
            model=model.info.label,
            failure=failure,
            steps=loop.steps,
            tool_calls=count_calls(replies),
            activity=activity.lines,
        )

    def _loop(
        self,
        delegation: Delegation,
        inside: Inside,
        talk: Conversation,
        activity: Activity,
        model: Model,
    ) -> TurnLoop:
        """Return the loop of a sub-agent; nothing in it is the turn's but gate, asker and meter."""
        tools = handed_over(delegation.tools)
        specs = tuple(spec_of(tools[name]) for name in sorted(tools))
        requests = Requests(model, Repairer(), activity.emit)

        async def system_prompt() -> SystemPrompt:
            return SystemPrompt((PromptPart("sub-agent", delegation.system),), delegation.reminder)

        return TurnLoop(
            conversation=talk,
            system_prompt=system_prompt,
            requests=requests,
            window=Window(
                conversation=talk,
                requests=requests,
                gauge=Gauge(),
                tools=specs,
                tool_tokens=tokens_of_tools(specs),
                emit=activity.emit,
                todos=tuple,
                is_automatic=self.summarizes,
                explained=set(),
            ),
            dispatcher=inside.dispatcher(delegation, tools, activity.emit),
            steering=Steering(),
            emit=activity.emit,
            limits=self.limits,
            meter=self.meter,
            reminder=str,
        )


def _asked(delegation: Delegation) -> Iterator[Text]:
    yield Text(delegation.prompt)
    if delegation.enclosed:
        yield Text(f"\n\n{delegation.enclosed}")


def handed_over(tools: Iterable[AnyTool]) -> dict[str, AnyTool]:
    """Return by name those of `tools` that a sub-agent may have, whoever wants to give more."""
    return {tool.name: tool for tool in tools if tool.name not in NEVER_HANDED_OVER}


@dataclass(slots=True)
class _Kept(NoRecorder):
    """Has the turn keep what one sub-agent says."""

    call_id: str
    agent: str
    model: str
    keep: Callable[[Nested], Nested]
    said_so_far: list[Nested] = field(default_factory=list[Nested])

    def said(self, turn: Turn, message: Message) -> None:  # noqa: ARG002 - a `Recorder`
        """Keep the next message."""
        nested = Nested(self.call_id, self.agent, self.model, message)
        self.said_so_far.append(self.keep(nested))

    def unsaid(self, turn: Turn) -> None:  # noqa: ARG002 - a `Recorder`
        """Forget the last message; the journal, which only a crash makes a record of, does not."""
        self.said_so_far.pop()


def _words(replies: Iterable[Message]) -> str:
    """Return what `replies` say in text."""
    return "\n\n".join(filter(None, (text_of(message).strip() for message in replies)))
