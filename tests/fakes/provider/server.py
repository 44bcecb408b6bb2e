"""The fake provider: uvicorn in a thread, on a free port of the loopback interface.

It answers `/v1/messages` as Anthropic does and `/v1/chat/completions` as OpenAI does, from
one script, and keeps every request. A request that the real API would refuse is refused
before the script is looked at. Works for a kernel in another process: only the URL crosses.
"""

import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, cast

import anyio
import anyio.lowlevel
import uvicorn
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from crush_kernel.messages import JsonObject
from tests.fakes.provider.anthropic_api import AnthropicDialect
from tests.fakes.provider.dialect import Dialect, Refused, Step
from tests.fakes.provider.openai_api import OpenAIDialect
from tests.fakes.provider.replies import (
    Answer,
    Beat,
    Cut,
    Fault,
    Hold,
    HttpReply,
    RawReply,
    Reply,
    Reset,
)

_WAIT_S = 10.0
"""How long a test waits for a request; long enough for two busy cores."""


@dataclass(slots=True)
class Received:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes
    arrived_at: float
    """Seconds of `time.monotonic`."""
    client: tuple[str, int]
    """Where it came from; requests over one connection have the same."""
    body: JsonObject = field(default_factory=dict[str, JsonValue])
    refusal: str = ""
    """Why it was refused, if it was."""
    gone: threading.Event = field(default_factory=threading.Event)
    """Set when the client has left before the reply was complete."""


Script: TypeAlias = Callable[[Received], Answer]
"""A function from request to answer, called in the server's thread."""


class FakeProvider:
    """What a test holds of the server: its address, its script, the requests it has had."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        """What goes into `ANTHROPIC_BASE_URL`."""
        self.openai_url = f"{self.url}/v1"
        """What goes into `OPENAI_BASE_URL`."""
        self.reset()

    def reset(self) -> None:
        """Forget all, and let go of whatever is held."""
        for hold in tuple(getattr(self, "_held", ())):
            hold.release()
        self._held: set[Hold] = set()
        self._answers: deque[Answer] = deque()
        self._script: Script | None = None
        self._arrival = threading.Condition()
        self.requests: list[Received] = []
        """Requests for a reply, oldest first, refused ones included."""
        self.visits: list[Received] = []
        """All other requests, such as for the list of models."""
        self.keys: frozenset[str] = frozenset()
        """The keys it takes; empty takes any."""
        self.models: tuple[str, ...] = ("claude-sonnet-4-5", "gpt-5-mini")
        """The models it lists."""
        self.refuses_other_models = False
        self.pages: dict[str, HttpReply] = {}
        """Answers to further paths, such as `/api/tags`; they come before its own."""
        self.anthropic = AnthropicDialect()
        self.openai = OpenAIDialect()

    def play(self, *script: Answer | Script) -> None:
        """Append answers to the script, or put a function in its place."""
        for entry in script:
            if isinstance(entry, Reply | RawReply | HttpReply):
                self._answers.append(entry)
            else:
                self._script = entry

    @property
    def unplayed(self) -> int:
        """Return how many answers are left."""
        return len(self._answers)

    def wait_requests(self, count: int) -> list[Received]:
        """Block until `count` requests have come; in a coroutine, through `anyio.to_thread`.

        Raises:
            TimeoutError: they have not come within ten seconds.
        """
        with self._arrival:
            if not self._arrival.wait_for(lambda: len(self.requests) >= count, _WAIT_S):
                raise TimeoutError(f"{len(self.requests)} of {count} requests came")
        return self.requests

    async def endpoint(self, request: Request) -> Response:
        """Answer one request."""
        received = await _receive(request)
        page = self.pages.get(received.path)
        dialect = self._dialect(received)
        if page is not None or dialect is None or received.method == "GET":
            self.visits.append(received)
            return _plain(page or self._visit(received))
        self._keep(received)
        return self._reply(received, dialect)

    def _dialect(self, received: Received) -> Dialect | None:
        if received.path.endswith("/messages") or "anthropic-version" in received.headers:
            return self.anthropic
        return self.openai if received.path.endswith(("/completions", "/models")) else None

    def _visit(self, received: Received) -> HttpReply:
        dialect = self._dialect(received)
        if dialect is None or not received.path.endswith("/models"):
            return HttpReply(404, {"detail": "Not Found"})
        if not self._is_key_good(received):
            return dialect.refusal(Refused("invalid x-api-key", status=401, kind="auth"))
        return HttpReply(200, dialect.models(self.models))

    def _keep(self, received: Received) -> None:
        with self._arrival:
            self.requests.append(received)
            self._arrival.notify_all()

    def _reply(self, received: Received, dialect: Dialect) -> Response:
        try:
            self._check(received, dialect)
            answer = self._next_answer(received)
        except Refused as refused:
            received.refusal = refused.message
            return _plain(dialect.refusal(refused))
        if isinstance(answer, HttpReply):
            return _plain(answer)
        if isinstance(answer, RawReply):
            body = answer.body if isinstance(answer.body, tuple) else (answer.body,)
            steps: list[Step] = [part.encode() if isinstance(part, str) else part for part in body]
            kind = answer.content_type
        else:
            steps = dialect.render(answer, received.body)
            kind = "text/event-stream; charset=utf-8"
        plan = plan_steps(steps, answer.fault, answer.piece_bytes)
        return _Stream(plan, kind, received, self._held)

    def _check(self, received: Received, dialect: Dialect) -> None:
        if not self._is_key_good(received):
            raise Refused("invalid x-api-key", status=401, kind="authentication_error")
        try:
            body = json.loads(received.raw)
            received.raw.decode("utf-8")
            json.dumps(body, ensure_ascii=False).encode("utf-8")
        except ValueError as error:
            raise Refused(f"The request body is not valid JSON: {error}") from error
        if not isinstance(body, dict):
            raise Refused("The request body is not a JSON object")
        received.body = cast("JsonObject", body)
        model = received.body.get("model")
        if self.refuses_other_models and model not in self.models:
            raise Refused(
                f"model: {model}", status=404, kind="not_found_error", code="model_not_found"
            )
        dialect.check(received.headers, received.body)

    def _is_key_good(self, received: Received) -> bool:
        header = received.headers.get("authorization", "").removeprefix("Bearer ")
        key = received.headers.get("x-api-key") or header
        return not self.keys or key in self.keys

    def _next_answer(self, received: Received) -> Answer:
        if self._script is not None:
            return self._script(received)
        if not self._answers:
            raise Refused("The script of the fake provider is played to its end")
        return self._answers.popleft()


@contextmanager
def serving() -> Generator[FakeProvider]:
    """Run a fake provider for the length of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # asyncio does it only for sockets that name their protocol, which this one does not.
        # Without, every reply of several events waits 40 ms for the client's acknowledgment.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        provider = FakeProvider(cast("int", listener.getsockname()[1]))
        routes = [Route("/{path:path}", provider.endpoint, methods=["GET", "POST"])]
        config = uvicorn.Config(
            Starlette(routes=routes),
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            timeout_graceful_shutdown=2,
        )
        server = _Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            if not server.is_up.wait(_WAIT_S):
                raise TimeoutError("the fake provider does not start")
            yield provider
        finally:
            provider.reset()
            server.should_exit = True
            thread.join()


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


def _plain(answer: HttpReply) -> Response:
    if isinstance(answer.body, str):
        looks = "text/html" if answer.body.lstrip().startswith("<") else "text/plain"
        return Response(
            answer.body,
            answer.status,
            headers=dict(answer.headers),
            media_type=answer.content_type or looks,
        )
    return Response(
        json.dumps(answer.body),
        answer.status,
        headers=dict(answer.headers),
        media_type=answer.content_type or "application/json",
    )


async def _receive(request: Request) -> Received:
    return Received(
        method=request.method,
        path=request.url.path,
        headers=dict(request.headers),
        raw=await request.body(),
        arrived_at=time.monotonic(),
        client=request.client or ("", 0),
    )


class _Transport(Protocol):
    """As much of asyncio's transport as it takes to break a connection."""

    def close(self) -> None: ...
    def abort(self) -> None: ...
    def get_extra_info(self, name: str) -> socket.socket: ...


class _Protocol(H11Protocol):
    """Hands each request the transport it came on, so that a reply can break it."""

    def connection_made(self, transport: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - asyncio is banned
        super().connection_made(transport)  # pyright: ignore[reportArgumentType] - as above
        self.app_state = {**self.app_state, "transport": transport}


class _Server(uvicorn.Server):
    """Tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()


class _Stream(Response):
    """Plays a plan; ends when the client leaves."""

    def __init__(
        self,
        plan: list[Step | Cut | Reset | None],
        content_type: str,
        received: Received,
        held: set[Hold],
    ) -> None:
        super().__init__()
        self._plan = plan
        self._content_type = content_type
        self._received = received
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
        self._received.gone.set()
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
