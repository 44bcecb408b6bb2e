r"""The head and the tail of a text that is too long, and a note in place of what was between.

Pure. What people see as one character, such as an `e` with an accent put on it or a family
of emoji, is never taken apart.
"""

from typing import Final

MAX_LINES: Final = 2_000
"""What a text may have of lines, half of them from either end: empty ones cost, too."""

NEAR_BYTES: Final = 256
"""How far around a border one looks for where characters begin; most are far shorter."""


def limit(text: str, *, max_bytes: int, max_lines: int = MAX_LINES) -> str:
    """Return `text` if it is short enough, else its head and tail around a note.

    The result never exceeds `max_bytes` bytes of UTF-8 and `max_lines` newlines but for the
    note, and the note says how many lines and bytes are left out.
    """
    data = text.encode("utf-8", "replace")
    lines = data.count(b"\n")
    if len(data) <= max_bytes and lines <= max_lines:
        return text
    head = head_of(data, max_bytes // 2, max_lines=max_lines // 2)
    tail = tail_of(data[len(head) :], max_bytes // 2, max_lines=max_lines // 2)
    return joined(head, tail, size=len(data), lines=lines)


def joined(head: bytes, tail: bytes, *, size: int, lines: int) -> str:
    """Return the ends of a text that has `size` bytes and `lines` newlines, as it is shown."""
    left_out = size - len(head) - len(tail)
    lines -= head.count(b"\n") + tail.count(b"\n")
    note = f"[… {lines} lines, {left_out} bytes left out …]"
    return f"{head.decode(errors='replace')}\n{note}\n{tail.decode(errors='replace')}"


def head_of(data: bytes, max_bytes: int, *, max_lines: int = MAX_LINES) -> bytes:
    """Return the beginning of `data`, which is UTF-8; it may end in the midst of a character.

    What follows `max_bytes` tells whether the last character ends there, and should be given.
    """
    end = min(max_bytes, _after_lines(data, max_lines))
    return data[: _border(data, end, is_head=True)]


def tail_of(data: bytes, max_bytes: int, *, max_lines: int = MAX_LINES) -> bytes:
    """Return the end of `data`, which is UTF-8; it may begin in the midst of a character."""
    start = max(0, len(data) - max_bytes, _before_lines(data, max_lines))
    return data[_border(data, start, is_head=False) :]


def _after_lines(data: bytes, count: int) -> int:
    """Return where the first `count` lines end."""
    end = 0
    for _ in range(count):
        end = data.find(b"\n", end) + 1
        if not end:
            return len(data)
    return end


def _before_lines(data: bytes, count: int) -> int:
    """Return where the last `count` lines begin; the last may be without a newline."""
    start = len(data)
    for _ in range(count + 1):
        start = data.rfind(b"\n", 0, start)
        if start < 0:
            return 0
    return start + 1


def _border(data: bytes, at: int, *, is_head: bool) -> int:
    """Return where a character begins: at `at`, else before it for a head, or behind it."""
    if at <= 0 or at >= len(data) or data[at - 1 : at + 1].isascii():
        # Of two in ASCII, only CR LF is one character.
        is_apart = data[at - 1 : at + 1] != b"\r\n"
        return at if is_apart or not 0 < at < len(data) else at - 1 if is_head else at + 1
    first = max(0, at - NEAR_BYTES)
    while first < at and _is_inside(data, first):
        first += 1
    step = -1 if is_head else 1
    while 0 < at < len(data) and _is_inside(data, at):
        at += step
    last = at + NEAR_BYTES
    text = data[first:last].decode(errors="ignore")
    place = len(data[first:at].decode(errors="ignore"))
    while 0 < place < len(text) and not _begins(text, place):
        place += step
    # A character without end is cut all the same.
    is_endless = (place == 0 and first > 0) or (place == len(text) and last < len(data))
    return at if is_endless else first + len(text[:place].encode())


def _begins(text: str, place: int) -> bool:
    from wcwidth import grapheme_boundary_before  # noqa: PLC0415 - its tables take 90 ms

    return grapheme_boundary_before(text, place + 1) == place


def _is_inside(data: bytes, at: int) -> bool:
    return 0x80 <= data[at] < 0xC0
