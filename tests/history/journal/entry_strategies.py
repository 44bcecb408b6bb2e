"""Entries as hypothesis draws them: of few ids, so that they meet."""

from typing import Any

from hypothesis import strategies as st

from crush_kernel.history.journal.entries import (
    Answered,
    Began,
    Drafted,
    Dropped,
    Entry,
    Published,
    Said,
    Unsaid,
)
from crush_kernel.history.subagentmessages import Nested
from crush_kernel.history.turn import Turn
from crush_kernel.messages import Message, Reasoning, Text, ToolCall, ToolResult, Usage

texts = st.sampled_from(["", "a", "b ", "\n", "ä☃", "key=s3cret"])
ids = st.sampled_from(["c1", "c2", "c3"])
results = st.builds(ToolResult, ids, texts, st.booleans())
user_messages = st.builds(Message, st.just("user"), st.tuples(st.builds(Text, texts)))
replies = st.builds(
    Message,
    st.just("assistant"),
    st.lists(
        st.one_of(
            st.builds(Text, texts),
            st.builds(Reasoning, texts),
            st.builds(ToolCall, ids, st.just("view"), st.just("{}")),
        ),
        max_size=3,
    ).map(tuple),
    provider=st.just("p"),
    model=st.just("m"),
    usage=st.none() | st.just(Usage(1)),
)
tool_messages = st.builds(Message, st.just("tool"), st.lists(results, max_size=3).map(tuple))
messages = st.one_of(user_messages, replies, tool_messages)

turns = st.builds(
    Turn,
    st.just("cell"),
    messages=st.lists(messages, max_size=2).map(tuple),
    fingerprint=texts,
    source=texts,
    is_start=st.booleans(),
)

steps = st.integers(1, 3)
drafts = st.builds(Drafted, steps, st.integers(1, 2), st.sampled_from(["text", "reasoning"]), texts)


def _display(text: str, display_id: str) -> dict[str, Any]:
    return {"data": {"text/plain": text}, "metadata": {}, "transient": {"display_id": display_id}}


displays = st.builds(_display, texts, st.sampled_from(["1", "2"]))
streamed = st.fixed_dictionaries({"name": st.just("stdout"), "text": texts})
cleared = st.fixed_dictionaries({"wait": st.booleans()})
published = st.one_of(
    st.builds(Published, st.sampled_from(["display_data", "update_display_data"]), displays),
    st.builds(Published, st.just("stream"), streamed),
    st.builds(Published, st.just("clear_output"), cleared),
)

later_entries: st.SearchStrategy[Entry] = st.one_of(
    st.builds(Said, messages),
    st.just(Unsaid()),
    st.builds(Answered, results),
    st.builds(Nested, ids, st.just("task"), st.just("p/m"), messages),
    drafts,
    st.builds(Dropped, steps, st.integers(1, 2)),
    published,
)
"""All but a beginning."""

entries: st.SearchStrategy[Entry] = st.one_of(later_entries, st.builds(Began, turns))
