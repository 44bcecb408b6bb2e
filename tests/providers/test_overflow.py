"""That a conversation is too long is understood in whatever words it is said, and nothing else is.

Where the refusal names the size of the window, and of the prompt, both are read.
"""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.errors import ContextTooLong, ProviderError, RateLimited, RequestRejected
from crush_kernel.providers.failures import from_error_event, from_response
from crush_kernel.providers.overflow import Overflow, overflow_in
from tests.fakes.provider.overflows import OVERFLOWS, Asked

Json = dict[str, Any]

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def response(status: int, body: object, provider: str = "openai") -> ProviderError:
    text = body if isinstance(body, str) else json.dumps(body)
    return from_response(provider, status, {}, text, now=NOW)


def openai(message: str, kind: str = "invalid_request_error", code: str | None = None) -> Json:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic(message: str, kind: str = "invalid_request_error") -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}}


UNNAMED = ("responses", "groq", "ollama")
"""Vendors who say nothing of sizes."""


@pytest.mark.parametrize("vendor", OVERFLOWS)
def test_every_vendor_is_understood(vendor: str) -> None:
    refusal = OVERFLOWS[vendor](Asked(prompt=9_001, output=0, window=8_192))
    error = response(refusal.status, refusal.body)
    assert isinstance(error, ContextTooLong)
    assert error.limit_tokens == (None if vendor in UNNAMED else 8_192)
    has_no_prompt = vendor in (*UNNAMED, "moonshot")
    assert error.asked_tokens == (None if has_no_prompt else 9_001)


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "openrouter", "deepseek"])
def test_the_prompt_is_told_from_what_the_reply_may_have(vendor: str) -> None:
    refusal = OVERFLOWS[vendor](Asked(prompt=7_000, output=4_096, window=8_192))
    error = response(refusal.status, refusal.body)
    assert isinstance(error, ContextTooLong)
    assert (error.limit_tokens, error.asked_tokens) == (8_192, 7_000)


@pytest.mark.parametrize(
    ("words", "limit", "asked"),
    [
        pytest.param("prompt is too long: 213462 tokens > 200000 maximum", 200000, 213462,
                     id="Anthropic"),
        pytest.param("prompt is too long: 210000 tokens > 200000", 200000, 210000,
                     id="Anthropic, shorter"),
        pytest.param("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, "
                     "decrease input length or `max_tokens` and try again", 200000, 178959,
                     id="Anthropic, with the reply"),
        pytest.param("Input is too long for requested model.", None, None, id="Bedrock"),
        pytest.param("The model returned the following errors: prompt is too long: 201,000 tokens "
                     "> 200,000 maximum", 200000, 201000, id="Bedrock's Claude"),
        pytest.param("This model's maximum context length is 4097 tokens, however you requested "
                     "4203 tokens (3703 in your prompt; 500 for the completion). Please reduce "
                     "your prompt; or completion length.", 4097, 3703, id="OpenAI, of old"),
        pytest.param("Input tokens exceed the configured limit of 272000 tokens. Your messages "
                     "resulted in 290000 tokens. Please reduce the length of the messages.",
                     272000, 290000, id="OpenAI, of late"),
        pytest.param("Invalid 'messages[3].content': string too long. Expected a string with "
                     "maximum length 10485760, but got a string with length 11000000 instead.",
                     None, None, id="OpenAI, one text, in characters"),
        pytest.param("This model's maximum context length is 16384 tokens. However, you requested "
                     "122946 tokens (112946 in the messages, 10000 in the completion). Please "
                     "reduce the length of the messages or completion.", 16384, 112946, id="vLLM"),
        pytest.param("This model's maximum context length is 8192 tokens. However, your prompt "
                     "contains at least 8193 input tokens.", 8192, 8193, id="vLLM, of late"),
        pytest.param("'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's "
                     "maximum context length is 8192 tokens and your request has 7900 input "
                     "tokens (4096 > 8192 - 7900).", 8192, 7900, id="vLLM, with the reply"),
        pytest.param("The input (61709 tokens) is longer than the model's context length (40960 "
                     "tokens).", 40960, 61709, id="SGLang"),
        pytest.param("Requested token count exceeds the model's maximum context length of 40960 "
                     "tokens. You requested a total of 45000 tokens: 41000 tokens from the input "
                     "messages and 4000 tokens for the completion.", 40960, 41000,
                     id="SGLang, with the reply"),
        pytest.param("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. "
                     "Given: 8000 `inputs` tokens and 500 `max_new_tokens`", 8193, 8000, id="TGI"),
        pytest.param("The prompt is too long: 12345, model maximum context length: 8191",
                     8191, 12345, id="Fireworks"),
        pytest.param("Please reduce the length of the messages or completion. Current length is "
                     "17091 while limit is 8192", 8192, 17091, id="Cerebras"),
        pytest.param("too many tokens: total number of tokens in the prompt cannot exceed 4081 - "
                     "received 5000. Try using a shorter prompt.", 4081, 5000, id="Cohere"),
        pytest.param("prompt token count of 150000 exceeds the limit of 128000", 128000, 150000,
                     id="Copilot"),
        pytest.param("Invalid request: Your request exceeded model token limit: 262144",
                     262144, None, id="Moonshot"),
        pytest.param("invalid params, context window exceeds limit (2013)", None, None,
                     id="MiniMax, with its own number"),
        pytest.param("Prompt exceeds max length", None, None, id="Z.ai"),
        pytest.param("InternalError.Algo.InvalidParameter: Range of input length should be [1, "
                     "98304]", 98304, None, id="Alibaba"),
        pytest.param("litellm.ContextWindowExceededError: AnthropicException", None, None,
                     id="LiteLLM"),
        pytest.param("the input length exceeds the context length", None, None, id="Ollama"),
        pytest.param("request (40960 tokens) exceeds the available context size (4096 tokens), "
                     "try increasing it", 4096, 40960, id="Ollama, of late"),
        pytest.param("The number of tokens to keep from the initial prompt is greater than the "
                     "context length (n_keep: 4166>= n_ctx: 4096). Try to load the model with a "
                     "larger context length, or provide a shorter input", 4096, 4166,
                     id="LM Studio"),
        pytest.param("Requested tokens (5000) exceed context window of 4096", 4096, 5000,
                     id="llama-cpp-python"),
        pytest.param("Prompt length 9000 is greater than max_seq_len 8192", 8192, 9000,
                     id="TabbyAPI"),
        pytest.param("Your input exceeds the context window of this model.", None, None,
                     id="OpenAI's responses"),
    ],
)  # fmt: skip
def test_the_sizes_are_read(words: str, limit: int | None, asked: int | None) -> None:
    assert overflow_in(words) == Overflow(limit, asked)
    error = response(400, openai(words))
    assert isinstance(error, ContextTooLong)
    assert (error.limit_tokens, error.asked_tokens) == (limit, asked)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        pytest.param(
            429,
            openai("Request too large for gpt-4o in organization org-x on tokens per min (TPM): "
                   "Limit 30000, Requested 45000. The input or output tokens must be reduced in "
                   "order to run successfully.", "tokens", "rate_limit_exceeded"),
            RateLimited, id="OpenAI's tokens per minute",
        ),
        pytest.param(
            413,
            openai("Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): "
                   "Limit 6000, Requested 7000, please reduce your message size and try again.",
                   "tokens", "rate_limit_exceeded"),
            RateLimited, id="Groq's tokens per minute",
        ),
        pytest.param(
            429,
            anthropic("This request would exceed your organization's rate limit of 30,000 input "
                      "tokens per minute. Please reduce the prompt length or the maximum tokens "
                      "requested.", "rate_limit_error"),
            RateLimited, id="Anthropic's tokens per minute",
        ),
        pytest.param(
            400,
            openai("Rate limit: too many tokens for this minute, reduce the length of the prompt"),
            RequestRejected, id="a limit of time in no known shape",
        ),
        pytest.param(
            400,
            anthropic("max_tokens: 200000 > 64000, which is the maximum allowed number of output "
                      "tokens for claude-sonnet-4-5"),
            RequestRejected, id="Anthropic's output",
        ),
        pytest.param(
            400,
            openai("max_tokens is too large: 100000. This model supports at most 16384 completion "
                   "tokens, whereas you provided 100000."),
            RequestRejected, id="OpenAI's output",
        ),
        pytest.param(
            400,
            openai("Could not finish the message because max_tokens or model output limit was "
                   "reached. Please try again with higher max_tokens."),
            RequestRejected, id="OpenAI's output, used up",
        ),
        pytest.param(
            400,
            anthropic("input length and `max_tokens` exceed context limit: 5000 + 198000 > 200000, "
                      "decrease input length or `max_tokens` and try again"),
            RequestRejected, id="a small prompt that allows too much",
        ),
        pytest.param(
            400,
            openai("'max_tokens' or 'max_completion_tokens' is too large: 30000. This model's "
                   "maximum context length is 8192 tokens and your request has 500 input tokens "
                   "(30000 > 8192 - 500)."),
            RequestRejected, id="vLLM's small prompt that allows too much",
        ),
        pytest.param(
            400,
            openai("Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string "
                   "with maximum length 40, but instead got a string with length 70."),
            RequestRejected, id="a long id",
        ),
        pytest.param(400, openai("temperature exceeds the maximum of 2"), RequestRejected,
                     id="another maximum"),
    ],
)  # fmt: skip
def test_what_sounds_alike_is_something_else(
    status: int, body: object, expected: type[ProviderError]
) -> None:
    assert type(response(status, body)) is expected


def test_what_stands_behind_openrouter_is_heard() -> None:
    raw = json.dumps(anthropic("prompt is too long: 213462 tokens > 200000 maximum"))
    body = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}
    error = response(400, body, "openrouter")
    assert isinstance(error, ContextTooLong)
    assert (error.limit_tokens, error.asked_tokens) == (200000, 213462)


def test_the_fields_of_llamacpp_are_read_where_its_words_say_nothing() -> None:
    message = "the request exceeds the available context size, try increasing it"
    fields = {"n_prompt_tokens": 9001, "n_ctx": 8192}
    error = response(400, {"error": {"code": 400, "message": message, **fields}})
    assert isinstance(error, ContextTooLong)
    assert (error.limit_tokens, error.asked_tokens) == (8192, 9001)


def test_an_error_within_a_stream_is_read_too() -> None:
    words = "prompt is too long: 213462 tokens > 200000 maximum"
    error = from_error_event("anthropic", "invalid_request_error", words)
    assert isinstance(error, ContextTooLong)
    assert (error.limit_tokens, error.asked_tokens) == (200000, 213462)


def test_a_body_that_is_too_large_names_no_tokens() -> None:
    error = response(413, anthropic("Request exceeds the maximum size", "request_too_large"))
    assert isinstance(error, ContextTooLong)
    assert (error.limit_tokens, error.asked_tokens) == (None, None)


@given(st.text("prompt is too long: 0123456789,>[]() tokens context length", max_size=300))
def test_whatever_is_said_the_sizes_are_numbers_or_nothing(words: str) -> None:
    found = overflow_in(f"maximum context length is {words}")
    assert found is None or all(
        size is None or 0 <= size < 10**13 for size in (found.limit_tokens, found.asked_tokens)
    )
