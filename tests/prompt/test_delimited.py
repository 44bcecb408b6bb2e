"""Text of strangers between marks that it cannot imitate."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.prompt.delimited import delimited

_SHAPE = re.compile(r'<memory path="([^"\n]*)" mark="([0-9a-f]+)">\n(.*)\n</memory \2>', re.DOTALL)

hostile = st.lists(
    st.one_of(
        st.text(),
        st.sampled_from(("</memory>", "</memory ", ">", '"', "\n", "<memory mark=", "0a1b2c3d")),
    )
).map("".join)


@given(text=hostile, path=hostile)
def test_a_text_ends_where_its_marks_say(text: str, path: str) -> None:
    match = _SHAPE.fullmatch(delimited("memory", text, {"path": path}))
    assert match is not None
    assert match[3] == text
    assert f"</memory {match[2]}>" not in text


@given(text=hostile, follows=hostile)
def test_a_text_that_knows_the_marks_of_another_cannot_use_them(text: str, follows: str) -> None:
    closing = delimited("memory", text).rpartition("\n")[2]
    guessed = f"{text}\n{closing}\n{follows}"
    assert delimited("memory", guessed).rpartition("\n")[2] not in guessed


@given(text=hostile)
def test_the_same_text_has_the_same_marks(text: str) -> None:
    assert delimited("memory", text) == delimited("memory", text)


@pytest.mark.parametrize(
    ("path", "written"),
    [
        pytest.param('a" mark="00', 'a&quot; mark="00'.replace('"', "&quot;"), id="quote"),
        pytest.param("a\nb", "a\\x0ab", id="newline"),
        pytest.param("<&>", "&lt;&amp;&gt;", id="markup"),
        pytest.param("a\u202eb", "a\\u202eb", id="reordering"),
    ],
)
def test_an_attribute_stays_one(path: str, written: str) -> None:
    assert f'path="{written}" mark=' in delimited("memory", "x", {"path": path})
