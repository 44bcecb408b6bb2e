"""Server-sent events are the same wherever their bytes are split."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.providers.sse import MAX_EVENT_BYTES, EventLines, NotAReply


def read(*chunks: bytes) -> list[bytes]:
    lines = EventLines()
    complete = [data for chunk in chunks for data in lines.feed(chunk)]
    return complete + lines.flush()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        pytest.param(b"data: a\n\n", [b"a"], id="one event"),
        pytest.param(b"data:a\n\ndata:  b\n\n", [b"a", b" b"], id="one space is dropped"),
        pytest.param(b"event: x\nid: 1\nretry: 5\ndata: a\n\n", [b"a"], id="other fields"),
        pytest.param(b": hi\n\n: there\ndata: a\n\n:\n", [b"a"], id="comments"),
        pytest.param(b"data: a\ndata: b\n\n", [b"a\nb"], id="two lines of data"),
        pytest.param(b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"], id="CRLF"),
        pytest.param(b"data: a\r\rdata: b\r\r", [b"a", b"b"], id="CR"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", [b"a"], id="byte order mark"),
        pytest.param(b"data: a\n\ndata: b\n", [b"a", b"b"], id="last blank line missing"),
        pytest.param(b"data: a\n\ndata: b", [b"a", b"b"], id="last line's end missing"),
        pytest.param(b"data: \x85\xe2\x80\xa8\x0b\x0c\n\n", [b"\x85\xe2\x80\xa8\x0b\x0c"],
                     id="what only Unicode calls a line's end"),
        pytest.param(b"data\ndatax: a\n\n", [], id="no data"),
        pytest.param(b"", [], id="nothing"),
    ],
)  # fmt: skip
def test_events(stream: bytes, events: list[bytes]) -> None:
    assert read(stream) == events
    assert read(*(stream[i : i + 1] for i in range(len(stream)))) == events


@given(
    stream=st.lists(
        st.sampled_from([b"data: ", b"a", b"\n", b"\r", b"\r\n", b"\n\n", b":", b"event", b"\xc3"])
    ).map(b"".join),
    cuts=st.lists(st.integers(0, 200)),
)
def test_splitting_does_not_matter(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(edges)]
    assert read(*chunks) == read(stream)


@pytest.mark.parametrize("piece", [b"a" * 1_000_000, b"data: " + b"a" * 1_000_000 + b"\n"])
def test_an_event_without_end_does_not_fill_the_memory(piece: bytes) -> None:
    with pytest.raises(NotAReply):
        read(*(piece for _ in range(MAX_EVENT_BYTES // 1_000_000 + 1)))


def test_many_small_events_are_not_one_large_one() -> None:
    lines = EventLines()
    for _ in range(40):
        assert lines.feed(b": " + b"x" * 500_000 + b"\n") == []
        assert lines.feed(b"data: " + b"x" * 500_000 + b"\n\n") == [b"x" * 500_000]
