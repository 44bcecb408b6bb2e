"""Where the messages of one cell go: its parent is bound once and never looked up again.

Late and concurrent messages so always reach their own cell. Lines from the keyboard come
the same way: ipykernel's own `raw_input` would block the loop, interrupts included.

Source: Jupyter messaging, "Messages on the stdin channel"; ipykernel keeps the parent in a
context variable that a widget's callback does not share.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

import zmq

from crush_kernel.errors import CrushKernelError
from crush_kernel.kernel.plaintext import visible
from crush_kernel.wording import clipped

logger = logging.getLogger(__name__)

JsonContent = dict[str, Any]

Pack = Callable[[object], bytes]
"""Makes JSON in UTF-8 of a part of a message."""

Keep = Callable[[str, JsonContent], JsonContent]
"""Takes the type and content of an output before it is sent, and gives what is to be sent."""

Clean = Callable[[JsonContent], JsonContent]
"""Takes the secrets out of what a reply says."""

SETTLE_S = 0.1
"""How long a question waits for the output before it: they go over different sockets, and a
console that gets the question first asks before it shows what is asked."""

POLL_S = 0.05
"""How often the keyboard is looked at; nobody types faster."""

END_OF_INPUT = "\x04"
"""What front ends send in place of a line that ends the input."""

MAX_ERROR_CHARS = 1000
"""How long the sentence of an error may be that somebody else has worded."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")


class MessageSession(Protocol):
    """What is needed of `jupyter_client.session.Session`."""

    def send(
        self,
        stream: Any,  # noqa: ANN401 - a socket or a thread's stand-in for one
        msg_or_type: str,
        content: JsonContent | None = None,
        parent: JsonContent | None = None,
        ident: bytes | list[bytes] | None = None,
    ) -> JsonContent | None:
        """Send a message that answers `parent`."""
        ...

    def recv(self, socket: Any) -> tuple[list[bytes] | None, JsonContent | None]:  # noqa: ANN401
        """Receive a message, `None` if it is not whole."""
        ...


@dataclass(frozen=True, slots=True)
class Outlet:
    """The way to the front end for one execute request."""

    session: MessageSession
    iopub: object
    stdin: zmq.Socket[bytes]
    parent: JsonContent
    ident: bytes | list[bytes] | None
    keep: Keep = lambda _, content: content
    clean: Clean = lambda content: content

    def publish(self, msg_type: str, content: JsonContent) -> None:
        """Keep one message and send it on IOPub."""
        self.session.send(self.iopub, msg_type, self.keep(msg_type, content), self.parent)

    def fail(self, error: Exception, *, is_told: bool = False) -> JsonContent:
        """Publish the `error` output of a failed cell and return what its reply says.

        Args:
            error: why the cell failed.
            is_told: whether a person reads it above already; the red box then only names it.
        """
        # A program that runs the notebook prints the reply, and not the box.
        content = self.clean(error_content(error))
        box = content | {"traceback": [content["ename"]]} if is_told else content
        self.publish("error", box)
        return {"status": "error", **content}

    async def read_line(self, prompt: str) -> str:
        """Show `prompt` in the front end and return the line the user types.

        Cancelling stops the waiting; the protocol has no way to withdraw the question, and a
        late answer is thrown away.

        Raises:
            EOFError: the user has closed the keyboard, with Ctrl-D.
        """
        await asyncio.sleep(SETTLE_S)
        while self.stdin.poll(0):
            self.stdin.recv_multipart(zmq.NOBLOCK)
        content = {"prompt": prompt, "password": False}
        question = self.session.send(
            self.stdin, "input_request", content, self.parent, ident=self.ident
        )
        while True:
            while self.stdin.poll(0):
                if (line := _answer(self._receive(), question)) is not None:
                    if line == END_OF_INPUT:
                        raise EOFError
                    return line
            await asyncio.sleep(POLL_S)

    def _receive(self) -> JsonContent | None:
        try:
            return self.session.recv(self.stdin)[1]
        except Exception:
            logger.exception("bad message on the stdin channel")
            return None


def error_content(error: Exception) -> JsonContent:
    """Return how the protocol tells of `error`.

    A console prints it as it is, so nothing in it can steer a terminal.
    """
    if not isinstance(error, CrushKernelError):
        error = CrushKernelError(
            f"The kernel failed unexpectedly: {type(error).__name__}: {error}",
            hint="Run the cell again; if that does not help, restart the kernel.",
        )
    name, message, hint = type(error).__name__, _line(str(error)), _line(error.hint)
    told = " ".join(filter(None, (message, hint)))
    return {"ename": name, "evalue": message, "traceback": [f"{name}: {told}"]}


def packing_any_text(pack: Pack) -> Pack:
    """Return `pack` so that half a character, which no JSON carries, goes as U+FFFD.

    A cell, the name of a file and the output of a program may all hold one. jupyter_client
    raises on some of them and writes others as bytes that are no UTF-8.
    """

    def packed(message: object) -> bytes:
        try:
            data = pack(message)
            if not data.isascii():
                data.decode()
        except UnicodeError:
            return pack(_clean(message))
        return data

    return packed


def _answer(message: JsonContent | None, question: JsonContent | None) -> str | None:
    """Return the line that `message` brings, `None` if it is no answer to `question`."""
    match message:
        # Not every front end says what it answers; those that do may answer an earlier question.
        case {"parent_header": {"msg_type": "input_request", "msg_id": asked}} if (
            question is not None and asked != question["msg_id"]
        ):
            return None
        case {"content": {"value": str() as line}}:
            return line
        case _:
            return None


def _line(text: str) -> str:
    return clipped(" ".join(visible(text).split()), MAX_ERROR_CHARS)


def _clean(value: object) -> object:
    match value:
        case str():
            return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
        case dict():
            items = cast("dict[object, object]", value).items()
            return {_clean(key): _clean(item) for key, item in items}
        case list() | tuple():
            return [_clean(item) for item in cast("list[object]", value)]
        case _:
            return value
