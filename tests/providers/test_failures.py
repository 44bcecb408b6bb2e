"""Every way in which a provider fails has its error, its sentence and its advice."""

import json
import socket
import ssl
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.errors import (
    AuthenticationFailed,
    ConnectionLost,
    ContextTooLong,
    ModelNotFound,
    Overloaded,
    ProviderError,
    QuotaExceeded,
    RateLimited,
    RequestRejected,
)
from crush_kernel.providers.failures import (
    MAX_DETAIL,
    cut_off,
    from_error_event,
    from_response,
    garbled,
    overfull,
    redact,
    silent,
    unreachable,
)

NOW = datetime(2026, 10, 21, 7, 28, 0, tzinfo=UTC)
KEY = "sk-ant-api03-AbCdEf_123-xyz"


def response(
    status: int, body: object = "", *, provider: str = "anthropic", secrets: tuple[str, ...] = ()
) -> ProviderError:
    text = body if isinstance(body, str) else json.dumps(body)
    return from_response(provider, status, {}, text, now=NOW, secrets=secrets)


def anthropic(kind: str, message: str = "…", **error: object) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message, **error}}


def openai(message: str, kind: str = "invalid_request_error", code: str | None = None) -> object:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        pytest.param(401, anthropic("authentication_error"), AuthenticationFailed, id="401"),
        pytest.param(401, "", AuthenticationFailed, id="401 without a word"),
        pytest.param(403, anthropic("permission_error"), AuthenticationFailed, id="403"),
        pytest.param(403, "<title>Attention Required!</title>", RequestRejected, id="403 wall"),
        pytest.param(
            400, openai("Incorrect API key provided: sk-a***z"), AuthenticationFailed, id="400 key"
        ),
        pytest.param(
            400,
            [{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID"}}],
            AuthenticationFailed,
            id="Google's key",
        ),
        pytest.param(402, openai("Insufficient Balance"), QuotaExceeded, id="402"),
        pytest.param(429, openai("…", "insufficient_quota"), QuotaExceeded, id="no quota"),
        pytest.param(
            429, openai("…", "x", "insufficient_quota"), QuotaExceeded, id="no quota by code"
        ),
        pytest.param(
            400,
            anthropic("invalid_request_error", "Your credit balance is too low to access …"),
            QuotaExceeded,
            id="Anthropic's credit",
        ),
        pytest.param(
            429,
            anthropic("rate_limit_error", details={"error_code": "enforced_spend_limit_reached"}),
            QuotaExceeded,
            id="Anthropic's spend limit",
        ),
        pytest.param(404, anthropic("not_found_error", "model: claude-9"), ModelNotFound, id="404"),
        pytest.param(
            404,
            openai("The model `gpt-9` does not exist or you do not have access to it.",
                   "invalid_request_error", "model_not_found"),
            ModelNotFound,
            id="OpenAI's model",
        ),
        pytest.param(404, {"error": "model 'q' not found"}, ModelNotFound, id="Ollama's model"),
        pytest.param(
            400, openai("foo/bar is not a valid model ID"), ModelNotFound, id="OpenRouter's model"
        ),
        pytest.param(404, "404 page not found", RequestRejected, id="404 of a path"),
        pytest.param(404, {"detail": "Not Found"}, RequestRejected, id="404 of a framework"),
        pytest.param(
            400,
            anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000"),
            ContextTooLong,
            id="Anthropic too long",
        ),
        pytest.param(
            400,
            anthropic(
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
            ),
            ContextTooLong,
            id="Anthropic too long with the reply",
        ),
        pytest.param(
            400, openai("…", code="context_length_exceeded"), ContextTooLong, id="OpenAI too long"
        ),
        pytest.param(
            400,
            openai("This model's maximum context length is 8192 tokens. However, you …"),
            ContextTooLong,
            id="vLLM too long",
        ),
        pytest.param(
            400,
            {"error": {"code": 400, "type": "exceed_context_size_error", "message":
                       "the request exceeds the available context size, try increasing it"}},
            ContextTooLong,
            id="llama.cpp too long",
        ),
        pytest.param(
            500,
            {"error": "input length exceeds the context length"},
            ContextTooLong,
            id="Ollama too long",
        ),
        pytest.param(
            400,
            {"error": "Trying to keep the first 9000 tokens when context the overflows. However, "
             "the model is loaded with context length of only 4096 tokens."},
            ContextTooLong,
            id="LM Studio too long",
        ),
        pytest.param(
            400,
            {"error": {"code": 400, "message": "The input token count (2000) exceeds the maximum "
             "number of tokens allowed (1000).", "status": "INVALID_ARGUMENT"}},
            ContextTooLong,
            id="Google too long",
        ),
        pytest.param(413, anthropic("request_too_large"), ContextTooLong, id="413"),
        pytest.param(413, "<title>413 Too Large</title>", ContextTooLong, id="413 of nginx"),
        pytest.param(400, anthropic("invalid_request_error"), RequestRejected, id="400"),
        pytest.param(400, '"no"', RequestRejected, id="400 with a JSON string"),
        pytest.param(400, "[]", RequestRejected, id="400 with an empty list"),
        pytest.param(422, {"detail": [{"loc": ["body"]}]}, RequestRejected, id="422"),
        pytest.param(307, "", RequestRejected, id="redirect"),
        pytest.param(501, "", RequestRejected, id="501"),
        pytest.param(429, anthropic("rate_limit_error"), RateLimited, id="429"),
        pytest.param(
            429, openai("Rate limit reached for … on tokens per min", "tokens"), RateLimited,
            id="OpenAI's tokens per minute",
        ),
        pytest.param(
            429,
            {"error": {"message": "You exceeded your current quota", "status": "RESOURCE_EXHAUSTED",
                       "details": [{"retryDelay": "38s"}]}},
            RateLimited,
            id="Google's free tier",
        ),
        pytest.param(408, "", Overloaded, id="408"),
        pytest.param(409, "", Overloaded, id="409"),
        pytest.param(500, anthropic("api_error"), Overloaded, id="500"),
        pytest.param(502, "<html><title>502 Bad Gateway</title></html>", Overloaded, id="502"),
        pytest.param(503, "upstream connect error", Overloaded, id="503"),
        pytest.param(522, "<html>", Overloaded, id="Cloudflare"),
        pytest.param(529, anthropic("overloaded_error"), Overloaded, id="529"),
        pytest.param(400, anthropic("overloaded_error"), Overloaded, id="its type goes first"),
        pytest.param(200, anthropic("overloaded_error"), Overloaded, id="200 with an error"),
        pytest.param(200, "<title>Hotel</title>", ConnectionLost, id="200 of a portal"),
        pytest.param(200, "", ConnectionLost, id="200 of nothing"),
    ],
)  # fmt: skip
def test_replies(status: int, body: object, expected: type[ProviderError]) -> None:
    error = response(status, body)
    assert type(error) is expected
    assert (error.status, error.provider) == (status, "anthropic")
    assert error.hint


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (response(401, ""), "Anthropic refused the key (401)."),
        (response(529, anthropic("overloaded_error")), "Anthropic is overloaded (529)."),
        (response(500, anthropic("api_error")), "Anthropic has trouble of its own (500)."),
        (
            response(502, "<html><title> Bad\n Gateway &amp; co. </title><body>long</body></html>"),
            "Anthropic has trouble of its own (502): Bad Gateway & co.",
        ),
        (response(522, "<html>"), "Anthropic cannot be reached behind its proxy (522)."),
        (response(429, ""), "Anthropic takes no more requests for now (429)."),
        (
            response(404, anthropic("not_found_error", "model: claude-9")),
            "Anthropic has no such model (404): model: claude-9.",
        ),
        (
            response(400, anthropic("invalid_request_error", "messages.0: bad\nthing.")),
            "Anthropic refused the request (400): messages.0: bad thing.",
        ),
        (response(400, "", provider="acme"), "acme refused the request (400)."),
        (response(413, ""), "The conversation is too long for the model (413)."),
        (response(402, ""), "The account at Anthropic is out of credit (402)."),
        (
            response(200, "<title>Hotel</title>"),
            "Anthropic answered with something that is not a reply: Hotel.",
        ),
        (cut_off("openai"), "The reply of OpenAI broke off."),
        (garbled("openai"), "The reply of OpenAI cannot be read."),
        (silent("openai", 90.0), "OpenAI sent nothing for 90 s."),
        (silent("openai", 0.05), "OpenAI sent nothing for 0.05 s."),
    ],
    ids=str,
)
def test_messages_are_one_sentence(error: ProviderError, message: str) -> None:
    assert str(error) == message


@pytest.mark.parametrize(
    ("error", "is_body"),
    [
        pytest.param(response(413, ""), True, id="nothing said"),
        pytest.param(response(413, "<html><title>413</title></html>"), True, id="a proxy"),
        pytest.param(response(413, anthropic("request_too_large", "Too large")), True, id="API"),
        pytest.param(
            from_error_event("anthropic", "request_too_large", "Too large"), True, id="an event"
        ),
        pytest.param(
            response(413, anthropic("request_too_large", "prompt is too long: 30 tokens > 20")),
            False,
            id="tokens after all",
        ),
        pytest.param(
            response(400, anthropic("invalid_request_error", "prompt is too long: 3 > 2")),
            False,
            id="tokens",
        ),
        pytest.param(overfull("anthropic"), False, id="a reply without room"),
    ],
)
def test_too_many_bytes_are_told_from_too_many_tokens(error: ProviderError, is_body: bool) -> None:  # noqa: FBT001 - a table
    assert isinstance(error, ContextTooLong)
    assert error.is_body == is_body


def test_the_hint_names_the_variable_of_the_key() -> None:
    assert "`ANTHROPIC_API_KEY`" in response(401).hint
    assert "`OPENAI_API_KEY`" in response(401, provider="openai").hint
    assert response(401, provider="acme").hint == "Check the key."


def test_long_words_are_cut_short() -> None:
    error = response(400, anthropic("invalid_request_error", "x" * 100_000))
    assert len(str(error)) < 400
    assert len(error.detail) <= MAX_DETAIL + 1


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("x" * 3_000_000, id="one word"),
        pytest.param("*" * 1_000_000, id="stars"),
        pytest.param("<title" * 200_000, id="titles without end"),
        pytest.param("model " * 200_000, id="models"),
        pytest.param("exceeds its " * 100_000, id="excess"),
        pytest.param("try again in " + "1" * 1_000_000, id="digits"),
        pytest.param('{"error":' * 100_000, id="nested"),
        pytest.param('{"retryDelay": "%s"}' % ("1" * 90_000), id="a long wait"),
        pytest.param("bearer " * 200_000, id="bearers"),
    ],
)
def test_a_hostile_body_costs_little(body: str) -> None:
    error = from_response("anthropic", 400, {}, body, now=NOW)
    assert len(str(error)) < 400
    assert from_error_event("anthropic", "api_error", body).detail


@pytest.mark.parametrize(
    ("kind", "message", "expected", "status"),
    [
        ("overloaded_error", "Overloaded", Overloaded, None),
        ("rate_limit_error", "…", RateLimited, None),
        ("api_error", "Internal server error", Overloaded, None),
        ("server_error", "…", Overloaded, None),
        ("invalid_request_error", "bad", RequestRejected, None),
        ("invalid_request_error", "prompt is too long: 3 > 2", ContextTooLong, None),
        ("insufficient_quota", "…", QuotaExceeded, None),
        ("429", "Provider returned error", RateLimited, 429),
        ("502", "Bad gateway", Overloaded, 502),
        ("401", "No auth", AuthenticationFailed, 401),
        ("200", "…", Overloaded, None),
        ("9" * 9000, "…", Overloaded, None),
        ("new_error", "…", Overloaded, None),
        ("", "", Overloaded, None),
    ],
)
def test_events_within_a_stream_go_by_their_type(
    kind: str, message: str, expected: type[ProviderError], status: int | None
) -> None:
    """Case c01."""
    error = from_error_event("anthropic", kind, message)
    assert type(error) is expected
    assert error.status == status
    assert error.hint


def test_an_event_may_say_how_long_to_wait() -> None:
    error = from_error_event("groq", "rate_limit_exceeded", "Please try again in 7.5s.")
    assert error.retry_after_s == 7.5


def test_the_wait_is_kept_where_waiting_helps() -> None:
    headers = {"retry-after": "20"}
    limited = from_response("anthropic", 429, headers, "", now=NOW)
    refused = from_response("anthropic", 400, headers, "", now=NOW)
    assert (limited.retry_after_s, refused.retry_after_s) == (20, None)


def _raised(cause: BaseException) -> Exception:
    """Return an error that some library raised because of `cause`."""
    error = RuntimeError("All connection attempts failed")
    error.__cause__ = ExceptionGroup("many", [OSError("one"), cause])  # pyright: ignore[reportArgumentType] - all of them are exceptions
    outer = RuntimeError("Connection error.")
    outer.__context__ = error
    return outer


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        (ConnectionRefusedError(111, "refused"), "Nothing answers for Ollama at http://h:1."),
        (socket.gaierror(-2, "unknown"), "The name of Ollama at http://h:1 is not known."),
        (ConnectionResetError(104, "reset"), "Ollama reset the connection."),
        (TimeoutError("timed out"), "Ollama at http://h:1 does not answer."),
        (
            ssl.SSLCertVerificationError(1, "self-signed certificate"),
            "The certificate of Ollama at http://h:1 is not trusted.",
        ),
        (ValueError("?"), "The connection to Ollama at http://h:1 was lost."),
    ],
)
def test_lost_connections_are_explained_by_what_caused_them(cause: Exception, message: str) -> None:
    for error in (cause, _raised(cause)):
        lost = unreachable("ollama", error, address="http://h:1")
        assert type(lost) is ConnectionLost
        assert str(lost) == message
        assert lost.hint
        assert type(cause).__name__ in lost.detail


def test_causes_that_go_in_a_circle_are_walked_once() -> None:
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert unreachable("x", first).detail == "RuntimeError: a\nRuntimeError: b"


@pytest.mark.parametrize(
    "text",
    [
        f"bad key {KEY}",
        f"Bearer {KEY}",
        f'{{"x-api-key": "{KEY}"}}',
        "Incorrect API key provided: sk-proj-********************abcd.",
        "key AIzaSyA-1234567890abcdefghijklmnopqrstu",
        "gsk_1234567890abcdef is invalid",
        "authorization: Bearer eyJhbGciOi.J9.abc",
        'api_key="0123456789abcdef"',
    ],
)
def test_what_looks_like_a_key_is_hidden(text: str) -> None:
    hidden = redact(text)
    assert "[key]" in hidden
    assert not any(part in hidden for part in (KEY, "abcd", "eyJ", "AIza", "0123456789"))


def test_the_key_itself_is_hidden_whatever_it_looks_like() -> None:
    error = response(401, anthropic("x", "no such key: hunter22"), secrets=("Bearer hunter22",))
    lost = unreachable("x", ValueError("hunter22"), secrets=("hunter22",))
    event = from_error_event("x", "api_error", "hunter22", secrets=("hunter22",))
    for failure in (error, lost, event):
        assert "hunter22" not in f"{failure}{failure.detail}"


@pytest.mark.parametrize(
    "text", ["sketchbook_of_flowers", "risk-averse-people", "a ** b", "task-0123456789abc", ""]
)
def test_words_are_not_keys(text: str) -> None:
    assert redact(text, ("", "abc")) == text


@given(status=st.integers(100, 999), body=st.text(max_size=200), headers=st.dictionaries(
    st.sampled_from(["retry-after", "content-type", "x"]), st.text(max_size=20)
))  # fmt: skip
def test_whatever_comes_there_is_an_error_with_a_sentence(
    status: int, body: str, headers: dict[str, str]
) -> None:
    error = from_response("anthropic", status, headers, body, now=NOW)
    assert str(error).endswith(".")
    assert "\n" not in str(error)
    assert error.hint
