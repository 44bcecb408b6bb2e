"""How each vendor says that a request is longer than the context window.

Source: the vendors' own error bodies, as seen in their issue trackers and clients.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from crush_kernel.messages import JsonObject
from tests.fakes.provider.replies import HttpReply


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request would take, in tokens."""

    prompt: int
    output: int
    """What it allows the reply; zero if that does not count."""
    window: int

    @property
    def total(self) -> int:
        """Return all that must fit."""
        return self.prompt + self.output


def _anthropic(asked: Asked) -> HttpReply:
    message = f"prompt is too long: {asked.prompt} tokens > {asked.window} maximum"
    if asked.prompt <= asked.window:
        message = (
            f"input length and `max_tokens` exceed context limit: {asked.prompt} + "
            f"{asked.output} > {asked.window}, decrease input length or `max_tokens` and try again"
        )
    error: JsonObject = {"type": "invalid_request_error", "message": message}
    return HttpReply(400, {"type": "error", "error": dict(error), "request_id": "req_fake"})


def _error(
    status: int, message: str, kind: str | None, code: str | int | None, **more: int
) -> HttpReply:
    error: JsonObject = {"message": message, "type": kind, "param": None, "code": code, **more}
    return HttpReply(status, {"error": dict(error)})


def _openai(asked: Asked) -> HttpReply:
    what = f"your messages resulted in {asked.prompt} tokens"
    if asked.output:
        what = (
            f"you requested {asked.total} tokens ({asked.prompt} in the messages, "
            f"{asked.output} in the completion)"
        )
    message = (
        f"This model's maximum context length is {asked.window} tokens. However, {what}. "
        "Please reduce the length of the messages."
    )
    return _error(400, message, "invalid_request_error", "context_length_exceeded")


def _responses(_: Asked) -> HttpReply:
    message = (
        "Your input exceeds the context window of this model. Please adjust your input and "
        "try again."
    )
    return _error(400, message, "invalid_request_error", "context_length_exceeded")


def _openrouter(asked: Asked) -> HttpReply:
    message = (
        f"This endpoint's maximum context length is {asked.window} tokens. However, you requested "
        f"about {asked.total} tokens ({asked.prompt} of text input, {asked.output} in the output). "
        'Please reduce the length of either one, or use the "middle-out" transform to compress '
        "your prompt automatically."
    )
    return HttpReply(400, {"error": {"message": message, "code": 400}})


def _gemini(asked: Asked) -> HttpReply:
    message = (
        f"The input token count ({asked.prompt}) exceeds the maximum number of tokens allowed "
        f"({asked.window})."
    )
    error: JsonObject = {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}
    return HttpReply(400, [{"error": dict(error)}])


def _ollama(_: Asked) -> HttpReply:
    return HttpReply(400, {"error": "prompt too long; exceeded max context length by 4 tokens"})


def _lmstudio(asked: Asked) -> HttpReply:
    message = (
        f"Trying to keep the first {asked.prompt} tokens when context the overflows. However, the "
        f"model is loaded with context length of only {asked.window} tokens, which is not enough. "
        "Try to load the model with a larger context length, or provide a shorter input"
    )
    return HttpReply(400, {"error": message})


def _llamacpp(asked: Asked) -> HttpReply:
    message = (
        f"request ({asked.prompt} tokens) exceeds the available context size ({asked.window} "
        "tokens), try increasing it"
    )
    error: JsonObject = {
        "code": 400,
        "message": message,
        "type": "exceed_context_size_error",
        "n_prompt_tokens": asked.prompt,
        "n_ctx": asked.window,
    }
    return HttpReply(400, {"error": dict(error)})


def _vllm(asked: Asked) -> HttpReply:
    message = (
        f"This model's maximum context length is {asked.window} tokens. However, your request has "
        f"{asked.prompt} input tokens. Please reduce the length of the input messages."
    )
    return HttpReply(
        400,
        {"object": "error", "message": message, "type": "BadRequestError", "param": None,
         "code": 400},
    )  # fmt: skip


def _groq(_: Asked) -> HttpReply:
    message = "Please reduce the length of the messages or completion."
    return _error(400, message, "invalid_request_error", "context_length_exceeded")


def _mistral(asked: Asked) -> HttpReply:
    message = (
        f"Prompt contains {asked.prompt} tokens and 0 draft tokens, too large for model with "
        f"{asked.window} maximum context length"
    )
    return HttpReply(
        400,
        {"object": "error", "message": message, "type": "invalid_request_invalid_args",
         "param": None, "code": "3051"},
    )  # fmt: skip


def _deepseek(asked: Asked) -> HttpReply:
    message = (
        f"This model's maximum context length is {asked.window} tokens. However, you requested "
        f"{asked.total} tokens ({asked.prompt} in the messages, {asked.output} in the completion). "
        "Please reduce the length of the messages or completion."
    )
    return _error(400, message, "invalid_request_error", "invalid_request_error")


def _xai(asked: Asked) -> HttpReply:
    message = (
        f"This model's maximum prompt length is {asked.window} but the request contains "
        f"{asked.prompt} tokens."
    )
    return HttpReply(400, {"code": "Client specified an invalid argument", "error": message})


def _moonshot(asked: Asked) -> HttpReply:
    message = f"Invalid request: Your request exceeded model token limit: {asked.window}"
    return _error(400, message, "invalid_request_error", None)


OVERFLOWS: Final[Mapping[str, Callable[[Asked], HttpReply]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "responses": _responses,
    "openrouter": _openrouter,
    "gemini": _gemini,
    "ollama": _ollama,
    "lmstudio": _lmstudio,
    "llamacpp": _llamacpp,
    "vllm": _vllm,
    "groq": _groq,
    "mistral": _mistral,
    "deepseek": _deepseek,
    "xai": _xai,
    "moonshot": _moonshot,
}
"""The refusal of a request that is too long, by vendor."""
