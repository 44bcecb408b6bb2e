"""Texts that servers take, and texts that are JSON objects."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.messages import Message, object_in, object_text, shared_length, well_formed

any_text = st.text(st.characters(exclude_categories=()))


@given(any_text)
def test_a_text_loses_its_lone_surrogates_and_nothing_else(text: str) -> None:
    clean = well_formed(text)
    clean.encode("utf-8")
    assert len(clean) == len(text)
    assert [b for a, b in zip(text, clean, strict=True) if a != b] == ["\ufffd"] * sum(
        "\ud800" <= char <= "\udfff" for char in text
    )


def test_a_clean_text_is_not_copied() -> None:
    text = "ä☃🎈"
    assert well_formed(text) is text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param('{"a": 1}', {"a": 1}, id="an object"),
        pytest.param("{}", {}, id="an empty one"),
        pytest.param('{"a": "b\nc"}', {"a": "b\nc"}, id="with a raw line break in a string"),
        pytest.param('{"a": "\\ud800"}', {"a": "\ud800"}, id="with half a character"),
        pytest.param("[]", None, id="a list"),
        pytest.param("null", None, id="null"),
        pytest.param("{", None, id="cut off"),
        pytest.param("", None, id="nothing"),
        pytest.param('{"a": NaN}', None, id="with a constant that JSON does not have"),
        pytest.param('{"a": 1}}', None, id="with something after it"),
        pytest.param('{"a": 1e999, "b": "\n"}', None, id="with a number beyond reason"),
        pytest.param("[" * 200_000, None, id="nested beyond reason"),
        pytest.param('{"a":' * 200_000, None, id="an object nested beyond reason"),
        pytest.param("\ud800", None, id="not even text"),
    ],
)
def test_an_object_is_read_from_a_text(text: str, value: object) -> None:
    assert object_in(text) == value


@given(any_text | st.dictionaries(any_text, st.floats() | any_text).map(json.dumps))
def test_the_text_of_an_object_is_one_that_every_server_reads(text: str) -> None:
    sent = object_text(text)
    assert sent is None or isinstance(json.loads(sent.encode("utf-8")), dict)
    assert (sent is None) == (object_in(text) is None)


def test_an_object_nested_to_the_limit_is_read_or_not_but_never_fails() -> None:
    for depth in range(800, 1_000):
        text = '{"a":' * depth + '"\n"' + "}" * depth
        assert object_text(text) is None or json.loads(str(object_text(text)))


@given(st.dictionaries(st.text(), st.integers() | st.text()).map(json.dumps))
def test_the_text_of_an_object_stays_as_it_was_written(text: str) -> None:
    assert object_text(text) is text


def test_the_messages_that_two_histories_share_are_the_same_objects() -> None:
    one, other, equal = (Message("user", ()) for _ in range(3))
    assert shared_length((one, other), (one, other)) == 2
    assert shared_length((one, other), (one,)) == 1
    assert shared_length((one, other), (equal, other)) == 0
    assert shared_length((), (one,)) == 0
