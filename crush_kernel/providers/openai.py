"""The adapter for servers that speak OpenAI's chat completions.

One request is one POST over httpx2, its reply a stream that is cut into events by
`openai_reply`. Every byte that comes is a sign of life, comments included; silence has a
limit, one for the first byte and one for the rest. A parameter that the server refuses by
name is left out or renamed from then on. Never retries by itself.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from ssl import SSLContext
from typing import Final, cast

import anyio
import httpx2

from crush_kernel.errors import AuthenticationFailed, ConnectionLost, ProviderError
from crush_kernel.messages import calls_of
from crush_kernel.providers.address import is_loopback, server_address
from crush_kernel.providers.base import ModelInfo, ModelRequest, StreamEvent
from crush_kernel.providers.failures import from_response, silent, unreachable
from crush_kernel.providers.openai_reply import NotAReply, ReplyDecoder
from crush_kernel.providers.openai_wire import RequestEncoder, adapted, dialect_of

logger = logging.getLogger(__name__)

FIRST_BYTE_TIMEOUT_S: Final = 300.0
"""A local server reads a long prompt for minutes before it says anything."""

IDLE_TIMEOUT_S: Final = 180.0
"""Of silence within the body; some models think for minutes without a sign of it."""

CONNECT_TIMEOUT_S: Final = 15.0

_USAGE_TIMEOUT_S: Final = 3.0
"""How long a reply that is over is waited for to say what it has used."""

_DRAIN_TIMEOUT_S: Final = 0.25
"""How long to wait for the end of a body that holds no more news. A connection whose body
was read to its end serves the next request, which saves a handshake."""

_KEEP_ALIVE_S: Final = 90.0
"""A step's tools run for a while; httpx2 itself would close the connection after 5 s."""

_ERROR_TIMEOUT_S: Final = 10.0
"""For the body of a refusal, whose status already says most."""

_MAX_ERROR_BYTES: Final = 64_000


class OpenAIModel:
    """A model behind an OpenAI-compatible endpoint."""

    def __init__(
        self,
        info: ModelInfo,
        *,
        api_key: str,
        base_url: str,
        first_byte_timeout_s: float = FIRST_BYTE_TIMEOUT_S,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        headers: Mapping[str, str] | None = None,
        verify: SSLContext | bool = True,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Prepare to talk; nothing is sent yet.

        Args:
            info: the model; its provider is named in errors and decides the dialect.
            api_key: the key, empty for servers that need none.
            base_url: what comes before `/chat/completions`, such as `https://host/v1`.
            first_byte_timeout_s: limit from the request to the first byte of the reply.
            idle_timeout_s: limit of silence within the reply's body.
            headers: more headers, which win over ours.
            verify: the certificates to believe.
            transport: what carries requests in place of the network.

        Raises:
            ConfigError: `base_url` is not the address of a server.
            AuthenticationFailed: `api_key` cannot be sent.
        """
        self._info = info
        address = server_address(base_url)
        self._url = f"{address.geturl()}/chat/completions"
        self._address = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
        self._secrets = (api_key,) if api_key else ()
        self._first_byte_timeout_s = first_byte_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._dialect = dialect_of(info.provider)
        self._encoder = RequestEncoder(info)
        self._client = httpx2.AsyncClient(
            headers={**_headers(info.provider, api_key), **(headers or {})},
            timeout=httpx2.Timeout(
                CONNECT_TIMEOUT_S,
                read=max(first_byte_timeout_s, idle_timeout_s),
                write=first_byte_timeout_s,
            ),
            limits=httpx2.Limits(keepalive_expiry=_KEEP_ALIVE_S),
            # Without TLS there is nothing to verify, and loading certificates takes a while.
            verify=verify if address.scheme == "https" else False,
            # No proxy leads to this machine, whatever the environment says.
            trust_env=not is_loopback(address.hostname or ""),
            transport=transport,
        )

    @property
    def info(self) -> ModelInfo:
        """What is known about the model."""
        return self._info

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        """Send `request` and yield the reply as it comes; the last event is `Stop`.

        Leaving the context closes the reply. Raises `ProviderError`s only.
        """
        deadline = anyio.current_time() + self._first_byte_timeout_s
        response = await self._respond(request, deadline)
        try:
            events = self._events(response, _Ids(request), deadline)
            try:
                yield events
            finally:
                await events.aclose()
        finally:
            # httpcore shields the closing itself, and closing a socket does not block.
            await response.aclose()

    async def aclose(self) -> None:
        """Close the connections; safe to repeat."""
        await self._client.aclose()

    async def _respond(self, request: ModelRequest, deadline: float) -> httpx2.Response:
        """Return the response to `request`, worded so that the server accepts it."""
        tried = {self._dialect}
        while True:
            body = self._encoder.encode(request, self._dialect)
            response = await self._send(body, deadline)
            if response.is_success:
                return response
            complaint = await self._read_error(response)
            is_adaptable = response.status_code in (400, 422)
            better = adapted(self._dialect, complaint) if is_adaptable else None
            if better is None or better in tried:
                raise self._refused(response, complaint)
            logger.info("%s: adapting to %s", self._info.label, better)
            tried.add(better)
            self._dialect = better

    async def _send(self, body: bytes, deadline: float) -> httpx2.Response:
        message = self._client.build_request("POST", self._url, content=body)
        try:
            with anyio.move_on_after(deadline - anyio.current_time()):
                response = await self._client.send(message, stream=True)
                # httpcore looks again when it begins with the body. Its own limit costs
                # nothing; a scope around every chunk would cost as much as reading it.
                message.extensions["timeout"]["read"] = self._idle_timeout_s
                return response
        except httpx2.HTTPError as error:
            raise self._lost(error) from error
        raise silent(self._info.provider, self._first_byte_timeout_s)

    async def _read_error(self, response: httpx2.Response) -> str:
        """Return the body of a refusal, as much of it as comes soon and is worth reading."""
        body = b""
        with suppress(httpx2.HTTPError), anyio.move_on_after(_ERROR_TIMEOUT_S):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MAX_ERROR_BYTES:
                    break
        await response.aclose()
        return body[:_MAX_ERROR_BYTES].decode("utf-8", "replace")

    async def _events(
        self, response: httpx2.Response, ids: "_Ids", deadline: float
    ) -> AsyncGenerator[StreamEvent]:
        decoder = ReplyDecoder(self._info.provider, ids.claim, secrets=self._secrets)
        async with aclosing(_body(response)) as body:
            try:
                for event in decoder.feed(await self._first_chunk(body, deadline)):
                    yield event
                if not decoder.is_complete:
                    async for chunk in body:
                        for event in decoder.feed(chunk):
                            yield event
                        if decoder.is_complete:
                            break
                for event in await self._last_events(body, decoder):
                    yield event
            except NotAReply as page:
                raise self._refused(response, page.body) from page
            except httpx2.HTTPError as error:
                raise self._lost(error) from error
            with suppress(httpx2.HTTPError), anyio.move_on_after(_DRAIN_TIMEOUT_S):
                await anext(body, b"")

    async def _first_chunk(self, body: AsyncGenerator[bytes], deadline: float) -> bytes:
        with anyio.move_on_after(deadline - anyio.current_time()):
            return await anext(body, b"")
        raise silent(self._info.provider, self._first_byte_timeout_s)

    async def _last_events(
        self, body: AsyncGenerator[bytes], decoder: ReplyDecoder
    ) -> list[StreamEvent]:
        """Return what follows the end of the reply; that it may not come does no harm."""
        events: list[StreamEvent] = []
        with suppress(httpx2.HTTPError), anyio.move_on_after(_USAGE_TIMEOUT_S):
            while not decoder.is_done and (chunk := await anext(body, b"")):
                events += decoder.feed(chunk)
        return [*events, *decoder.finish()]

    def _lost(self, error: httpx2.HTTPError) -> ConnectionLost:
        if isinstance(error, httpx2.ReadTimeout):
            return silent(self._info.provider, self._idle_timeout_s)
        provider, secrets = self._info.provider, self._secrets
        return unreachable(provider, error, address=self._address, secrets=secrets)

    def _refused(self, response: httpx2.Response, body: str) -> ProviderError:
        return from_response(
            self._info.provider,
            response.status_code,
            response.headers,
            body,
            now=datetime.now(UTC),
            secrets=self._secrets,
        )


class _Ids:
    """Gives out ids for tool calls that no earlier call of the conversation has.

    Some servers send none, others count from one in every reply.
    """

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._taken: set[str] | None = None

    def claim(self, wanted: str) -> str:
        """Return `wanted` if it is free, else the first free one like it."""
        if self._taken is None:
            self._taken = {call.id for said in self._request.messages for call in calls_of(said)}
        name, number = wanted or "call_1", 2
        while name in self._taken:
            name = f"{wanted or 'call'}_{number}"
            number += 1
        self._taken.add(name)
        return name


async def _body(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield the bytes of the body, decoded if need be."""
    if response.headers.get("content-encoding", "identity") == "identity":
        # As httpx2 iterates it, less two generators that do nothing for plain bytes.
        stream = cast("httpx2.AsyncByteStream", response.stream)  # the client is async
    else:
        stream = response.aiter_bytes()
    async for chunk in stream:
        yield chunk


def _headers(provider: str, api_key: str) -> dict[str, str]:
    # Compressing single tokens saves nothing, and makes proxies hold them back.
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    if not api_key:
        return headers
    if not (api_key.isascii() and api_key.isprintable()):
        raise AuthenticationFailed(
            "The key holds characters that no key has.",
            provider=provider,
            hint="Copy it again, without line breaks or quotation marks.",
        )
    return {**headers, "Authorization": f"Bearer {api_key.removeprefix('Bearer ')}"}
