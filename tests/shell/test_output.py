"""What the model reads of what a command printed."""

import re
import tracemalloc
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crush_kernel.files.ends import MAX_LINES
from crush_kernel.shell.output import MAX_TEXT_BYTES, REPLAY_BYTES, OutputBuffer

NOTE = re.compile(r"\n\[… (\d+) lines, (\d+) bytes left out …\]\n")

PIECES = st.sampled_from(
    [
        *(b"a", b"bc ", b"\n", b"\r", b"\r\n", b"\b", b"\t", b"\0", b"\a", b"\x7f", b"\x18"),
        *(b"\x1b", b"\x1b[", b"\x1b]", b"\x1b[3", b"1m", b"\x1b[K", b"\x1b[1K", b"\x1b[2K"),
        *(b"\x1b[5C", b"\x1b[2D", b"\x1b[9G", b"\x1b(B", b"\x1b\\", b"8;;http://x", b"\x1bP"),
        *("é€😀\x9b\x85".encode(), b"\xe2\x82", b"\xac", b"\xff", b"\xf0\x9f"),
        *(b"\n\n\n", b"some\nshort\nlines\n", b"a line that is a little longer\n"),
    ]
)
# Some outputs begin with a line that is nearly as long as the line in the making may be.
STARTS = st.sampled_from([b""] * 9 + [b"x" * 4090])
OUTPUTS = st.tuples(STARTS, st.lists(PIECES | st.binary(max_size=8), max_size=40)).map(
    lambda drawn: drawn[0] + b"".join(drawn[1])
)


def read(*chunks: bytes, max_bytes: int = MAX_TEXT_BYTES) -> str:
    return fed(chunks, max_bytes=max_bytes).text()


def fed(chunks: Iterable[bytes], *, max_bytes: int = MAX_TEXT_BYTES) -> OutputBuffer:
    buffer = OutputBuffer(max_bytes=max_bytes)
    for chunk in chunks:
        buffer.feed(chunk)
    buffer.finish()
    return buffer


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        pytest.param(b"", "", id="nothing"),
        pytest.param(b"one\ntwo", "one\ntwo", id="without a last line break"),
        pytest.param(b"a\tb\n", "a\tb\n", id="tabs"),
        pytest.param(b"one\r\ntwo\r\n", "one\ntwo\n", id="Windows line breaks"),
        pytest.param(b"one\r\r\ntwo", "one\ntwo", id="doubled carriage returns"),
        pytest.param(b"10%\r20%\r100%\n", "100%\n", id="a progress bar"),
        pytest.param(b"10%\r20%\r", "20%", id="a progress bar that ends with a return"),
        pytest.param(b"\r10%\r20%", "20%", id="a progress bar that begins with a return"),
        pytest.param(b"long text\rok\x1b[K\n", "ok\n", id="erase to the end of the line"),
        pytest.param(b"text\x1b[2K\rok\n", "ok\n", id="erase the whole line"),
        pytest.param(b"abcdef\x1b[3D\x1b[1K\n", "    ef\n", id="erase to the start of the line"),
        pytest.param(b"text\x1b[1G\x1b[0Kok\n", "ok\n", id="move to a column and erase"),
        pytest.param(b"a\x1b[3Cb\n", "a   b\n", id="move to the right"),
        pytest.param(b"a\x1b[9999Cb\n", f"a{' ' * 199}b\n", id="move far to the right"),
        pytest.param(b"N\bNA\bA _\bx\n", "NA x\n", id="overstruck bold"),
        pytest.param(b"ab\b\b\b\bc\n", "cb\n", id="backspace beyond the start"),
        pytest.param(b"\x1b[1;32mok\x1b[0m\n", "ok\n", id="colors"),
        pytest.param(b"\x1b[38:2:1:2:3mok\x1b[m\n", "ok\n", id="colors with colons"),
        pytest.param(b"\x1b[?25l\x1b[2J\x1b[Hok\x1b[?25h\n", "ok\n", id="screen sequences"),
        pytest.param(b"\x1b(B\x1b)0\x1b=ok\x1b7\x1bM\n", "ok\n", id="other sequences"),
        pytest.param(b"\x1b]0;title\aok\n", "ok\n", id="a window title"),
        pytest.param(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n", id="a link"),
        pytest.param(b"\x1bPq#0;2\x1b\\ok\x1b_Gf=100;AAA\x1b\\\n", "ok\n", id="pictures"),
        pytest.param(b"\x1b]0;never ended\nnext\n", "\nnext\n", id="a title without end"),
        pytest.param(b"\x1b[12\nnext\n", "[12\nnext\n", id="a sequence that is none"),
        pytest.param(b"end\x1b[3", "end", id="a sequence that is cut off"),
        pytest.param(b"\x1b" * 9 + b"[1mok", "ok", id="many escapes"),
        pytest.param(b"a\0b\x01\x0e\x7fc\a\n", "abc\n", id="control characters"),
        pytest.param("a\x85b\x9bc\n".encode(), "abc\n", id="C1 control characters"),
        pytest.param(b"h\0i\0\n\0", "hi\n", id="UTF-16 without a mark"),
        pytest.param(b"caf\xe9 \xff\n", "caf\N{REPLACEMENT CHARACTER} \ufffd\n", id="Latin-1"),
        pytest.param(b"end \xe2\x82", "end \ufffd", id="a character that is cut off"),
    ],
)
def test_the_text_is_what_a_terminal_would_show(printed: bytes, text: str) -> None:
    assert read(printed) == text


@pytest.mark.slow
@settings(deadline=None)
@given(OUTPUTS, st.lists(st.integers(0, 4200), max_size=10).map(sorted))
@example("…€\x1b[31m".encode(), [1, 5, 8])
def test_the_text_does_not_depend_on_how_the_bytes_are_split(
    printed: bytes, cuts: list[int]
) -> None:
    chunks = [printed[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)]
    single = [printed[i : i + 1] for i in range(len(printed))]

    for size in (MAX_TEXT_BYTES, 20):
        whole = fed([printed], max_bytes=size)
        assert fed(chunks, max_bytes=size).text() == whole.text()
        assert fed(chunks, max_bytes=size).tail(3) == whole.tail(3)
    assert fed(single, max_bytes=20).text() == whole.text()


@settings(deadline=None)
@given(OUTPUTS)
def test_nothing_that_acts_on_a_terminal_is_left(printed: bytes) -> None:
    text = read(printed)

    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert text.encode().decode() == text


@settings(deadline=None)
@given(OUTPUTS, st.integers(1, 60))
def test_never_more_is_kept_than_allowed_and_nothing_is_lost_uncounted(
    printed: bytes, half: int
) -> None:
    whole = read(printed, max_bytes=1_000_000)
    buffer = fed([printed], max_bytes=2 * half)
    text = buffer.text()

    if len(whole.encode()) <= 2 * half:
        assert text == whole
        return
    head, lines, left_out, tail = NOTE.split(text)
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) <= 2 * half
    kept = head + tail
    assert int(left_out) == len(whole.encode()) - len(kept.encode())
    assert int(lines) == whole.count("\n") - kept.count("\n")


@pytest.mark.parametrize(
    ("printed", "lines"),
    [
        pytest.param(b"\n" * 1_000_000, 1_000_000, id="a million empty lines"),
        pytest.param(b"\x1b[31m\n" * 100_000, 100_000, id="empty lines in color"),
        pytest.param(b"y\n" * (MAX_LINES + 1), MAX_LINES + 1, id="one line too many"),
    ],
)
def test_lines_are_bounded_however_short(printed: bytes, lines: int) -> None:
    head, left_out, _, tail = NOTE.split(read(printed))
    assert head.count("\n") == tail.count("\n") == MAX_LINES // 2
    assert int(left_out) == lines - MAX_LINES


def test_an_escape_flood_leaves_nothing() -> None:
    assert read(b"\x1b[31m" * 200_000, b"\x1b]0;title\x07" * 50_000, b"end\n") == "end\n"


@settings(deadline=None)
@given(OUTPUTS, st.integers(1, 5))
def test_the_tail_is_the_end_of_the_text(printed: bytes, lines: int) -> None:
    buffer = fed([printed])

    tail = buffer.tail(lines)

    assert buffer.text().rstrip("\n").endswith(tail)
    assert tail.count("\n") < lines
    assert len(tail.encode()) <= 3 * 4096


@pytest.mark.parametrize(
    "chunk",
    [
        pytest.param(b"y\n" * 32_768, id="lines"),
        pytest.param(b"\0" * 65_536, id="zeros"),
        pytest.param(b"x" * 65_536, id="a line without end"),
        pytest.param(b"\rDownloading 10%" * 4_096, id="a progress bar without end"),
        pytest.param(b"\x1b]" + b"x" * 65_536, id="a title without end"),
        pytest.param("é".encode() * 32_768, id="characters of two bytes"),
    ],
)
def test_memory_does_not_grow_with_the_output(chunk: bytes) -> None:
    buffer = OutputBuffer()
    for _ in range(4):
        buffer.feed(chunk)
    tracemalloc.start()

    for _ in range(128):
        buffer.feed(chunk)

    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 128 * len(chunk) > 3 * REPLAY_BYTES
    assert grown < 2 * REPLAY_BYTES + 512 * 1024
    assert len(buffer.text().encode()) <= MAX_TEXT_BYTES + 100


def test_the_tail_shows_the_line_that_is_being_printed() -> None:
    buffer = OutputBuffer()
    buffer.feed(b"one\ntwo\nthree\n\r10%\r50%")

    assert buffer.tail(2) == "three\n50%"


def test_what_is_cleaned_of_the_tail_is_more_than_what_is_shown() -> None:
    buffer = OutputBuffer()
    buffer.feed(b"BEGIN\n" + b"part\n" * 2_000)

    assert buffer.tail(3) == "part\npart\npart"
    assert buffer.tail(3, lambda text: "gone" if "BEGIN" in text else text) == "gone"


def test_a_long_line_is_kept_though_its_start_can_no_longer_be_overwritten() -> None:
    line = b"".join(b"%d," % number for number in range(2_000))

    assert read(line + b"\n") == line.decode() + "\n"


@given(printed=OUTPUTS, cuts=st.lists(st.integers(0, 5_000), max_size=4), at=st.integers(0, 4))
def test_a_log_gets_the_whole_text_from_whenever_it_is_there(
    printed: bytes, cuts: list[int], at: int
) -> None:
    borders = [0, *sorted(min(cut, len(printed)) for cut in cuts), len(printed)]
    chunks = [printed[start:end] for start, end in pairwise(borders)]
    buffer, log = OutputBuffer(), bytearray()
    for number, chunk in enumerate(chunks):
        if number == min(at, len(chunks) - 1):
            buffer.log_to(log.extend)
        buffer.feed(chunk)
    settled = log.decode()
    assert buffer.text().startswith(settled)
    assert buffer.text().removeprefix(settled).endswith(buffer.unfinished())
    buffer.finish()
    assert log.decode() == buffer.text()


@pytest.mark.parametrize("line", ["€\n", "a line\n", "€", "no end "])
def test_a_log_that_is_begun_late_gets_the_last_of_it(line: str) -> None:
    buffer, log = OutputBuffer(), bytearray()
    data = (line * (3 * REPLAY_BYTES // len(line.encode()))).encode()
    for start in range(0, len(data), 16 * 1024):
        buffer.feed(data[start : start + 16 * 1024])
    lost_bytes = buffer.lost_bytes
    buffer.log_to(log.extend)
    buffer.finish()
    assert REPLAY_BYTES - 8 <= len(log) <= REPLAY_BYTES + len(buffer.unfinished().encode()) + 8_192
    assert data[lost_bytes:] == log
    log.decode()


def test_the_line_in_the_making_is_not_what_stands_before_it() -> None:
    buffer = OutputBuffer()
    buffer.feed(b"one\npassword ")
    assert buffer.unfinished() == "password "
    assert buffer.unfinished(lambda text: text.removesuffix("password ")) == ""
    buffer.feed(b"\rtwo\x1b[K\n")
    assert buffer.unfinished() == ""
