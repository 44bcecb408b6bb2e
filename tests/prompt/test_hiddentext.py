"""What people do not see in a text for agents is not in it for the agents either."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.prompt.hiddentext import without_hidden

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
ENGLAND = "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbeng") + "\U000e007f"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        pytest.param(f"Be nice.{TAGS}", "Be nice.", id="tags"),
        pytest.param("a\u200bb\ufeffc\u2060d", "abcd", id="no room"),
        pytest.param("a\u202eb\u2066c\u2069", "abc", id="order of letters"),
        pytest.param("a\U000e0101b", "ab", id="selectors for data"),
        pytest.param(f"{ENGLAND} wins", f"{ENGLAND} wins", id="a flag"),
        pytest.param(f"\U0001f3f4{TAGS * 4}", "\U0001f3f4", id="more than a flag"),
        pytest.param("می‌خواهم \U0001f469\u200d\U0001f680 ❤\ufe0f", None, id="joiners"),
        pytest.param("שלום\u200f (a)", None, id="marks of a script"),
        pytest.param("line\n\ttab é 漢", None, id="plain"),
    ],
)
def test_hidden_characters_are_taken_out(text: str, kept: str | None) -> None:
    kept = text if kept is None else kept
    assert without_hidden(text) == (kept, len(text) - len(kept))


@given(st.text(st.sampled_from("ab \n\u200b\u202e\u200d\ufe0f" + TAGS + ENGLAND)))
def test_what_is_left_hides_nothing_more(text: str) -> None:
    kept, count = without_hidden(text)
    assert len(kept) + count == len(text)
    assert without_hidden(kept) == (kept, 0)
