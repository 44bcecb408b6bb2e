"""A model whose use of the prompt cache is noted; all else is the model's own."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from crush_kernel.providers.base import Model, ModelInfo, ModelRequest, StreamEvent, UsageReport
from crush_kernel.providers.cachemisses import CacheLedger


class WatchedModel:
    """Passes everything on to a model, and what it reports of its cache to a ledger."""

    def __init__(
        self, model: Model, ledger: CacheLedger, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Watch `model` and own it.

        Args:
            model: the one to ask; closed with this one.
            ledger: where the use of the cache is noted.
            clock: tells the time in seconds, also of a machine that has slept.
        """
        self._model = model
        self._ledger = ledger
        self._clock = clock

    @property
    def info(self) -> ModelInfo:
        """What is known about the model."""
        return self._model.info

    @property
    def unwatched(self) -> Model:
        """The model itself, for requests that are none of the conversation; not to be closed."""
        return self._model

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        """Send `request` and yield the reply as it comes; see `Model.stream`."""
        async with (
            self._model.stream(request) as events,
            aclosing(self._watched(request, events)) as watched,
        ):
            yield watched

    async def aclose(self) -> None:
        """Close the connections; safe to repeat."""
        await self._model.aclose()

    async def _watched(
        self, request: ModelRequest, events: AsyncIterator[StreamEvent]
    ) -> AsyncGenerator[StreamEvent]:
        asked_at_s = self._clock()
        usage = None
        try:
            async for event in events:
                if isinstance(event, UsageReport):
                    usage = event.usage
                yield event
        finally:
            # What a reply that was cut off has read is in the cache as well.
            if usage is not None:
                self._ledger.note(self.info.label, request, usage, now_s=asked_at_s)
