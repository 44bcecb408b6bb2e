"""What a fake provider can be told to answer.

A script is a sequence of answers, or a function from request to answer. A `Reply` is said
in the dialect of the request; a `RawReply` goes out as it is; an `HttpReply` is no stream.
A `Hold` stands anywhere in a reply and keeps the rest back until the test releases it, so
that no test sleeps.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

import anyio
from anyio import from_thread
from anyio.lowlevel import current_token

from crush_kernel.messages import JsonObject, Usage

PING: Final = 'event: ping\ndata: {"type": "ping"}\n\n'
COMMENT: Final = ": keep-alive\n\n"

_WAIT_S = 10.0
"""How long a test waits for a fake; long enough for two busy cores."""


class Hold:
    """Stops a reply where it stands until `release`; usable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wakers: list[Callable[[], None]] = []
        self._reached = threading.Event()
        self._is_open = False

    def release(self) -> None:
        """Let the reply go on; safe to repeat."""
        with self._lock:
            self._is_open = True
            wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()

    async def wait(self) -> None:
        """Wait for `release`, in the server's loop."""
        event = anyio.Event()
        with self._lock:
            if not self._is_open:
                self._wakers.append(partial(from_thread.run_sync, event.set, token=current_token()))
            else:
                event.set()
        self._reached.set()
        await event.wait()

    @property
    def is_released(self) -> bool:
        """Whether the reply may go on."""
        return self._is_open

    def wait_reached(self) -> None:
        """Block until a reply stands here; call it through `anyio.to_thread` in a coroutine.

        Raises:
            TimeoutError: none came within ten seconds.
        """
        if not self._reached.wait(_WAIT_S):
            raise TimeoutError("no reply came to this hold")


Pieces: TypeAlias = str | tuple[str | Hold, ...]
"""Text as one string, or as the deltas it is sent in, holds between them."""


@dataclass(frozen=True, slots=True)
class Say:
    """Text."""

    text: Pieces
    size: int = 0
    """Characters a delta; zero sends each piece whole."""


@dataclass(frozen=True, slots=True)
class Think:
    """Thinking; a dialect that signs it makes a signature up from the text if none is given."""

    text: Pieces
    signature: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class ThinkRedacted:
    """Thinking that only the provider can read."""

    data: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `input` as raw JSON text, to be wrong in, or as the object it means."""

    name: str
    input: JsonObject | Pieces = field(default_factory=dict[str, object])  # pyright: ignore[reportAssignmentType] - an empty object of either value type
    id: str = ""
    """Empty lets the provider count."""
    size: int = 0


Block: TypeAlias = Say | Think | ThinkRedacted | Call | Hold


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """An error inside the stream, in place of its end."""

    type: str
    message: str = "Overloaded"


@dataclass(frozen=True, slots=True)
class Cut:
    """Ends the connection after so many bytes of body; negative counts from the end."""

    after: int
    is_clean: bool = False
    """Whether HTTP calls it the end of the body, as behind a proxy."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Resets the TCP connection after so many bytes of body; negative counts from the end."""

    after: int


@dataclass(frozen=True, slots=True)
class Stall:
    """Goes silent until `hold` is released, then goes on."""

    hold: Hold
    after: int | None = None
    """After so many bytes of body, zero being after the headers; `None` is before them."""


Fault: TypeAlias = Cut | Reset | Stall


@dataclass(frozen=True, slots=True)
class Beat:
    """Sends `text` over and over, as fast as the client reads, until `hold` is released."""

    hold: Hold
    text: str = PING


@dataclass(frozen=True, slots=True)
class Reply:
    """A streamed reply, in whatever dialect it is asked for."""

    blocks: tuple[Block, ...]
    stop: str = ""
    """In the provider's own word; empty is its word for what the blocks are."""
    usage: Usage | None = Usage(input_tokens=10, output_tokens=5)  # noqa: RUF009 - frozen
    keep_alive: str = ""
    """Sent before every event: `PING`, `COMMENT` or empty."""
    error: ErrorEvent | None = None
    """Sent after the blocks, in place of the end."""
    fault: Fault | None = None
    piece_bytes: int = 0
    """Bytes a write; zero writes event by event."""


@dataclass(frozen=True, slots=True)
class RawReply:
    """A stream with this very body."""

    body: str | bytes | tuple[str | Hold | Beat, ...]
    fault: Fault | None = None
    piece_bytes: int = 0
    content_type: str = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpReply:
    """Anything that is no stream: an error, a page, a list."""

    status: int
    body: str | JsonObject | Sequence[JsonObject] = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = ""
    """Empty is JSON for an object, and HTML or plain text by the look of a string."""


Answer: TypeAlias = Reply | RawReply | HttpReply


def say(*texts: str) -> Reply:
    """Return the reply that says `texts`, one block each."""
    return Reply(tuple(Say(text) for text in texts))


def call(name: str, arguments: JsonObject | None = None, *, call_id: str = "") -> Reply:
    """Return the reply that makes one tool call."""
    return Reply((Call(name, arguments or {}, id=call_id),))


def pieces_of(text: Pieces, size: int) -> list[str | Hold]:
    """Return `text` as the deltas to send, cut to `size` characters if that is not zero."""
    parts = (text,) if isinstance(text, str) else text
    if not size:
        return list(parts)
    cut: list[str | Hold] = []
    for part in parts:
        if isinstance(part, Hold):
            cut.append(part)
        else:
            cut += [part[start : start + size] for start in range(0, len(part), size)]
    return cut


def input_text(call: Call) -> Pieces:
    """Return the raw JSON text of a call's input."""
    if isinstance(call.input, str | tuple):
        return call.input
    return json.dumps(call.input, ensure_ascii=False)
