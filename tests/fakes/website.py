"""A web server of a few lines on a loopback address of choice, that also does what none should."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address

import anyio
from anyio.abc import SocketAttribute, SocketStream

from crush_kernel.tools.web.addresses import IPAddress, is_public

PUBLIC = "127.0.0.2"
"""An address of this machine that `counts_as_public` takes for one of the internet."""

PRIVATE = "127.0.0.1"


def counts_as_public(address: IPAddress) -> bool:
    """Return whether `address` is public or stands for a public one in a test."""
    return address == IPv4Address(PUBLIC) or is_public(address)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]


@dataclass(slots=True)
class Website:
    """A running server: what it was asked, and whether clients have left."""

    host: str
    port: int = 0
    asked: list[Asked] = field(default_factory=list[Asked])
    left: anyio.Event = field(default_factory=anyio.Event)
    """Set when a client has closed a connection while it was being answered."""

    def url(self, path: str = "/", *, host: str = "") -> str:
        return f"http://{host or self.host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]


Serve = Callable[[Asked, SocketStream], Awaitable[None]]


@asynccontextmanager
async def website(serve: Serve, host: str = PUBLIC) -> AsyncGenerator[Website]:
    """Answer every request with `serve` on a free port of `host`, one to a connection."""
    site = Website(host)

    async def handle(stream: SocketStream) -> None:
        async with stream:
            try:
                asked = await _request(stream)
                site.asked.append(asked)
                await serve(asked, stream)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                site.left.set()

    listener = await anyio.create_tcp_listener(local_host=host)
    site.port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - this is no Django
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        yield site
        tasks.cancel_scope.cancel()


def reply(
    body: bytes | str = b"",
    *,
    status: str = "200 OK",
    content_type: str = "text/plain",
    **more: str,
) -> bytes:
    """Return a whole response; names in `more` have `_` for `-`."""
    data = body if isinstance(body, bytes) else body.encode()
    headers = {
        "Connection": "close",
        "Content-Type": content_type,
        "Content-Length": str(len(data)),
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode("latin-1") + data


def serving(**pages: bytes) -> Serve:
    """Return how to answer `/name` with the response `pages[name]`, all else with 404."""

    async def serve(asked: Asked, stream: SocketStream) -> None:
        name = asked.path.partition("?")[0].strip("/") or "index"
        await stream.send(pages.get(name, reply("no such page", status="404 Not Found")))

    return serve


async def _request(stream: SocketStream) -> Asked:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    line, *fields = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v for k, _, v in (each.partition(": ") for each in fields)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    return Asked(line, headers, body)
