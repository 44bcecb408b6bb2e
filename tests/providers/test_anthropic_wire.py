"""Any conversation, once repaired, becomes a request that the API takes."""

import base64
import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.repair import repair
from crush_kernel.messages import (
    JsonObject,
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
)
from crush_kernel.providers.anthropic_wire import RequestEncoder
from crush_kernel.providers.base import ModelInfo, ModelRequest, ToolSpec
from tests.fakes.provider.anthropic_rules import SentThinking, check_body

INFO = ModelInfo("anthropic", "m", accepts_images=True, accepts_documents=True)
BLIND = ModelInfo("anthropic", "m")
TOOLS = (ToolSpec("view", "", {}), ToolSpec("bash", "Runs it.", {"type": "object"}))
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()

THINKING: JsonObject = {"type": "thinking", "thinking": "Hm", "signature": "s+/="}

texts = st.sampled_from(["", " \n", "hi", "ok ", "\ud800", "a\x00b", "ä☃🎈", "x" * 300])
ids = st.sampled_from(["t1", "t2", "", "functions.view:0", "é", "a" * 70, "t1_2"])
media = st.builds(
    Media,
    st.sampled_from(["image/png", "image/jpeg", "application/pdf", "text/x", ""]),
    st.sampled_from([PNG, "JVBERi0xLjc=", "%%%", "", "aGk"]),
    texts,
)
calls = st.builds(
    ToolCall,
    ids,
    st.sampled_from(["view", "bash", "no such tool", "", "x" * 200]),
    st.sampled_from(["{}", "", "{", "[]", '{"a": "\\ud800"}', '{"a": NaN}', '{"a": [1, {}]}']),
)
results = st.builds(ToolResult, ids, texts, st.booleans(), st.lists(media, max_size=2).map(tuple))
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, texts),
    st.just(Reasoning("Hm", THINKING)),
    st.just(Reasoning("Hm")),
    calls,
    results,
    media,
    st.builds(ShellCommand, texts, texts, st.just(1)),
)
messages = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "tool"]),
    st.lists(parts, max_size=4).map(tuple),
    st.sampled_from(["anthropic", "openai"]),
    st.sampled_from(["m", "other"]),
)
conversations = st.lists(messages, max_size=8).map(tuple)


def sent(body: bytes) -> JsonObject:
    fields = json.loads(body)
    json.dumps(fields, ensure_ascii=False).encode("utf-8")
    return fields


class Lenient(SentThinking):
    """Takes any thinking: this law is about the rest."""

    def check(self, message: object, path: str) -> None:
        """Take it."""


@given(
    conversation=conversations,
    tools=st.sampled_from([TOOLS, ()]),
    info=st.sampled_from([INFO, BLIND]),
    use_cache=st.booleans(),
    system=texts,
)
def test_every_repaired_conversation_is_taken(
    conversation: tuple[Message, ...],
    tools: tuple[ToolSpec, ...],
    info: ModelInfo,
    system: str,
    *,
    use_cache: bool,
) -> None:
    encoder = RequestEncoder(info, use_cache=use_cache)
    request = ModelRequest(system, repair(conversation), tools)
    check_body(sent(encoder.encode(request)), Lenient())


@given(conversation=conversations, length=st.integers(0, 8))
def test_what_is_kept_from_earlier_requests_changes_nothing(
    conversation: tuple[Message, ...], length: int
) -> None:
    used = RequestEncoder(INFO, use_cache=True)
    used.encode(ModelRequest("s", repair(conversation[:length]), TOOLS))
    used.encode(ModelRequest("s", repair(conversation), TOOLS))
    request = ModelRequest("s", repair(conversation), TOOLS)
    assert used.encode(request) == RequestEncoder(INFO, use_cache=True).encode(request)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_never_more_than_four_cache_marks(count: int) -> None:
    turns = [Message("user", (Text("hi"),)), Message("assistant", (Text("ok"),))] * count
    request = ModelRequest("s", (*turns, Message("user", (Text("now"),))), TOOLS)
    body = RequestEncoder(INFO, use_cache=True).encode(request)
    assert body.count(b'"cache_control"') == min(3 + min(count, 1), 4)


def test_parts_that_have_no_place_in_a_message_are_left_out() -> None:
    stray = (Media("image/png", PNG), SummaryMark("x"), Opaque({"kind": "new"}))
    history = (Message("user", (Text("hi"),)), Message("assistant", stray))
    body = RequestEncoder(INFO, use_cache=False).encode(ModelRequest("", history))
    assert sent(body)["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]


def blocks(*parts: Part, use_cache: bool = False) -> list[JsonObject]:
    """Return the blocks that a reply of these parts is sent as."""
    history = (Message("user", (Text("hi"),)), Message("assistant", parts, "anthropic", "m"))
    body = RequestEncoder(INFO, use_cache=use_cache).encode(ModelRequest("s", history, TOOLS))
    return cast("list[dict[str, list[JsonObject]]]", sent(body)["messages"])[1]["content"]


@pytest.mark.parametrize(
    ("data", "is_sent"),
    [
        pytest.param(THINKING, True, id="as it came"),
        pytest.param({**THINKING, "thinking": ""}, True, id="empty, and signed"),
        pytest.param({"type": "redacted_thinking", "data": "x+/="}, True, id="redacted"),
        pytest.param({}, False, id="cut off"),
        pytest.param({**THINKING, "signature": ""}, False, id="not signed"),
        pytest.param({"type": "thinking", "thinking": "Hm"}, False, id="without a signature"),
        pytest.param({"type": "redacted_thinking", "data": ""}, False, id="redacted, cut off"),
        pytest.param({**THINKING, "thinking": "a\ud800"}, False, id="that is not even text"),
        pytest.param({"field": "reasoning_content"}, False, id="of another protocol"),
    ],
)
def test_thinking_is_sent_byte_for_byte_or_not_at_all(data: JsonObject, *, is_sent: bool) -> None:
    text: JsonObject = {"type": "text", "text": "ok"}
    assert blocks(Reasoning("Hm", data), Text("ok")) == ([data, text] if is_sent else [text])


def test_thinking_is_the_same_bytes_whatever_the_order_of_its_keys() -> None:
    def body(data: JsonObject) -> bytes:
        reply = Message("assistant", (Reasoning("Hm", data), Text("ok")), "anthropic", "m")
        history = (Message("user", (Text("hi"),)), reply)
        return RequestEncoder(INFO, use_cache=True).encode(ModelRequest("s", history, TOOLS))

    nested: JsonObject = {**THINKING, "more": {"b": 1, "a": 2}}
    sorted_by_a_notebook: JsonObject = json.loads(json.dumps(nested, sort_keys=True))

    assert body(nested) == body(sorted_by_a_notebook)


def test_a_cache_mark_that_came_with_the_history_is_dropped() -> None:
    marked: JsonObject = {**THINKING, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert blocks(Reasoning("Hm", marked), Text("ok"))[0] == THINKING


def test_the_blocks_of_a_reply_keep_their_order() -> None:
    hm: JsonObject = {**THINKING, "thinking": "hm"}
    aha: JsonObject = {**THINKING, "thinking": "aha"}
    view, bash = ToolCall("a", "view", "{}"), ToolCall("b", "bash", "{}")
    parts = (Reasoning("hm", hm), view, Reasoning("aha", aha), Text("and"), bash)
    types = [block["type"] for block in blocks(*parts)]
    assert types == ["thinking", "tool_use", "thinking", "text", "tool_use"]


@pytest.mark.parametrize(
    "arguments", ['{"b":1.0,"a":-0,"c":12345678901234567890123,"b":1e999}', ' { "a" : "\\u00e9" } ']
)
def test_arguments_go_out_as_the_model_wrote_them(arguments: str) -> None:
    history = (Message("assistant", (ToolCall("t", "view", arguments),)),)
    body = RequestEncoder(INFO, use_cache=False).encode(ModelRequest("", history, TOOLS))
    assert f'"input":{arguments}}}'.encode() in body


def test_a_command_of_the_user_between_calls_and_results_goes_after_them() -> None:
    history = (
        Message("user", (Text("look"),)),
        Message("assistant", (ToolCall("t", "view", "{}"),)),
        Message("user", (ShellCommand("ls", "a.txt", 0),)),
        Message("tool", (ToolResult("t", "ok"),)),
    )
    body = RequestEncoder(INFO, use_cache=False).encode(ModelRequest("s", repair(history), TOOLS))
    fields = sent(body)
    check_body(fields, SentThinking())
    assert b'"tool_result"' in body
    assert body.index(b'"tool_result"') < body.index(b"`ls`")


def result_sent(result: ToolResult, info: ModelInfo = INFO) -> JsonObject:
    history = (
        Message("user", (Text("look"),)),
        Message("assistant", (ToolCall("t", "view", "{}"),)),
        Message("tool", (result,)),
    )
    fields = sent(RequestEncoder(info, use_cache=False).encode(ModelRequest("s", history, TOOLS)))
    check_body(fields, SentThinking())
    return cast("list[dict[str, list[JsonObject]]]", fields["messages"])[-1]["content"][0]


def test_files_stay_within_the_result_that_they_are_from() -> None:
    content = result_sent(ToolResult("t", "Seen.", media=(Media("image/png", PNG),)))["content"]
    assert [block["type"] for block in cast("list[JsonObject]", content)] == ["text", "image"]


def test_an_error_with_a_file_is_said_in_words_since_its_flag_allows_none() -> None:
    result = ToolResult("t", "Half of it.", is_error=True, media=(Media("image/png", PNG),))
    block = result_sent(result)
    assert "is_error" not in block
    assert cast("list[JsonObject]", block["content"])[0]["text"] == "Error: Half of it."


def test_an_error_whose_file_is_left_out_keeps_its_flag() -> None:
    result = ToolResult("t", "Half of it.", is_error=True, media=(Media("image/png", PNG),))
    assert result_sent(result, BLIND)["is_error"] is True
