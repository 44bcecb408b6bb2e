"""Decisions as they are kept: bounded, without a change of meaning, and readable for ever."""

import re
from dataclasses import fields
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.decisions import (
    MAX_LIST_CHARS,
    MAX_LONG_CHARS,
    MAX_TEXT_CHARS,
    DecisionRecord,
    bounded,
    is_routine,
    read_decision,
    write_decision,
)
from crush_kernel.history.journal.entries import from_bytes, to_bytes
from crush_kernel.messages import JsonObject, well_formed

TEXT = st.text(max_size=20).map(well_formed)
TEXTS = st.tuples() | st.tuples(TEXT) | st.tuples(TEXT, TEXT)
RECORDS = st.builds(
    DecisionRecord,
    tool=TEXT,
    by=TEXT,
    rule=TEXT,
    reason=TEXT,
    command=TEXT,
    input=TEXT,
    at=TEXT,
    is_allowed=st.booleans(),
    is_outside=st.booleans(),
    paths=TEXTS,
    parts=TEXTS,
    dangers=TEXTS,
    kept_rules=TEXTS,
)
NAMES = st.sampled_from([each.name for each in fields(DecisionRecord)]) | st.text(max_size=5)
JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
)


@given(RECORDS)
def test_a_decision_that_fits_is_kept_whole(record: DecisionRecord) -> None:
    facts = bounded(write_decision(record))

    assert read_decision(from_bytes(to_bytes(dict(facts)))) == record
    assert all(facts.values()), "what does not apply is not stored"


@given(st.dictionaries(NAMES, JSON))
def test_whatever_a_file_says_is_read(facts: JsonObject) -> None:
    read = read_decision(facts)

    assert bounded(write_decision(read)) == write_decision(read)
    str(read).encode()


@pytest.mark.parametrize("name", ["command", "input", "reason", "title", "unknown"])
def test_a_long_text_is_cut_with_its_hash(name: str) -> None:
    text = "é" * 1_000_000
    cut = bounded({name: text})[name]

    assert isinstance(cut, str)
    assert len(cut) < MAX_LONG_CHARS + 200
    digest = sha256(text.encode()).hexdigest()
    assert cut.endswith(f"é… [1,000,000 characters, SHA-256 {digest}]")


@given(st.lists(st.integers(0, 3 * MAX_TEXT_CHARS), max_size=150))
def test_a_long_list_is_cut_and_says_how_much_is_missing(lengths: list[int]) -> None:
    items: list[JsonValue] = ["x" * length for length in lengths]
    cut = bounded({"paths": items})["paths"]

    assert isinstance(cut, list)
    assert len(str(cut)) < 3 * MAX_LIST_CHARS
    last = str(cut[-1]) if cut else ""
    missing = re.fullmatch("… ([0-9,]+) more", last)
    kept = len(cut) - 1 if missing else len(cut)
    assert kept + (int(missing[1].replace(",", "")) if missing else 0) == len(items)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param({"by": "built-in", "is_allowed": True}, True, id="always allowed"),
        pytest.param({"by": "built-in"}, False, id="always refused"),
        pytest.param({"by": "person", "is_allowed": True}, False, id="a person"),
        pytest.param({}, False, id="nothing known"),
    ],
)
def test_only_what_is_always_allowed_is_routine(facts: JsonObject, *, expected: bool) -> None:
    assert is_routine(facts) == expected


def test_decisions_of_the_first_version_are_read() -> None:
    first: JsonObject = {
        "call_id": "c1",
        "tool": "edit",
        "action": "write",
        "title": "edit a.py",
        "paths": ["/p/a.py"],
        "is_allowed": True,
        "rule": "allowed once",
        "by": "person",
        "reason": "",
    }

    assert read_decision(first) == DecisionRecord(
        tool="edit",
        action="write",
        title="edit a.py",
        is_allowed=True,
        by="person",
        rule="allowed once",
        call_id="c1",
        paths=("/p/a.py",),
    )
