"""The context window of one turn: what the next request holds, and how it is made to fit.

What is sent is the system prompt, the tools and the conversation from its last summary on. It
is measured before every request, by what the provider has reported and by our own estimate of
what was added since. When it is nearly full a summary is made; when none would help, the user
is told once what fills it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from crush_kernel.agent.events import Emit, Notice, SummaryFinished, SummaryStarted
from crush_kernel.agent.requests import Requests
from crush_kernel.agent.summarize import Summarizer, Task
from crush_kernel.errors import ContextTooLong
from crush_kernel.history.conversation import Conversation
from crush_kernel.history.estimate import Fill, Gauge, tokens_of, tokens_of_text
from crush_kernel.history.summary import (
    budget_of,
    can_shrink,
    is_summary,
    room_for,
    split_unseen,
)
from crush_kernel.messages import Message, Usage, text_of
from crush_kernel.prompt.system import SystemPrompt
from crush_kernel.providers.base import ModelInfo, ModelRequest, ToolSpec

LEAST_OUTPUT_TOKENS = 1_024
"""What a reply is allowed however full the window is: with less it says nothing."""
MOST_OUTPUT_TOKENS = 32_000
"""What adapters allow a reply at most if they are not told."""
REQUEST_CHARS = 40_000
"""Of the user's request, in a summary for a model whose window is not known."""
NAMED_PARTS = 3
"""How many of the parts that fill the window are named to the user."""


@dataclass(slots=True)
class Window:
    """Measures and makes the requests of one turn."""

    conversation: Conversation
    requests: Requests
    gauge: Gauge
    tools: tuple[ToolSpec, ...]
    tool_tokens: int
    """Our own count of `tools`."""
    emit: Emit
    todos: Callable[[], tuple[str, ...]]
    """What is still to do, one line each."""
    is_automatic: bool
    """Whether summaries are made unasked."""
    explained: set[str]
    """The models of which the user was told why no summary helps."""
    prompt: SystemPrompt = field(default_factory=lambda: SystemPrompt(()))
    _counted: int = 0
    """Our own count of the last request."""
    _limits_output: bool = False
    """Whether the provider counts what a reply may have."""

    @property
    def info(self) -> ModelInfo:
        """What is known about the model."""
        return self.requests.model.info

    @property
    def size(self) -> int:
        """The tokens of the window, as far as anybody knows; zero if nobody does."""
        return self.gauge.window(self.info.label, self.info.context_window)

    def enter(self, prompt: SystemPrompt) -> None:
        """Have the next requests begin with `prompt`."""
        self.prompt = prompt

    def request(self) -> ModelRequest:
        """Return the next request, as it is to be sent."""
        context, running = self.conversation.sent
        self._counted = self._fixed() + self.gauge.count(context + running)
        return ModelRequest(
            system=self.prompt.text,
            messages=self.requests.repairer.repaired(context, running),
            tools=self.tools,
            max_output_tokens=self._output_limit(),
            reminder=self.prompt.reminder,
        )

    def reported(self, usage: Usage) -> None:
        """Learn from what the provider says of the last request."""
        prompt = usage.context_tokens - usage.output_tokens
        if not usage.is_estimated:
            self.gauge.reported(self.info.label, counted=self._counted, prompt=prompt)
        self.gauge.accepted(self.info.label, prompt)

    def fill(self) -> Fill:
        """Return what the next request would fill."""
        context, running = self.conversation.sent
        messages = context + running
        label = self.info.label
        total, is_estimated = self.gauge.used(label, messages, fixed=self._fixed())
        opening = tokens_of(messages[0]) if messages and is_summary(messages[0]) else 0
        _, said = split_unseen(running)
        fixed, opening, unseen = (
            self.gauge.scaled(label, count)
            for count in (self._fixed(), opening, sum(map(tokens_of, said)))
        )
        return Fill(
            total=total,
            fixed=fixed,
            opening=opening,
            new=max(0, total - fixed - opening - unseen),
            unseen=unseen,
            is_estimated=is_estimated,
        )

    def needs_summary(self) -> bool:
        """Return whether a summary is due; tell the user once if it is and none would help."""
        if not self.is_automatic:
            return False
        fill = self.fill()
        room = room_for(self.size, fill, budget=self._budget())
        if room == "explain":
            self._explain(fill)
        return room == "summarize"

    async def summarize(self, *, wishes: str = "") -> None:
        """Have a summary stand for what was said so far.

        Args:
            wishes: what the user wants of it.

        Raises:
            ProviderError: the model cannot be asked.

        Cancelling leaves the conversation as it was; what was used counts as spent.
        """
        fill = self.fill()
        self.emit(SummaryStarted())
        summarizer = Summarizer(self.requests, self.gauge)
        is_made = False
        try:
            reply = await summarizer.reply(self._task(wishes))
            is_made = True
        finally:
            if not is_made:
                self.conversation.use(self.info.label, summarizer.usage)
        self.conversation.summarize(
            text_of(reply),
            todos=self.todos(),
            max_request_chars=self.size // 8 * 3 or REQUEST_CHARS,
            reply=reply,
        )
        self.emit(SummaryFinished(text_of(reply), fill.total, self.fill().total))

    async def shrink(self, error: ContextTooLong) -> None:
        """Make the next request shorter than the last one, which did not fit.

        Raises:
            ContextTooLong: there is nothing to shorten, or it is not allowed; says why.
        """
        asked, limit = error.asked_tokens or 0, error.limit_tokens or 0
        if not error.is_body:
            self.gauge.overflowed(
                self.info.label,
                asked=asked,
                limit=limit,
                counted=self._counted,
                known=self.info.context_window,
            )
        if asked and limit - asked > LEAST_OUTPUT_TOKENS:
            self._limits_output = True
            return
        if not self.is_automatic or not can_shrink(self.size, self.fill()):
            raise self.too_long(error) from error
        await self.summarize()

    def too_long(self, error: ContextTooLong) -> ContextTooLong:
        """Return `error` with what fills the window, and what can be done about it."""
        if error.is_body:
            return error
        fill = self.fill()
        window = f" of {self.size:,}" if self.size else ""
        return ContextTooLong(
            f"The next request does not fit into the window of {self.info.id}: it has about "
            f"{fill.total:,}{window} tokens.",
            provider=error.provider,
            status=error.status,
            hint=self._advice(fill),
            detail=f"{self._largest()}\n\n{error.detail}".strip(),
        )

    def _task(self, wishes: str) -> Task:
        def messages() -> tuple[Message, ...]:
            context, running = self.conversation.sent
            answered, _ = split_unseen(running)
            return self.requests.repairer.repaired(context, answered)

        return Task(
            system=self.prompt.text,
            tools=self.tools,
            messages=messages,
            tool_tokens=self.tool_tokens,
            used=lambda: self.fill().total - self.fill().unseen,
            wishes=wishes,
        )

    def _fixed(self) -> int:
        """Return our own count of what goes with every request."""
        prompt = tokens_of_text(self.prompt.text) + tokens_of_text(self.prompt.reminder)
        return prompt + self.tool_tokens

    def _budget(self) -> int:
        info = self.info
        return budget_of(self.size, info.max_output_tokens, can_reason=info.can_reason)

    def _output_limit(self) -> int:
        """Return what the reply may have at most; zero leaves it to the adapter."""
        most = min(self.info.max_output_tokens or MOST_OUTPUT_TOKENS, MOST_OUTPUT_TOKENS)
        if not self.size or not (self._limits_output or self.info.max_output_tokens):
            return 0
        room = self.size - self.fill().total - LEAST_OUTPUT_TOKENS // 4
        return max(LEAST_OUTPUT_TOKENS, room) if room < most else 0

    def _explain(self, fill: Fill) -> None:
        if self.info.label in self.explained:
            return
        self.explained.add(self.info.label)
        self.emit(
            Notice(
                f"The window of {self.info.id} is nearly full: about {fill.total:,} of "
                f"{self.size:,} tokens, and a summary would hardly help. {self._largest()} "
                f"{self._advice(fill)}"
            )
        )

    def _advice(self, fill: Fill) -> str:
        if fill.unseen > max(fill.fixed, fill.new):
            return "Ask for less in one cell, attach fewer files, or choose a larger window."
        if fill.fixed > fill.new:
            return "Shorten memory files, or choose a model with a larger window with `/model`."
        if not self.is_automatic:
            return "Run `/compact`, or allow summaries by unsetting `CRUSH_DISABLE_AUTO_SUMMARIZE`."
        return "Run `/compact`, remove cells above, or choose a larger window with `/model`."

    def _largest(self) -> str:
        """Return a sentence about what fills the window."""
        largest = sorted(self._parts(), key=lambda part: -part[1])[:NAMED_PARTS]
        named = ", ".join(f"{name} ~{tokens:,}" for name, tokens in largest if tokens)
        return f"Most of it: {named}."

    def _parts(self) -> Iterator[tuple[str, int]]:
        for part in self.prompt.parts:
            yield part.name, tokens_of_text(part.text)
        yield "tools", self.tool_tokens
        context, running = self.conversation.sent
        answered, unseen = split_unseen(running)
        yield "the conversation", sum(map(tokens_of, context + answered))
        yield "this cell", sum(map(tokens_of, unseen))
