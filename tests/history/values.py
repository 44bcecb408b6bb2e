"""Turns, messages and JSON of every kind, for laws."""

from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.turn import Turn
from crush_kernel.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    ShellCommand,
    SummaryMark,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)

WRITTEN = st.text(max_size=12)
"""Text as a file can hold it."""

WILD = st.text("ab<&é\ufffd\ud83d\udd25\0\x1b", max_size=12)
"""Text with halves of characters in it too."""

_LEAVES = st.none() | st.booleans() | st.integers()


def json_of(
    texts: st.SearchStrategy[str], *, is_plain: bool = True
) -> st.SearchStrategy[JsonValue]:
    """Return JSON made of `texts`; what is not plain has `NaN` and the infinities too."""
    floats = st.floats(allow_nan=not is_plain, allow_infinity=not is_plain)
    return st.recursive(
        _LEAVES | floats | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=6,
    )


def objects_of(
    texts: st.SearchStrategy[str], *, is_plain: bool = True
) -> st.SearchStrategy[dict[str, JsonValue]]:
    """Return JSON objects made of `texts`."""
    return st.dictionaries(texts, json_of(texts, is_plain=is_plain), max_size=3)


def histories_of(
    texts: st.SearchStrategy[str], *, is_plain: bool = True
) -> st.SearchStrategy[tuple[Message, ...]]:
    """Return messages made of `texts`, in no order that makes sense."""
    parts = _parts_of(texts, objects_of(texts, is_plain=is_plain))
    counts = st.integers(0, 2**53)
    messages = st.builds(
        Message,
        st.sampled_from(["user", "assistant", "tool"]),
        st.lists(parts, max_size=3).map(tuple),
        provider=texts,
        model=texts,
        stop=st.sampled_from([None, "end_turn", "interrupted"]),
        usage=st.none() | st.builds(Usage, counts, counts, counts, counts, st.booleans()),
    )
    return st.lists(messages, max_size=4).map(tuple)


def turns_of(texts: st.SearchStrategy[str], *, is_plain: bool = True) -> st.SearchStrategy[Turn]:
    """Return turns that nobody runs any more, not stored yet."""
    return st.builds(
        Turn,
        st.text("abc-_.#: é", min_size=1, max_size=8),
        st.integers(1, 2**31 - 1),
        histories_of(texts, is_plain=is_plain),
        revision=st.integers(0, 2**31 - 1),
        end=st.sampled_from(["end_turn", "interrupted", "error"]),
        fingerprint=st.text("0123456789abcdef", max_size=16),
        source=st.text("0123456789abcdef", max_size=16),
        is_start=st.booleans(),
        volatile=objects_of(texts, is_plain=is_plain),
        record=st.none(),
        digest=st.just(""),
    )


def _parts_of(
    texts: st.SearchStrategy[str], objects: st.SearchStrategy[dict[str, JsonValue]]
) -> st.SearchStrategy[Part]:
    media = st.builds(Media, st.just("image/png"), st.just("aGk="), texts)
    times = st.floats(0, 1000).map(lambda seconds: {"volatile": {"duration_s": seconds}})
    return st.one_of(
        st.builds(Text, texts),
        st.builds(Reasoning, texts, objects),
        st.builds(ToolCall, texts, texts, texts),
        st.builds(
            ToolResult,
            texts,
            texts,
            st.booleans(),
            st.lists(media, max_size=2).map(tuple),
            objects | times,
        ),
        media,
        st.builds(ShellCommand, texts, texts, st.integers(0, 255)),
        st.builds(SummaryMark, texts),
        st.builds(Opaque, objects.map(lambda data: {**data, "kind": "from the future"})),
    )
