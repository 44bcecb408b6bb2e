"""The events of Anthropic's stream: any splitting of the bytes, and what is not known."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crush_kernel.errors import ConnectionLost, ContextTooLong, Overloaded
from crush_kernel.messages import Message, Reasoning, Text, ToolCall, Usage
from crush_kernel.providers.anthropic_reply import ReplyDecoder
from crush_kernel.providers.base import Accumulator, ModelInfo
from crush_kernel.providers.sse import NotAReply
from tests.fakes.provider.anthropic_api import AnthropicDialect, signature_of
from tests.fakes.provider.replies import COMMENT, Call, Reply, Say, Think, ThinkRedacted

INFO = ModelInfo("anthropic", "m")

THINKING = "Hm — ☃\u2028\n"
THOUGHT = Think(THINKING, size=3)

REPLY = Reply(
    (
        THOUGHT,
        ThinkRedacted("EncRypted"),
        Say("Ein schöner Tag 🎈", size=2),
        Call("view", {"path": "ä/☃.txt", "lines": [1, 2]}, id="t1", size=4),
        Call("bash", {"command": "echo '\\n'"}, id="t2"),
    ),
    usage=Usage(input_tokens=1, cache_read_tokens=2, cache_write_tokens=3, output_tokens=4),
    keep_alive=COMMENT,
)


def stream_of(reply: Reply) -> bytes:
    steps = AnthropicDialect().render(reply, {"model": "m"})
    return b"".join(step for step in steps if isinstance(step, bytes))


STREAM = stream_of(REPLY)


def decode(*chunks: bytes) -> Message:
    decoder, reply = ReplyDecoder("anthropic"), Accumulator(INFO)
    for chunk in chunks:
        for event in decoder.feed(chunk):
            reply.feed(event)
    for event in decoder.finish():
        reply.feed(event)
    return reply.message()


def events(*values: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)


def block(kind: str, index: int = 0, **fields: object) -> dict[str, Any]:
    content = {"type": kind, **fields}
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(kind: str, index: int = 0, **fields: object) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


END = ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"})


def test_the_whole_stream_at_once() -> None:
    message = decode(STREAM)
    assert [type(part) for part in message.parts] == [
        Reasoning,
        Reasoning,
        Text,
        ToolCall,
        ToolCall,
    ]
    thinking = {"type": "thinking", "thinking": THINKING, "signature": signature_of(THOUGHT)}
    assert message.parts[0] == Reasoning(THINKING, thinking)
    assert message.parts[1] == Reasoning("", {"type": "redacted_thinking", "data": "EncRypted"})
    assert message.usage == REPLY.usage
    assert message.stop == "tool_use"


@given(cuts=st.lists(st.integers(1, len(STREAM) - 1), max_size=40))
def test_splitting_the_bytes_anywhere_gives_the_same_message(cuts: list[int]) -> None:
    edges = [0, *sorted(set(cuts)), len(STREAM)]
    chunks = [STREAM[start:end] for start, end in pairwise(edges)]
    assert decode(*chunks) == decode(STREAM)


def test_byte_by_byte_gives_the_same_message() -> None:
    assert decode(*(STREAM[i : i + 1] for i in range(len(STREAM)))) == decode(STREAM)


@settings(max_examples=200)
@given(end=st.integers(0, len(STREAM) - 3))
def test_a_stream_cut_anywhere_is_a_lost_connection(end: int) -> None:
    with pytest.raises(ConnectionLost):
        decode(STREAM[:end])


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param({"type": "ping"}, id="ping"),
        pytest.param({"type": "something_new", "index": "x"}, id="event"),
        pytest.param({}, id="no type"),
        pytest.param({"type": ["a"]}, id="type of another kind"),
        pytest.param(block("server_tool_use", 7, id="s", name="web_search", input={}), id="block"),
        pytest.param(delta("input_json_delta", 7, partial_json="{"), id="delta of no known block"),
        pytest.param(delta("citations_delta", citation={}), id="delta"),
        pytest.param({"type": "content_block_delta", "index": 0, "delta": None}, id="no delta"),
        pytest.param({"type": "content_block_start", "index": 7}, id="no block"),
        pytest.param(stop(9), id="end of no block"),
        pytest.param({"type": "message_start", "message": None}, id="no message"),
        pytest.param({"type": "message_stop"}, id="stop without a reason"),
        pytest.param(
            {"type": "message_delta", "delta": {"stop_reason": None}, "usage": None}, id="nulls"
        ),
    ],
)
def test_what_is_not_known_is_passed_over(noise: dict[str, Any]) -> None:
    said = (block("text", text=""), delta("text_delta", text="hi"), stop())
    assert decode(events(noise, *said, noise, *END)).parts == (Text("hi"),)


@pytest.mark.parametrize("data", [b"[1]", b"null", b'"text"', b"1"])
def test_data_that_is_no_object_is_passed_over(data: bytes) -> None:
    assert decode(b"data: " + data + b"\n\n" + events(*END)).stop == "end_turn"


def test_nothing_counts_after_the_end() -> None:
    late = events(block("text", text="late"), {"type": "error", "error": {"type": "api_error"}})
    assert decode(events(*END) + late).parts == ()


def test_input_that_comes_with_the_start_is_taken() -> None:
    call = block("tool_use", id="t", name="view", input={"path": "ä"})
    assert decode(events(call, stop(), *END)).parts == (ToolCall("t", "view", '{"path": "ä"}'),)


def test_text_that_comes_with_the_start_is_taken() -> None:
    said = block("text", text="a"), delta("text_delta", text="b"), stop()
    assert decode(events(*said, *END)).parts == (Text("ab"),)


def test_thinking_without_a_signature_does_not_go_back() -> None:
    thought = block("thinking", thinking=""), delta("thinking_delta", thinking="Hm"), stop()
    assert decode(events(*thought, *END)).parts == (Reasoning("Hm"),)


def test_thinking_that_was_cut_off_does_not_go_back() -> None:
    reply, decoder = Accumulator(INFO), ReplyDecoder("anthropic")
    cut = events(block("thinking", thinking="Hm"), delta("signature_delta", signature="s"))
    for event in decoder.feed(cut):
        reply.feed(event)
    assert reply.message().parts == (Reasoning("Hm"),)


def test_a_signature_may_come_in_pieces() -> None:
    thought = (
        block("thinking", thinking="H", signature=""),
        delta("thinking_delta", thinking="m"),
        delta("signature_delta", signature="ab"),
        delta("signature_delta", signature="c="),
        stop(),
    )
    whole = {"type": "thinking", "thinking": "Hm", "signature": "abc="}
    assert decode(events(*thought, *END)).parts == (Reasoning("Hm", whole),)


def test_the_last_count_of_each_kind_wins() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
    reason = {"stop_reason": "end_turn"}
    later = {"input_tokens": None, "output_tokens": 7, "cache_read_input_tokens": 3, "x": [1]}
    end = {"type": "message_delta", "delta": reason, "usage": later}
    message = decode(events(start, end, {"type": "message_stop"}))
    assert message.usage == Usage(input_tokens=9, cache_read_tokens=3, output_tokens=7)


def test_lone_surrogates_become_replacement_characters() -> None:
    said = events(delta("text_delta", text="a\ud83db"))
    assert b"\\ud83d" in said
    assert decode(said + events(*END)).parts == (Text("a\ufffdb"),)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{", id="cut off"),
        pytest.param(b"nonsense", id="no JSON"),
        pytest.param(b'{"a": "\xff"}', id="no text"),
        pytest.param(b"[" * 100_000, id="nested too deep"),
    ],
)
def test_an_event_that_cannot_be_read_is_a_lost_connection(data: bytes) -> None:
    with pytest.raises(ConnectionLost, match="cannot be read"):
        decode(b"data: " + data + b"\n\n" + events(*END))


def test_an_event_without_end_is_no_reply() -> None:
    with pytest.raises(NotAReply):
        decode(*(b"data: " + b"x" * 1_000_000 for _ in range(17)))


def test_what_came_before_an_error_is_told_first() -> None:
    """Case c01, within one read."""
    reply, decoder = Accumulator(INFO), ReplyDecoder("anthropic")
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    stream = decoder.feed(events(block("text", text="Let me"), error))
    reply.feed(next(stream))
    with pytest.raises(Overloaded, match=r"Anthropic is overloaded\."):
        next(stream)
    assert reply.message().parts == (Text("Let me"),)


def full_window(*blocks: dict[str, Any]) -> bytes:
    reason = {"stop_reason": "model_context_window_exceeded"}
    return events(*blocks, {"type": "message_delta", "delta": reason}, {"type": "message_stop"})


def test_an_empty_reply_in_a_full_window_had_no_room() -> None:
    with pytest.raises(ContextTooLong):
        decode(full_window())


def test_a_reply_that_filled_the_window_was_cut_off() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}
    delta = {"type": "content_block_delta", "index": 0,
             "delta": {"type": "text_delta", "text": "Hi"}}  # fmt: skip
    assert decode(full_window(start, delta)).stop == "max_tokens"
