"""How a body goes out: in pieces, with stops, and broken off where it should be."""

import socket
import struct
import threading
from typing import Protocol, cast

import anyio
import anyio.lowlevel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.fakes.provider.dialect import Step
from tests.fakes.provider.replies import Beat, Cut, Fault, Hold, Reset


def plan_steps(
    steps: list[Step], fault: Fault | None, piece_bytes: int
) -> list[Step | Cut | Reset | None]:
    """Return `steps` with `fault` in its place, in pieces of `piece_bytes` bytes if not zero.

    `None` in the result stands for the headers.
    """
    if piece_bytes:
        steps = [piece for step in steps for piece in _pieces(step, piece_bytes)]
    if fault is None:
        return [None, *steps]
    if isinstance(fault, Cut | Reset):
        return [None, *_split(steps, fault.after)[0], fault]
    if fault.after is None:
        return [fault.hold, None, *steps]
    before, rest = _split(steps, fault.after)
    return [None, *before, fault.hold, *rest]


def _pieces(step: Step, size: int) -> list[Step]:
    if not isinstance(step, bytes):
        return [step]
    return [step[start : start + size] for start in range(0, len(step), size)]


def _split(steps: list[Step], position: int) -> tuple[list[Step], list[Step]]:
    if position < 0:
        position += sum(len(step) for step in steps if isinstance(step, bytes))
    for number, step in enumerate(steps):
        size = len(step) if isinstance(step, bytes) else 0
        if isinstance(step, bytes) and position < size:
            before: list[Step] = [step[:position]] if position else []
            return [*steps[:number], *before], [step[position:], *steps[number + 1 :]]
        position -= size
    return steps, []


class _Transport(Protocol):
    """As much of asyncio's transport as it takes to break a connection."""

    def close(self) -> None: ...
    def abort(self) -> None: ...
    def get_extra_info(self, name: str) -> socket.socket: ...


class PlannedStream(Response):
    """Plays a plan; ends when the client leaves."""

    def __init__(
        self,
        plan: list[Step | Cut | Reset | None],
        content_type: str,
        *,
        gone: threading.Event,
        held: set[Hold],
    ) -> None:
        super().__init__()
        self._plan = plan
        self._content_type = content_type
        self._gone = gone
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, receive, tasks.cancel_scope)
            transport = cast("_Transport", scope["state"]["transport"])
            await self._play(transport, send)
            tasks.cancel_scope.cancel()

    async def _watch(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone.set()
        scope.cancel()

    async def _play(self, transport: _Transport, send: Send) -> None:
        for step in self._plan:
            if isinstance(step, Hold):
                await self._wait(step)
            elif isinstance(step, Beat):
                await self._beat(step, send)
            elif isinstance(step, Cut | Reset):
                await self._break(step, transport, send)
                return
            else:
                await send(self._head() if step is None else _body(step, has_more=True))
        await send(_body(b"", has_more=False))

    async def _wait(self, hold: Hold) -> None:
        self._held.add(hold)
        await hold.wait()
        self._held.discard(hold)

    async def _beat(self, step: Beat, send: Send) -> None:
        while not step.hold.is_released:
            await send(_body(step.text.encode(), has_more=True))
            await anyio.lowlevel.checkpoint()

    async def _break(self, step: Cut | Reset, transport: _Transport, send: Send) -> None:
        if isinstance(step, Cut) and step.is_clean:
            await send(_body(b"", has_more=False))
            return
        if isinstance(step, Reset):
            # Closing with a linger time of zero makes the kernel send RST in place of FIN.
            linger = struct.pack("ii", 1, 0)
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        else:
            transport.close()
        await anyio.sleep_forever()  # until `_watch` sees the connection gone

    def _head(self) -> dict[str, object]:
        headers = [(b"content-type", self._content_type.encode()), (b"request-id", b"req_fake")]
        return {"type": "http.response.start", "status": 200, "headers": headers}


def _body(data: bytes, *, has_more: bool) -> dict[str, object]:
    return {"type": "http.response.body", "body": data, "more_body": has_more}
