"""OpenAI's chat completions: how they stream. What they refuse is in `openai_rules`."""

import json
from collections.abc import Iterable, Mapping
from typing import Literal, cast

from pydantic import JsonValue

from crush_kernel.messages import JsonObject, Usage
from tests.fakes.provider.dialect import Refused, Step
from tests.fakes.provider.openai_rules import check_body
from tests.fakes.provider.replies import (
    Block,
    Call,
    Hold,
    HttpReply,
    Reply,
    Say,
    Think,
    ThinkRedacted,
    input_text,
    pieces_of,
)


class OpenAIDialect:
    """Chat completions, as of the strictest server that speaks them."""

    def __init__(self) -> None:
        self.assistant_extras: frozenset[str] = frozenset()
        """Fields beyond OpenAI's that assistant messages may have: `reasoning_content`."""
        self.body_extras: frozenset[str] = frozenset()
        """Fields beyond OpenAI's that the request may have."""
        self.reasoning_field = "reasoning_content"
        """Where thinking is streamed: some servers call it `reasoning`."""
        self._calls = 0

    @property
    def name(self) -> Literal["openai"]:
        """Whose API it is."""
        return "openai"

    def check(self, headers: Mapping[str, str], body: JsonObject) -> None:
        """Raise `Refused` for what OpenAI or a server like it refuses."""
        if not headers.get("content-type", "").startswith("application/json"):
            raise Refused("you must provide a JSON content type", status=415)
        check_body(self._without_extras(body))

    def _without_extras(self, body: JsonObject) -> JsonObject:
        plain = {key: value for key, value in body.items() if key not in self.body_extras}
        messages = plain.get("messages")
        if isinstance(messages, list):
            plain["messages"] = [self._without_message_extras(message) for message in messages]
        return plain

    def _without_message_extras(self, message: JsonValue) -> JsonValue:
        if not isinstance(message, dict) or message.get("role") != "assistant":
            return message
        return {key: value for key, value in message.items() if key not in self.assistant_extras}

    def refusal(self, refused: Refused) -> HttpReply:
        """Return the refusal in OpenAI's error object."""
        return HttpReply(
            refused.status,
            {
                "error": {
                    "message": refused.message,
                    "type": refused.kind,
                    "param": refused.param,
                    "code": refused.code,
                }
            },
        )

    def models(self, names: tuple[str, ...]) -> JsonObject:
        """Return the list of models."""
        return {
            "object": "list",
            "data": [
                {"id": name, "object": "model", "created": 0, "owned_by": "fake"} for name in names
            ],
        }

    def render(self, reply: Reply, body: JsonObject) -> list[Step]:
        """Return the chunks of `reply`; usage is its own chunk, and only if asked for."""
        head: JsonObject = {
            "id": "chatcmpl-fake",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": body["model"],
        }
        steps: list[Step] = []
        calls = 0

        def send(delta: JsonObject, finish: str | None = None) -> None:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            steps.append(_event({**head, "choices": [choice]}))

        send({"role": "assistant", "content": ""})
        for block in reply.blocks:
            for delta in self._deltas(block, calls):
                if isinstance(delta, Hold):
                    steps.append(delta)
                else:
                    send(delta)
            calls += isinstance(block, Call)
        if reply.error is not None:
            error = {"message": reply.error.message, "type": reply.error.type, "code": None}
            return _kept_alive([*steps, _event({"error": error})], reply.keep_alive)
        send({}, reply.stop or ("tool_calls" if calls else "stop"))
        if reply.usage is not None and _wants_usage(body):
            steps.append(_event({**head, "choices": [], "usage": _usage(reply.usage)}))
        return _kept_alive([*steps, b"data: [DONE]\n\n"], reply.keep_alive)

    def _deltas(self, block: Block, index: int) -> Iterable[JsonObject | Hold]:
        match block:
            case Hold():
                yield block
            case Say(text=text, size=size):
                for piece in pieces_of(text, size):
                    yield piece if isinstance(piece, Hold) else {"content": piece}
            case Think(text=text, size=size):
                for piece in pieces_of(text, size):
                    yield piece if isinstance(piece, Hold) else {self.reasoning_field: piece}
            case ThinkRedacted():
                return
            case Call():
                yield from self._call_deltas(block, index)

    def _call_deltas(self, call: Call, index: int) -> Iterable[JsonObject | Hold]:
        self._calls += 1
        call_id = call.id or f"call_{self._calls:06}"
        function: JsonObject = {"name": call.name, "arguments": ""}
        start = {"index": index, "id": call_id, "type": "function", "function": function}
        yield {"tool_calls": [cast("JsonValue", start)]}
        for piece in pieces_of(input_text(call), call.size):
            if isinstance(piece, Hold):
                yield piece
            else:
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _event(data: object) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _kept_alive(steps: list[Step], keep_alive: str) -> list[Step]:
    if not keep_alive:
        return steps
    return [part for step in steps for part in (keep_alive.encode(), step)]


def _wants_usage(body: JsonObject) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _usage(usage: Usage) -> JsonObject:
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
    }
