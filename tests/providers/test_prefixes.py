"""What a request shares with the one before it is the same bytes, so that caches find it.

What is said for one request only stands behind all that.
"""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.history.repair import repair
from crush_kernel.messages import Media, Message, Text, ToolCall, ToolResult, Usage
from crush_kernel.providers import anthropic_wire, openai_wire
from crush_kernel.providers.anthropic import AnthropicModel
from crush_kernel.providers.base import Accumulator, Model, ModelInfo, ModelRequest, ToolSpec
from crush_kernel.providers.closing import NO_CALLS
from crush_kernel.providers.openai import OpenAIModel
from crush_kernel.providers.openai_wire import Dialect, adapted, dialect_of
from tests.fakes.histories import (
    MODEL,
    PNG,
    PROVIDER,
    SOME,
    History,
    damaged_histories,
    reply,
    results,
    sound_histories,
    thinking,
    user,
)
from tests.fakes.provider import anthropic_rules, openai_rules
from tests.fakes.provider.anthropic_rules import SentThinking
from tests.fakes.provider.replies import HttpReply, say
from tests.fakes.provider.server import FakeProvider

INFO = ModelInfo(PROVIDER, MODEL, accepts_images=True, accepts_documents=True)
TOOLS = (
    ToolSpec("view", "Shows a file.", {"type": "object"}),
    ToolSpec("bash", "Runs a command.", {"type": "object"}),
)
MARK = b',"cache_control":{"type":"ephemeral"}'
TALK = (
    user(Text("look")),
    reply(thinking("hm"), ToolCall("t1", "view", "{}")),
    results(ToolResult("t1", "shown")),
)

Json = dict[str, Any]


class AnyThinking(SentThinking):
    """Takes any thinking as its own."""

    def check(self, message: object, path: str) -> None:
        """Take it."""


reminders = st.sampled_from(["", "Today is Monday.", 'The "branch" is\nmain.', "\ud800 ☃"])


@st.composite
def requests(draw: st.DrawFn) -> list[ModelRequest]:
    """Draw the requests of a conversation that grows: as they are, or less a reply."""
    history = draw(sound_histories())
    if draw(st.booleans()):
        # A reply that never came: the user goes on after the prompt.
        history = tuple(m for m in history if not is_last_word(m))
    ends = [end for end in range(1, len(history) + 1) if history[end - 1].role != "assistant"]
    return [
        ModelRequest(
            "Be good.",
            repair(history[:end]),
            draw(st.sampled_from([TOOLS, TOOLS[::-1]])),
            max_output_tokens=draw(st.sampled_from([0, 100])),
            reminder=draw(reminders),
            forbids_tools=draw(st.booleans()),
        )
        for end in ends
    ]


def is_last_word(message: Message) -> bool:
    has_calls = any(isinstance(part, ToolCall) for part in message.parts)
    return message.role == "assistant" and not has_calls


def cached_part(body: bytes) -> bytes:
    """Return `body` up to its last mark, without the marks."""
    return body.rpartition(MARK)[0].replace(MARK, b"")


@SOME
@given(requests())
def test_anthropics_request_up_to_the_last_mark_begins_the_next_one(
    asked: list[ModelRequest],
) -> None:
    encoder = anthropic_wire.RequestEncoder(INFO, use_cache=True)
    bodies = [encoder.encode(request) for request in asked]
    for body, following in pairwise(bodies):
        assert cached_part(body)
        assert following.replace(MARK, b"").startswith(cached_part(body))


@SOME
@given(requests())
def test_anthropics_last_mark_stands_behind_all_that_is_kept(asked: list[ModelRequest]) -> None:
    for request in asked:
        encoder = anthropic_wire.RequestEncoder(INFO, use_cache=True)
        bare = encoder.encode(ModelRequest("Be good.", request.messages, TOOLS))
        body = encoder.encode(request)
        assert cached_part(body) == cached_part(bare)
        assert bare.rpartition(MARK)[2].startswith(b"}]}],")
        assert body.count(MARK) == bare.count(MARK) <= anthropic_rules.MAX_CACHE_MARKS


@SOME
@given(requests())
def test_openais_messages_begin_the_next_ones(asked: list[ModelRequest]) -> None:
    encoder = openai_wire.RequestEncoder(INFO)
    for request, following in pairwise(asked):
        kept = openai_messages(encoder, ModelRequest("Be good.", request.messages, TOOLS))
        assert openai_messages(encoder, following)[: len(kept) - 1] == kept[:-1]
        bare = ModelRequest("Be good.", following.messages, TOOLS)
        assert openai_messages(encoder, bare)[: len(kept)] == kept


@SOME
@given(requests())
def test_openais_tools_are_the_same_bytes_whatever_their_order(asked: list[ModelRequest]) -> None:
    encoder = openai_wire.RequestEncoder(INFO)
    bodies = [encoder.encode(request, Dialect()) for request in asked]
    tools = {body.rpartition(b'"tools":')[2].partition(b',"tool_choice"')[0] for body in bodies}
    assert len({text.rstrip(b"}") for text in tools}) == 1


def openai_messages(encoder: openai_wire.RequestEncoder, request: ModelRequest) -> list[Json]:
    return json.loads(encoder.encode(request, Dialect()))["messages"]


@SOME
@given(damaged_histories(), reminders, st.booleans())
def test_whatever_ends_a_request_is_taken(history: History, reminder: str, forbids: bool) -> None:  # noqa: FBT001 - hypothesis
    request = ModelRequest(
        "Be good.", repair(history), TOOLS, reminder=reminder, forbids_tools=forbids
    )
    encoder = anthropic_wire.RequestEncoder(INFO, use_cache=True)
    anthropic_rules.check_body(json.loads(encoder.encode(request)), AnyThinking())
    for dialect in (Dialect(), dialect_of("mistral"), Dialect(takes_tool_choice=False)):
        body = json.loads(openai_wire.RequestEncoder(INFO).encode(request, dialect))
        openai_rules.check_body(body)
        roles = [message["role"] for message in body["messages"]]
        assert (
            roles[-1] == "user"
            or (dialect.answers_results and roles[-1] == "tool")
            or not (reminder or (forbids and not dialect.takes_tool_choice))
        )


def anthropic_end(request: ModelRequest) -> list[Json]:
    body = anthropic_wire.RequestEncoder(INFO, use_cache=True).encode(request)
    return json.loads(body)["messages"][-1]["content"]


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param(TALK[:1], id="behind a prompt"),
        pytest.param(TALK, id="behind results"),
        pytest.param((*TALK[:1], reply(Text("so"))), id="behind a reply"),
        pytest.param((), id="behind nothing"),
    ],
)  # fmt: skip
def test_anthropic_reads_the_reminder_last_and_unmarked(messages: History) -> None:
    request = ModelRequest("s", repair(messages), TOOLS, reminder="Today is Monday.")
    assert anthropic_end(request)[-1] == {"type": "text", "text": "Today is Monday."}


def test_the_words_that_only_make_a_request_end_with_the_user_are_not_cached() -> None:
    messages = (user(Text("look")), reply(Text("so")))
    body = anthropic_wire.RequestEncoder(INFO, use_cache=True).encode(ModelRequest("s", messages))
    assert b"(Go on.)" in body.rpartition(MARK)[2]


def openai_end(request: ModelRequest, dialect: Dialect) -> Json:
    body = openai_wire.RequestEncoder(INFO).encode(request, dialect)
    return json.loads(body)["messages"][-1]


@pytest.mark.parametrize(
    ("messages", "dialect", "end"),
    [
        pytest.param(
            TALK[:1], Dialect(), {"role": "user", "content": 'look\n\nIt is "Monday".'},
            id="behind a prompt",
        ),
        pytest.param(
            TALK, Dialect(), {"role": "user", "content": 'It is "Monday".'}, id="behind results"
        ),
        pytest.param(
            (*TALK[:1], reply(Text("so"))), Dialect(),
            {"role": "user", "content": 'It is "Monday".'}, id="behind a reply",
        ),
        pytest.param(
            TALK, Dialect(answers_results=True),
            {"role": "tool", "tool_call_id": "t1", "content": 'shown\n\nIt is "Monday".'},
            id="within results, if the user may not speak after them",
        ),
    ],
)  # fmt: skip
def test_openai_reads_the_reminder_last(messages: History, dialect: Dialect, end: Json) -> None:
    request = ModelRequest("s", messages, TOOLS, reminder=' It is "Monday".\n')
    assert openai_end(request, dialect) == end


def test_the_reminder_follows_what_is_attached_to_a_prompt() -> None:
    prompt = user(Text("look"), Media("image/png", PNG))
    end = openai_end(ModelRequest("s", (prompt,), reminder="Hey."), Dialect())
    assert [part["type"] for part in end["content"]] == ["text", "image_url", "text"]
    assert end["content"][-1]["text"] == "Hey."


def test_words_like_the_beginning_of_a_message_do_not_mislead() -> None:
    trap = '{"role":"tool","content":"x"}'
    end = openai_end(ModelRequest("s", (user(Text(trap)),), reminder="Hey."), Dialect())
    assert end == {"role": "user", "content": f"{trap}\n\nHey."}


def test_anthropic_forbids_tools_and_keeps_them() -> None:
    request = ModelRequest("s", TALK, TOOLS, forbids_tools=True)
    body = json.loads(anthropic_wire.RequestEncoder(INFO, use_cache=True).encode(request))
    assert (body["tool_choice"], len(body["tools"])) == ({"type": "none"}, 2)


def test_openai_forbids_tools_and_keeps_them() -> None:
    request = ModelRequest("s", TALK, TOOLS, forbids_tools=True)
    body = json.loads(openai_wire.RequestEncoder(INFO).encode(request, Dialect()))
    assert (body["tool_choice"], len(body["tools"])) == ("none", 2)
    assert body["messages"][-1]["role"] == "tool"


@pytest.mark.parametrize("tools", [pytest.param((), id="none"), pytest.param(TOOLS, id="some")])
def test_without_tools_there_is_nothing_to_forbid(tools: tuple[ToolSpec, ...]) -> None:
    request = ModelRequest("s", TALK[:1], tools, forbids_tools=not tools)
    body = openai_wire.RequestEncoder(INFO).encode(request, Dialect(takes_tool_choice=False))
    assert b"tool_choice" not in body
    assert NO_CALLS.encode() not in body


def test_a_server_without_tool_choice_is_asked_in_words() -> None:
    complaint = '{"error": {"message": "tool_choice is not supported by this model"}}'
    assert adapted(Dialect(), complaint) == Dialect(takes_tool_choice=False)
    assert adapted(Dialect(takes_tool_choice=False), complaint) is None
    request = ModelRequest("s", TALK[:1], TOOLS, forbids_tools=True)
    end = openai_end(request, Dialect(takes_tool_choice=False))
    assert end["content"] == f"look\n\n{NO_CALLS}"


@asynccontextmanager
async def asked(provider: FakeProvider, protocol: str) -> AsyncGenerator[Model]:
    if protocol == "anthropic":
        model: Model = AnthropicModel(INFO, api_key="k", base_url=provider.url)
    else:
        model = OpenAIModel(INFO, api_key="k", base_url=provider.openai_url)
    try:
        yield model
    finally:
        await model.aclose()


async def usage_of(model: Model, request: ModelRequest) -> Usage:
    said = Accumulator(model.info)
    with anyio.fail_after(10):
        async with model.stream(request) as events:
            async for event in events:
                said.feed(event)
    assert said.usage is not None
    return said.usage


def growing(turns: int) -> Iterator[ModelRequest]:
    """Yield the requests of a conversation of so many turns, each with a reminder of its own."""
    messages: tuple[Message, ...] = ()
    for number in range(turns):
        messages = (*messages, user(Text(f"prompt {number} " + "x" * 800)))
        yield ModelRequest("s" * 6_000, messages, TOOLS, reminder=f"It is {number} o'clock.")
        called = reply(ToolCall(f"t{number}", "view", "{}"))
        messages = (*messages, called, results(ToolResult(f"t{number}", "y" * 2_000)))
        yield ModelRequest("s" * 6_000, messages, TOOLS)
        messages = (*messages, reply(Text("z" * 400)))


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", ["anthropic", "openai"])
async def test_all_that_was_sent_before_is_read_from_the_cache(
    provider: FakeProvider, protocol: str
) -> None:
    provider.meter.measures_usage = True
    provider.meter.min_cached_tokens = 1024
    provider.play(lambda _: say("ok"))
    async with asked(provider, protocol) as model:
        sent = [await usage_of(model, request) for request in growing(6)]
    assert sent[0].cache_read_tokens == 0
    for former, usage in pairwise(sent):
        kept = former.context_tokens - former.output_tokens
        slack = 20 if protocol == "anthropic" else 400  # the reminder; a message, and 128 tokens
        assert usage.cache_read_tokens >= kept - slack
    assert [request.refusal for request in provider.requests] == [""] * len(sent)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("forbids_tools", "whole"),
    [
        pytest.param(False, True, id="in words"),
        pytest.param(True, False, id="forbidding tools, less the messages"),
    ],
)
async def test_a_last_request_with_another_limit_shares_the_prefix(
    provider: FakeProvider, *, forbids_tools: bool, whole: bool
) -> None:
    provider.meter.measures_usage = True
    provider.play(lambda _: say("ok"))
    *_, last = growing(1)
    messages = (*last.messages, user(Text("Summarize it.")))
    summary = replace(last, messages=messages, max_output_tokens=4_000, forbids_tools=forbids_tools)
    async with asked(provider, "anthropic") as model:
        before = await usage_of(model, last)
        after = await usage_of(model, summary)
    assert 0 < after.cache_read_tokens <= before.cache_write_tokens
    assert (after.cache_read_tokens == before.cache_write_tokens) is whole


@pytest.mark.anyio
async def test_a_server_that_refuses_tool_choice_is_asked_again_without(
    provider: FakeProvider,
) -> None:
    refusal = HttpReply(400, {"error": {"message": "tool_choice is not supported"}})
    provider.play(lambda r: refusal if "tool_choice" in r.body else say("ok"))
    async with asked(provider, "openai") as model:
        await usage_of(model, ModelRequest("s", TALK[:1], TOOLS, forbids_tools=True))
    assert len(provider.requests) == 2
