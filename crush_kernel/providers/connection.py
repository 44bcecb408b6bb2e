"""HTTP to a provider's server: the client, the bytes of a reply, and what fails as our errors.

Every byte that comes is a sign of life, pings and comments included; silence has a limit.
Within a reply the client's own read timeout keeps it, which costs nothing: a cancel scope
around every chunk would cost as much as reading it. Never retries by itself.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from ssl import SSLContext
from typing import Final, Protocol, cast
from urllib.parse import SplitResult

import anyio
import httpx2

from crush_kernel.errors import AuthenticationFailed, ProviderError
from crush_kernel.providers.address import is_loopback, without_password
from crush_kernel.providers.base import StreamEvent
from crush_kernel.providers.failures import (
    cut_off,
    from_response,
    garbled,
    redact,
    silent,
    unreachable,
)
from crush_kernel.providers.sse import NotAReply

CONNECT_TIMEOUT_S: Final = 15.0

HEADERS: Final = {
    "Content-Type": "application/json",
    # Compressing single tokens saves nothing, and makes proxies hold them back.
    "Accept-Encoding": "identity",
}

_KEEP_ALIVE_S: Final = 90.0
"""A step's tools run for a while; httpx2 itself would close the connection after 5 s."""

_USAGE_TIMEOUT_S: Final = 3.0
"""How long a reply that is over is waited for to say what it has used."""

_DRAIN_TIMEOUT_S: Final = 0.25
"""How long to wait for the end of a body that holds no more news. A connection whose body
was read to its end serves the next request, which saves a handshake."""


class Decoder(Protocol):
    """Turns the bytes of one reply into events; raises `ProviderError` or `NotAReply`."""

    @property
    def is_complete(self) -> bool:
        """Whether the reply is over; its usage may follow."""
        ...

    is_done: bool
    """Whether nothing that follows matters."""

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Yield what `chunk` adds to the reply."""
        ...

    def finish(self) -> Iterator[StreamEvent]:
        """Yield what the end of the body adds; the last event is `Stop`."""
        ...


class Connection:
    """One server as one provider; owns the client."""

    def __init__(
        self,
        provider: str,
        address: SplitResult,
        *,
        api_key: str,
        silence_timeout_s: float,
        verify: SSLContext | bool,
    ) -> None:
        """Prepare to talk; nothing is sent yet.

        Args:
            provider: whom to name in errors.
            address: where the server is.
            api_key: what must not appear in errors; empty for servers that need none.
            silence_timeout_s: limit from the request to the head of the reply, and between
                two bytes of its body.
            verify: the certificates to believe.

        Raises:
            AuthenticationFailed: `api_key` cannot be sent.
        """
        if not (api_key.isascii() and api_key.isprintable()):
            # HTTP libraries would quote it in their error.
            raise AuthenticationFailed(
                "The key holds characters that no key has.",
                provider=provider,
                hint="Copy it again, without line breaks or quotation marks.",
            )
        self.provider = provider
        self.secrets = (api_key,) if api_key else ()
        self.silence_timeout_s = silence_timeout_s
        self._address = without_password(address.geturl())
        self.client = httpx2.AsyncClient(
            # Reading is limited by `awaiting_head` at first, and from then on by `_events`.
            timeout=httpx2.Timeout(CONNECT_TIMEOUT_S, read=None, write=silence_timeout_s),
            limits=httpx2.Limits(keepalive_expiry=_KEEP_ALIVE_S),
            # Without TLS there is nothing to verify, and loading certificates takes a while.
            verify=verify if address.scheme == "https" else False,
            # No proxy leads to this machine, whatever the environment says.
            trust_env=not is_loopback(address.geturl()),
        )

    @asynccontextmanager
    async def reply(
        self, response: httpx2.Response, decoder: Decoder
    ) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        """Yield the events of a reply as they come; leaving the context closes it.

        Iterating raises `ProviderError`s only.
        """
        try:
            async with aclosing(self._events(response, decoder)) as events:
                yield events
        finally:
            # httpcore2 shields the closing itself, and closing a socket does not block.
            await response.aclose()

    @contextmanager
    def awaiting_head(self) -> Generator[None]:
        """Limit how long a request takes until its reply begins; raise `ProviderError`s only."""
        try:
            with anyio.fail_after(self.silence_timeout_s):
                yield
        except TimeoutError as error:
            raise silent(self.provider, self.silence_timeout_s) from error
        except httpx2.HTTPError as error:
            raise self.lost(error) from error

    def refused(self, status: int, headers: Mapping[str, str], body: str) -> ProviderError:
        """Return the error that an answer which is no reply amounts to."""
        now = datetime.now(UTC)
        return from_response(self.provider, status, headers, body, now=now, secrets=self.secrets)

    def lost(self, error: Exception) -> ProviderError:
        """Return the error that a failure of the transport amounts to."""
        match error:
            case httpx2.ReadTimeout():
                return silent(self.provider, self.silence_timeout_s)
            case httpx2.DecodingError():
                return garbled(self.provider, detail=redact(str(error), self.secrets))
            case httpx2.RemoteProtocolError():
                return cut_off(self.provider, detail=redact(str(error), self.secrets))
            case _:
                return unreachable(
                    self.provider, error, address=self._address, secrets=self.secrets
                )

    async def _events(
        self, response: httpx2.Response, decoder: Decoder
    ) -> AsyncGenerator[StreamEvent]:
        # httpcore2 looks at the limit again when it begins with the body.
        response.request.extensions["timeout"]["read"] = self.silence_timeout_s
        async with aclosing(_body(response)) as body:
            with self._translated(response):
                async for chunk in body:
                    for event in decoder.feed(chunk):
                        yield event
                    if decoder.is_complete:
                        break
                for event in await _last_events(body, decoder):
                    yield event
            with suppress(httpx2.HTTPError), anyio.move_on_after(_DRAIN_TIMEOUT_S):
                await anext(body, b"")

    @contextmanager
    def _translated(self, response: httpx2.Response) -> Generator[None]:
        try:
            yield
        except NotAReply as page:
            raise self.refused(response.status_code, response.headers, page.body) from page
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise self.lost(error) from error


async def _body(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield the bytes of the body, decoded if need be."""
    if response.headers.get("content-encoding", "identity") == "identity":
        # As httpx2 iterates it, less the generators that do nothing for plain bytes.
        stream = cast("httpx2.AsyncByteStream", response.stream)  # the client is async
    else:
        stream = response.aiter_bytes()
    async for chunk in stream:
        yield chunk


async def _last_events(body: AsyncGenerator[bytes], decoder: Decoder) -> list[StreamEvent]:
    """Return what follows the end of the reply; that it may not come does no harm."""
    events: list[StreamEvent] = []
    with suppress(httpx2.HTTPError), anyio.move_on_after(_USAGE_TIMEOUT_S):
        while not decoder.is_done and (chunk := await anext(body, b"")):
            events += decoder.feed(chunk)
    return [*events, *decoder.finish()]
