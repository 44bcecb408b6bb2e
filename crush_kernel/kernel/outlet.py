"""Where the messages of one cell go: its parent is bound once and never looked up again.

Late and concurrent messages so always reach their own cell. Lines from the keyboard come
the same way: ipykernel's own `raw_input` would block the loop, interrupts included.

Source: Jupyter messaging, "Messages on the stdin channel"; ipykernel keeps the parent in a
context variable that a widget's callback does not share.
"""

import asyncio
import re
from dataclasses import dataclass
from typing import Any, Protocol, cast

import zmq

JsonContent = dict[str, Any]

POLL_S = 0.05
"""How often the keyboard is looked at; nobody types faster."""

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

    def publish(self, msg_type: str, content: JsonContent) -> None:
        """Send one message on IOPub. Lone surrogates, which no JSON carries, are replaced."""
        self.session.send(self.iopub, msg_type, cast("JsonContent", _clean(content)), self.parent)

    async def read_line(self, prompt: str) -> str:
        """Show `prompt` in the front end and return the line the user types.

        Cancelling stops the waiting; the protocol has no way to withdraw the question, and a
        late answer is thrown away before the next one is asked.
        """
        while self.stdin.poll(0):
            self.stdin.recv_multipart(zmq.NOBLOCK)
        question = {"prompt": prompt, "password": False}
        self.session.send(self.stdin, "input_request", question, self.parent, ident=self.ident)
        while True:
            if self.stdin.poll(0):
                _, message = self.session.recv(self.stdin)
                if message is not None:
                    return str(message["content"]["value"])
            await asyncio.sleep(POLL_S)


def _clean(value: object) -> object:
    match value:
        case str():
            return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
        case dict():
            return {key: _clean(item) for key, item in cast("JsonContent", value).items()}
        case list():
            return [_clean(item) for item in cast("list[object]", value)]
        case _:
            return value
