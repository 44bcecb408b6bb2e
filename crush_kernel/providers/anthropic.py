"""The adapter for Anthropic's messages API, by way of Anthropic's SDK.

The SDK makes the connection, signs the request and raises its own errors, which are
translated here; its typed stream is not used, since it takes several times as long as
`anthropic_reply` to come to the same events. Every byte that comes is a sign of life,
pings and comments included; silence has a limit, one for the first byte and one for the
rest. Never retries by itself.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from ssl import SSLContext
from typing import Final

import anyio
import httpx2
from anthropic import (
    AnthropicError,
    APIConnectionError,
    APIResponseValidationError,
    APIStatusError,
    AsyncAnthropic,
    AsyncStream,
    CredentialsError,
    DefaultAsyncHttpxClient,
    Omit,
    Timeout,
    omit,
)

from crush_kernel.errors import AuthenticationFailed, ProviderError, RequestRejected
from crush_kernel.providers.address import is_loopback, server_address
from crush_kernel.providers.anthropic_reply import ReplyDecoder
from crush_kernel.providers.anthropic_wire import RequestEncoder
from crush_kernel.providers.base import ModelInfo, ModelRequest, StreamEvent
from crush_kernel.providers.failures import (
    cut_off,
    from_response,
    garbled,
    redact,
    silent,
    unreachable,
)

logger = logging.getLogger(__name__)

FIRST_BYTE_TIMEOUT_S: Final = 180.0
"""From the request to the first byte; a long prompt is read for a while first."""

IDLE_TIMEOUT_S: Final = 120.0
"""Between bytes; Anthropic itself pings every few seconds, servers like it may not."""

CONNECT_TIMEOUT_S: Final = 15.0

_DRAIN_TIMEOUT_S: Final = 0.25
"""How long to wait for the end of a body that holds no more news. A connection whose body
was read to its end serves the next request, which saves a handshake."""

_KEEP_ALIVE_S: Final = 90.0
"""A step's tools run for a while; httpx2 itself would close the connection after 5 s."""

_MAX_PAGE_BYTES: Final = 64_000
"""What is kept of an answer that is no reply, to say what it is."""

_BEARER: Final = "Bearer "

_ENDPOINT: Final = "https://api.anthropic.com"

# Compressing single tokens saves nothing, and makes proxies hold them back.
_HEADERS: Final = {"Content-Type": "application/json", "Accept-Encoding": "identity"}

_PAGES: Final = ("text/html", "application/json", "text/plain")
"""What a reply never is; other types are tried, since servers and proxies get it wrong."""


class AnthropicModel:
    """A model behind Anthropic's messages API, or an API like it."""

    def __init__(
        self,
        info: ModelInfo,
        *,
        api_key: str,
        base_url: str | None = None,
        first_byte_timeout_s: float = FIRST_BYTE_TIMEOUT_S,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        use_cache: bool = True,
        headers: Mapping[str, str] | None = None,
        verify: SSLContext | bool = True,
    ) -> None:
        """Prepare to talk; nothing is sent yet.

        Args:
            info: the model; its provider is named in errors.
            api_key: the key; one that begins with `Bearer ` goes into `Authorization`.
            base_url: what comes before `/v1/messages`; `None` is Anthropic's own.
            first_byte_timeout_s: limit from the request to the first byte of the reply.
            idle_timeout_s: limit between two bytes of the reply.
            use_cache: whether to mark where the provider's prompt cache ends.
            headers: more headers, which win over ours.
            verify: the certificates to believe.

        Raises:
            ConfigError: `base_url` is not the address of a server.
            AuthenticationFailed: `api_key` cannot be sent.
        """
        self._info = info
        address = server_address(base_url or _ENDPOINT)
        # Many a `*_BASE_URL` was written for a client that does not add the version itself.
        self._address = address.geturl().removesuffix("/v1")
        self._secrets = (_checked(api_key, info.provider),)
        self._first_byte_timeout_s = first_byte_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._encoder = RequestEncoder(info, use_cache=use_cache)
        self._headers = {**_HEADERS, **_authorization(api_key), **(headers or {})}
        self._client = AsyncAnthropic(
            api_key=api_key,
            base_url=self._address,
            max_retries=0,
            open_telemetry=False,
            http_client=DefaultAsyncHttpxClient(
                timeout=Timeout(CONNECT_TIMEOUT_S, read=None, write=first_byte_timeout_s),
                limits=httpx2.Limits(keepalive_expiry=_KEEP_ALIVE_S),
                # Without TLS there is nothing to verify, and loading certificates takes a while.
                verify=verify if address.scheme == "https" else False,
                # No proxy leads to this machine, whatever the environment says.
                trust_env=not is_loopback(address.hostname or ""),
            ),
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
        response = await self._send(self._encoder.encode(request), deadline)
        try:
            async with aclosing(self._events(response, deadline)) as events:
                yield events
        finally:
            # httpcore2 shields the closing itself, and closing a socket does not block.
            await response.aclose()

    async def aclose(self) -> None:
        """Close the connections; safe to repeat."""
        await self._client.close()

    async def _send(self, body: bytes, deadline: float) -> httpx2.Response:
        with self._translated(), anyio.move_on_after(deadline - anyio.current_time()):
            stream = await self._client.post(
                "/v1/messages",
                content=body,
                cast_to=object,
                stream=True,
                stream_cls=AsyncStream[object],
                # A redirect would carry the key to another server.
                options={"headers": self._headers, "follow_redirects": False},
            )
            return stream.response
        raise silent(self._info.provider, self._first_byte_timeout_s)

    async def _events(
        self, response: httpx2.Response, deadline: float
    ) -> AsyncGenerator[StreamEvent]:
        """Yield the events of a reply; the one scope a read is all that it costs."""
        decoder = ReplyDecoder(self._info.provider, secrets=self._secrets)
        with self._translated():
            async with aclosing(response.aiter_bytes()) as body:
                chunk = await self._first(response, body, deadline)
                while chunk:
                    for event in decoder.feed(chunk):
                        yield event
                    if decoder.is_complete:
                        break
                    with anyio.CancelScope(
                        deadline=anyio.current_time() + self._idle_timeout_s
                    ) as idle:
                        chunk = await anext(body, b"")
                    if idle.cancelled_caught:
                        raise silent(self._info.provider, self._idle_timeout_s)
                for event in decoder.finish():
                    yield event
                with suppress(httpx2.HTTPError), anyio.move_on_after(_DRAIN_TIMEOUT_S):
                    await anext(body, b"")

    async def _first(
        self, response: httpx2.Response, body: AsyncGenerator[bytes], deadline: float
    ) -> bytes:
        """Return the first bytes of a reply, none if it has no body."""
        with anyio.CancelScope(deadline=deadline):
            chunk = await anext(body, b"")
            if not response.headers.get("content-type", "").startswith(_PAGES):
                return chunk
            page = bytearray(chunk)
            while len(page) < _MAX_PAGE_BYTES and (chunk := await anext(body, b"")):
                page += chunk
            text = page[:_MAX_PAGE_BYTES].decode("utf-8", "replace")
            raise self._refused(response.status_code, response.headers, text)
        raise silent(self._info.provider, self._first_byte_timeout_s)

    @contextmanager
    def _translated(self) -> Generator[None]:
        """Turn what the SDK and httpx2 raise into `ProviderError`s."""
        try:
            yield
        except (AnthropicError, httpx2.HTTPError, httpx2.StreamError) as error:
            raise translate(
                error,
                self._info.provider,
                now=datetime.now(UTC),
                address=self._address,
                secrets=self._secrets,
            ) from error

    def _refused(self, status: int, headers: Mapping[str, str], body: str) -> ProviderError:
        return from_response(
            self._info.provider,
            status,
            headers,
            body,
            now=datetime.now(UTC),
            secrets=self._secrets,
        )


def translate(
    error: AnthropicError | httpx2.HTTPError | httpx2.StreamError,
    provider: str,
    *,
    now: datetime,
    address: str = "",
    secrets: tuple[str, ...] = (),
) -> ProviderError:
    """Return our word for an error of the SDK or its transport.

    Args:
        error: what was raised.
        provider: the id of the provider.
        now: the time, against which dates to wait for are measured.
        address: where the provider was looked for.
        secrets: texts that must not appear in the error, such as the key.
    """
    match error:
        case APIStatusError(status_code=status, response=reply):
            return from_response(
                provider, status, reply.headers, reply.text, now=now, secrets=secrets
            )
        case CredentialsError():
            return AuthenticationFailed(
                "The key cannot be read.", provider=provider, hint="Set `ANTHROPIC_API_KEY`."
            )
        case APIResponseValidationError() | httpx2.DecodingError():
            return garbled(provider, detail=redact(str(error), secrets))
        case httpx2.RemoteProtocolError():
            return cut_off(provider, detail=redact(str(error), secrets))
        case APIConnectionError() | httpx2.HTTPError() | httpx2.StreamError():
            return unreachable(provider, error, address=address, secrets=secrets)
        case _:
            return RequestRejected(
                "The request could not be made.",
                provider=provider,
                hint="Run the cell again; the details say what stood in the way.",
                detail=redact(repr(error), secrets),
            )


def _authorization(api_key: str) -> Mapping[str, str | Omit]:
    """Return the headers of `api_key`; servers like Anthropic's look for a key in its own.

    Source: Crush, "Building a client per run".
    """
    if api_key.startswith(_BEARER):
        return {"Authorization": api_key}
    return {"X-Api-Key": api_key, "Authorization": omit}


def _checked(api_key: str, provider: str) -> str:
    """Return `api_key` if a header can hold it; HTTP libraries would quote it in their error."""
    if not api_key.strip():
        raise AuthenticationFailed(
            "There is no key.", provider=provider, hint="Set `ANTHROPIC_API_KEY`."
        )
    if not (api_key.isascii() and api_key.isprintable()):
        raise AuthenticationFailed(
            "The key holds characters that no key has.",
            provider=provider,
            hint="Copy it again, without line breaks or quotation marks.",
        )
    return api_key
