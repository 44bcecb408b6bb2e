"""The turn loop: ask the model, run the tools it calls, repeat until it stops."""

import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import anyio

from crush_kernel.agent.dispatch import Dispatcher
from crush_kernel.agent.events import (
    Emit,
    Event,
    Notice,
    ReasoningAdded,
    ReplyDropped,
    Retrying,
    StepFinished,
    StepStarted,
    TextAdded,
    ToolCallWritten,
)
from crush_kernel.agent.steps import (
    MAX_ATTEMPTS,
    AskAgain,
    CallTools,
    Fail,
    Finish,
    Limits,
    RefuseCalls,
    Remind,
    Request,
    next_step,
    retry_delay,
)
from crush_kernel.errors import ProviderError, RequestRejected
from crush_kernel.history.conversation import Conversation
from crush_kernel.history.quarantine import blamed
from crush_kernel.history.repair import INTERRUPTED
from crush_kernel.history.repairer import Repairer
from crush_kernel.messages import Message, Text, ToolCall, ToolResult, Usage, calls_of
from crush_kernel.prompt.system import SystemPrompt
from crush_kernel.providers.base import (
    Accumulator,
    Model,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallStart,
    ToolSpec,
)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class TurnLoop:
    """Everything one turn needs, handed in by the agent, and its counters."""

    conversation: Conversation
    model: Model
    system_prompt: Callable[[], Awaitable[SystemPrompt]]
    tools: tuple[ToolSpec, ...]
    dispatcher: Dispatcher
    repairer: Repairer
    emit: Emit
    limits: Limits
    steps: int = 0
    retries: int = 0
    empty_replies: int = 0

    async def run(self) -> None:
        """Run the turn to its end; the conversation holds what was said.

        Raises:
            CrushKernelError: the turn cannot go on; its message is for the user.

        Cancelling ends the turn at its next await: what was streamed is kept, and every
        open call is answered as interrupted.
        """
        talk = self.conversation
        while True:
            match next_step(talk.running, empty_replies=self.empty_replies, limits=self.limits):
                case Request():
                    await self._request()
                case CallTools(calls=calls):
                    await self.dispatcher.call_tools(calls, record=talk.append)
                case RefuseCalls(calls=calls, reason=reason):
                    talk.append(_refusal(calls, reason))
                case Remind(text=text, notice=notice):
                    talk.append(Message("user", (Text(text),)))
                    self.emit(Notice(notice))
                case AskAgain():
                    self.empty_replies += 1
                    talk.drop_last()
                case Finish():
                    return
                case Fail(error=error):
                    self._answer_open_calls()
                    raise error

    async def _request(self) -> None:
        """Send the conversation and record the reply; once more without what is refused of it."""
        self.steps += 1
        self.emit(StepStarted(self.steps))
        prompt = await self.system_prompt()
        for notice in prompt.notices:
            self.emit(Notice(notice))
        # Date and git's status are told once a turn: they are no part of what is cached.
        reminder = prompt.reminder if self.steps == 1 else ""
        request = ModelRequest(prompt.text, self._outgoing(), self.tools, reminder=reminder)
        try:
            await self._ask(request)
        except RequestRejected as refusal:
            mended = self._mended(request, refusal)
            if mended is None:
                raise
        else:
            return
        await self._ask(mended)

    def _outgoing(self) -> tuple[Message, ...]:
        return self.repairer.repaired(self.conversation.context, self.conversation.running)

    def _mended(self, request: ModelRequest, refusal: RequestRejected) -> ModelRequest | None:
        """Return `request` without what `refusal` is about, which is left out from now on.

        `None` if it is not clear what that is, or it makes no difference.
        """
        blame = blamed(refusal, request.messages)
        if blame is None:
            return None
        self.repairer.leave_out(blame.keys)
        messages = self._outgoing()
        if messages == request.messages:
            return None
        self.retries += 1
        logger.warning("left out, since it was refused: %d parts", len(blame.keys))
        self.emit(Notice(blame.notice))
        return replace(request, messages=messages)

    async def _ask(self, request: ModelRequest) -> None:
        """Send `request` and record the reply, trying again while that may help."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            reply = Accumulator(self.model.info)
            try:
                await self._stream(request, reply)
            except ProviderError as error:
                delay = retry_delay(error, attempt=attempt, jitter=random.random())  # noqa: S311 - spreads load, guards nothing
                if delay is None:
                    self._record(reply.message(stop="error"))
                    raise
                await self._wait(error, attempt, delay)
            except anyio.get_cancelled_exc_class():
                self._record(reply.message(stop="interrupted"))
                self._answer_open_calls()
                raise
            else:
                self._record_complete(reply)
                return

    async def _stream(self, request: ModelRequest, reply: Accumulator) -> None:
        async with self.model.stream(request) as events:
            async for event in events:
                reply.feed(event)
                if (news := _news(event)) is not None:
                    self.emit(news)

    async def _wait(self, error: ProviderError, attempt: int, delay_s: float) -> None:
        self.retries += 1
        logger.warning("attempt %d failed: %s", attempt, type(error).__name__)
        self.emit(ReplyDropped())
        self.emit(
            Retrying(reason=str(error), attempt=attempt + 1, attempts=MAX_ATTEMPTS, delay_s=delay_s)
        )
        await anyio.sleep(delay_s)

    def _record_complete(self, reply: Accumulator) -> None:
        message = reply.message()
        self.conversation.append(message)
        usage = message.usage or Usage()
        logger.info("reply %d of %s: %s, %s", self.steps, message.model, message.stop, usage)
        self.emit(StepFinished(usage, usage.context_tokens))

    def _record(self, message: Message) -> None:
        """Keep a broken reply for the reader and the next request, if it says anything."""
        if message.parts:
            self.conversation.append(message)

    def _answer_open_calls(self) -> None:
        """Answer the calls of a reply that will not be run, so that none stays open."""
        if calls := calls_of(self.conversation.running[-1]):
            self.conversation.append(_refusal(calls, INTERRUPTED))


def _refusal(calls: tuple[ToolCall, ...], reason: str) -> Message:
    return Message("tool", tuple(ToolResult(call.id, reason, is_error=True) for call in calls))


def _news(event: StreamEvent) -> Event | None:
    """Return what a watcher should hear of `event`, if anything."""
    match event:
        case TextDelta(text=text):
            return TextAdded(text)
        case ReasoningDelta(text=text):
            return ReasoningAdded(text)
        case ToolCallStart(id=call_id, name=name):
            return ToolCallWritten(call_id, name)
        case _:
            return None
