"""The turn loop: ask the model, run the tools it calls, repeat until it stops."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import anyio

from crush_kernel.agent.callhooks import MAX_HELD_BACK, TurnHooks, held_back
from crush_kernel.agent.dispatch import Dispatcher
from crush_kernel.agent.events import (
    Emit,
    Event,
    HookTold,
    Notice,
    ReasoningAdded,
    ReplyDropped,
    Steered,
    StepFinished,
    StepStarted,
    TextAdded,
    ToolCallWritten,
)
from crush_kernel.agent.meter import Meter
from crush_kernel.agent.prompthooks import prompt_context
from crush_kernel.agent.requests import Requests
from crush_kernel.agent.steering import Steering
from crush_kernel.agent.steps import (
    AskAgain,
    CallTools,
    Fail,
    Finish,
    Limits,
    RefuseCalls,
    Remind,
    Request,
    SoFar,
    Step,
    Summarize,
    next_step,
)
from crush_kernel.agent.window import Window
from crush_kernel.errors import ContextTooLong, ProviderError
from crush_kernel.history.conversation import Conversation
from crush_kernel.history.estimate import tokens_of
from crush_kernel.history.repair import INTERRUPTED
from crush_kernel.hooks.report import lines
from crush_kernel.messages import Message, Text, ToolCall, ToolResult, Usage, calls_of
from crush_kernel.prompt.system import SystemPrompt
from crush_kernel.providers.base import (
    ModelRequest,
    ReasoningDelta,
    Stop,
    StreamEvent,
    TextDelta,
    ToolCallStart,
)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class TurnLoop:
    """Everything one turn needs, handed in by the agent, and its counters."""

    conversation: Conversation
    system_prompt: Callable[[], Awaitable[SystemPrompt]]
    requests: Requests
    window: Window
    dispatcher: Dispatcher
    steering: Steering
    emit: Emit
    limits: Limits
    meter: Meter
    """Of the whole turn, which may be another's than this loop's."""
    reminder: Callable[[], str]
    """What to remind the model of with the next request, empty if of nothing."""
    hooks: TurnHooks | None = None
    """Are asked before the turn ends; a sub-agent's are not."""
    steps: int = 0
    empty_replies: int = 0
    _has_begun: bool = False
    """Whether the model was told what it is told once a turn, and after each summary."""
    _is_full: bool = False
    """Whether a summary behind the last reply has failed; the turn ends all the same."""
    _held_back: int = 0
    """How often hooks had the turn go on."""

    async def run(self) -> None:
        """Run the turn to its end; the conversation holds what was said.

        Raises:
            CrushKernelError: the turn cannot go on; its message is for the user.

        Cancelling ends the turn at its next await: what was streamed is kept, and every
        open call is answered as interrupted. A hook that ends the turn ends it after the calls
        that have begun.
        """
        is_over = False
        while not is_over and not self.dispatcher.halt.is_called:
            if self.conversation.running[-1].role != "assistant":
                await self._look_around()
            running = self.conversation.running
            step = next_step(running, so_far=self._so_far(), limits=self.limits)
            if not await self._is_steered(step):
                is_over = await self._take(step)
        if not is_over:
            self._answer_open_calls()

    async def _take(self, step: Step) -> bool:
        """Take `step` and return whether the turn is over."""
        talk = self.conversation
        match step:
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
            case Summarize(is_last=is_last):
                await self._summarize(is_last=is_last)
            case Finish():
                return True
            case Fail(error=error):
                self._answer_open_calls()
                raise error
        return False

    # What the user says meanwhile

    async def _is_steered(self, step: Step) -> bool:
        """Take in what the user, and what hooks, say to the turn before it asks again or ends."""
        match step:
            case Finish():
                said = self.steering.take()
                if not said and await self._is_held_back():
                    return True
                said = said or self.steering.take_or_close()
            case Request() | Summarize():
                said = self.steering.take()
            case _:
                return False
        await self._hear(said)
        return bool(said)

    async def _hear(self, said: tuple[str, ...]) -> None:
        """Take in what the user has said, as far as hooks let it pass; cancelling loses none."""
        waiting = [*said]
        try:
            while waiting:
                parts = await self._let_pass(waiting[0])
                text = waiting.pop(0)
                self.emit(Steered(text))
                if parts:
                    self.conversation.append(Message("user", parts))
        finally:
            for text in waiting:
                self.conversation.append(Message("user", (Text(text),)))

    async def _let_pass(self, text: str) -> tuple[Text, ...]:
        """Return what the model reads of what the user has said; nothing if it may not."""
        if self.hooks is None:
            return (Text(text),)
        said = await self.hooks.prompted(text)
        for line in lines(said):
            self.emit(HookTold(line))
        if said.is_refusal:
            return ()
        context = prompt_context(said)
        return (Text(text), Text(f"\n\n{context}")) if context else (Text(text),)

    async def _is_held_back(self) -> bool:
        """Ask hooks whether the turn may end, and say to the model why not if it may not."""
        if self.hooks is None or self._held_back == MAX_HELD_BACK:
            return False
        said = await self.hooks.stopping(is_again=self._held_back > 0)
        for line in lines(said):
            self.emit(HookTold(line))
        if said.is_halt or said.decision != "deny":
            return False
        self._held_back += 1
        self.conversation.append(Message("user", (Text(held_back(said)),)))
        return True

    # The window

    async def _look_around(self) -> None:
        """Read the system prompt anew: files that it is made of may have changed."""
        prompt = await self.system_prompt()
        for notice in prompt.notices:
            self.emit(Notice(notice))
        reminder = "" if self._has_begun else prompt.reminder
        said = (reminder, self.reminder() if self._has_begun else "")
        self.window.enter(replace(prompt, reminder="\n\n".join(filter(None, said))))

    def _so_far(self) -> SoFar:
        return replace(
            self.meter.so_far(own_requests=self.steps),
            empty_replies=self.empty_replies,
            needs_summary=not self._is_full and self.window.needs_summary(),
        )

    async def _summarize(self, *, is_last: bool) -> None:
        try:
            await self.window.summarize()
        except ProviderError as error:
            if not is_last:
                raise
            # The reply is there: no reason to call the turn a failure.
            self._is_full = True
            self.emit(Notice(f"The conversation could not be summarized: {error}"))
        self._has_begun = False

    # Requests

    async def _request(self) -> None:
        """Send the conversation and record the reply; once more, shorter, if it does not fit."""
        self.steps += 1
        self.meter.count_request(self.requests.model.info)
        self.emit(StepStarted(self.steps))
        try:
            try:
                reply = await self.requests.reply(self._build, self)
            except ContextTooLong as error:
                await self.window.shrink(error)
                reply = await self._second_try()
        except anyio.get_cancelled_exc_class():
            self._answer_open_calls()
            raise
        self._record_complete(reply)

    async def _second_try(self) -> Message:
        try:
            return await self.requests.reply(self._build, self)
        except ContextTooLong as error:
            raise self.window.too_long(error) from error

    def _build(self) -> ModelRequest:
        return self.window.request()

    def _record_complete(self, message: Message) -> None:
        self._has_begun = True
        usage = message.usage
        if usage is None:
            usage = Usage(
                input_tokens=self.window.fill().total,
                output_tokens=tokens_of(message),
                is_estimated=True,
            )
            message = replace(message, usage=usage)
        self.window.reported(usage)
        self.conversation.append(message)
        logger.info("reply %d of %s: %s, %s", self.steps, message.model, message.stop, usage)
        self.emit(StepFinished(usage, usage.context_tokens))

    # As the hearer of its replies

    def heard(self, event: StreamEvent) -> None:
        """Tell watchers what comes."""
        if (news := _news(event)) is not None:
            self.emit(news)

    def dropped(self) -> None:
        """Tell watchers that what was shown of the reply is void."""
        self.emit(ReplyDropped())

    def broke_off(self, message: Message) -> None:
        """Keep a broken reply for the reader and the next request, if it says anything."""
        if message.parts:
            self.conversation.append(message)
        elif message.usage:
            self.conversation.use(self.requests.model.info.label, message.usage)

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
        case Stop(unknown=word) if word:
            return Notice(f"The provider ended the reply for a reason of its own: {word}.")
        case _:
            return None
