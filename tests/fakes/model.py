"""A model that plays a list of replies, without a network."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from crush_kernel.errors import CrushKernelError
from crush_kernel.messages import StopReason, Usage
from crush_kernel.providers.base import (
    ModelInfo,
    ModelRequest,
    Stop,
    StreamEvent,
    TextDelta,
    ToolCallStart,
    ToolInputDelta,
    UsageReport,
)

Item = StreamEvent | CrushKernelError | anyio.Event
"""An event is yielded, an error raised; an `anyio.Event` is set, and then nothing comes."""


@dataclass
class FakeModel:
    """Plays one list of items a request, the last one for ever, and keeps the requests."""

    replies: list[list[Item]]
    info: ModelInfo = ModelInfo(provider="fake", id="fake-1")  # noqa: RUF009 - frozen
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        reply = self.replies[min(len(self.requests), len(self.replies) - 1)]
        self.requests.append(request)
        yield _play(reply)

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()


@dataclass
class AnsweringModel:
    """Answers each request by a function of it, and keeps the requests."""

    answer: Callable[[ModelRequest], list[Item]]
    info: ModelInfo = ModelInfo(provider="fake", id="fake-1")  # noqa: RUF009 - frozen
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        self.requests.append(request)
        yield _play(self.answer(request))

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()


async def _play(items: Iterable[Item]) -> AsyncGenerator[StreamEvent]:
    for item in items:
        await anyio.lowlevel.checkpoint()
        if isinstance(item, CrushKernelError):
            raise item
        if isinstance(item, anyio.Event):
            item.set()
            await anyio.sleep_forever()
        else:
            yield item


def says(text: str, *, stop: StopReason = "end_turn") -> list[Item]:
    """A reply in words."""
    return [TextDelta(0, text), UsageReport(Usage(input_tokens=10, output_tokens=2)), Stop(stop)]


def calls(*wanted: tuple[str, str, str], stop: StopReason = "tool_use") -> list[Item]:
    """A reply of tool calls, each an id, a name and raw JSON."""
    events: list[Item] = []
    for index, (call_id, name, arguments) in enumerate(wanted):
        events += [ToolCallStart(index, call_id, name), ToolInputDelta(index, arguments)]
    return [*events, Stop(stop)]
