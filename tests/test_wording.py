"""Counts and clipped texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.wording import clipped, counted


@pytest.mark.parametrize(
    ("number", "words"),
    [
        pytest.param(0, "0 files", id="none"),
        pytest.param(1, "1 file", id="one"),
        pytest.param(3, "3 files", id="some"),
        pytest.param(1_200, "1,200 files", id="many"),
    ],
)
def test_things_are_counted_in_words(number: int, words: str) -> None:
    assert counted(number, "file") == words


def test_a_plural_can_be_given_and_a_count_can_be_open() -> None:
    assert counted(2, "entry", "entries") == "2 entries"
    assert counted(1, "match", "matches", has_more=True) == "1+ matches"


@given(text=st.text(), max_chars=st.integers(1, 50))
def test_a_clipped_text_is_short_enough_and_begins_as_it_did(text: str, max_chars: int) -> None:
    short = clipped(text, max_chars)
    assert len(short) <= max_chars
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))
