"""What a section of lines is, whatever chunks it comes in."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.tools.text.sections import LINE_OVERHEAD, MAX_LINE_BYTES, Section, SectionReader

TEXTS = st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\r\n", b"\xc3\xa9"]), max_size=40).map(
    b"".join
)


def read(
    *chunks: bytes, offset: int = 0, limit: int = 100, max_bytes: int = 10_000, whole: bool = True
) -> Section:
    reader = SectionReader(offset=offset, limit=limit, max_bytes=max_bytes)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.section(is_whole=whole)


def texts(section: Section) -> list[bytes]:
    return [line.data for line in section.lines]


def lines_of(text: bytes) -> list[bytes]:
    """Return the lines of `text` in the plainest way."""
    lines = text.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


@given(TEXTS, st.integers(0, 45), st.integers(1, 45))
def test_a_section_is_a_slice_of_the_lines(text: bytes, offset: int, limit: int) -> None:
    section = read(text, offset=offset, limit=limit)
    lines = lines_of(text)
    assert texts(section) == lines[offset : offset + limit]
    assert section.total_lines == len(lines)
    assert not section.is_cut


@given(TEXTS, st.integers(0, 9), st.integers(1, 9), st.lists(st.integers(0, 60), max_size=6))
def test_how_the_text_is_chunked_does_not_matter(
    text: bytes, offset: int, limit: int, cuts: list[int]
) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    chunks = [text[a:b] for a, b in pairwise(edges)]
    whole = read(text, offset=offset, limit=limit, max_bytes=30)
    assert read(*chunks, offset=offset, limit=limit, max_bytes=30) == whole


@given(TEXTS, st.integers(0, 9), st.integers(1, 60))
def test_reading_on_after_every_cut_brings_every_line(text: bytes, limit: int, budget: int) -> None:
    seen: list[bytes] = []
    while section := texts(read(text, offset=len(seen), limit=limit + 1, max_bytes=budget)):
        seen += section
    assert seen == lines_of(text)


def test_a_newline_ends_a_line_and_does_not_begin_one() -> None:
    section = read(b"a\nb\n")
    assert (texts(section), section.total_lines, section.ends_with_newline) == (
        [b"a", b"b"],
        2,
        True,
    )
    assert not read(b"a\nb").ends_with_newline


def test_a_long_line_keeps_its_head_and_its_size() -> None:
    section = read(b"x" * 5_000, b"x" * 5_000, b"\nnext\n")
    assert [(len(line.data), line.size) for line in section.lines] == [
        (MAX_LINE_BYTES, 10_000),
        (4, 4),
    ]


def test_the_budget_ends_the_section_and_says_so() -> None:
    section = read(b"aaaa\nbbbb\ncccc\n", max_bytes=2 * (4 + LINE_OVERHEAD))
    assert (texts(section), section.is_cut, section.total_lines) == ([b"aaaa", b"bbbb"], True, 3)


def test_the_number_of_lines_is_unknown_when_the_reading_stopped() -> None:
    assert read(b"a\nb\n", whole=False).total_lines is None
