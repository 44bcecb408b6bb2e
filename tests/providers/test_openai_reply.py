"""What servers say is understood however they say it, and half a reply is no reply."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.errors import (
    ConnectionLost,
    ContextTooLong,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRejected,
)
from crush_kernel.messages import Message, Part, Reasoning, StopReason, Text, ToolCall, Usage
from crush_kernel.providers.base import Accumulator, ModelInfo, Stop, StreamEvent
from crush_kernel.providers.openai_reply import ReplyDecoder
from crush_kernel.providers.sse import NotAReply

INFO = ModelInfo("openai", "m")
DONE = "data: [DONE]\n\n"


def chunk(
    delta: object = None, *, finish: str | None = None, usage: object = None, index: int = 0
) -> str:
    choice: dict[str, object] = {"index": index, "delta": delta or {}, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice], 'usage': usage})}\n\n"


def text(content: str) -> str:
    return chunk({"content": content})


def call(arguments: object, *, name: str | None = None, **fields: object) -> str:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return chunk({"tool_calls": [{**fields, "function": function}]})


STOP = chunk(finish="stop")


class Ids:
    """Numbers calls without an id, and keeps the others."""

    def __init__(self) -> None:
        self.count = 0

    def claim(self, wanted: str) -> str:
        self.count += 1
        return wanted or f"new{self.count}"


def events_of(*pieces: bytes) -> list[StreamEvent]:
    decoder = ReplyDecoder("openai", Ids().claim)
    events: list[StreamEvent] = []
    for piece in pieces:
        events += decoder.feed(piece)
    return [*events, *decoder.finish()]


def message_of(*pieces: bytes) -> Message:
    reply = Accumulator(INFO)
    for event in events_of(*pieces):
        reply.feed(event)
    return reply.message()


def decoded(*body: str) -> Message:
    return message_of("".join(body).encode())


def parts(*body: str) -> tuple[Part, ...]:
    return decoded(*body).parts


def test_text_comes_in_order_and_ends_with_a_stop() -> None:
    events = events_of((text("Hel") + text("lo") + STOP + DONE).encode())
    assert events[-1] == Stop("end_turn")
    assert sum(isinstance(event, Stop) for event in events) == 1
    assert decoded(text("Hel"), text("lo"), STOP, DONE).parts == (Text("Hello"),)


CHUNKS_WITHOUT_NEWS = [
    pytest.param('data: {"choices":[]}\n\n', id="no choices"),
    pytest.param('data: {"choices":null}\n\n', id="choices are null"),
    pytest.param("data: {}\n\n", id="nothing"),
    pytest.param('data: {"choices":[{"index":0}]}\n\n', id="no delta"),
    pytest.param('data: {"choices":[{"index":0,"delta":null}]}\n\n', id="delta is null"),
    pytest.param('data: {"choices":[null]}\n\n', id="choice is null"),
    pytest.param(chunk({"role": "assistant"}), id="role only"),
    pytest.param(chunk({"role": "assistant", "content": ""}), id="empty content"),
    pytest.param(chunk({"content": None}), id="content is null"),
    pytest.param(chunk({"tool_calls": None}), id="calls are null"),
    pytest.param(chunk({"tool_calls": []}), id="no calls"),
    pytest.param(chunk({"tool_calls": [{"index": 0}]}), id="a call without a function"),
    pytest.param(chunk({"content": "other"}, index=1), id="another choice"),
    pytest.param(chunk(finish=""), id="an empty reason to stop"),
    pytest.param(": keep-alive\n\n", id="a comment"),
    pytest.param("event: ping\ndata: {}\n\n", id="a ping"),
    pytest.param("id: 7\nretry: 100\n\n", id="other fields"),
    pytest.param("data:\n\n", id="empty data"),
    pytest.param("\n\n\n", id="blank lines"),
    pytest.param('data: {"error": null}\n\n', id="an error that is none"),
]


@pytest.mark.parametrize("nothing", CHUNKS_WITHOUT_NEWS)
def test_a_chunk_without_news_changes_nothing(nothing: str) -> None:
    said = decoded(nothing, text("H"), nothing, text("i"), nothing, STOP, nothing, DONE)
    assert said.parts == (Text("Hi"),)
    assert said.stop == "end_turn"


def test_empty_choices_at_both_ends_leave_text_and_usage() -> None:
    said = decoded(
        'data: {"choices":[]}\n\n',
        chunk({"role": "assistant", "content": "Hi"}),
        STOP,
        'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}\n\n',
        DONE,
    )
    assert said.parts == (Text("Hi"),)
    assert (said.usage, said.stop) == (Usage(input_tokens=9, output_tokens=1), "end_turn")


@pytest.mark.parametrize(
    ("finish", "calls", "stop"),
    [
        pytest.param("stop", False, "end_turn", id="stop"),
        pytest.param("stop", True, "tool_use", id="stop with calls"),
        pytest.param("tool_calls", True, "tool_use", id="tool_calls"),
        pytest.param("tool_calls", False, "end_turn", id="tool_calls without any"),
        pytest.param("function_call", True, "tool_use", id="function_call"),
        pytest.param("length", False, "max_tokens", id="length"),
        pytest.param("length", True, "max_tokens", id="length inside a call"),
        pytest.param("content_filter", False, "refused", id="filter"),
        pytest.param("content_filter", True, "refused", id="filter inside a call"),
        pytest.param("eos_token", False, "end_turn", id="made up"),
        pytest.param(None, False, "end_turn", id="none, then the end mark"),
        pytest.param(None, True, "tool_use", id="none with calls, then the end mark"),
    ],
)
def test_the_reason_to_stop(finish: str | None, calls: bool, stop: StopReason) -> None:  # noqa: FBT001
    work = call('{"a": 1}', name="ls", index=0, id="c1") if calls else text("Hi")
    assert decoded(work, chunk(finish=finish), DONE).stop == stop


def test_a_reply_is_complete_without_the_end_mark_once_a_reason_came() -> None:
    assert decoded(text("Hi"), STOP).parts == (Text("Hi"),)


CUT_OFF = [
    pytest.param("", id="nothing at all"),
    pytest.param("\n", id="a blank line"),
    pytest.param(": comment\n\n", id="a comment"),
    pytest.param(text("Let me"), id="after text"),
    pytest.param(text("Let me") + 'data: {"choices":[{"index":0,"del', id="inside an event"),
    pytest.param('data: {"choices":[{"index":0,"del', id="inside the first event"),
    pytest.param(
        call('{"file_path":"a.txt","cont', name="write", index=0, id="c1")
        + 'data: {"choices":[{"index":0,"del',
        id="inside a call",
    ),
    pytest.param(chunk(finish=None), id="a reason that is null"),
]


@pytest.mark.parametrize("body", CUT_OFF)
def test_a_stream_that_ends_early_is_lost_and_never_stops(body: str) -> None:
    decoder = ReplyDecoder("openai", Ids().claim)
    events = list(decoder.feed(body.encode()))
    with pytest.raises(ConnectionLost) as caught:
        list(decoder.finish())
    assert caught.value.is_retryable
    assert not any(isinstance(event, Stop) for event in events)


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param("data: [DONE]", id="no line end"),
        pytest.param("data: [DONE]\n", id="no blank line"),
        pytest.param("data:[DONE]\r\n\r\n", id="no space, CRLF"),
        pytest.param('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}', id="last chunk"),
        pytest.param(STOP + 'data: {"choices":[],"usa', id="usage cut off"),
    ],
)
def test_an_end_that_is_only_sloppy_is_an_end(ending: str) -> None:
    assert decoded(text("Hi"), ending).parts == (Text("Hi"),)


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param("data: {nonsense}\n\n", id="not JSON"),
        pytest.param('data: "text"\n\n', id="not an object"),
        pytest.param("data: [1]\n\n", id="a list"),
        pytest.param("data: " + "[" * 100_000 + "\n\n", id="nested without end"),
    ],
)
def test_garbage_in_the_middle_is_a_lost_connection(garbage: str) -> None:
    with pytest.raises(ConnectionLost):
        decoded(text("Hi"), garbage, STOP, DONE)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param({"type": "overloaded_error", "message": "x"}, Overloaded, id="overloaded"),
        pytest.param({"type": "server_error", "message": "x"}, Overloaded, id="server error"),
        pytest.param({"type": "rate_limit_error", "message": "x"}, RateLimited, id="rate limit"),
        pytest.param({"code": 502, "message": "upstream"}, Overloaded, id="number, OpenRouter"),
        pytest.param({"code": "429", "message": "slow down"}, RateLimited, id="number in a text"),
        pytest.param(
            {"code": 400, "type": "invalid_request_error", "message": "no"},
            RequestRejected,
            id="number and type, vLLM",
        ),
        pytest.param(
            {"code": "context_length_exceeded", "message": "maximum context length is 8192"},
            ContextTooLong,
            id="too long",
        ),
        pytest.param("model runner has stopped", Overloaded, id="a text, Ollama"),
        pytest.param({}, None, id="an empty object is none"),
    ],
)
def test_an_error_inside_the_stream_is_what_it_says(
    error: object, kind: type[ProviderError] | None
) -> None:
    body = text("Let me") + f"event: error\ndata: {json.dumps({'error': error})}\n\n"
    if kind is None:
        assert decoded(body, STOP).parts == (Text("Let me"),)
        return
    with pytest.raises(kind):
        decoded(body)


@pytest.mark.parametrize("finish", ["error", "insufficient_system_resource"])
def test_a_reply_that_the_server_gives_up_on_can_be_tried_again(finish: str) -> None:
    with pytest.raises(ProviderError) as caught:
        decoded(text("Let me"), chunk(finish=finish), DONE)
    assert caught.value.is_retryable


def test_an_error_never_shows_the_key() -> None:
    decoder = ReplyDecoder("openai", Ids().claim, secrets=("hush-hush-key",))
    body = b'data: {"error": {"type": "x", "message": "bad key hush-hush-key"}}\n\n'
    with pytest.raises(ProviderError) as caught:
        list(decoder.feed(body))
    assert "hush" not in f"{caught.value} {caught.value.detail}"


LS = '{"path": "."}'
A, B = '{"path": "a"}', '{"path": "b"}'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            call("", name="ls", index=0, id="c1") + call(LS[:5], index=0) + call(LS[5:], index=0),
            [("c1", "ls", LS)],
            id="as OpenAI does",
        ),
        pytest.param(
            call("", name="ls", index=0, id="c1")
            + call("", name="cat", index=1, id="c2")
            + call(A[:4], index=0)
            + call(B[:4], index=1)
            + call(A[4:], index=0)
            + call(B[4:], index=1),
            [("c1", "ls", A), ("c2", "cat", B)],
            id="two calls in turns",
        ),
        pytest.param(
            call(A, name="ls", id="c1") + call(B, name="ls", id="c2"),
            [("c1", "ls", A), ("c2", "ls", B)],
            id="whole calls without an index",
        ),
        pytest.param(
            call(A, name="ls", index=0, id="c1") + call(B, name="ls", index=0, id="c2"),
            [("c1", "ls", A), ("c2", "ls", B)],
            id="whole calls, one index for all",
        ),
        pytest.param(
            call(A, name="ls", index=0) + call(B, name="ls", index=0),
            [("new1", "ls", A), ("new2", "ls", B)],
            id="whole calls, one index, no id",
        ),
        pytest.param(
            call(A, name="ls") + call(B, name="cat"),
            [("new1", "ls", A), ("new2", "cat", B)],
            id="whole calls, no index, no id",
        ),
        pytest.param(
            call(A[:4], name="ls") + call(A[4:]),
            [("new1", "ls", A)],
            id="pieces, no index, no id",
        ),
        pytest.param(
            call(A[:4], name="ls", index=0, id="c1") + call(A[4:], name="ls", index=0, id="c1"),
            [("c1", "ls", A)],
            id="name and id repeated",
        ),
        pytest.param(
            call(A[:4], name="ls", index=0) + call(A[4:], name="ls", index=0),
            [("new1", "ls", A)],
            id="name repeated, no id",
        ),
        pytest.param(
            call(A, name="ls", id="c1") + call("", name="ls", id="c1"),
            [("c1", "ls", A)],
            id="name repeated at the end",
        ),
        pytest.param(
            call(A[:4], name="ls", index=0, id="c1") + call(A[4:], index=0, id=""),
            [("c1", "ls", A)],
            id="empty id afterwards",
        ),
        pytest.param(
            call(A[:4], index=0, id="c1") + call(A[4:], name="ls", index=0),
            [("c1", "ls", A)],
            id="name late",
        ),
        pytest.param(
            call({"path": "."}, name="ls", index=0, id="c1"),
            [("c1", "ls", LS)],
            id="arguments parsed already",
        ),
        pytest.param(
            call(None, name="ls", index=0, id="c1"), [("c1", "ls", "")], id="arguments are null"
        ),
        pytest.param(call(A, index=0, id="c1"), [("c1", "", A)], id="a name that never comes"),
        pytest.param(
            chunk(
                {
                    "tool_calls": [
                        {"index": 0, "id": "c1", "function": {"name": "ls", "arguments": A}},
                        {"index": 1, "id": "c2", "function": {"name": "ls", "arguments": B}},
                    ]
                }
            ),
            [("c1", "ls", A), ("c2", "ls", B)],
            id="several in one chunk",
        ),
        pytest.param(
            chunk({"function_call": {"name": "ls", "arguments": A[:4]}})
            + chunk({"function_call": {"arguments": A[4:]}}),
            [("new1", "ls", A)],
            id="the old function_call",
        ),
    ],
)
def test_calls_are_put_together(body: str, expected: list[tuple[str, str, str]]) -> None:
    said = decoded(body, chunk(finish="tool_calls"), DONE)
    assert said.parts == tuple(ToolCall(*fields) for fields in expected)
    assert said.stop == "tool_use"


def test_a_call_is_announced_before_its_arguments_are_complete() -> None:
    decoder = ReplyDecoder("openai", Ids().claim)
    events = list(decoder.feed(call("", name="write", index=0, id="c1").encode()))
    assert [type(event).__name__ for event in events] == ["ToolCallStart"]


def test_parts_keep_the_order_in_which_they_were_said() -> None:
    said = decoded(
        chunk({"reasoning_content": "hm"}),
        text("First "),
        text("this."),
        call(A, name="ls", index=0, id="c1"),
        text("Then that."),
        call(B, name="ls", index=1, id="c2"),
        chunk(finish="tool_calls"),
    )
    assert said.parts == (
        Reasoning("hm", {"field": "reasoning_content"}),
        Text("First this."),
        ToolCall("c1", "ls", A),
        Text("Then that."),
        ToolCall("c2", "ls", B),
    )


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_is_kept_with_the_name_of_its_field(field: str) -> None:
    body = [chunk({field: "I "}), chunk({field: "think", "content": ""}), text("so."), STOP]
    assert parts(*body) == (Reasoning("I think", {"field": field}), Text("so."))


def test_thinking_under_both_names_counts_once() -> None:
    said = parts(chunk({"reasoning": "hm", "reasoning_content": "hm"}), text("a"), STOP)
    assert said == (Reasoning("hm", {"field": "reasoning_content"}), Text("a"))


def test_thinking_alone_is_a_reply() -> None:
    assert parts(chunk({"reasoning_content": "hm"}), STOP) == (
        Reasoning("hm", {"field": "reasoning_content"}),
    )


def test_content_may_come_in_parts() -> None:
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "h"}]},
        {"type": "thinking", "thinking": "m"},
        {"type": "text", "text": "so"},
        {"type": "reference"},
        None,
    ]
    assert parts(chunk({"content": content}), STOP) == (
        Reasoning("hm", {"field": "reasoning_content"}),
        Text("so"),
    )


def test_a_refusal_is_text() -> None:
    assert parts(chunk({"refusal": "I will not."}), STOP) == (Text("I will not."),)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(
            {"prompt_tokens": 9, "completion_tokens": 1},
            Usage(input_tokens=9, output_tokens=1),
            id="plain",
        ),
        pytest.param(
            {
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
                "completion_tokens_details": {"reasoning_tokens": 40},
            },
            Usage(input_tokens=10, cache_read_tokens=60, cache_write_tokens=30, output_tokens=50),
            id="details do not overlap",
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 4},
            Usage(input_tokens=6, cache_read_tokens=4, output_tokens=1),
            id="DeepSeek",
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": 4},
            Usage(input_tokens=6, cache_read_tokens=4, output_tokens=1),
            id="Moonshot",
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": 40},
            Usage(input_tokens=10, cache_read_tokens=40, output_tokens=1),
            id="more cached than read",
        ),
        pytest.param(
            {"prompt_tokens": -5, "completion_tokens": "many", "prompt_tokens_details": 7},
            None,
            id="nonsense",
        ),
        pytest.param({"prompt_tokens": 10**400, "completion_tokens": 1e999}, None, id="huge"),
        pytest.param(None, None, id="none"),
    ],
)
def test_usage_is_split_so_that_nothing_counts_twice(usage: object, expected: Usage | None) -> None:
    assert decoded(text("Hi"), chunk(finish="stop", usage=usage), DONE).usage == expected


def test_the_last_usage_counts() -> None:
    first = chunk({"content": "a"}, usage={"prompt_tokens": 5, "completion_tokens": 1})
    last = chunk(finish="stop", usage={"prompt_tokens": 5, "completion_tokens": 2})
    assert decoded(first, last, DONE).usage == Usage(input_tokens=5, output_tokens=2)


def test_usage_may_come_under_groqs_own_name() -> None:
    usage: dict[str, object] = {
        "x_groq": {"usage": {"prompt_tokens": 5, "completion_tokens": 1}},
        "choices": [],
    }
    body = f"data: {json.dumps(usage)}\n\n"
    assert decoded(text("Hi"), STOP, body, DONE).usage == Usage(input_tokens=5, output_tokens=1)


def test_a_whole_completion_in_place_of_a_stream_is_a_reply() -> None:
    call_part = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": LS}}
    message = {"role": "assistant", "content": "Hi", "tool_calls": [call_part]}
    document = {
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
    }
    said = decoded("\n", json.dumps(document, indent=2))
    assert said.parts == (Text("Hi"), ToolCall("c1", "ls", LS))
    assert said.usage == Usage(input_tokens=9, output_tokens=1)
    assert said.stop == "tool_use"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("<!doctype html><title>Sign in</title>", id="a page"),
        pytest.param("\n  <html></html>", id="a page after blanks"),
        pytest.param('{"detail": "Not Found"}', id="another document"),
        pytest.param("upstream connect error", id="a text"),
    ],
)
def test_what_is_no_reply_is_said_to_be_none(body: str) -> None:
    with pytest.raises(NotAReply) as caught:
        decoded(body)
    assert caught.value.body == body


def test_a_document_with_an_error_is_that_error() -> None:
    with pytest.raises(Overloaded):
        decoded('{"error": {"type": "server_error", "message": "x"}}')


def test_half_a_document_is_lost() -> None:
    with pytest.raises(ConnectionLost):
        decoded('{"choices": [{"message": {"content": "Hi')


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param(b"data: " + b"x" * 1_000_000, id="an event"),
        pytest.param(b"{" + b" " * 1_000_000, id="a document"),
        pytest.param(b"<" + b" " * 1_000_000, id="a page"),
    ],
)
def test_a_body_without_end_is_given_up(endless: bytes) -> None:
    with pytest.raises((ConnectionLost, NotAReply)):
        message_of(endless, *[b"x" * 1_000_000] * 20)


def test_events_without_blank_lines_between_them_are_told_apart() -> None:
    sloppy = (text("Hel") + text("lo") + STOP + DONE).replace("\n\n", "\n")
    assert parts(sloppy) == (Text("Hello"),)


def test_two_documents_in_one_event_are_told_apart() -> None:
    first, second = text("Hel").strip(), text("lo").strip()
    assert parts(f"{first}\n{second}\n\n", STOP) == (Text("Hello"),)


def test_halves_of_a_character_in_arguments_are_joined() -> None:
    start = call("", name="write", index=0, id="c1")
    body = [start, call("\ud83d", index=0), call("\ude00", index=0), STOP]
    assert parts(*body) == (ToolCall("c1", "write", "😀"),)


def test_half_a_character_alone_says_nothing() -> None:
    body = r'data: {"choices":[{"delta":{"content":"\ud83d"}}]}' + "\n\n"
    assert parts(body, STOP) == ()


def test_halves_of_a_character_are_joined_and_lone_ones_replaced() -> None:
    body = [
        r'data: {"choices":[{"delta":{"content":"a\ud83d"}}]}' + "\n\n",
        r'data: {"choices":[{"delta":{"content":"\ude00b\ud83d"}}]}' + "\n\n",
        r'data: {"choices":[{"delta":{"content":"c"}}]}' + "\n\n",
        STOP,
    ]
    assert parts(*body) == (Text("a😀b\ufffdc"),)


BODY = (
    ": OPENROUTER PROCESSING\r\n\r\n"
    + chunk({"role": "assistant", "content": None})
    + chunk({"reasoning_content": "Überlegen … 😀"})
    + text("Grüße, 世界! 🎉")
    + "event: ping\ndata: {}\n\n"
    + call("", name="write", index=0, id="c1").replace("\n", "\r\n")
    + call('{"text": "línea\\n', index=0).replace("\n", "\r")
    + call('dos \\ud83d\\ude00"}', index=0)
    + chunk(finish="tool_calls")
    + 'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}\n\n'
    + DONE
).encode()


@given(cuts=st.lists(st.integers(0, len(BODY)), max_size=40))
def test_it_does_not_matter_where_the_bytes_are_split(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(BODY)]
    pieces = [BODY[start:end] for start, end in pairwise(edges)]
    assert message_of(*pieces) == message_of(BODY)


def test_single_bytes_make_the_same_message_too() -> None:
    said = message_of(*(bytes([byte]) for byte in BODY))
    assert said == message_of(BODY)
    assert [part.kind for part in said.parts] == ["reasoning", "text", "tool_call"]


@given(body=st.binary())
def test_any_bytes_are_a_reply_or_a_known_failure(body: bytes) -> None:
    try:
        said = message_of(body)
    except (ProviderError, NotAReply):
        return
    assert said.stop is not None


json_values: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
functions: st.SearchStrategy[object] = st.fixed_dictionaries(
    {}, optional={"name": json_values, "arguments": json_values}
)
calls: st.SearchStrategy[object] = st.fixed_dictionaries(
    {}, optional={"index": json_values, "id": json_values, "function": functions}
)
deltas: st.SearchStrategy[object] = st.fixed_dictionaries(
    {},
    optional={
        "content": json_values,
        "reasoning_content": json_values,
        "tool_calls": st.lists(calls),
        "function_call": json_values,
    },
)


@given(said=st.lists(deltas), usage=json_values)
def test_no_shape_of_chunk_breaks_the_decoder(said: list[object], usage: object) -> None:
    body = "".join(chunk(delta, usage=usage) for delta in said)
    assert decoded(body, STOP).stop in ("end_turn", "tool_use")


def test_the_last_report_counts_field_by_field() -> None:
    first = chunk(usage={"prompt_tokens": 9, "completion_tokens": 1})
    last = chunk(finish="stop", usage={"prompt_tokens": 0, "completion_tokens": 4})
    assert decoded(first, last, DONE).usage == Usage(input_tokens=9, output_tokens=4)


@pytest.mark.parametrize(
    ("reason", "usage"),
    [
        pytest.param("length", None, id="without usage"),
        pytest.param("length", {"prompt_tokens": 4095, "completion_tokens": 1}, id="one token"),
        pytest.param("model_context_window_exceeded", None, id="in Z.ai's word"),
    ],
)
def test_an_empty_reply_that_hit_the_limit_had_no_room(reason: str, usage: object) -> None:
    with pytest.raises(ContextTooLong):
        decoded(chunk({"content": ""}), chunk(finish=reason, usage=usage), DONE)


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param((text("Hi"), chunk(finish="length")), id="some words"),
        pytest.param((chunk({"reasoning": "Hm"}), chunk(finish="length")), id="some thinking"),
        pytest.param(
            (chunk(finish="length", usage={"prompt_tokens": 9, "completion_tokens": 500}),),
            id="thinking that is not shown",
        ),
    ],
)
def test_a_reply_that_is_not_empty_hit_the_output_limit(chunks: tuple[str, ...]) -> None:
    assert decoded(*chunks, DONE).stop == "max_tokens"
