"""Server-sent events: bytes in, the data of events out, wherever the bytes are split.

Pure. Event names and ids are dropped, since no provider says anything in them that the data
does not say again. A body that is no stream of events is told by how it begins: servers that
ignore `stream` send one JSON document, and proxies send pages. The content type tells less:
many servers send a wrong one, or none.

Source: WHATWG HTML, "Interpreting an event stream".
"""

import re
from typing import Final, Literal

MAX_EVENT_BYTES: Final = 16_000_000
"""No event of an honest server is longer; a longer one must not fill the memory."""

MAX_PAGE_BYTES: Final = 64_000
"""What is kept of an answer that is no reply, to say what it is."""

_BOM: Final = b"\xef\xbb\xbf"

_FIELD: Final = re.compile(rb"\s*(?:data|event|id|retry)?:")


class NotAReply(Exception):
    """What came in place of a reply: a web page, say. Translated by `providers.connection`."""

    def __init__(self, body: bytes) -> None:
        super().__init__("not a reply")
        self.body = body[:MAX_PAGE_BYTES].decode("utf-8", "replace")


class EventLines:
    """Cuts a stream into the data of its events."""

    def __init__(self) -> None:
        self._shape: Literal["", "events", "document", "page"] = ""
        self._head = bytearray()
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0
        self._rest_size = 0
        self._is_after_cr = False
        self._is_first_line = True

    @property
    def document(self) -> bytes:
        """What came in place of events, empty if events came or nothing did."""
        is_stray = self._head.strip() and not _FIELD.match(self._head)
        return bytes(self._head) if is_stray else b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of the events that `chunk` completes, oldest first.

        Raises:
            NotAReply: a page came, or something longer than `MAX_EVENT_BYTES`.
        """
        if self._shape != "events":
            chunk = self._sniff(chunk)
        if not chunk:
            return []
        is_half_read = self._is_after_cr and chunk.startswith(b"\n")
        self._is_after_cr = chunk.endswith(b"\r")
        if is_half_read:
            chunk = chunk[1:]
        lines = chunk.splitlines()
        tail = lines.pop() if lines and not chunk.endswith((b"\n", b"\r")) else b""
        if lines and self._rest:
            lines[0] = b"".join((*self._rest, lines[0]))
            self._rest.clear()
            self._rest_size = 0
        complete = [data for line in lines if (data := self._take(line))]
        if tail:
            self._rest.append(tail)
            self._rest_size += len(tail)
            self._check_size()
        return complete

    def flush(self) -> list[bytes]:
        """Return the data of the event that the stream's end left without its blank line."""
        rest, self._rest = b"".join(self._rest), []
        return [data for line in (rest, b"") if (data := self._take(line))]

    def _sniff(self, chunk: bytes) -> bytes:
        """Return what is to be read as events; keep the rest until it is known what it is."""
        self._head += chunk
        if not self._shape:
            chunk = bytes(self._head)
            start = chunk.lstrip()[:1]
            if not start:
                return b""
            self._shape = "document" if start == b"{" else "page" if start == b"<" else "events"
        if self._shape == "events":
            return chunk
        if len(self._head) > (MAX_EVENT_BYTES if self._shape == "document" else MAX_PAGE_BYTES):
            raise NotAReply(bytes(self._head))
        return b""

    def _take(self, line: bytes) -> bytes:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            data, self._data, self._size = b"\n".join(self._data), [], 0
            if data and self._head:
                self._head.clear()
            return data
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            self._size += len(line)
            self._check_size()
        return b""

    def _check_size(self) -> None:
        if self._size + self._rest_size > MAX_EVENT_BYTES:
            raise NotAReply(b"an event that is longer than %d bytes" % MAX_EVENT_BYTES)
