"""What is asked of the web, and whom a tool asks: the client is loaded when it is needed."""

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import anyio
import anyio.to_thread

from crush_kernel.tools.web.addresses import IPAddress, is_public
from crush_kernel.tools.web.content import MediaType
from crush_kernel.tools.web.urls import WebUrl

Resolve = Callable[[str, int], Awaitable[tuple[str, ...]]]
"""Gives the addresses of a name, for a port; raises `OSError` where there are none."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Visit:
    """A server that is about to be talked to, for one hop."""

    url: WebUrl
    is_private: bool
    addresses: tuple[str, ...] = ()
    """Where it is, as far as that is known."""
    came_from: WebUrl | None = None
    """Who redirects there."""


AskLeave = Callable[[Visit], Awaitable[None]]
"""Returns when a visit is allowed, raises `PermissionDenied` when it is not."""


class Answer(Protocol):
    """A reply whose body has not been read yet."""

    @property
    def url(self) -> WebUrl:
        """Where it comes from in the end."""
        ...

    @property
    def media_type(self) -> MediaType:
        """What the server says the body is."""
        ...

    @property
    def size(self) -> int | None:
        """How many bytes are announced, as they are sent."""
        ...

    def body(self) -> AsyncGenerator[bytes]:
        """Yield the body as it comes, decompressed, a MiB at a time at most."""
        ...


@dataclass(frozen=True, slots=True)
class Inquiry(Generic[T]):
    """What to ask of a server, and what to do with its answer."""

    url: WebUrl
    leave: AskLeave
    read: Callable[[Answer], Awaitable[T]]
    """Takes a good answer; the connection is closed when it returns or raises."""
    timeout_s: float
    """For everything but the questions to the user."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes | None = None
    """What to post; `None` gets."""
    is_trusted: bool = False
    """Whether the user has named this very server: it may be private, nobody is asked, and it
    must answer itself, without a redirect."""


async def look_up(host: str, port: int) -> tuple[str, ...]:
    """Return the addresses of `host` in the system's order, each once."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class Client(Protocol):
    """What carries out inquiries."""

    async def ask(self, inquiry: Inquiry[T]) -> T:
        """Return what `inquiry.read` makes of the answer."""
        ...


@dataclass(slots=True)
class Web:
    """The web, as far as the environment gives access to it; owns nothing that needs closing."""

    environ: Mapping[str, str] = field(repr=False)
    """Names proxies and certificates."""
    resolve: Resolve = look_up
    is_public: Callable[[IPAddress], bool] = is_public
    _client: Client | None = None

    async def ask(self, inquiry: Inquiry[T]) -> T:
        """Return what `inquiry.read` makes of the answer, redirects followed.

        Cancelling closes the connection.

        Raises:
            PermissionDenied: a server on the way is not allowed.
            ToolError: there is no good answer; the message says why.
        """
        if self._client is None:
            self._client = await anyio.to_thread.run_sync(self._load)
        return await self._client.ask(inquiry)

    def _load(self) -> Client:
        # The HTTP library takes 100 ms that most sessions do not need.
        from crush_kernel.tools.web.client import HttpClient  # noqa: PLC0415

        return HttpClient(self.environ, self.resolve, self.is_public)
