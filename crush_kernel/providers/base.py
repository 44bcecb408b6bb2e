"""The port to a model: a request goes in, events come out, and they add up to a message.

Pure: an adapter does the talking (`providers.anthropic`, `providers.openai`,
`providers.offline.model`), the agent the deciding. An adapter translates every failure into the
`ProviderError` family and never retries by itself.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, assert_never

from crush_kernel.messages import (
    JsonObject,
    Message,
    Part,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    Usage,
)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known about a model; zero or `None` where it is not."""

    provider: str
    id: str
    name: str = ""
    context_window: int = 0
    """Tokens that request and reply may fill together."""
    max_output_tokens: int = 0
    input_price: float | None = None
    """US dollars per million tokens, like the other prices."""
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None
    accepts_images: bool = False
    accepts_documents: bool = False
    can_reason: bool = False

    @property
    def label(self) -> str:
        """Return the name as users write it, `provider/model`."""
        return f"{self.provider}/{self.id}"

    def cost(self, usage: Usage) -> float | None:
        """Return what `usage` costs in US dollars; `None` where a price that counts is unknown."""
        charges = (
            (usage.input_tokens, self.input_price),
            (usage.output_tokens, self.output_price),
            (usage.cache_read_tokens, self.cache_read_price),
            (usage.cache_write_tokens, self.cache_write_price),
        )
        total = 0.0
        for tokens, price in charges:
            if tokens and price is None:
                return None
            total += tokens * (price or 0.0) / 1_000_000
        return total if self.input_price is not None else None

    def saved(self, usage: Usage) -> float | None:
        """Return what the cache has saved of `usage` in US dollars; negative if it cost more.

        `None` where a price that counts is unknown.
        """
        anew = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        cost = self.cost(usage)
        uncached = self.cost(Usage(input_tokens=anew, output_tokens=usage.output_tokens))
        return None if cost is None or uncached is None else uncached - cost


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model reads it."""

    name: str
    description: str
    input_schema: JsonObject
    """JSON schema of an object."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything that one request says; `messages` are already repaired."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int = 0
    """Zero leaves the choice to the adapter."""
    reminder: str = ""
    """Said after everything else, for this request only: never kept, never cached."""
    forbids_tools: bool = False
    """The model must not call a tool; `tools` are sent all the same, being part of what is
    cached. At Anthropic the messages that are cached are lost by it, tools and system prompt
    are not: where words may do, leave it at words. Some servers know of words only, so that a
    call may come nevertheless."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the block `index`."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More thinking in the block `index`."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningData:
    """The provider's own form of the thinking in block `index`, complete; may come alone."""

    index: int
    data: JsonObject


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """The block `index` is a call of the tool `name`."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolInputDelta:
    """More raw JSON for the call in block `index`."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class UsageReport:
    """What the request has used so far; a later report replaces an earlier one."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Stop:
    """The provider says that the reply is complete. A stream without it was cut off."""

    reason: StopReason
    unknown: str = ""
    """The provider's own word, if it is none that we know."""


StreamEvent = (
    TextDelta | ReasoningDelta | ReasoningData | ToolCallStart | ToolInputDelta | UsageReport | Stop
)


class Model(Protocol):
    """A model that can be asked."""

    @property
    def info(self) -> ModelInfo:
        """What is known about the model."""
        ...

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Send `request` and yield the reply as it comes; the last event is `Stop`.

        Leaving the context closes the connection. Entering and iterating raise
        `ProviderError`s; a stream that ends, stalls or garbles before `Stop` raises
        `ConnectionLost`. Cancelling is safe at any await.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections; safe to repeat."""
        ...


class Accumulator:
    """Adds the events of one reply up to a message; blocks keep the order of their indices."""

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self._blocks: dict[int, _Block] = {}
        self.usage: Usage | None = None
        self.stop: StopReason | None = None

    def feed(self, event: StreamEvent) -> None:
        """Take in `event`. The order of events of one block matters, of blocks not."""
        match event:
            case TextDelta(index=index, text=text):
                self._block(index, "text").text.append(text)
            case ReasoningDelta(index=index, text=text):
                self._block(index, "reasoning").text.append(text)
            case ReasoningData(index=index, data=data):
                self._block(index, "reasoning").data = data
            case ToolCallStart(index=index, id=call_id, name=name):
                block = self._block(index, "tool_call")
                block.call_id, block.name = call_id, name
            case ToolInputDelta(index=index, text=text):
                self._block(index, "tool_call").text.append(text)
            case UsageReport(usage=usage):
                self.usage = usage
            case Stop(reason=reason):
                self.stop = reason
            case _:
                assert_never(event)

    def message(self, *, stop: StopReason | None = None) -> Message:
        """Return what has come so far.

        Args:
            stop: why the reply ends here, if the provider has not said so. A call
                whose reply was cut off may be incomplete: its input is as it came.
        """
        blocks = (self._blocks[index] for index in sorted(self._blocks))
        return Message(
            role="assistant",
            parts=tuple(part for block in blocks if (part := block.part()) is not None),
            provider=self._info.provider,
            model=self._info.id,
            stop=stop or self.stop,
            usage=self.usage,
        )

    def _block(self, index: int, kind: str) -> "_Block":
        block = self._blocks.get(index)
        if block is None:
            block = self._blocks[index] = _Block(kind)
        return block


class _Block:
    """One part in the making."""

    __slots__ = ("call_id", "data", "kind", "name", "text")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.text: list[str] = []
        self.data: JsonObject = {}
        self.call_id = ""
        self.name = ""

    def part(self) -> Part | None:
        text = "".join(self.text)
        if self.kind == "text":
            return Text(text) if text else None
        if self.kind == "reasoning":
            return Reasoning(text, self.data) if text or self.data else None
        return ToolCall(id=self.call_id, name=self.name, input=text)
