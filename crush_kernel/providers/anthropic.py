"""The adapter for Anthropic's messages API, by way of Anthropic's SDK.

The SDK makes the request, signs it and raises its own errors, which are translated here;
its typed stream is not used, since it takes several times as long as `anthropic_reply` to
come to the same events. Never retries by itself.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from ssl import SSLContext
from typing import Final

import httpx2
from anthropic import (
    AnthropicError,
    APIConnectionError,
    APIResponseValidationError,
    APIStatusError,
    AsyncAnthropic,
    AsyncStream,
    CredentialsError,
    Omit,
    omit,
)

from crush_kernel.errors import AuthenticationFailed, ProviderError, RequestRejected
from crush_kernel.providers.address import server_address
from crush_kernel.providers.anthropic_reply import ReplyDecoder
from crush_kernel.providers.anthropic_wire import RequestEncoder
from crush_kernel.providers.base import ModelInfo, ModelRequest, StreamEvent
from crush_kernel.providers.connection import HEADERS, Connection
from crush_kernel.providers.failures import garbled, redact
from crush_kernel.providers.places import located

SILENCE_TIMEOUT_S: Final = 180.0
"""A long prompt is read for a while before anything comes; later Anthropic itself pings every
few seconds, servers like it may not."""


class AnthropicModel:
    """A model behind Anthropic's messages API, or an API like it."""

    def __init__(
        self,
        info: ModelInfo,
        *,
        api_key: str,
        base_url: str,
        silence_timeout_s: float = SILENCE_TIMEOUT_S,
        use_cache: bool = True,
        verify: SSLContext | bool = True,
    ) -> None:
        """Prepare to talk; nothing is sent yet.

        Args:
            info: the model; its provider is named in errors.
            api_key: the key; one that begins with `Bearer ` goes into `Authorization`.
            base_url: what comes before `/v1/messages`, with or without the `/v1`.
            silence_timeout_s: limit from the request to the head of the reply, and between
                two bytes of its body.
            use_cache: whether to mark where the provider's prompt cache ends.
            verify: the certificates to believe.

        Raises:
            ConfigError: `base_url` is not the address of a server.
            AuthenticationFailed: there is no `api_key`, or it cannot be sent.
        """
        if not api_key.strip():
            raise AuthenticationFailed(
                "There is no key.", provider=info.provider, hint="Set `ANTHROPIC_API_KEY`."
            )
        address = server_address(base_url)
        self._info = info
        self._encoder = RequestEncoder(info, use_cache=use_cache)
        self._headers = {**HEADERS, **_authorization(api_key)}
        self._connection = Connection(
            info.provider,
            address,
            api_key=api_key,
            silence_timeout_s=silence_timeout_s,
            verify=verify,
        )
        self._client = AsyncAnthropic(
            api_key=api_key,
            # Many a `*_BASE_URL` was written for a client that does not add the version itself.
            base_url=address.geturl().removesuffix("/v1"),
            max_retries=0,
            open_telemetry=False,
            http_client=self._connection.client,
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
        decoder = ReplyDecoder(self._info.provider, secrets=self._connection.secrets)
        with located(partial(self._encoder.places, request.messages)):
            response = await self._send(self._encoder.encode(request))
            async with self._connection.reply(response, decoder) as events:
                yield events

    async def aclose(self) -> None:
        """Close the connections; safe to repeat."""
        await self._client.close()

    async def _send(self, body: bytes) -> httpx2.Response:
        with self._connection.awaiting_head():
            try:
                stream = await self._client.post(
                    "/v1/messages",
                    content=body,
                    cast_to=object,
                    stream=True,
                    stream_cls=AsyncStream[object],
                    # A redirect would carry the key to another server.
                    options={"headers": self._headers, "follow_redirects": False},
                )
            except AnthropicError as error:
                raise translate(error, self._connection) from error
        return stream.response


def translate(error: AnthropicError, connection: Connection) -> ProviderError:
    """Return our word for an error of the SDK."""
    match error:
        case APIStatusError(status_code=status, response=reply):
            return connection.refused(status, reply.headers, reply.text)
        case CredentialsError():
            return AuthenticationFailed(
                "The key cannot be read.",
                provider=connection.provider,
                hint="Set `ANTHROPIC_API_KEY`.",
            )
        case APIResponseValidationError():
            return garbled(connection.provider, detail=redact(str(error), connection.secrets))
        case APIConnectionError():
            return connection.lost(error)
        case _:
            return RequestRejected(
                "The request could not be made.",
                provider=connection.provider,
                hint="Run the cell again; the details say what stood in the way.",
                detail=redact(repr(error), connection.secrets),
            )


def _authorization(api_key: str) -> Mapping[str, str | Omit]:
    """Return the headers of `api_key`; servers like Anthropic's look for a key in its own.

    Source: Crush, "Building a client per run".
    """
    if api_key.startswith("Bearer "):
        return {"Authorization": api_key}
    return {"X-Api-Key": api_key, "Authorization": omit}
