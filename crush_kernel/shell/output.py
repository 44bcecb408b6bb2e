r"""What a command printed, as text that a model can read, in constant memory.

Bytes pass through four stages, each of which takes them in pieces of any size and gives
the same text however they are split: control characters without meaning are dropped; UTF-8
is decoded; a `_Terminal` of one line applies carriage returns, backspaces and the escape
sequences that act on the line, and removes all others; and `_Ends` keeps the head and the
tail. So a progress bar is its last state, and a command that prints for ever costs no more
than one that prints a page.
"""

import codecs
import re
from collections.abc import Callable

from crush_kernel.files.ends import MAX_LINES, NEAR_BYTES, head_of, joined, tail_of

MAX_TEXT_BYTES = 28_000
"""What is kept of an output: a tool result's share, less some room for notes."""

REPLAY_BYTES = 2 * 1024 * 1024
"""What is kept for a log that may be begun later, the last of the output."""

_LINE_CHARS = 4096
"""How long the line in the making may be; what is before that can no longer be overwritten."""

_WIDTH = 200
"""How far to the right of the text a cursor may be moved."""

_RECENT_BYTES = 4096
"""How far back the tail looks."""

_CLEANED_BYTES = 14_000
"""How far back it looks for secrets: further than a private key is long."""

_DROPPED = bytes({*range(0x20), 0x7F} - set(b"\a\b\t\n\r\x1b"))
"""Control characters that neither text nor escape sequences need."""

_CONTINUATION = bytes(range(0x80, 0xC0))
"""Bytes of UTF-8 that begin no character."""

_MEANT = (b"\x1b", b"\r", b"\b", b"\a")
"""Control characters that are left when those are dropped, and are not text."""

_PLAIN = re.compile(r"[^\a\b\r\x1b\x80-\x9f]+")

_CONTROL = re.compile(
    r"""
      (?P<carriage_return> \r+ )
    | (?P<backspace> \x08+ )
    | (?P<string> \x1b [\]PX^_] )                       # OSC, DCS, SOS, PM, APC
    | \x1b\[ (?P<parameters> [0-?]{0,64} ) [ -/]{0,8} (?P<final> [@-~] )         # CSI
    | (?P<escape> \x1b (?: [ -/]{1,8} [0-~] | [0-OQ-WYZ\\`-~] ) )
    | (?P<partial> \x1b (?: [ -/]{0,8} | \[ [0-?]{0,64} [ -/]{0,8} ) \Z )
    | (?P<stray> \x1b | [\a\x80-\x9f]+ )
    """,
    re.VERBOSE,
)
"""Source: ECMA-48 §5.4 (CSI), §5.6 (control strings); ECMA-35 §13.2 (other sequences)."""

_STRING_END = re.compile(r"[\a\n\x1b\x9c]")
"""A control string ends at BEL or ST; a line break ends it too, lest one byte hide the rest."""


class OutputBuffer:
    """Takes in the bytes that a command prints and keeps the head and the tail of the text."""

    def __init__(self, *, max_bytes: int = MAX_TEXT_BYTES) -> None:
        """Keep up to `max_bytes` bytes of UTF-8, half of them from either end."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._terminal = _Terminal()
        self._ends = _Ends(max_bytes // 2)
        self._log: Callable[[bytes], None] | None = None
        self._replay = _Last(REPLAY_BYTES)

    @property
    def is_logged(self) -> bool:
        """Return whether the text goes somewhere else, too."""
        return self._log is not None

    @property
    def lost_bytes(self) -> int:
        """Return how much was printed so far that a log will not get."""
        return self._replay.lost_bytes

    def log_to(self, log: Callable[[bytes], None]) -> None:
        """Give `log` the last of what was printed so far, then all that becomes final, in UTF-8.

        It never gets a part of a character, and the line in the making only when it is done.
        """
        log(self._replay.take())
        self._log = log

    def feed(self, data: bytes) -> None:
        """Take in the next bytes."""
        data = data.translate(None, _DROPPED)
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        if data.isascii() and not any(control in data for control in _MEANT):
            first, newline, rest = data.partition(b"\n")
            self._write(first + newline)
            # Whole lines need no terminal, and most of an endless output is whole lines.
            lines, newline, rest = rest.rpartition(b"\n")
            self._keep(lines + newline)
            self._write(rest)
        else:
            self._write(data)

    def finish(self) -> None:
        """Say that nothing follows: a character that was cut off becomes U+FFFD."""
        self._write(b"", is_last=True)
        if self._log is not None:
            self._log(self._terminal.line.encode())

    def text(self) -> str:
        """Return the text, with a note in the middle of how much of it is left out."""
        return self._complete().text()

    def tail(self, lines: int, clean: Callable[[str], str] | None = None) -> str:
        """Return the last lines so far, at most `lines` of them and 4 KiB; cheap.

        Args:
            lines: how many.
            clean: takes the secrets out of a text to which more will be added. It gets more
                than what is shown: a part of a secret cannot be told to be one.
        """
        recent = self._ends.recent(_CLEANED_BYTES if clean else _RECENT_BYTES)
        recent += self._terminal.line
        if clean is not None:
            recent = clean(recent)[-_RECENT_BYTES:]
        return "\n".join(recent.rstrip("\n").split("\n")[-lines:])

    def unfinished(self, clean: Callable[[str], str] | None = None) -> str:
        """Return the line in the making, at most 4 KiB of it; see `tail`."""
        if not self._terminal.line:
            return ""
        recent = self._ends.recent(_CLEANED_BYTES) + self._terminal.line
        # What is held back may be the whole line, so that a line before it would be the last.
        line = (clean(recent) if clean else recent).rpartition("\n")[2]
        # The beginning of a very long line is done already.
        return line[-min(_RECENT_BYTES, len(self._terminal.line)) :]

    def _write(self, data: bytes, *, is_last: bool = False) -> None:
        text = self._decoder.decode(data, is_last)
        self._keep(self._terminal.write(text).encode())

    def _keep(self, data: bytes) -> None:
        self._ends.add(data)
        if self._log is None:
            self._replay.add(data)
        else:
            self._log(data)

    def _complete(self) -> "_Ends":
        complete = self._ends.copy()
        complete.add(self._terminal.line.encode())
        return complete


class _Terminal:
    """The line in the making of a terminal without a screen.

    Lines above the cursor cannot change. A cursor that moves up stays where it is, so that
    a display of several lines repeats itself rather than losing anything.
    """

    def __init__(self) -> None:
        self.line = ""
        """What stands on the line and may still be overwritten."""
        self._column = 0
        self._partial = ""
        self._is_in_string = False
        self._settled: list[str] = []

    def write(self, text: str) -> str:
        """Take in `text`, apply its control characters, and return what has become final."""
        text, self._partial = self._partial + text, ""
        position = 0
        while position < len(text):
            if self._is_in_string:
                position = self._skip_string(text, position)
            elif plain := _PLAIN.match(text, position):
                self._put(plain[0])
                position = plain.end()
            else:
                position = self._control(text, position)
        settled = "".join(self._settled)
        self._settled.clear()
        return settled

    def _skip_string(self, text: str, position: int) -> int:
        end = _STRING_END.search(text, position)
        if end is None:
            return len(text)
        self._is_in_string = False
        # ESC opens the terminator `ESC \`, or another sequence: either is parsed as such.
        return end.start() if end[0] in "\x1b\n" else end.end()

    def _control(self, text: str, position: int) -> int:
        match = _CONTROL.match(text, position)
        if match is None:  # pragma: no cover - `_PLAIN` and `_CONTROL` cover all characters
            return position + 1
        match match.lastgroup:
            case "carriage_return":
                self._column = 0
            case "backspace":
                self._move_to(self._column - len(match[0]))
            case "string":
                self._is_in_string = True
            case "final":
                self._act(match["final"], match["parameters"])
            case "partial":
                self._partial = match[0]
            case _:
                pass
        return match.end()

    def _act(self, final: str, parameters: str) -> None:
        """Carry out a control sequence, if it acts on the line."""
        number = int(parameters) if parameters.isdecimal() and len(parameters) <= 4 else 0
        match final:
            case "C":
                self._move_to(self._column + (number or 1))
            case "D":
                self._move_to(self._column - (number or 1))
            case "G":
                self._move_to((number or 1) - 1)
            case "K":
                self._erase(number)
            case _:
                pass

    def _move_to(self, column: int) -> None:
        self._column = min(max(0, column), max(len(self.line), _WIDTH))

    def _erase(self, what: int) -> None:
        before, after = self.line[: self._column], self.line[self._column + 1 :]
        if what == 0:
            self.line = before
        elif what == 1 and after:
            self.line = " " * (self._column + 1) + after
        else:
            self.line = ""

    def _put(self, text: str) -> None:
        lines, newline, rest = text.rpartition("\n")
        if newline:
            first, newline, others = lines.partition("\n")
            self._overwrite(first)
            self._settled += (self.line, "\n", others, newline)
            self.line, self._column = "", 0
        self._overwrite(rest)

    def _overwrite(self, text: str) -> None:
        while text:
            if self._column == _LINE_CHARS:
                self._settled.append(self.line)
                self.line, self._column = "", 0
            piece, text = text[: _LINE_CHARS - self._column], text[_LINE_CHARS - self._column :]
            end = self._column + len(piece)
            self.line = self.line[: self._column].ljust(self._column) + piece + self.line[end:]
            self._column = end


class _Last:
    """The last bytes of a stream of UTF-8."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._data = bytearray()
        self._bytes = 0

    def add(self, data: bytes) -> None:
        self._bytes += len(data)
        self._data += data
        # Trimming only now and then keeps the cost per byte constant.
        if len(self._data) > 2 * self._size:
            del self._data[: -self._size]

    @property
    def lost_bytes(self) -> int:
        return self._bytes - len(self._kept())

    def take(self) -> bytes:
        kept, self._data = self._kept(), bytearray()
        return kept

    def _kept(self) -> bytes:
        kept = bytes(self._data[-self._size :])
        return kept.lstrip(_CONTINUATION) if len(kept) < self._bytes else kept


class _Ends:
    """The first and the last bytes of a stream of UTF-8, and how much lay between them."""

    def __init__(self, size: int) -> None:
        self._size = size
        # A little more than is shown, which tells where the characters at the borders end.
        self._kept = size + NEAR_BYTES
        self._head = bytearray()
        self._tail = bytearray()
        self._bytes = 0
        self._lines = 0

    def copy(self) -> "_Ends":
        copy = _Ends(self._size)
        copy._head += self._head
        copy._tail += self._tail
        copy._bytes, copy._lines = self._bytes, self._lines
        return copy

    def add(self, data: bytes) -> None:
        self._bytes += len(data)
        self._lines += data.count(b"\n")
        if (room := self._kept - len(self._head)) > 0:
            self._head += data[:room]
        self._tail += data[-self._kept :]
        # Trimming only now and then keeps the cost per byte constant.
        if len(self._tail) > 4 * self._kept:
            del self._tail[: -self._kept]

    def text(self) -> str:
        if self._bytes <= 2 * self._size and self._lines <= MAX_LINES:
            return self._all().decode()
        head = head_of(bytes(self._head), self._size, max_lines=MAX_LINES // 2)
        # Of a short text, the tail must not begin in what is the head.
        recent = bytes(self._tail[-min(self._kept, self._bytes - len(head)) :])
        tail = tail_of(recent, self._size, max_lines=MAX_LINES // 2)
        return joined(head, tail, size=self._bytes, lines=self._lines)

    def recent(self, size: int) -> str:
        return self._tail[-min(size, self._kept) :].decode(errors="ignore")

    def _all(self) -> bytearray:
        rest = self._bytes - len(self._head)
        return self._head + self._tail[-rest:] if rest else self._head
