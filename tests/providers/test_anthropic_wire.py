"""Any conversation, once repaired, becomes a request that the API takes."""

import base64
import json

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
