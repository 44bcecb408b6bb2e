"""The adapter talks to a server over real HTTP, and no failure of it goes untold."""

import base64
import gzip
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, suppress

import anyio
import anyio.to_thread
import pytest
from anyio.abc import SocketStream

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
from crush_kernel.messages import (
    Media,
    Message,
    Reasoning,
    Text,
    ToolResult,
    Usage,
    calls_of,
)
from crush_kernel.providers.base import (
    Accumulator,
    ModelInfo,
    ModelRequest,
    Stop,
    StreamEvent,
    TextDelta,
    ToolSpec,
)
from crush_kernel.providers.openai import OpenAIModel
from tests.fakes.provider.replies import (
    COMMENT,
    Answer,
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
    call,
    say,
)
from tests.fakes.provider.server import FakeProvider, Received
from tests.fakes.sockets import free_port, listening

pytestmark = pytest.mark.anyio

INFO = ModelInfo("openai", "gpt-5-mini")
LS = ToolSpec("ls", "List a folder.", {"type": "object", "properties": {}})
HELLO = ModelRequest(system="Be brief.", messages=(Message("user", (Text("hi"),)),), tools=(LS,))


@asynccontextmanager
async def model_at(
    url: str,
    *,
    info: ModelInfo = INFO,
    key: str = "test-key",
    silence_timeout_s: float = 5,
) -> AsyncGenerator[OpenAIModel]:
    model = OpenAIModel(info, api_key=key, base_url=url, silence_timeout_s=silence_timeout_s)
    async with aclosing(model):
        yield model


async def ask(model: OpenAIModel, request: ModelRequest = HELLO) -> Message:
    reply = Accumulator(model.info)
    await hear(model, reply.feed, request)
    return reply.message()


async def hear(
    model: OpenAIModel, tell: Callable[[StreamEvent], None], request: ModelRequest = HELLO
) -> None:
    with anyio.fail_after(10):
        async with model.stream(request) as events:
            async for event in events:
                tell(event)


async def answer(url: str, request: ModelRequest = HELLO, *, info: ModelInfo = INFO) -> Message:
    async with model_at(url, info=info) as model:
        return await ask(model, request)


async def failure(model: OpenAIModel, request: ModelRequest = HELLO) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(model, request)
    return caught.value


async def test_a_reply_is_streamed_with_its_usage(provider: FakeProvider) -> None:
    usage = Usage(input_tokens=7, cache_read_tokens=3, output_tokens=2)
    provider.play(Reply((Think("hm"), Say("Hello there", size=3)), usage=usage))
    said = await answer(provider.openai_url)
    assert said == Message(
        "assistant",
        (Reasoning("hm", {"field": "reasoning_content"}), Text("Hello there")),
        provider="openai",
        model="gpt-5-mini",
        stop="end_turn",
        usage=usage,
    )


async def test_the_request_carries_key_and_model_and_nothing_is_compressed(
    provider: FakeProvider,
) -> None:
    provider.keys = frozenset(("test-key",))
    provider.play(say("ok"))
    await answer(provider.openai_url)
    (request,) = provider.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer test-key"
    assert request.headers["accept-encoding"] == "identity"
    assert request.body["model"] == "gpt-5-mini"
    assert request.refusal == ""


async def test_without_a_key_none_is_sent(provider: FakeProvider) -> None:
    provider.play(say("ok"))
    async with model_at(provider.openai_url, key="") as model:
        await ask(model)
    assert "authorization" not in provider.requests[0].headers


async def test_a_conversation_with_calls_files_and_thinking_is_accepted_by_a_strict_server(
    provider: FakeProvider,
) -> None:
    png = Media("image/png", base64.b64encode(b"\x89PNG\r\n\x1a\n").decode(), name="a.png")
    pdf = Media("application/pdf", base64.b64encode(b"%PDF-1.7").decode())
    info = ModelInfo("openai", "gpt-5-mini", accepts_images=True, accepts_documents=True)
    provider.play(
        Reply((Think("hm"), Say("Looking."), Call("ls"), Call("ls", {"a": 1}))), say("ok")
    )
    async with model_at(provider.openai_url, info=info) as model:
        opening = Message("user", (Text("look"), png, pdf))
        said = await ask(model, ModelRequest("", (opening,), tools=(LS,)))
        first, second = calls_of(said)
        results = Message(
            "tool",
            (
                ToolResult(first.id, "An image.", media=(png,)),
                ToolResult(second.id, "", is_error=True),
            ),
        )
        messages = (opening, said, results, Message("user", (Text("and?"),)))
        last = await ask(model, ModelRequest("", messages, tools=(LS,)))
    assert last.parts == (Text("ok"),)
    assert said.stop == "tool_use"
    assert [request.refusal for request in provider.requests] == ["", ""]


async def test_thinking_goes_back_to_a_provider_that_wants_it(provider: FakeProvider) -> None:
    provider.openai.assistant_extras = frozenset(("reasoning_content",))
    info = ModelInfo("deepseek", "deepseek-v4-pro")
    provider.play(Reply((Think("I should list."), Call("ls", id="c1"))), say("ok"))
    async with model_at(provider.openai_url, info=info) as model:
        said = await ask(model)
        result = Message("tool", (ToolResult("c1", "a.py"),))
        await ask(model, ModelRequest("", (*HELLO.messages, said, result), tools=(LS,)))
    messages = provider.requests[1].body["messages"]
    assert isinstance(messages, list)
    assert isinstance(messages[1], dict)
    assert messages[1]["reasoning_content"] == "I should list."


async def test_ids_are_given_to_calls_that_have_none_or_a_used_one(provider: FakeProvider) -> None:
    again = 'data: {"choices":[{"delta":{"tool_calls":[%s]},"finish_reason":"stop"}]}\n\n'
    nameless = '{"function":{"name":"ls","arguments":"{}"}}'
    repeated = '{"id":"call_0","function":{"name":"ls","arguments":"{}"}}'
    provider.play(
        *(RawReply(again % body + "data: [DONE]\n\n") for body in (nameless, repeated, repeated))
    )
    messages = HELLO.messages
    async with model_at(provider.openai_url) as model:
        for _ in range(3):
            said = await ask(model, ModelRequest("", messages, tools=(LS,)))
            results = tuple(ToolResult(called.id, "a.py") for called in calls_of(said))
            messages = (*messages, said, Message("tool", results))
    ids = [called.id for message in messages for called in calls_of(message)]
    assert ids == ["call_1", "call_0", "call_0_2"]


async def test_a_parameter_that_is_refused_is_renamed_from_then_on(provider: FakeProvider) -> None:
    info = ModelInfo("elsewhere", "gpt-5-mini")  # nothing is known of its dialect
    request = ModelRequest("", HELLO.messages, max_output_tokens=50)
    provider.play(say("one"), say("two"))
    async with model_at(provider.openai_url, info=info) as model:
        assert (await ask(model, request)).parts == (Text("one"),)
        assert (await ask(model, request)).parts == (Text("two"),)
    sent = [sorted(key for key in r.body if key.startswith("max_")) for r in provider.requests]
    assert sent == [["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]]


async def test_a_server_that_knows_no_stream_options_is_asked_without(
    provider: FakeProvider,
) -> None:
    asked: list[bool] = []

    def script(request: Received) -> Answer:
        asked.append("stream_options" in request.body)
        if asked[-1]:
            return HttpReply(422, {"detail": "extra field: stream_options"})
        return say("ok")

    provider.play(script)
    async with model_at(provider.openai_url) as model:
        await ask(model)
        await ask(model)
    assert asked == [True, False, False]


async def test_a_server_that_refuses_whatever_is_changed_is_not_asked_for_ever(
    provider: FakeProvider,
) -> None:
    said = "unknown: stream_options, reasoning_content, max_completion_tokens, max_tokens"
    provider.openai.body_extras = frozenset(("max_tokens",))
    provider.openai.assistant_extras = frozenset(("reasoning_content",))
    provider.play(lambda _: HttpReply(400, {"error": {"message": said}}))
    request = ModelRequest("", HELLO.messages, max_output_tokens=5)
    async with model_at(provider.openai_url) as model:
        assert isinstance(await failure(model, request), RequestRejected)
    assert 2 <= len(provider.requests) <= 5


STATUSES = [
    pytest.param(401, "{}", AuthenticationFailed, id="bad key"),
    pytest.param(403, "{}", AuthenticationFailed, id="no rights"),
    pytest.param(402, "{}", QuotaExceeded, id="no credit"),
    pytest.param(404, '{"error":{"message":"model not found"}}', ModelNotFound, id="no such model"),
    pytest.param(
        400,
        '{"error":{"code":"context_length_exceeded","message":"too long"}}',
        ContextTooLong,
        id="too long",
    ),
    pytest.param(400, '{"error":{"message":"bad schema"}}', RequestRejected, id="refused"),
    pytest.param(422, "no", RequestRejected, id="unprocessable"),
    pytest.param(302, "", RequestRejected, id="moved"),
    pytest.param(429, "{}", RateLimited, id="too many"),
    pytest.param(500, "oops", Overloaded, id="trouble"),
    pytest.param(502, "<html><title>Bad gateway</title></html>", Overloaded, id="a page"),
    pytest.param(529, "", Overloaded, id="overloaded"),
]


@pytest.mark.parametrize(("status", "body", "kind"), STATUSES)
async def test_a_status_is_translated(
    provider: FakeProvider, status: int, body: str, kind: type[ProviderError]
) -> None:
    provider.play(HttpReply(status, body))
    async with model_at(provider.openai_url) as model:
        error = await failure(model)
    assert type(error) is kind
    assert (error.provider, error.status) == ("openai", status)


async def test_a_refusal_without_end_is_told_all_the_same(provider: FakeProvider) -> None:
    provider.play(HttpReply(500, "oops " * 100_000))
    async with model_at(provider.openai_url) as model:
        error = await failure(model)
    assert (error.status, len(error.detail) < 5_000) == (500, True)


async def test_what_to_wait_is_read_from_the_reply(provider: FakeProvider) -> None:
    provider.play(HttpReply(429, "{}", headers={"retry-after": "20"}))
    async with model_at(provider.openai_url) as model:
        assert (await failure(model)).retry_after_s == 20


async def test_the_key_never_appears_in_an_error(provider: FakeProvider) -> None:
    provider.play(lambda request: HttpReply(401, f"bad key: {request.headers['authorization']}"))
    async with model_at(provider.openai_url, key="hush-hush-key") as model:
        error = await failure(model)
    assert "bad key" in error.detail
    assert "hush" not in f"{error} {error.detail} {error.hint}"


async def test_an_error_event_after_text_is_told_after_the_text(provider: FakeProvider) -> None:
    provider.play(Reply((Say("Let me"),), error=ErrorEvent("overloaded_error")))
    seen: list[StreamEvent] = []
    async with model_at(provider.openai_url) as model:
        with pytest.raises(Overloaded):
            await hear(model, seen.append)
    assert seen == [TextDelta(0, "Let me")]


@pytest.mark.parametrize("fault", [Cut(120), Cut(120, is_clean=True), Reset(120), Cut(0)], ids=str)
async def test_a_connection_that_breaks_is_lost(provider: FakeProvider, fault: Cut | Reset) -> None:
    provider.play(Reply((Say("Let me check.", size=2),), fault=fault), say("Let me check."))
    async with model_at(provider.openai_url) as model:
        error = await failure(model)
        assert type(error) is ConnectionLost
        assert error.is_retryable
        # The second attempt has nothing of the first.
        assert (await ask(model)).parts == (Text("Let me check."),)


async def test_a_break_after_the_reply_is_over_does_no_harm(provider: FakeProvider) -> None:
    body = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n: bye\n\n'
    provider.play(RawReply(body, fault=Reset(-3)), RawReply(body, fault=Cut(-3)))
    for _ in range(2):
        assert (await answer(provider.openai_url)).parts == (Text("Hi"),)


async def test_a_body_cut_inside_a_call_is_lost_and_the_call_not_complete(
    provider: FakeProvider,
) -> None:
    provider.play(
        RawReply(
            'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":'
            '{"name":"write","arguments":"{\\"file_path\\":\\"a.txt\\",\\"cont"}}]}}]}\n\n'
            'data: {"choices":[{"index":0,"del'
        )
    )
    reply = Accumulator(INFO)
    async with model_at(provider.openai_url) as model:
        with pytest.raises(ConnectionLost):
            await hear(model, reply.feed)
    assert reply.stop is None


async def test_the_output_limit_inside_a_call_is_the_reason_to_stop(provider: FakeProvider) -> None:
    provider.play(
        Reply((Call("write", '{"file_path":"README.md","content":"# Ti'),), stop="length")
    )
    said = await answer(provider.openai_url)
    assert said.stop == "max_tokens"
    assert [called.input for called in calls_of(said)] == [
        '{"file_path":"README.md","content":"# Ti'
    ]


@pytest.mark.parametrize(
    "after", [pytest.param(None, id="before the head"), pytest.param(0, id="after the head")]
)
async def test_silence_before_the_first_byte_is_limited(
    provider: FakeProvider, after: int | None
) -> None:
    provider.play(Reply((Say("late"),), fault=Stall(Hold(), after=after)))
    async with model_at(provider.openai_url, silence_timeout_s=0.1) as model:
        assert type(await failure(model)) is ConnectionLost


async def test_silence_between_events_is_limited(provider: FakeProvider) -> None:
    provider.play(Reply((Say(("a", Hold(), "b")),)))
    async with model_at(provider.openai_url, silence_timeout_s=0.1) as model:
        error = await failure(model)
    assert type(error) is ConnectionLost
    assert "0.1 s" in str(error)


async def test_a_server_that_stays_silent_after_the_end_is_not_waited_for(
    provider: FakeProvider,
) -> None:
    body = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n: x\n\n'
    provider.play(RawReply(body, fault=Stall(Hold(), after=len(body) - 2)))
    async with model_at(provider.openai_url, silence_timeout_s=0.1) as model:
        assert (await ask(model)).parts == (Text("Hi"),)


@pytest.mark.slow
async def test_a_comment_is_a_sign_of_life() -> None:
    async def serve(stream: SocketStream) -> None:
        await stream.receive()
        await stream.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        for _ in range(6):
            await anyio.sleep(0.1)  # silence is what is tested
            await stream.send(COMMENT.encode())
        await stream.send(
            b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
        )

    async with listening(serve) as url, model_at(url, silence_timeout_s=0.3) as model:
        assert (await ask(model)).parts == (Text("Hi"),)


async def test_comments_between_all_events_change_nothing(provider: FakeProvider) -> None:
    provider.play(Reply((Say("Hello", size=1),), keep_alive=COMMENT, piece_bytes=7))
    assert (await answer(provider.openai_url)).parts == (Text("Hello"),)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param("<!doctype html><title>Sign in</title>", "text/html", id="a page"),
        pytest.param("<html>", "text/event-stream", id="a page that says it is a stream"),
        pytest.param("no healthy upstream", "text/plain", id="a text"),
        pytest.param('{"ok": true}', "application/json", id="another document"),
        pytest.param("", "text/event-stream", id="nothing"),
    ],
)
async def test_something_else_than_a_reply_is_a_lost_connection(
    provider: FakeProvider, body: str, content_type: str
) -> None:
    provider.play(RawReply(body, content_type=content_type))
    async with model_at(provider.openai_url) as model:
        error = await failure(model)
    assert type(error) is ConnectionLost
    assert "Sign in" in str(error) or "Sign in" not in body


async def test_a_server_that_ignores_stream_is_understood(provider: FakeProvider) -> None:
    message = {"role": "assistant", "content": "Hi"}
    document = {"choices": [{"message": message, "finish_reason": "stop"}]}
    provider.play(
        RawReply(json.dumps(document), content_type="application/json", piece_bytes=10),
    )
    said = await answer(provider.openai_url)
    assert (said.parts, said.stop) == ((Text("Hi"),), "end_turn")


async def test_a_compressed_stream_is_read_all_the_same() -> None:
    body = gzip.compress(
        b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    )
    head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: gzip\r\n\r\n"

    async def serve(stream: SocketStream) -> None:
        await stream.receive()
        for start in range(0, len(body), 5):
            await stream.send((b"" if start else head) + body[start : start + 5])

    async with listening(serve) as url, model_at(url) as model:
        assert (await ask(model)).parts == (Text("Hi"),)


async def test_nobody_listening_is_a_lost_connection_that_names_the_place() -> None:
    async with model_at(f"http://127.0.0.1:{free_port()}/v1") as model:
        error = await failure(model)
    assert type(error) is ConnectionLost
    assert "127.0.0.1" in str(error)


async def test_cancelling_closes_the_connection_at_once(provider: FakeProvider) -> None:
    hold = Hold()
    provider.play(Reply((Say(("a", hold, "b")),)))
    async with model_at(provider.openai_url) as model:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, model)
                await anyio.to_thread.run_sync(hold.wait_reached)
                tasks.cancel_scope.cancel()
            gone = provider.requests[0].gone
            assert await anyio.to_thread.run_sync(gone.wait, 5)


async def test_leaving_the_context_early_closes_the_connection(provider: FakeProvider) -> None:
    provider.play(Reply((Say(("a", Hold(), "b")),)))
    async with model_at(provider.openai_url) as model:
        with anyio.fail_after(5):
            async with model.stream(HELLO) as events:
                async for _ in events:
                    break
            assert await anyio.to_thread.run_sync(provider.requests[0].gone.wait, 5)


async def test_the_last_event_is_the_stop_and_nothing_follows(provider: FakeProvider) -> None:
    provider.play(call("ls"))
    async with model_at(provider.openai_url) as model, model.stream(HELLO) as events:
        seen = [event async for event in events]
    assert [isinstance(event, Stop) for event in seen] == [*[False] * (len(seen) - 1), True]


async def test_one_connection_serves_all_requests() -> None:
    opened: list[object] = []
    body = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

    async def serve(stream: SocketStream) -> None:
        opened.append(stream)
        with suppress(anyio.EndOfStream):
            while await stream.receive():
                await stream.send(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))

    async with listening(serve) as url, model_at(url) as model:
        for _ in range(3):
            assert (await ask(model)).parts == (Text("Hi"),)
    assert len(opened) == 1


async def test_closing_twice_is_fine(provider: FakeProvider) -> None:
    async with model_at(provider.openai_url) as model:
        await model.aclose()


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8000/v1", "ftp://host/v1", "http://", "http://[::1/v1", "https:///v1", "\0"],
)
async def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIModel(INFO, api_key="", base_url=url)
    assert caught.value.hint


@pytest.mark.parametrize("key", ["a\nb", "schlüssel", "k\x00", "“key”"])
async def test_a_key_that_cannot_be_sent_is_refused_at_once(key: str) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        OpenAIModel(INFO, api_key=key, base_url="http://x/v1")
    assert key not in str(caught.value)


async def test_a_proxy_is_used_but_never_for_this_machine(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []

    async def proxy(stream: SocketStream) -> None:
        seen.append(await stream.receive())
        await stream.send(b"HTTP/1.1 503 Proxied\r\ncontent-length: 0\r\n\r\n")

    async with listening(proxy) as url:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, url.removesuffix("/v1"))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        async with model_at("http://api.invalid/v1") as model:
            assert (await failure(model)).status == 503
        provider.play(say("direct"))
        assert (await answer(provider.openai_url)).parts == (Text("direct"),)
    assert [request.split(b" ")[1] for request in seen] == [
        b"http://api.invalid/v1/chat/completions"
    ]
