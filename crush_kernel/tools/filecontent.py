"""What a file holds, told from its bytes and never from its name.

A file that can be edited is read whole, so that its later edit knows what the model saw; a
larger one only as far as the wanted lines need, in chunks, between which a cancellation is
noticed. Blocks: `read_content` runs in a worker thread.
"""

import codecs
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import anyio.from_thread

from crush_kernel.errors import ToolError
from crush_kernel.files.opening import open_real
from crush_kernel.files.textfile import TextFormat, detect
from crush_kernel.tools.diskfile import MAX_EDIT_BYTES
from crush_kernel.tools.media.admission import MAX_FILE_BYTES
from crush_kernel.tools.media.mediatype import MEDIA_TYPES, media_type_of
from crush_kernel.tools.paths import Target, kind_of, reason
from crush_kernel.tools.text.sections import Section, SectionReader
from crush_kernel.tools.tracker import Stamp

MAX_TEXT_BYTES = 200 * 1024
"""What a section of lines may come to."""
MAX_COUNTED_BYTES = 64 * 1024 * 1024
"""How far reading goes on behind the section, only to say how many lines there are."""
MAX_SEEK_S = 20.0
"""How long the way to a far section may take."""

_CHUNK_BYTES = 1024 * 1024
_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class TextContent:
    """Some lines of a text file."""

    section: Section
    format: TextFormat
    size: int
    """Bytes of the whole file."""
    whole: bytes | None
    """The whole file, if it is small enough to be edited."""
    stamp: Stamp
    """Of the file, from before it was read."""

    @property
    def line_encoding(self) -> str:
        """Return the encoding of the section's lines, which were transcoded if it is wide."""
        return "utf-8" if _is_wide(self.format) else self.format.encoding


@dataclass(frozen=True, slots=True)
class MediaContent:
    """What begins like an image or a document."""

    media_type: str
    size: int
    data: bytes
    """The whole file, or more than `MAX_FILE_BYTES` of it."""


@dataclass(frozen=True, slots=True)
class BinaryContent:
    """Anything else."""

    media_type: str
    size: int


Content = TextContent | MediaContent | BinaryContent


def require_regular(target: Target, status: os.stat_result) -> None:
    """Fail if `target` is no regular file, before anything opens it.

    Raises:
        ToolError: says what it is instead.
    """
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{target.shown} is a directory. List it with ls.")
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"{target.shown} is a {kind_of(status)}, not a file that can be read.")


def read_content(target: Target, *, offset: int, limit: int) -> Content:
    """Return what is in the file, of a text the lines `offset` to `offset + limit`.

    Ends soon after the caller is cancelled, and holds at most `MAX_FILE_BYTES` in memory.

    Raises:
        ToolError: it is no regular file, cannot be read, or the lines lie too deep in it.
    """
    try:
        descriptor = open_real(target.path)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            status = os.fstat(descriptor)
            require_regular(target, status)
            size = status.st_size
            chunks = chunks_of(file.read)
            start = _take(chunks, _HEAD_BYTES if size > MAX_EDIT_BYTES else MAX_EDIT_BYTES + 1)
            if size <= MAX_EDIT_BYTES and len(start) <= MAX_EDIT_BYTES:
                return _read_whole(start, Stamp.of(status), offset=offset, limit=limit)
            return _read_large(start, chunks, Stamp.of(status), offset=offset, limit=limit)
    except OSError as error:
        raise ToolError(f"{target.shown} cannot be read: {reason(error)}.") from error


def chunks_of(read: Callable[[int], bytes | None]) -> Iterator[bytes]:
    """Yield the file in pieces until its end, noticing a cancellation in between."""
    while chunk := read(_CHUNK_BYTES):
        yield chunk
        anyio.from_thread.check_cancelled()


def _take(chunks: Iterator[bytes], size: int) -> bytes:
    """Return the first chunks up to at least `size` bytes, or all there are."""
    taken: list[bytes] = []
    while size > 0 and (chunk := next(chunks, b"")):
        taken.append(chunk)
        size -= len(chunk)
    return b"".join(taken)


def _read_whole(data: bytes, stamp: Stamp, *, offset: int, limit: int) -> Content:
    media_type = media_type_of(data)
    if media_type in MEDIA_TYPES:
        return MediaContent(media_type, size=len(data), data=data)
    text_format = detect(data)
    if text_format is None:
        return BinaryContent(media_type, len(data))
    reader = _reader(text_format, offset, limit)
    reader.feed(_transcoder(text_format)(data[len(text_format.bom) :]))
    section = reader.section(is_whole=True)
    return TextContent(section, format=text_format, size=len(data), whole=data, stamp=stamp)


def _read_large(
    start: bytes, rest: Iterator[bytes], stamp: Stamp, *, offset: int, limit: int
) -> Content:
    """Return what a file that begins with `start` is, reading no more of it than needed."""
    size, media_type = stamp.size, media_type_of(start)
    if media_type in MEDIA_TYPES:
        more = _take(rest, MAX_FILE_BYTES + 1 - len(start))
        return MediaContent(media_type, size=size, data=start + more)
    text_format = detect(start[:_HEAD_BYTES], is_head=True)
    if text_format is None:
        return BinaryContent(media_type, size)
    reader = _reader(text_format, offset, limit)
    transcode = _transcoder(text_format)
    reader.feed(transcode(start[len(text_format.bom) :]))
    is_countable = size <= MAX_COUNTED_BYTES
    is_whole = _feed(reader, map(transcode, rest), is_countable=is_countable)
    section = reader.section(is_whole=is_whole)
    return TextContent(section, format=text_format, size=size, whole=None, stamp=stamp)


def _feed(reader: SectionReader, chunks: Iterator[bytes], *, is_countable: bool) -> bool:
    """Feed `reader` until its section is complete, and on to the end if that is not far.

    Returns whether the end was reached.
    """
    deadline = time.monotonic() + MAX_SEEK_S
    seen_bytes = 0
    while is_countable or not reader.has_all:
        chunk = next(chunks, b"")
        if not chunk:
            return True
        reader.feed(chunk)
        seen_bytes += len(chunk) if reader.has_begun else 0
        if seen_bytes > MAX_COUNTED_BYTES:
            return False
        if not reader.has_begun and time.monotonic() > deadline:
            raise ToolError(
                f"These lines lie too deep in the file to be reached in {MAX_SEEK_S:.0f} s. "
                "Search it with grep, or cut out the part with a command."
            )
    return False


def _reader(text_format: TextFormat, offset: int, limit: int) -> SectionReader:
    newline = b"\r" if text_format.newline == "\r" else b"\n"
    return SectionReader(offset=offset, limit=limit, max_bytes=MAX_TEXT_BYTES, newline=newline)


def _transcoder(text_format: TextFormat) -> Callable[[bytes], bytes]:
    """Return what makes chunks searchable for newlines: UTF-8 out of a wide encoding."""
    if not _is_wide(text_format):
        return bytes
    decoder = codecs.getincrementaldecoder(text_format.encoding)("replace")
    return lambda chunk: decoder.decode(chunk).encode("utf-8", "replace")


def _is_wide(text_format: TextFormat) -> bool:
    return "\n".encode(text_format.encoding) != b"\n"
