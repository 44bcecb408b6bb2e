"""What is stored comes back as it was."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crush_kernel.messages import (
    MESSAGES,
    Media,
    Message,
    Opaque,
    Reasoning,
    ShellCommand,
    SummaryMark,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)

texts = st.text(max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(texts, json_values, max_size=3)
media = st.builds(Media, st.just("image/png"), st.just("aGk="), texts)
counts = st.integers(min_value=0, max_value=10**9)
parts = st.one_of(
    st.builds(Text, texts),
    st.builds(Reasoning, texts, objects),
    st.builds(ToolCall, texts, texts, texts),
    st.builds(
        ToolResult, texts, texts, st.booleans(), st.lists(media, max_size=2).map(tuple), objects
    ),
    media,
    st.builds(ShellCommand, texts, texts, st.integers(0, 255)),
    st.builds(SummaryMark, texts),
    st.builds(Opaque, objects.map(lambda data: {**data, "kind": "from the future"})),
)
messages = st.lists(
    st.builds(
        Message,
        st.sampled_from(["user", "assistant", "tool"]),
        st.lists(parts, max_size=4).map(tuple),
        provider=texts,
        model=texts,
        stop=st.sampled_from([None, "end_turn", "interrupted"]),
        usage=st.none() | st.builds(Usage, counts, counts, counts, counts, st.booleans()),
    ),
    max_size=4,
).map(tuple)


@given(messages)
def test_every_history_survives_the_codec(history: tuple[Message, ...]) -> None:
    assert MESSAGES.validate_json(MESSAGES.dump_json(history)) == history


@given(objects)
def test_an_unknown_part_is_written_back_untouched(data: dict[str, object]) -> None:
    stored = [{"role": "user", "parts": [{**data, "kind": "hologram"}]}]
    history = MESSAGES.validate_json(json.dumps(stored))
    written = json.loads(MESSAGES.dump_json(history))
    assert written[0]["parts"] == stored[0]["parts"]


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param('[{"role": "wizard", "parts": []}]', id="unknown role"),
        pytest.param('[{"role": "user", "parts": ["x"]}]', id="a part that is no object"),
        pytest.param('[{"role": "user", "parts": [{"kind": "text"}]}]', id="text without text"),
        pytest.param("{}", id="no list"),
    ],
)
def test_a_malformed_history_is_refused(stored: str) -> None:
    with pytest.raises(ValidationError):
        MESSAGES.validate_json(stored)


def test_usage_adds_up_and_stays_an_estimate() -> None:
    total = Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40, is_estimated=True)
    assert total == Usage(11, 22, 33, 44, is_estimated=True)
    assert total.context_tokens == 110
