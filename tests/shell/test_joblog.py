"""What a job printed, in a bounded file, clean."""

import os
from collections.abc import Generator
from contextlib import contextmanager

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.redactedstream import RedactedStream
from crush_kernel.history.redaction import Redactor
from crush_kernel.shell.joblog import JobLog, PlainStream, Section

GITHUB = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@contextmanager
def opened(*, size: int = 100) -> Generator[JobLog]:
    log = JobLog(PlainStream(), size=size)
    try:
        yield log
    finally:
        log.close()


@pytest.mark.parametrize(
    ("written", "start", "section"),
    [
        pytest.param([], 0, Section("", 0), id="nothing"),
        pytest.param(["a\n", "b\n"], 0, Section("a\nb\n", 0), id="all"),
        pytest.param(["a\n", "b\n"], 2, Section("b\n", 0), id="from a position"),
        pytest.param(["a\n"], 2, Section("", 0), id="nothing new"),
        pytest.param(["12345\n", "abc"], 0, Section("abc", 6), id="a part is lost"),
        pytest.param(["123\n", "456\n", "x"], 0, Section("456\nx", 4), id="a whole line is lost"),
        pytest.param(["0123456789abcdef"], 0, Section("89abcdef", 8), id="more than there is room"),
        pytest.param(["é" * 7], 0, Section("é" * 4, 6), id="wide characters"),
        pytest.param(["éx" * 4], 0, Section("xéxéx", 4), id="half of one"),
    ],
)  # fmt: skip
def test_the_last_part_is_kept(written: list[str], start: int, section: Section) -> None:
    with opened(size=8) as log:
        for text in written:
            log.add(text.encode())
        assert log.read(start) == section


@given(
    pieces=st.lists(st.text(alphabet="ab\n", max_size=9), max_size=12),
    size=st.integers(1, 20),
    data=st.data(),
)
def test_a_log_is_the_end_of_a_string(pieces: list[str], size: int, data: st.DataObject) -> None:
    text = "".join(pieces)
    start = data.draw(st.integers(0, len(text)))
    with opened(size=size) as log:
        for piece in pieces:
            log.add(piece.encode())
        section = log.read(start)
    assert log.end == len(text)
    assert section.text == text[start + section.lost_bytes :]
    kept = max(start, len(text) - size)
    if kept == start:
        assert section.lost_bytes == 0
    else:
        # Up to the next line, if there is one.
        line = text.find("\n", kept) + 1 or kept
        assert start + section.lost_bytes == line


def test_a_secret_in_pieces_does_not_get_into_the_file() -> None:
    log = JobLog(RedactedStream(Redactor({})))
    for piece in ("token ", GITHUB[:9], GITHUB[9:], "\nafter\n", "last ", GITHUB[:20]):
        log.add(piece.encode())
        assert GITHUB[4:9] not in log.read().text
    log.finish()
    text = log.read().text
    log.close()
    assert text.startswith("token ⟨secret: ")
    assert "\nafter\nlast " in text


def test_what_the_disk_refuses_is_lost_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with opened() as log:
        log.add(b"before\n")
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", refuse)
            log.add(b"lost\n")
            log.add(b"lost, too\n")
        log.add(b"after\nmore\n")
        assert log.read() == Section("more\n", len("before\nlost\nlost, too\nafter\n"))
        assert len(caplog.records) == 1


def test_a_closed_log_is_empty_and_holds_nothing_open() -> None:
    before = psutil.Process().num_fds()
    with opened() as log:
        log.add(b"text\n")
        assert psutil.Process().num_fds() == before + 1
    log.add(b"more\n")
    log.close()
    assert log.read().text == ""
    assert psutil.Process().num_fds() == before
