"""The lines of a file from its end to its beginning, in bounded memory.

A line that is cut by the border of a chunk is put together from its pieces, so that the lines
are the same for any size of chunk.
"""

from collections.abc import Callable, Iterator

CHUNK_BYTES = 32 * 1024

MAX_LINE_BYTES = 8 * 1024
"""How much of a line is kept, the beginning of it."""

ReadAt = Callable[[int, int], bytes]
"""Gives up to so many bytes from a position on."""


def lines_backwards(
    read_at: ReadAt, size: int, *, chunk_bytes: int = CHUNK_BYTES, max_bytes: int = MAX_LINE_BYTES
) -> Iterator[bytes]:
    """Yield the lines of a file of `size` bytes, the last first, without their line feeds.

    A line feed at the end of the file ends its last line and begins no other.
    """
    end, rest, is_last = size, b"", True
    while end > 0:
        start = max(0, end - chunk_bytes)
        chunk, end = read_at(start, end - start), start
        if is_last:
            chunk, is_last = chunk.removesuffix(b"\n"), False
        first, *others = (chunk + rest).split(b"\n")
        # What is before it belongs to it, so the end of it goes if it is too long.
        rest = first[:max_bytes]
        yield from (line[:max_bytes] for line in reversed(others))
    if size > 0:
        yield rest
