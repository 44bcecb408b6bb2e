"""ripgrep's matching lines, out of its output and around the match."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.tools.search.matches import MAX_COLUMNS, MAX_SHOWN, Hit, MatchParser, excerpt

OUTPUT = (
    b"./a.py\x0011-200-before\n"
    b"./a.py\x0012:5:210:\tx = 1: 2\r\n"
    b'lib.so: binary file matches (found "\\0" byte around offset 7)\n'
    b"./odd\nname\x001:1:0:text\n"
    b"./b\xff.py\x003:9:40:\xe9t\xc3\xa9\n"
)
FILES = ["a.py", "lib.so", "odd\nname", "b\udcff.py"]


def parse(*chunks: bytes, limit: int = 100) -> MatchParser:
    parser = MatchParser(FILES, limit=limit)
    for chunk in chunks:
        if not parser.feed(chunk):
            break
    parser.end()
    return parser


def test_lines_come_with_their_place() -> None:
    assert parse(OUTPUT).hits == [
        Hit("a.py", 11, b"before", 0, 200, is_match=False),
        Hit("a.py", 12, b"\tx = 1: 2\r", 4, 210, is_match=True),
        Hit("odd\nname", 1, b"text", 0, 0, is_match=True),
        Hit("b\udcff.py", 3, b"\xe9t\xc3\xa9", 8, 40, is_match=True),
    ]


def test_binary_files_that_match_are_noted() -> None:
    assert parse(OUTPUT).binary_files == ["lib.so"]
    assert parse(b'lib.so: binary file matches (found "\\0" byte)\n').binary_files == ["lib.so"]


@given(cuts=st.lists(st.integers(0, len(OUTPUT)), max_size=8))
def test_how_the_output_is_cut_does_not_matter(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(OUTPUT)]
    parser = parse(*(OUTPUT[start:end] for start, end in pairwise(edges)))
    assert (parser.hits, parser.binary_files) == (parse(OUTPUT).hits, ["lib.so"])


def test_reading_ends_one_match_after_the_limit() -> None:
    chunks = [b"./a.py\x00%d:1:0:x\n" % line for line in range(1, 9)]
    assert len(parse(*chunks, limit=3).hits) == 4


def hit(line: bytes, column: int, *, path: str = "a", offset: int = 0) -> Hit:
    printed = line if len(line) <= MAX_COLUMNS else line[:MAX_COLUMNS] + b" [... 1 more match]"
    return Hit(path, 1, printed, column, offset, is_match=True)


@pytest.mark.parametrize(
    ("line", "column", "text"),
    [
        pytest.param(b"short \xc3\xa9", 0, "short é", id="short"),
        pytest.param(b"short\r", 0, "short", id="CRLF"),
        pytest.param(b"b\xe9t", 0, "b\ufffdt", id="no UTF-8"),
        pytest.param(b"", 0, "", id="empty"),
        pytest.param(b"x" * 300, 299, "x" * 300, id="just fits"),
        pytest.param(b"needle" + b"x" * 300, 0, "needle" + "x" * 294 + "…", id="at the start"),
        pytest.param(b"x" * 400 + b"needle", 400, "…" + "x" * 100 + "needle", id="at the end"),
    ],
)
def test_a_line_is_cut_around_the_match(
    tmp_path: Path, line: bytes, column: int, text: str
) -> None:
    assert excerpt(hit(line, column), tmp_path) == text


@pytest.mark.parametrize("filler", [b"x", "é".encode(), "日".encode(), "😀".encode()])
@pytest.mark.parametrize("count", [1_000, 60_000])
def test_a_match_deep_in_a_long_line_is_read_from_the_file(
    tmp_path: Path, filler: bytes, count: int
) -> None:
    line = filler * count + b"needle" + filler * count
    (tmp_path / "a").write_bytes(b"first\n" + line + b"\nlast\n")
    text = excerpt(hit(line, len(filler) * count, offset=6), tmp_path)
    before, _, after = text.partition("needle")
    character = filler.decode()
    assert set(before) == {"…", character}
    assert set(after) == {"…", character}
    assert len(text.encode()) <= MAX_SHOWN + 10


def test_what_follows_the_line_is_not_part_of_it(tmp_path: Path) -> None:
    line = b"x" * 5_000 + b"needle"
    (tmp_path / "a").write_bytes(line + b"\nsecret\n")
    assert excerpt(hit(line, 5_000), tmp_path).endswith("needle")


@pytest.mark.parametrize("content", [None, b"\xff\xfeu\0t\0f\0" * 2_000])
def test_without_the_file_the_start_of_the_line_has_to_do(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "a").write_bytes(content)
    text = excerpt(hit(b"x" * 9_000, 5_000), tmp_path)
    assert set(text) <= {"x", "…"}
    assert text
