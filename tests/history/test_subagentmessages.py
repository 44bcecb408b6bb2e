"""What is kept of a sub-agent, and what it has cost, wherever that is read from."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.journal.entries import Answered, Began, Entry, Said
from crush_kernel.history.journal.replay import fold
from crush_kernel.history.spending import spent_in
from crush_kernel.history.subagentmessages import (
    MAX_MESSAGE_BYTES,
    MAX_RECORD_BYTES,
    Nested,
    bounded,
    facts_of,
    shortened,
    size_of,
    spent_by,
    summed,
)
from crush_kernel.history.subagentrecord import KEY, subagent_of
from crush_kernel.history.turn import Turn, digest_of
from crush_kernel.history.weight import weight_of
from crush_kernel.messages import (
    Media,
    Message,
    Opaque,
    Reasoning,
    Role,
    ShellCommand,
    SummaryMark,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    text_of,
)

ROLES: tuple[Role, ...] = ("user", "assistant", "tool")

texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["x", "日本", "\x01", "\ud800", "🙂"]).map(lambda char: char * 2_100),
)
parts = st.one_of(
    st.builds(Text, texts),
    st.builds(Reasoning, texts, st.just({"signature": "s" * 50})),
    st.builds(ToolCall, texts, texts, texts),
    st.builds(
        ToolResult,
        texts,
        texts,
        st.booleans(),
        st.just((Media("image/png", "A" * 5_000),)),
        st.dictionaries(st.sampled_from(["summary", "diff", "volatile", "x"]), texts),
    ),
    st.builds(Media, st.just("image/png"), texts),
    st.builds(ShellCommand, texts, texts, st.just(0)),
    st.builds(SummaryMark, texts),
    st.builds(Opaque, st.just({"kind": "later"})),
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    drawn = draw(st.lists(parts, min_size=1, max_size=4))
    again = draw(st.sampled_from([1, 1, 1, 50]))
    return Message(draw(st.sampled_from(ROLES)), tuple(drawn * again))


@given(messages())
def test_what_is_kept_of_a_message_is_bounded_and_stays_as_it_is(message: Message) -> None:
    short = shortened(message)
    assert size_of(short) <= 3 * MAX_MESSAGE_BYTES
    assert shortened(short) == short
    assert not [part for part in short.parts if isinstance(part, (Media, Opaque))]
    for part in short.parts:
        if isinstance(part, ToolResult):
            assert not part.media
            assert "volatile" not in part.metadata


def test_a_short_message_is_kept_as_it_is() -> None:
    message = Message(
        "assistant",
        (Text("I look."), ToolCall("c1", "view", '{"file_path": "a"}')),
        provider="p",
        model="m",
        stop="tool_use",
        usage=Usage(3),
    )
    assert shortened(message) == message


@settings(max_examples=40)
@given(st.lists(messages(), min_size=1, max_size=8))
def test_of_many_messages_the_first_and_the_last_are_kept(said: list[Message]) -> None:
    short = [shortened(message) for message in said]
    kept = bounded(short)
    assert sum(map(size_of, kept)) <= max(MAX_RECORD_BYTES, size_of(short[0]) + 200)
    assert kept[0] == short[0]
    if kept != tuple(short):
        count = len(short) - len(kept) + 1
        assert text_of(kept[1]) == f"[… {count} messages are not kept …]"
        assert list(kept[2:]) == short[count + 1 :]


REPLY = Message("assistant", (ToolCall("p", "agent", "{}"), ToolCall("q", "agent", "{}")))


def nested(call_id: str, text: str, tokens: int = 0) -> Nested:
    message = Message(
        "assistant", (Text(text),), provider="a", model="m", usage=Usage(tokens) if tokens else None
    )
    return Nested(call_id, "task", "a/m", message)


def replayed(*entries: Entry) -> Turn:
    return fold("c.1", [Began(Turn("c")), *entries]).turn


def test_a_sub_agent_that_died_with_the_kernel_has_a_result_with_what_it_did() -> None:
    turn = replayed(Said(REPLY), nested("p", "one", 5), nested("q", "other"), nested("p", "two", 7))
    first, second = turn.messages[-1].parts
    assert isinstance(first, ToolResult)
    assert isinstance(second, ToolResult)
    record = subagent_of(first)
    assert record is not None
    assert (first.is_error, record.end, record.name) == (True, "interrupted", "task")
    assert [text_of(message) for message in record.messages] == ["one", "two"]
    assert record.usage == {"a/m": Usage(12)}
    assert turn.usage == Usage(12)


def test_a_result_that_was_there_counts_and_what_led_to_it_does_not() -> None:
    result = ToolResult("p", "done")
    turn = replayed(Said(REPLY), nested("p", "one"), Answered(result), nested("q", "other"))
    assert turn.messages[-1].parts[0] == result
    assert len(turn.messages[-1].parts) == 2


def test_what_a_sub_agent_said_is_void_when_the_next_reply_comes() -> None:
    answers = Message("tool", (ToolResult("p", "done"), ToolResult("q", "done")))
    last = Message("assistant", (Text("All done."),))
    turn = replayed(Said(REPLY), nested("p", "one"), Said(answers), Said(last))
    assert turn.messages == (REPLY, answers, last)


def test_words_of_a_sub_agent_that_no_call_has_started_are_passed_over() -> None:
    turn = replayed(Said(Message("user", (Text("hi"),))), nested("p", "one"))
    assert [message.role for message in turn.messages] == ["user"]


def answered(usage: JsonValue) -> Message:
    return Message("tool", (ToolResult("p", "ok", metadata={KEY: {"usage": usage}}),))


@pytest.mark.parametrize(
    ("usage", "spent"),
    [
        pytest.param({"a/m": {"input_tokens": 3}}, {"a/m": Usage(3)}, id="of one model"),
        pytest.param(
            {"a/m": {"input_tokens": 3}, "a/n": {"output_tokens": 4}},
            {"a/m": Usage(3), "a/n": Usage(output_tokens=4)},
            id="of two",
        ),
        pytest.param({"a/m": {"input_tokens": -3}}, {}, id="less than nothing"),
        pytest.param({"a/m": "much"}, {}, id="no usage"),
        pytest.param({"a" * 600: {"input_tokens": 3}}, {}, id="a name of any length"),
        pytest.param(["a/m"], {}, id="no object"),
        pytest.param(None, {}, id="nothing"),
    ],
)
def test_what_sub_agents_have_used_counts_wherever_it_comes_from(
    usage: JsonValue, spent: dict[str, Usage]
) -> None:
    assert summed(spent_by(answered(usage))) == spent
    assert spent_in([Turn("c", messages=(answered(usage),))]) == spent


def test_what_a_turn_has_spent_is_told_by_model() -> None:
    reply = Message("assistant", (), provider="a", model="m", usage=Usage(10))
    told = answered({"a/m": {"input_tokens": 3}, "b/n": {"input_tokens": 4}})
    turn = Turn("c", messages=(reply, told, reply))
    assert turn.spent == {"a/m": Usage(23), "b/n": Usage(4)}
    assert turn.usage == Usage(27)


def test_a_record_changes_what_it_weighs_and_not_what_is_said() -> None:
    said = [nested("p", "x" * 1_500)] * 10
    plain = Message("tool", (ToolResult("p", "ok"),))
    told = Message("tool", (ToolResult("p", "ok", metadata=facts_of(said, end="end_turn")),))
    assert digest_of((plain,)) == digest_of((told,))
    assert weight_of((told,)) - weight_of((plain,)) > 15_000


def test_names_of_any_length_are_cut() -> None:
    said = [replace(nested("p", "x"), agent="n" * 9_000, model="m" * 9_000)]
    assert size_of(
        Message("tool", (ToolResult("p", "", metadata=facts_of(said, end="error")),))
    ) < (2_000)
