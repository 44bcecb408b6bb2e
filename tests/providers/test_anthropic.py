"""The Anthropic adapter against a provider that is as strict as the real one."""

import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

import anthropic
import anyio
import anyio.lowlevel
import httpx2
import pytest

from crush_kernel.errors import (
    AuthenticationFailed,
    ConfigError,
    ConnectionLost,
    ContextTooLong,
    ModelNotFound,
    Overloaded,
    ProviderError,
    QuotaExceeded,
    RateLimited,
    RequestRejected,
)
from crush_kernel.history.repair import repair
from crush_kernel.messages import (
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    text_of,
)
from crush_kernel.providers.address import server_address
from crush_kernel.providers.anthropic import AnthropicModel, translate
from crush_kernel.providers.base import (
    Accumulator,
    ModelInfo,
    ModelRequest,
    TextDelta,
    ToolSpec,
)
from crush_kernel.providers.connection import Connection
from tests.fakes.provider.replies import (
    COMMENT,
    PING,
    Answer,
    Beat,
    Call,
    Cut,
    ErrorEvent,
    Hold,
    HttpReply,
    RawReply,
    Reply,
    Reset,
    Say,
    Stall,
    Think,
    ThinkRedacted,
    say,
)
from tests.fakes.provider.server import FakeProvider, Received

pytestmark = pytest.mark.anyio

MODEL = "claude-sonnet-4-5"
INFO = ModelInfo("anthropic", MODEL, accepts_images=True, accepts_documents=True)
VIEW = ToolSpec("view", "Shows a file.", {"type": "object", "properties": {}})
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()
PDF = base64.b64encode(b"%PDF-1.7 rest").decode()
KEY = "sk-ant-api03-very-secret-value"

Json = dict[str, Any]


@asynccontextmanager
async def opened(
    provider: FakeProvider, info: ModelInfo = INFO, **options: object
) -> AsyncGenerator[AnthropicModel]:
    settings: Json = {"api_key": KEY, "base_url": provider.url, **options}
    model = AnthropicModel(info, **settings)
    try:
        yield model
    finally:
        await model.aclose()


def prompt(text: str = "hi") -> Message:
    return Message("user", (Text(text),))


def reply(*parts: Part, model: str = MODEL) -> Message:
    return Message("assistant", parts, provider="anthropic", model=model)


def results(*parts: ToolResult) -> Message:
    return Message("tool", parts)


def request(*messages: Message, **changes: object) -> ModelRequest:
    fields: Json = {"system": "Be good.", "tools": (VIEW,), "messages": messages, **changes}
    return ModelRequest(**fields)


async def read(model: AnthropicModel, into: Accumulator, asked: ModelRequest | None = None) -> None:
    with anyio.fail_after(5):
        async with model.stream(asked or request(prompt())) as events:
            async for event in events:
                into.feed(event)


async def ask(model: AnthropicModel, asked: ModelRequest | None = None) -> Message:
    reply = Accumulator(model.info)
    await read(model, reply, asked)
    return reply.message()


async def sent(
    provider: FakeProvider, asked: ModelRequest, info: ModelInfo = INFO, **options: object
) -> Json:
    """Return the body of the request that `asked` becomes, accepted by the provider."""
    provider.play(say("ok"))
    async with opened(provider, info, **options) as model:
        await ask(model, asked)
    return cast("Json", provider.requests[-1].body)


def marks(value: object) -> int:
    if isinstance(value, list):
        return sum(map(marks, cast("list[Any]", value)))
    if not isinstance(value, dict):
        return 0
    fields = cast("Json", value)
    return ("cache_control" in fields) + sum(map(marks, fields.values()))


async def test_a_reply_adds_up_to_a_message(provider: FakeProvider) -> None:
    usage = Usage(input_tokens=7, cache_read_tokens=5, cache_write_tokens=3, output_tokens=11)
    provider.play(Reply((Say("Let me look — ☃.", size=3),), usage=usage))
    async with opened(provider) as model:
        message = await ask(model)
    assert message == Message(
        "assistant",
        (Text("Let me look — ☃."),),
        provider="anthropic",
        model=MODEL,
        stop="end_turn",
        usage=usage,
    )


async def test_parallel_calls_keep_their_order_and_raw_input(provider: FakeProvider) -> None:
    provider.play(
        Reply(
            (
                Say("Both."),
                Call("view", {"path": "ä.txt"}, id="a", size=1),
                Call("view", '{"path": ', id="b"),
                Call("view", "", id="c"),
            )
        )
    )
    async with opened(provider) as model:
        message = await ask(model)
    assert message.parts == (
        Text("Both."),
        ToolCall("a", "view", '{"path": "ä.txt"}'),
        ToolCall("b", "view", '{"path": '),
        ToolCall("c", "view", ""),
    )
    assert message.stop == "tool_use"


async def test_thinking_is_sent_back_byte_for_byte(provider: FakeProvider) -> None:
    provider.play(
        Reply(
            (
                Think("Hm\u00a0— \\u0041 \t☃ ", size=2),
                ThinkRedacted("EncRypted+/=="),
                Say("Look."),
                Call("view", {}, id="t1"),
            )
        ),
        say("Done."),
    )
    async with opened(provider) as model:
        thought = await ask(model)
        assert [type(part) for part in thought.parts] == [Reasoning, Reasoning, Text, ToolCall]
        answer = await ask(model, request(prompt(), thought, results(ToolResult("t1", "ok"))))
    assert text_of(answer) == "Done."


async def test_thinking_of_another_model_is_left_out(provider: FakeProvider) -> None:
    thinking = Reasoning("Hm", {"type": "thinking", "thinking": "Hm", "signature": "s"})
    body = await sent(
        provider, request(prompt(), reply(thinking, Text("ok"), model="claude-2"), prompt("go on"))
    )
    assert body["messages"][1]["content"] == [{"type": "text", "text": "ok"}]


async def test_thinking_that_was_cut_off_is_left_out(provider: FakeProvider) -> None:
    history = repair((prompt(), reply(Reasoning("Hm")), prompt("go on")))
    body = await sent(provider, request(*history))
    assert [message["role"] for message in body["messages"]] == ["user"]


async def test_results_of_several_messages_go_into_one_with_what_follows(
    provider: FakeProvider,
) -> None:
    """Case a04: two parallel calls, one of them failed."""
    body = await sent(
        provider,
        request(
            prompt(),
            reply(ToolCall("t1", "view", "{}"), ToolCall("t2", "view", "{}")),
            results(ToolResult("t1", "text")),
            prompt("and?"),
            results(ToolResult("t2", "no such file", is_error=True)),
        ),
    )
    text = {"type": "text", "text": "text"}
    error = {"type": "text", "text": "no such file"}
    assert len(body["messages"]) == 3
    assert body["messages"][2]["content"][:2] == [
        {"type": "tool_result", "tool_use_id": "t1", "content": [text]},
        {"type": "tool_result", "tool_use_id": "t2", "content": [error], "is_error": True},
    ]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("", id="empty"),
        pytest.param('{"path": "a.t', id="cut off"),
        pytest.param("[1]", id="a list"),
        pytest.param('"text"', id="a string"),
        pytest.param("null", id="null"),
        pytest.param('{"a": NaN}', id="NaN"),
        pytest.param("[" * 100_000, id="nested too deep"),
    ],
)
async def test_arguments_that_are_no_object_become_an_empty_one(
    provider: FakeProvider, raw: str
) -> None:
    """Case a02: a reply killed while it wrote its arguments."""
    body = await sent(
        provider,
        request(prompt(), reply(ToolCall("t1", "view", raw)), results(ToolResult("t1", "no"))),
    )
    assert body["messages"][1]["content"][0]["input"] == {}


@pytest.mark.parametrize(
    "call_id",
    [
        pytest.param("functions.view:0", id="outside the alphabet"),
        pytest.param("", id="empty"),
        pytest.param("a" * 65, id="too long"),
        pytest.param("ä\ud800", id="not even text"),
    ],
)
async def test_ids_of_other_providers_are_mapped(provider: FakeProvider, call_id: str) -> None:
    body = await sent(
        provider,
        request(
            prompt(),
            reply(ToolCall(call_id, "view", "{}"), ToolCall("functions_view_0", "view", "{}")),
            results(ToolResult(call_id, "one"), ToolResult("functions_view_0", "two")),
        ),
    )
    first, second = body["messages"][1]["content"]
    answers = body["messages"][2]["content"]
    assert [answer["tool_use_id"] for answer in answers] == [first["id"], second["id"]]


async def test_what_says_nothing_is_left_out(provider: FakeProvider) -> None:
    body = await sent(
        provider,
        request(
            Message("user", (Text(""), Text("hi"), Text(" \n"))),
            reply(Text("")),
            reply(Text(" "), ToolCall("t1", "view", "{}")),
            results(ToolResult("t1", "")),
            system=" ",
        ),
    )
    assert "system" not in body
    assert [len(message["content"]) for message in body["messages"]] == [1, 1, 1]
    assert "content" not in body["messages"][2]["content"][0]


@pytest.mark.parametrize(
    ("messages", "roles"),
    [
        pytest.param((), ["user"], id="nothing"),
        pytest.param((reply(Text("ok")), prompt()), ["user", "assistant", "user"], id="a reply"),
        pytest.param((prompt(), reply(Text("ok "))), ["user", "assistant", "user"], id="no prompt"),
        pytest.param((prompt(), prompt("again")), ["user"], id="two prompts"),
    ],
)
async def test_a_conversation_begins_and_ends_with_the_user(
    provider: FakeProvider, messages: tuple[Message, ...], roles: list[str]
) -> None:
    body = await sent(provider, request(*messages))
    assert [message["role"] for message in body["messages"]] == roles


async def test_files_are_sent_as_what_they_are(provider: FakeProvider) -> None:
    files = (Media("image/jpeg", PNG, "a.png"), Media("application/pdf", PDF, "b.pdf"))
    body = await sent(
        provider,
        request(
            Message("user", (Text("look"), *files)),
            reply(ToolCall("t1", "view", "{}")),
            results(ToolResult("t1", "shown", media=files)),
        ),
    )
    prompt_blocks = body["messages"][0]["content"]
    result_blocks = body["messages"][2]["content"][0]["content"]
    assert [block["type"] for block in prompt_blocks] == ["text", "image", "document"]
    assert [block["type"] for block in result_blocks] == ["text", "image", "document"]
    assert prompt_blocks[1]["source"]["media_type"] == "image/png"


@pytest.mark.parametrize(
    ("media", "info"),
    [
        pytest.param(Media("image/png", "%%%", "a.png"), INFO, id="damaged"),
        pytest.param(Media("image/png", "aGk", "a.png"), INFO, id="padding missing"),
        pytest.param(Media("image/tiff", "aGk=", "a.png"), INFO, id="unknown kind"),
        pytest.param(Media("image/png", PDF, "a.png"), ModelInfo("anthropic", MODEL), id="no PDF"),
        pytest.param(Media("image/png", PNG, "a.png"), ModelInfo("anthropic", MODEL), id="blind"),
        pytest.param(
            Media("image/png", base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 5_000_000).decode(),
                  "a.png"),
            INFO,
            id="too large",
        ),
    ],
)  # fmt: skip
async def test_files_that_the_model_cannot_take_are_named_instead(
    provider: FakeProvider, media: Media, info: ModelInfo
) -> None:
    body = await sent(provider, request(Message("user", (media,))), info=info)
    (block,) = body["messages"][0]["content"]
    assert block["type"] == "text"
    assert "a.png" in block["text"]


async def test_four_cache_marks_stand_where_the_next_request_reads_on(
    provider: FakeProvider,
) -> None:
    history = [prompt("1"), reply(Text("a")), prompt("2"), reply(ToolCall("t", "view", "{}"))]
    tools = (VIEW, ToolSpec("bash", "", {"type": "object"}))
    asked = request(*history, results(ToolResult("t", "ok")), tools=tools)
    body = await sent(provider, asked)
    assert [tool["name"] for tool in body["tools"]] == ["bash", "view"]
    assert [marks(tool) for tool in body["tools"]] == [0, 1]
    assert [marks(message) for message in body["messages"]] == [0, 0, 1, 0, 1]
    assert marks(body) == 4


async def test_no_cache_marks_if_so_wished(provider: FakeProvider) -> None:
    assert marks(await sent(provider, request(prompt()), use_cache=False)) == 0


async def test_no_thinking_and_no_unknown_field_is_asked_for(provider: FakeProvider) -> None:
    body = await sent(provider, request(prompt()))
    assert set(body) == {"model", "max_tokens", "stream", "system", "tools", "messages"}


@pytest.mark.parametrize(
    ("info", "wanted", "limit"),
    [
        pytest.param(INFO, 0, 32_000, id="nothing known"),
        pytest.param(ModelInfo("anthropic", MODEL, max_output_tokens=8_000), 0, 8_000, id="small"),
        pytest.param(ModelInfo("anthropic", MODEL, max_output_tokens=64_000), 0, 32_000, id="big"),
        pytest.param(ModelInfo("anthropic", MODEL, max_output_tokens=64_000), 50_000, 50_000,
                     id="wished for"),
        pytest.param(ModelInfo("anthropic", MODEL, max_output_tokens=4_000), 9_000, 4_000,
                     id="too much wished for"),
    ],
)  # fmt: skip
async def test_the_reply_has_a_limit(
    provider: FakeProvider, info: ModelInfo, wanted: int, limit: int
) -> None:
    asked = request(prompt(), max_output_tokens=wanted)
    assert (await sent(provider, asked, info=info))["max_tokens"] == limit


async def test_a_request_without_tools_may_have_calls_behind_it(provider: FakeProvider) -> None:
    body = await sent(
        provider,
        request(
            prompt(),
            reply(ToolCall("t", "view", "{}")),
            results(ToolResult("t", "ok")),
            prompt("Sum it up."),
            tools=(),
        ),
    )
    assert body["tool_choice"] == {"type": "none"}


async def test_lone_surrogates_and_control_characters_are_survived(provider: FakeProvider) -> None:
    broken = "a\ud800b\x00c\u2028"
    body = await sent(
        provider,
        request(
            prompt(broken),
            reply(Text(broken), ToolCall("t", "view", '{"path": "\\ud800"}')),
            results(ToolResult("t", broken)),
            system=broken,
        ),
    )
    assert body["messages"][0]["content"][0]["text"] == "a\ufffdb\x00c\u2028"
    assert body["messages"][1]["content"][1]["input"] == {"path": "\ufffd"}


async def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter(
    provider: FakeProvider,
) -> None:
    history = (prompt("1"), reply(Text("a")), prompt("2"))
    provider.play(say("ok"), say("ok"))
    async with opened(provider, use_cache=False) as model:
        await ask(model, request(*history))
        await ask(model, request(*history, reply(Text("b")), prompt("3")))
    first, second = (received.raw for received in provider.requests)
    assert second.startswith(first.removesuffix(b'],"max_tokens":32000}'))


@pytest.mark.parametrize(
    ("key", "header", "value"),
    [
        pytest.param("sk-1", "x-api-key", "sk-1", id="a key"),
        pytest.param("Bearer tok", "authorization", "Bearer tok", id="a bearer token"),
    ],
)
async def test_the_key_goes_into_its_header_alone(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, key: str, header: str, value: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "other")
    await sent(provider, request(prompt()), api_key=key)
    headers = provider.requests[0].headers
    assert {name for name in ("x-api-key", "authorization") if name in headers} == {header}
    assert headers[header] == value


@pytest.mark.parametrize("key", ["", " ", "sk-1\n", "sk-\u00e9", "\u201csk-1\u201d"])
def test_a_key_that_cannot_be_sent_is_refused_before_it_is(key: str) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        AnthropicModel(INFO, api_key=key, base_url="http://x")
    assert not key.strip() or key.strip() not in str(caught.value) + caught.value.detail


@pytest.mark.parametrize(
    "address", ["localhost:1", "ftp://host", "https://", "http://[", "http://ä"]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a server"):
        AnthropicModel(INFO, api_key=KEY, base_url=address)


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_an_address_may_name_the_version(provider: FakeProvider, suffix: str) -> None:
    provider.play(say("ok"))
    model = AnthropicModel(INFO, api_key=KEY, base_url=provider.url + suffix)
    await ask(model)
    await model.aclose()
    assert provider.requests[0].path == "/v1/messages"


async def test_no_proxy_leads_to_this_machine(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert await sent(provider, request(prompt()))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("pause_turn", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("tool_use", "tool_use"),
        ("refusal", "refused"),
        ("something_new", "end_turn"),
    ],
)
async def test_stop_reasons(provider: FakeProvider, theirs: str, ours: str) -> None:
    provider.play(Reply((Say("ok"),), stop=theirs))
    async with opened(provider) as model:
        assert (await ask(model)).stop == ours


async def test_a_call_cut_off_at_the_output_limit_says_so(provider: FakeProvider) -> None:
    """Case c13: what is cut off keeps its raw input and is marked as cut off."""
    raw = '{"file_path":"README.md","content":"# Title\\n## One\\n'
    provider.play(Reply((Call("write", raw, id="t1"),), stop="max_tokens"))
    async with opened(provider) as model:
        message = await ask(model)
    assert message.stop == "max_tokens"
    assert message.parts == (ToolCall("t1", "write", raw),)


async def test_an_empty_input_is_passed_on_as_it_is(provider: FakeProvider) -> None:
    """Case a03: a call with an empty input string."""
    provider.play(Reply((Call("write", "", id="k1"),)))
    async with opened(provider) as model:
        assert (await ask(model)).parts == (ToolCall("k1", "write", ""),)


@pytest.mark.parametrize("beat", [PING, COMMENT, PING.replace("\n", "\r\n"), "retry: 10\n\n"])
async def test_heartbeats_are_no_events(provider: FakeProvider, beat: str) -> None:
    provider.play(Reply((Say("a b c", size=1),), keep_alive=beat, piece_bytes=7))
    async with opened(provider) as model:
        assert text_of(await ask(model)) == "a b c"


@pytest.mark.slow
@pytest.mark.parametrize("beat", [PING, COMMENT, ":\n"])
async def test_heartbeats_count_as_life(provider: FakeProvider, beat: str) -> None:
    """Case c06: no event for longer than the limit, but signs of life all the time."""
    limit_s, hold = 0.4, Hold()
    provider.play(RawReply((_start("hel"), Beat(hold, beat), _end("lo"))))
    async with (
        opened(provider, INFO, silence_timeout_s=limit_s) as model,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_release_after, hold, anyio.current_time() + 3 * limit_s)
        assert text_of(await ask(model)) == "hello"


async def _release_after(hold: Hold, moment: float) -> None:
    while anyio.current_time() < moment:
        await anyio.lowlevel.checkpoint()
    hold.release()


def _start(text: str) -> str:
    return (
        'data: {"type":"message_start","message":{"usage":{"input_tokens":10}}}\n\n'
        'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'
        "\n\n"
        f'data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta",'
        f'"text":"{text}"}}}}\n\n'
    )


def _end(text: str) -> str:
    return (
        f'data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta",'
        f'"text":"{text}"}}}}\n\n'
        'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":'
        '{"output_tokens":1}}\n\n'
        'data: {"type":"message_stop"}\n\n'
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "after",
    [
        pytest.param(None, id="no answer"),
        pytest.param(0, id="only headers"),
        pytest.param(300, id="between bytes"),
    ],
)
async def test_silence_has_a_limit(provider: FakeProvider, after: int | None) -> None:
    """Case c07: the socket stays open and nothing comes."""
    provider.play(Reply((Say("a b c", size=1),), fault=Stall(Hold(), after)))
    async with opened(provider, INFO, silence_timeout_s=0.3) as model:
        with pytest.raises(ConnectionLost, match=r"Anthropic sent nothing for 0\.3 s\."):
            await ask(model)
    assert await anyio.to_thread.run_sync(provider.requests[0].gone.wait, 5)


async def test_cancelling_is_immediate_and_closes_the_connection(provider: FakeProvider) -> None:
    hold = Hold()
    provider.play(Reply((Say(("a", hold, "b")),)))
    async with opened(provider) as model, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, model)
        await anyio.to_thread.run_sync(hold.wait_reached)
        tasks.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(provider.requests[0].gone.wait, 5)


async def test_cancelling_before_the_first_byte_closes_the_connection(
    provider: FakeProvider,
) -> None:
    hold = Hold()
    provider.play(RawReply("", fault=Stall(hold)))
    async with opened(provider) as model, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, model)
        await anyio.to_thread.run_sync(hold.wait_reached)
        tasks.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(provider.requests[0].gone.wait, 5)


async def test_leaving_early_closes_the_connection(provider: FakeProvider) -> None:
    provider.play(Reply((Say(("a", Hold(), "b")),)))
    async with opened(provider) as model:
        async with model.stream(request(prompt())) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        assert await anyio.to_thread.run_sync(provider.requests[0].gone.wait, 5)


async def test_a_connection_serves_the_next_request(provider: FakeProvider) -> None:
    ports: set[tuple[str, int]] = set()

    def script(received: Received) -> Reply:
        ports.add(received.client)
        return say("ok")

    provider.play(script)
    async with opened(provider) as model:
        await ask(model)
        await ask(model)
    assert len(ports) == 1


WHOLE = Reply((Say("Let me — ☃"), Call("write", {"content": "ünï"}, id="t")))


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(
    "after",
    [
        pytest.param(0, id="nothing"),
        pytest.param(40, id="in a line"),
        pytest.param(-1, id="before the last line's end"),
        pytest.param(-5, id="in the last event"),
        pytest.param(-45, id="before message_stop"),
        pytest.param(-200, id="in message_delta"),
    ],
)
async def test_a_reply_that_breaks_off_is_a_lost_connection(
    provider: FakeProvider, after: int, *, is_clean: bool
) -> None:
    """Case c11: a half reply is never taken for a whole one."""
    provider.play(Reply(WHOLE.blocks, fault=Cut(after, is_clean=is_clean)))
    async with opened(provider) as model:
        if after == -1 and is_clean:
            assert (await ask(model)).stop == "tool_use"  # only a blank line is missing
            return
        with pytest.raises(ConnectionLost, match=r"The reply of Anthropic broke off\."):
            await ask(model)


async def test_a_reply_cut_within_a_character_is_a_lost_connection(provider: FakeProvider) -> None:
    body = _start("☃").encode()
    provider.play(RawReply(body, fault=Cut(body.index("☃".encode()) + 1)))
    async with opened(provider) as model:
        with pytest.raises(ConnectionLost):
            await ask(model)


async def test_a_reset_connection_is_named(provider: FakeProvider) -> None:
    """Case c02: reset in the middle of the reply; the next attempt starts anew."""
    provider.play(Reply((Say("Let me"),), fault=Reset(-60)), say("Let me check."))
    async with opened(provider) as model:
        with pytest.raises(ConnectionLost, match=r"Anthropic reset the connection\."):
            await ask(model)
        assert text_of(await ask(model)) == "Let me check."


async def test_a_server_that_is_not_there_is_named() -> None:
    model = AnthropicModel(INFO, api_key=KEY, base_url="http://127.0.0.1:9")
    with pytest.raises(ConnectionLost, match=r"Nothing answers for .* at http://127.0.0.1:9\."):
        await ask(model)
    await model.aclose()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overloaded_error", Overloaded),
        ("rate_limit_error", RateLimited),
        ("api_error", Overloaded),
        ("timeout_error", Overloaded),
        ("something_new", Overloaded),
        ("", Overloaded),
        ("invalid_request_error", RequestRejected),
        ("authentication_error", AuthenticationFailed),
        ("billing_error", QuotaExceeded),
    ],
)
async def test_an_error_within_the_stream_is_classified_by_its_type(
    provider: FakeProvider, kind: str, expected: type[ProviderError]
) -> None:
    """Case c01: the status of the reply is 200 and says nothing."""
    provider.play(Reply((Say("Let me"),), error=ErrorEvent(kind)))
    async with opened(provider) as model:
        reply = Accumulator(model.info)
        with pytest.raises(ProviderError) as caught:
            await read(model, reply)
    assert type(caught.value) is expected
    assert text_of(reply.message()) == "Let me"


def _error(kind: str, message: str = "…") -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            HttpReply(401, _error("authentication_error")), AuthenticationFailed, id="401"
        ),
        pytest.param(HttpReply(403, _error("permission_error")), AuthenticationFailed, id="403"),
        pytest.param(
            HttpReply(400, _error("invalid_request_error", "Your credit balance is too low")),
            QuotaExceeded,
            id="no credit",
        ),
        pytest.param(
            HttpReply(404, _error("not_found_error", "model: claude-9")), ModelNotFound, id="404"
        ),
        pytest.param(
            HttpReply(400, _error("invalid_request_error", "prompt is too long: 2 > 1")),
            ContextTooLong,
            id="too long",
        ),
        pytest.param(HttpReply(413, _error("request_too_large")), ContextTooLong, id="413"),
        pytest.param(HttpReply(400, _error("invalid_request_error")), RequestRejected, id="400"),
        pytest.param(HttpReply(429, _error("rate_limit_error")), RateLimited, id="429"),
        pytest.param(HttpReply(500, _error("api_error")), Overloaded, id="500"),
        pytest.param(HttpReply(529, _error("overloaded_error")), Overloaded, id="529"),
        pytest.param(HttpReply(502, "<html><title>Bad Gateway</title>"), Overloaded, id="page"),
        pytest.param(HttpReply(503, ""), Overloaded, id="nothing at all"),
        pytest.param(HttpReply(302, "", {"location": "/login"}), RequestRejected, id="redirect"),
        pytest.param(HttpReply(200, "<html><title>Log in</title>"), ConnectionLost, id="portal"),
        pytest.param(HttpReply(200, _error("overloaded_error")), Overloaded, id="error as 200"),
        pytest.param(RawReply("what is this"), ConnectionLost, id="not a stream"),
        pytest.param(RawReply("data: nonsense\n\n"), ConnectionLost, id="not JSON"),
        pytest.param(RawReply(b"data: \xff\xfe\n\n"), ConnectionLost, id="not text"),
        pytest.param(RawReply(b"\0" * 1000), ConnectionLost, id="not anything"),
        pytest.param(RawReply(""), ConnectionLost, id="empty"),
    ],
)
async def test_refusals_are_translated(
    provider: FakeProvider, answer: Answer, expected: type[ProviderError]
) -> None:
    provider.play(answer)
    async with opened(provider) as model:
        with pytest.raises(ProviderError) as caught:
            await ask(model)
    assert type(caught.value) is expected
    assert caught.value.provider == "anthropic"
    assert str(caught.value).endswith(".")
    assert caught.value.hint
    assert len(provider.requests) == 1, "the adapter never retries"


async def test_a_long_page_in_place_of_a_reply_is_not_read_to_its_end(
    provider: FakeProvider,
) -> None:
    page = "<html><title>Hotel</title>" + "x" * 300_000
    provider.play(RawReply(page, content_type="text/html", piece_bytes=10_000))
    async with opened(provider) as model:
        with pytest.raises(ConnectionLost, match="not a reply: Hotel"):
            await ask(model)


async def test_the_wait_that_is_asked_for_is_kept(provider: FakeProvider) -> None:
    """Case c03: 429 with a retry-after."""
    provider.play(HttpReply(429, _error("rate_limit_error"), {"retry-after": "20"}))
    async with opened(provider) as model:
        with pytest.raises(RateLimited) as caught:
            await ask(model)
    assert caught.value.retry_after_s == 20
    assert caught.value.status == 429


async def test_no_key_appears_in_an_error(provider: FakeProvider) -> None:
    provider.play(HttpReply(401, _error("authentication_error", f"bad key {KEY} (Bearer {KEY})")))
    async with opened(provider) as model:
        with pytest.raises(AuthenticationFailed) as caught:
            await ask(model)
    error = caught.value
    assert KEY not in f"{error} {error.hint} {error.detail} {error!r}"


async def test_an_interrupted_reply_is_a_valid_prefix(provider: FakeProvider) -> None:
    hold = Hold()
    provider.play(
        Reply((Think("Hm"), Say("Let me"), Call("view", ('{"pa', hold, 'th": 1}'), id="t")))
    )
    provider.play(say("ok"))
    async with opened(provider) as model:
        partial = Accumulator(model.info)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, model, partial)
            await anyio.to_thread.run_sync(hold.wait_reached)
            while not partial.message().parts[2:]:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        history = (
            prompt(),
            partial.message(stop="interrupted"),
            results(ToolResult("t", "interrupted", is_error=True)),
            prompt("go on"),
        )
        assert text_of(await ask(model, request(*history))) == "ok"


async def test_two_replies_at_once_do_not_mix(provider: FakeProvider) -> None:
    def script(received: Received) -> Reply:
        return say(str(received.body["messages"]))

    provider.play(script)
    texts: dict[str, str] = {}
    async with opened(provider) as model:

        async def one(word: str) -> None:
            texts[word] = text_of(await ask(model, request(prompt(word))))

        async with anyio.create_task_group() as tasks:
            for word in ("alpha", "beta"):
                tasks.start_soon(one, word)
    assert all(word in text for word, text in texts.items())


async def test_it_is_safe_to_close_twice(provider: FakeProvider) -> None:
    async with opened(provider) as model:
        await model.aclose()


E = TypeVar("E", bound=Exception)


def _subclasses(base: type[E]) -> list[type[E]]:
    found = [base]
    for child in base.__subclasses__():
        found += _subclasses(child)
    return found


NOT_OF_A_REQUEST = frozenset(
    (
        "APIError",
        "APIWebhookValidationError",
        "AnthropicError",
        "MissingDependencyError",
        "MutuallyExclusiveAuthError",
        "RetryableError",
        "StreamAlreadyConsumed",
        "ToolsetClosedError",
        "ToolsetConfigError",
        "ToolsetContractError",
        "ToolsetUsageError",
        "ToolsetsFixedError",
        "WorkloadIdentityError",
    )
)
"""Abstract, or never raised by a request of ours. A class of the SDK that is neither here nor
mapped wants a decision."""


@pytest.fixture
async def connection() -> AsyncGenerator[Connection]:
    address = server_address("http://127.0.0.1")
    made = Connection("anthropic", address, api_key=KEY, silence_timeout_s=1, verify=False)
    yield made
    await made.client.aclose()


async def test_every_error_of_the_sdk_has_a_translation(connection: Connection) -> None:
    unmapped: set[str] = set()
    for kind in _subclasses(anthropic.AnthropicError):
        error = kind.__new__(kind, "x")
        if isinstance(error, anthropic.APIStatusError):
            status = getattr(kind, "status_code", 500)
            error.response = httpx2.Response(status if isinstance(status, int) else 418)
            error.status_code = error.response.status_code
        translated = translate(error, connection)
        assert translated.provider == "anthropic"
        assert translated.hint
        if str(translated) == "The request could not be made.":
            unmapped.add(kind.__name__)
    assert unmapped <= NOT_OF_A_REQUEST


async def test_every_error_of_the_transport_is_a_lost_connection(connection: Connection) -> None:
    for kind in _subclasses(httpx2.HTTPError):
        translated = connection.lost(kind.__new__(kind, "x"))
        assert isinstance(translated, ConnectionLost), kind
