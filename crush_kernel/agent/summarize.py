"""Have a conversation summarized by its model, however long it is.

At first the whole conversation is sent with an instruction behind it: the same system prompt,
tools and messages as before, so that the provider finds them in its cache. Tools are not
forbidden by parameter then, since that would lose the cached messages; a model that calls one
all the same is asked again with tools forbidden. What does not fit is shortened, then cut in
pieces that are summarized one after another; if all fails, an outline is made without a model.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from crush_kernel.agent.events import Notice
from crush_kernel.agent.requests import Requests
from crush_kernel.errors import ContextTooLong
from crush_kernel.history.estimate import Gauge, tokens_of, tokens_of_text
from crush_kernel.history.excerpt import elided, in_few_pieces, outline, pieces
from crush_kernel.history.summary import budget_of, instruction
from crush_kernel.messages import Message, Text, Usage, calls_of, text_of
from crush_kernel.providers.base import ModelRequest, StreamEvent, ToolSpec

logger = logging.getLogger(__name__)

MAX_ASKS = 3
"""How often a summary is asked for: it may be cut off, be a call, or say nothing."""
MAX_PIECES = 12
"""Requests for one summary in stages."""
PIECE_CHARS = 60_000
"""Of a piece for a model whose window is not known."""
LEAST_PIECE_CHARS = 2_000
MARGIN_TOKENS = 800
"""For the instruction, and for what estimates are wrong by."""

STAGES = (
    "You summarize a long conversation between a user and a coding agent, piece by piece, so that "
    "the agent can go on with the work."
)
NO_SUMMARY = (
    "The model gave no summary: a short transcript of the conversation stands in for it. "
    "`/uncompact` takes it back."
)
SO_FAR = "The summary of what was said before:"
PIECE = "The next piece of the conversation, as a transcript:"
MERGE = (
    "Write the summary anew so that it covers both: keep what still matters of the former one, "
    "add what the piece brings, and correct what it has overtaken."
)


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be summarized, and with what it was sent."""

    system: str
    tools: tuple[ToolSpec, ...]
    messages: Callable[[], tuple[Message, ...]]
    """Repaired; made anew when something of it was refused."""
    tool_tokens: int
    """Our own count of `tools`."""
    used: Callable[[], int]
    """What a request with all of it fills of the window, as far as is known by then."""
    wishes: str = ""
    """What the user wants of the summary."""


@dataclass(slots=True)
class Summarizer:
    """Makes one summary and counts what that uses."""

    requests: Requests
    gauge: Gauge
    usage: Usage = field(default_factory=Usage)
    _request: ModelRequest | None = None
    """The last one that was sent."""

    async def reply(self, task: Task) -> Message:
        """Return a reply that summarizes the conversation of `task`, with what it has used.

        Raises:
            ProviderError: the model cannot be asked.

        Cancelling gives it up; `usage` tells what was used by then.
        """
        text = await self._from_whole(task) or await self._in_stages(task)
        info = self.requests.model.info
        return Message(
            "assistant",
            (Text(text),),
            provider=info.provider,
            model=info.id,
            usage=self.usage,
        )

    @property
    def _window(self) -> int:
        """The tokens of the window, as far as is known by now; zero if nobody knows."""
        info = self.requests.model.info
        return self.gauge.window(info.label, info.context_window)

    def _budget(self) -> int:
        info = self.requests.model.info
        return budget_of(self._window, info.max_output_tokens, can_reason=info.can_reason)

    # At once

    async def _from_whole(self, task: Task) -> str:
        """Return a summary of the conversation as it is, or shortened; empty if that fails.

        Twice, since the first time may teach how much there is room for.
        """
        for _ in range(2):
            budget, excess = self._plan(task)
            if excess > 0 and elided(task.messages(), self._counted(excess)) is None:
                break
            try:
                return await self._asked(
                    partial(_whole, task, budget, self._counted(excess)), budget
                )
            except ContextTooLong as error:
                logger.warning("the request for a summary is too long")
                self._learn(error, task.tool_tokens)
                if error.is_body:
                    break  # the same once more would be refused once more
        return ""

    def _plan(self, task: Task) -> tuple[int, int]:
        """Return how long a summary may be, and by how much the conversation is too long."""
        budget = self._budget()
        if not self._window:
            return budget, 0
        # Rather a short summary of everything than a long one of what is left of it.
        room = self._window - task.used() - MARGIN_TOKENS
        budget = max(min(budget, room), budget // 3)
        return budget, budget - room

    def _learn(self, error: ContextTooLong, tool_tokens: int) -> None:
        info, request = self.requests.model.info, self._request
        if request is not None and not error.is_body:
            counted = tokens_of_text(request.system) + sum(map(tokens_of, request.messages))
            self.gauge.overflowed(
                info.label,
                asked=error.asked_tokens or 0,
                limit=error.limit_tokens or 0,
                counted=counted + (tool_tokens if request.tools else 0),
                known=info.context_window,
            )

    async def _asked(self, build: "_Build", budget: int) -> str:
        """Return what a model answers, asked until it answers in words that are complete."""
        max_words, forbids_tools = 0, False
        for _ in range(MAX_ASKS):
            reply = await self._reply(
                lambda w=max_words, f=forbids_tools: build(w, forbids_tools=f)
            )
            if reply.stop == "refused":
                logger.warning("a summary was refused")
                return ""
            if reply.stop == "max_tokens":
                logger.warning("a summary was cut off; a shorter one is asked for")
                max_words = max(100, budget * 2 // 5) if not max_words else max_words // 2
            elif calls_of(reply):
                forbids_tools = True
            elif text := text_of(reply).strip():
                return text
        return ""

    # In stages

    async def _in_stages(self, task: Task) -> str:
        """Return a summary that was made piece by piece."""
        messages = task.messages()
        size = self._piece_chars()
        waiting = in_few_pieces(messages, size, MAX_PIECES)
        summary, failures = "", 0
        while waiting:
            piece = waiting.pop(0)
            budget = self._budget()
            try:
                build = partial(_stage, task.wishes, summary, piece, budget)
                summary = await self._asked(build, budget) or summary
            except ContextTooLong as error:
                self._learn(error, task.tool_tokens)
                failures += 1
                if failures > MAX_ASKS or len(piece) < LEAST_PIECE_CHARS:
                    break
                waiting = [*pieces([piece], len(piece) // 2 + 1), *waiting]
        if not summary:
            self.requests.emit(Notice(NO_SUMMARY))
        return summary or outline(messages, self._piece_chars())

    def _piece_chars(self) -> int:
        """Return how many characters a piece may have."""
        if not self._window:
            return PIECE_CHARS
        # The former summary goes in, and the next one must come out.
        tokens = self._window - 2 * self._budget() - 2 * MARGIN_TOKENS
        return max(LEAST_PIECE_CHARS, self._counted(tokens) * 3)

    def _counted(self, tokens: int) -> int:
        """Return tokens of the model in those of our estimate."""
        return round(tokens / self.gauge.ratio(self.requests.model.info.label))

    async def _reply(self, build: Callable[[], ModelRequest]) -> Message:
        def built() -> ModelRequest:
            self._request = build()
            return self._request

        reply = await self.requests.reply(built, self)
        said = self._request.messages if self._request is not None else ()
        self.usage += reply.usage or Usage(
            input_tokens=sum(map(tokens_of, said)),
            output_tokens=tokens_of(reply),
            is_estimated=True,
        )
        return reply

    # As a hearer: nothing is shown before it is complete

    def heard(self, event: StreamEvent) -> None:
        """Do nothing."""

    def dropped(self) -> None:
        """Do nothing."""

    def broke_off(self, message: Message) -> None:
        """Count what was used in vain."""
        self.usage = self.usage + (message.usage or Usage())


def _whole(
    task: Task, budget: int, excess: int, max_words: int, *, forbids_tools: bool
) -> ModelRequest:
    """Return the request for a summary of the whole conversation, `excess` tokens shorter."""
    messages = task.messages()
    if excess > 0:
        messages = elided(messages, excess) or messages
    words = instruction(wishes=task.wishes, max_words=max_words)
    return ModelRequest(
        system=task.system,
        messages=(*messages, Message("user", (Text(words),))),
        tools=task.tools,
        max_output_tokens=budget,
        forbids_tools=forbids_tools,
    )


def _stage(
    wishes: str, summary: str, piece: str, budget: int, max_words: int, *, forbids_tools: bool
) -> ModelRequest:
    """Return the request for a summary of a former one and of the next piece."""
    words = instruction(wishes=wishes, max_words=max_words)
    former = [f"{SO_FAR}\n\n{summary}", MERGE] if summary else []
    said = [*former[:1], f"{PIECE}\n\n{piece}", *former[1:], words]
    return ModelRequest(
        system=STAGES,
        messages=(Message("user", tuple(map(Text, said))),),
        max_output_tokens=budget,
        forbids_tools=forbids_tools,
    )


class _Build(Protocol):
    """Makes a request for a summary."""

    def __call__(self, max_words: int, *, forbids_tools: bool) -> ModelRequest: ...
