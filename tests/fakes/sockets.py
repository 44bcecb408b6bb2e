"""Servers of a few lines, for what no proper server would do."""

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import cast

import anyio
from anyio.abc import ByteStream, Listener, SocketAttribute, SocketStream
from anyio.streams.tls import TLSListener


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return cast("int", listener.getsockname()[1])


@asynccontextmanager
async def listening(
    serve: Callable[[SocketStream], Awaitable[None]], *, tls: SSLContext | None = None
) -> AsyncGenerator[str]:
    """Serve every connection with `serve`; yield the base URL, up to and with `/v1`."""

    async def handle(stream: ByteStream) -> None:
        try:
            async with stream:
                await serve(cast("SocketStream", stream))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            pass  # the client has left

    plain = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = plain.extra(SocketAttribute.local_port)  # noqa: S610 - this is no Django
    listener: Listener[ByteStream] = (
        TLSListener(plain, tls, standard_compatible=False) if tls else plain
    )
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        yield f"http{'s' if tls else ''}://127.0.0.1:{port}/v1"
        tasks.cancel_scope.cancel()
