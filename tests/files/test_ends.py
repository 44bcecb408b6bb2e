"""What is left of a text that is too long."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import iter_graphemes

from crush_kernel.files.ends import NEAR_BYTES, limit

NOTE = re.compile(r"\n\[… (\d+) lines, (\d+) bytes left out …\]\n")

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
CHARACTERS = st.sampled_from(
    [
        *("a", "\n", "\r\n", "中", "é", "e\u0301", "\U0001f44d\U0001f3fd", FAMILY),
        *("\U0001f1e9\U0001f1ea", "\u1112\u1161\u11ab", "क्षि", "❤\ufe0f", "1\ufe0f\u20e3"),
    ]
)
LINES = st.sampled_from(["\n", "\n\n", "a\n", "é\r\n", "中"])
TEXTS = (st.lists(CHARACTERS, max_size=60) | st.lists(LINES, max_size=30)).map("".join)


@given(TEXTS, st.integers(2, 80), st.integers(2, 12))
def test_a_text_is_whole_or_its_ends_with_what_is_between_counted(
    text: str, max_bytes: int, max_lines: int
) -> None:
    limited = limit(text, max_bytes=max_bytes, max_lines=max_lines)
    size, lines = len(text.encode()), text.count("\n")
    if size <= max_bytes and lines <= max_lines:
        assert limited == text
        return
    head, lines_left_out, bytes_left_out, tail = NOTE.split(limited)
    assert text.startswith(head)
    assert text.endswith(tail)
    kept = head + tail
    assert len(kept.encode()) == size - int(bytes_left_out) <= max_bytes
    assert kept.count("\n") == lines - int(lines_left_out) <= max_lines


@given(TEXTS, st.integers(2, 80))
def test_what_people_see_as_one_character_stays_one(text: str, max_bytes: int) -> None:
    limited = limit(text, max_bytes=max_bytes)
    if limited == text:
        return
    head, _, _, tail = NOTE.split(limited)
    whole = list(iter_graphemes(text))
    first, last = list(iter_graphemes(head)), list(iter_graphemes(tail))
    assert whole[: len(first)] == first
    assert whole[len(whole) - len(last) :] == last


@given(TEXTS, st.integers(2, 80))
def test_no_more_is_left_out_than_has_to_be(text: str, max_bytes: int) -> None:
    limited = limit(text, max_bytes=max_bytes)
    if limited == text:
        return
    head, _, _, tail = NOTE.split(limited)
    longest = max(len(each.encode()) for each in iter_graphemes(text))
    assert len(head.encode()) > max_bytes // 2 - longest
    assert len(tail.encode()) > max_bytes // 2 - longest


@pytest.mark.parametrize(
    ("text", "max_bytes", "limited"),
    [
        pytest.param("a" * 9, 9, "a" * 9, id="as long as it may be"),
        pytest.param("abcdefgh", 6, "abc\n[… 0 lines, 2 bytes left out …]\nfgh", id="longer"),
        pytest.param("", 0, "", id="nothing"),
        pytest.param("ab", 0, "\n[… 0 lines, 2 bytes left out …]\n", id="no room"),
        pytest.param(
            "a\n\n\n\n\nb", 4, "a\n\n[… 3 lines, 3 bytes left out …]\n\nb", id="empty lines"
        ),
        pytest.param(
            "ab\ud800cd", 4, "ab\n[… 0 lines, 1 bytes left out …]\ncd", id="half a character"
        ),
    ],
)  # fmt: skip
def test_texts_are_limited(text: str, max_bytes: int, limited: str) -> None:
    assert limit(text, max_bytes=max_bytes) == limited


def test_a_character_without_end_does_not_hold_anything_up() -> None:
    text = "e" + "\u0301" * 1_000_000
    limited = limit(text, max_bytes=1_000)
    assert len(limited.encode()) < 1_000 + NEAR_BYTES


def test_a_million_empty_lines_become_few() -> None:
    limited = limit("\n" * 1_000_000, max_bytes=10_000_000, max_lines=10)
    assert limited == "\n" * 5 + "\n[… 999990 lines, 999990 bytes left out …]\n" + "\n" * 5
