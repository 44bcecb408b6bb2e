"""The fake provider: uvicorn in a thread, on a free port of the loopback interface.

It answers `/v1/messages` as Anthropic does and `/v1/chat/completions` as OpenAI does, from
one script, and keeps every request. A request that the real API would refuse is refused
before the script is looked at. Works for a kernel in another process: only the URL crosses.
"""

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import uvicorn
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from crush_kernel.agent.title import SYSTEM
from crush_kernel.messages import JsonObject, Usage
from tests.fakes.provider.anthropic_api import AnthropicDialect
from tests.fakes.provider.delivery import PlannedStream, plan_steps
from tests.fakes.provider.dialect import Dialect, Refused, Step
from tests.fakes.provider.metering import Meter
from tests.fakes.provider.openai_api import OpenAIDialect
from tests.fakes.provider.replies import (
    Answer,
    Hold,
    HttpReply,
    RawReply,
    Reply,
    say,
)

_TITLE = SYSTEM[:40].encode()
"""In each request for a title."""

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
    tokens: int = 0
    """Of the prompt, by the fake's own count."""
    usage: Usage | None = None
    """What the reply reports, if it is one of the script's `Reply`s."""
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
        self.titles: list[Received] = []
        """Requests for the title of a notebook, which come beside those of the script."""
        self.title: Answer = say("A fake title")
        """The answer to these."""
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
        self.meter = Meter()
        """What it knows of tokens: its window, its cache, what it reports."""

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
        if _TITLE in received.raw:
            self.titles.append(received)
        else:
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
            overflow = self._overflow(received, dialect)
            answer = overflow or self._next_answer(received)
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
            metered = self.meter.metered(answer, received.body, dialect=dialect.name)
            received.usage = metered.usage
            steps = dialect.render(metered, received.body)
            kind = "text/event-stream; charset=utf-8"
        plan = plan_steps(steps, answer.fault, answer.piece_bytes)
        return PlannedStream(plan, kind, gone=received.gone, held=self._held)

    def _overflow(self, received: Received, dialect: Dialect) -> HttpReply | None:
        received.tokens = self.meter.tokens_of(received.body)
        overflow = self.meter.overflow(received.body, dialect=dialect.name)
        if overflow is not None:
            received.refusal = "The request is longer than the context window"
        return overflow

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
        if _TITLE in received.raw:
            return self.title
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
