"""Server-sent events: bytes in, the data of events out, wherever the bytes are split.

Pure. Event names and ids are dropped, since no provider says anything in them that the data
does not say again.

Source: WHATWG HTML, "Interpreting an event stream".
"""

from typing import Final

MAX_EVENT_BYTES: Final = 16_000_000
"""No event of an honest server is longer; a longer one must not fill the memory."""

_BOM: Final = b"\xef\xbb\xbf"


class EventLines:
    """Cuts a stream into the data of its events."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0
        self._rest_size = 0
        self._is_after_cr = False
        self._is_first_line = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of the events that `chunk` completes, oldest first.

        Raises:
            ValueError: an event is longer than `MAX_EVENT_BYTES`.
        """
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

    def _take(self, line: bytes) -> bytes:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            data, self._data, self._size = b"\n".join(self._data), [], 0
            return data
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            self._size += len(line)
            self._check_size()
        return b""

    def _check_size(self) -> None:
        if self._size + self._rest_size > MAX_EVENT_BYTES:
            raise ValueError(f"an event is longer than {MAX_EVENT_BYTES} bytes")
