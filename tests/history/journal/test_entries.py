"""What is noted comes back as it was, and whatever else is found counts as nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.journal.entries import (
    Answered,
    Drafted,
    Entry,
    Published,
    Said,
    decode,
    encode,
    from_bytes,
    to_bytes,
)
from crush_kernel.messages import Message, Opaque, Text, ToolResult
from tests.history.journal.entry_strategies import entries

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(entries)
def test_every_entry_survives_being_stored(entry: Entry) -> None:
    kind, content = encode(entry)
    assert decode(kind, from_bytes(to_bytes(content))) == entry


def test_a_part_of_a_later_version_stays_as_it_came() -> None:
    entry = Said(Message("user", (Opaque({"kind": "hologram", "depth": 3}),)))
    assert decode(*encode(entry)) == entry


KINDS = ["began", "said", "unsaid", "answered", "drafted", "dropped", "published", "new", ""]


@given(st.sampled_from(KINDS), json_values)
def test_whatever_is_found_is_an_entry_or_nothing(kind: str, content: JsonValue) -> None:
    entry = decode(kind, content)
    assert entry is None or decode(*encode(entry)) == entry


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        pytest.param("said", {"role": "wizard", "parts": []}, id="an unknown role"),
        pytest.param("answered", {"role": "tool", "parts": []}, id="no result"),
        pytest.param(
            "answered",
            {"role": "tool", "parts": [{"kind": "text", "text": "x"}]},
            id="something else for a result",
        ),
        pytest.param("drafted", {"step": 1, "attempt": 1, "part": "tool", "text": ""}, id="part"),
        pytest.param("hologram", None, id="an unknown kind"),
        pytest.param("began", None, id="nothing"),
    ],
)
def test_what_is_no_entry_is_none(kind: str, content: JsonValue) -> None:
    assert decode(kind, content) is None


@pytest.mark.parametrize(
    ("entry", "stored"),
    [
        pytest.param(
            Said(Message("user", (Text("a\ud800b"),))),
            Said(Message("user", (Text("a\ufffdb"),))),
            id="half a character in a text",
        ),
        pytest.param(
            Drafted(1, 1, "text", "\udc00"), Drafted(1, 1, "text", "\ufffd"), id="...in a draft"
        ),
        pytest.param(
            Published("stream", {"name": "a", "text": "\ud800"}),
            Published("stream", {"name": "a", "text": "\ufffd"}),
            id="...in an output",
        ),
        pytest.param(
            Answered(ToolResult("c", "", metadata={"duration_s": float("nan")})),
            Answered(ToolResult("c", "", metadata={"duration_s": None})),
            id="a number that JSON has not",
        ),
    ],
)
def test_what_no_file_takes_is_replaced(entry: Entry, stored: Entry) -> None:
    kind, content = encode(entry)
    assert decode(kind, from_bytes(to_bytes(content))) == stored


@pytest.mark.parametrize("depth", [100, 220, 5000])
def test_json_is_stored_however_deep_it_nests(depth: int) -> None:
    value: JsonValue = "bottom"
    for _ in range(depth):
        value = [value]
    assert isinstance(from_bytes(to_bytes(value)), list)


@pytest.mark.parametrize(
    "data", [None, "text", 7, b"", b"{", b"\xff", b"[" * 100_000, b'{"a": "\\ud800"']
)
def test_what_is_no_json_is_refused(data: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - what JSON's readers say is theirs
        from_bytes(data)
