"""The way of a request to the model and of its reply back, over whatever lies between.

A request that fails for a while is made again; what a provider refuses of the history is left
out and the rest sent once more. What is heard meanwhile, and what becomes of a reply that
breaks off, is the business of whoever asks.
"""

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import anyio

from crush_kernel.agent.events import Emit, Notice, Retrying
from crush_kernel.agent.steps import MAX_ATTEMPTS, retry_delay
from crush_kernel.errors import ProviderError, RequestRejected
from crush_kernel.history.quarantine import blamed
from crush_kernel.history.repairer import Repairer
from crush_kernel.messages import Message
from crush_kernel.providers.base import Accumulator, Model, ModelRequest, StreamEvent

logger = logging.getLogger(__name__)


class Hearer(Protocol):
    """Hears a reply while it comes."""

    def heard(self, event: StreamEvent) -> None:
        """Take in the next event."""

    def dropped(self) -> None:
        """Forget what was heard: the reply broke off and will be made anew."""

    def broke_off(self, message: Message) -> None:
        """Take in what has come of a reply that will not be made again."""


@dataclass(slots=True)
class Requests:
    """Sends the requests of one turn to its model."""

    model: Model
    repairer: Repairer
    emit: Emit
    retries: int = 0
    """How often something was asked again."""

    async def reply(self, build: Callable[[], ModelRequest], hearer: Hearer) -> Message:
        """Send what `build` makes and return the reply; once more without what is refused of it.

        Raises:
            ProviderError: it cannot be had; what has come of it was told to `hearer`.

        Cancelling closes the connection; what has come by then is told as well.
        """
        request = build()
        try:
            return await self._asked(request, hearer)
        except RequestRejected as refusal:
            mended = self._mended(request, refusal, build)
            if mended is None:
                raise
        return await self._asked(mended, hearer)

    def _mended(
        self, request: ModelRequest, refusal: RequestRejected, build: Callable[[], ModelRequest]
    ) -> ModelRequest | None:
        """Return `request` without what `refusal` is about, which is left out from now on.

        `None` if it is not clear what that is, or it makes no difference.
        """
        blame = blamed(refusal, request.messages)
        if blame is None:
            return None
        self.repairer.leave_out(blame.keys)
        mended = build()
        if mended.messages == request.messages:
            return None
        self.retries += 1
        logger.warning("left out, since it was refused: %d parts", len(blame.keys))
        self.emit(Notice(blame.notice))
        return mended

    async def _asked(self, request: ModelRequest, hearer: Hearer) -> Message:
        """Send `request` and return the reply, trying again while that may help."""
        attempt = 0
        while True:
            attempt += 1
            reply = Accumulator(self.model.info)
            try:
                await self._stream(request, reply, hearer)
            except ProviderError as error:
                delay = retry_delay(error, attempt=attempt, jitter=random.random())  # noqa: S311 - spreads load, guards nothing
                if delay is None:
                    hearer.broke_off(reply.message(stop="error"))
                    raise
                hearer.dropped()
                await self._wait(error, attempt, delay)
            except anyio.get_cancelled_exc_class():
                hearer.broke_off(reply.message(stop="interrupted"))
                raise
            else:
                return reply.message()

    async def _stream(self, request: ModelRequest, reply: Accumulator, hearer: Hearer) -> None:
        async with self.model.stream(request) as events:
            async for event in events:
                reply.feed(event)
                hearer.heard(event)

    async def _wait(self, error: ProviderError, attempt: int, delay_s: float) -> None:
        self.retries += 1
        logger.warning("attempt %d failed: %s", attempt, type(error).__name__)
        self.emit(
            Retrying(reason=str(error), attempt=attempt + 1, attempts=MAX_ATTEMPTS, delay_s=delay_s)
        )
        await anyio.sleep(delay_s)
