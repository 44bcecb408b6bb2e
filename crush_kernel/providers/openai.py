"""The adapter for servers that speak OpenAI's chat completions.

One request is one POST, its reply a stream that `openai_reply` cuts into events. A parameter
that the server refuses by name is left out or renamed from then on. Never retries by itself.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from ssl import SSLContext
from typing import Final

import anyio
import httpx2

from crush_kernel.messages import Message, calls_of, shared_length
from crush_kernel.providers.address import server_address
from crush_kernel.providers.base import ModelInfo, ModelRequest, StreamEvent
from crush_kernel.providers.connection import HEADERS, Connection
from crush_kernel.providers.openai_reply import ReplyDecoder
from crush_kernel.providers.openai_wire import RequestEncoder, adapted, dialect_of
from crush_kernel.providers.places import located
from crush_kernel.providers.sse import MAX_PAGE_BYTES

logger = logging.getLogger(__name__)

SILENCE_TIMEOUT_S: Final = 300.0
"""A local server reads a long prompt, and some models think, for minutes without a sign."""

_ERROR_TIMEOUT_S: Final = 10.0
"""For the body of a refusal, whose status already says most."""


class OpenAIModel:
    """A model behind an OpenAI-compatible endpoint."""

    def __init__(
        self,
        info: ModelInfo,
        *,
        api_key: str,
        base_url: str,
        silence_timeout_s: float = SILENCE_TIMEOUT_S,
        verify: SSLContext | bool = True,
    ) -> None:
        """Prepare to talk; nothing is sent yet.

        Args:
            info: the model; its provider is named in errors and decides the dialect.
            api_key: the key, empty for servers that need none.
            base_url: what comes before `/chat/completions`, such as `https://host/v1`.
            silence_timeout_s: limit from the request to the head of the reply, and between
                two bytes of its body.
            verify: the certificates to believe.

        Raises:
            ConfigError: `base_url` is not the address of a server.
            AuthenticationFailed: `api_key` cannot be sent.
        """
        address = server_address(base_url)
        self._info = info
        self._url = f"{address.geturl()}/chat/completions"
        self._headers = HEADERS
        if api_key:
            bearer = f"Bearer {api_key.removeprefix('Bearer ')}"
            self._headers = {**HEADERS, "Authorization": bearer}
        self._dialect = dialect_of(info.provider)
        self._encoder = RequestEncoder(info)
        self._ids = _CallIds()
        self._connection = Connection(
            info.provider,
            address,
            api_key=api_key,
            silence_timeout_s=silence_timeout_s,
            verify=verify,
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
        with located(partial(self._encoder.places, request)):
            response = await self._respond(request)
            claim = self._ids.claimer(request.messages)
            decoder = ReplyDecoder(self._info.provider, claim, secrets=self._connection.secrets)
            async with self._connection.reply(response, decoder) as events:
                yield events

    async def aclose(self) -> None:
        """Close the connections; safe to repeat."""
        await self._connection.client.aclose()

    async def _respond(self, request: ModelRequest) -> httpx2.Response:
        """Return the response to `request`, worded so that the server accepts it."""
        tried = {self._dialect}
        while True:
            response = await self._send(self._encoder.encode(request, self._dialect))
            if response.is_success:
                return response
            complaint = await _read_error(response)
            status = response.status_code
            better = adapted(self._dialect, complaint) if status in (400, 422) else None
            if better is None or better in tried:
                raise self._connection.refused(status, response.headers, complaint)
            logger.info("%s: adapting to %s", self._info.label, better)
            tried.add(better)
            self._dialect = better

    async def _send(self, body: bytes) -> httpx2.Response:
        client = self._connection.client
        message = client.build_request("POST", self._url, content=body, headers=self._headers)
        with self._connection.awaiting_head():
            return await client.send(message, stream=True)


async def _read_error(response: httpx2.Response) -> str:
    """Return the body of a refusal, as much of it as comes soon and is worth reading."""
    body = bytearray()
    with suppress(httpx2.HTTPError), anyio.move_on_after(_ERROR_TIMEOUT_S):
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_PAGE_BYTES:
                break
    await response.aclose()
    return body[:MAX_PAGE_BYTES].decode("utf-8", "replace")


class _CallIds:
    """Gives out ids for tool calls that no earlier call of the conversation has.

    Some servers send none, others count from one in every reply.
    """

    def __init__(self) -> None:
        self._messages: tuple[Message, ...] = ()
        self._taken: set[str] = set()

    def claimer(self, messages: tuple[Message, ...]) -> Callable[[str], str]:
        """Return a function for the reply to `messages`.

        It returns the id that it is given if that is free, else the first free one like it.
        """
        known = len(self._messages)
        if shared_length(messages, self._messages) < known:
            self._taken, known = set(), 0
        self._messages = messages
        self._taken.update(call.id for said in messages[known:] for call in calls_of(said))
        given: set[str] = set()

        def claim(wanted: str) -> str:
            name, number = wanted or "call_1", 2
            while name in self._taken or name in given:
                name = f"{wanted or 'call'}_{number}"
                number += 1
            given.add(name)
            return name

        return claim
