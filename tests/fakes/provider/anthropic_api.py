"""Anthropic's messages: how they stream. What they refuse is in `anthropic_rules`.

Remembers every thinking block that it sends, to know whether it comes back unchanged.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import JsonValue

from crush_kernel.messages import JsonObject, Usage
from tests.fakes.provider.anthropic_rules import SentThinking, check_body
from tests.fakes.provider.dialect import Refused, Step
from tests.fakes.provider.replies import (
    Block,
    Call,
    Hold,
    HttpReply,
    Pieces,
    Reply,
    Say,
    Think,
    ThinkRedacted,
    input_text,
    pieces_of,
)


class AnthropicDialect:
    """The messages API, with a memory for the thinking it has sent."""

    def __init__(self) -> None:
        self._sent = SentThinking()
        self._calls = 0

    @property
    def name(self) -> Literal["anthropic"]:
        """Whose API it is."""
        return "anthropic"

    def check(self, headers: Mapping[str, str], body: JsonObject) -> None:
        """Raise `Refused` for what Anthropic refuses."""
        if not headers.get("x-api-key") and not headers.get("authorization"):
            raise Refused("x-api-key header is required", status=401, kind="authentication_error")
        if "anthropic-version" not in headers:
            raise Refused("anthropic-version: header is required")
        if not headers.get("content-type", "").startswith("application/json"):
            raise Refused("content-type: must be application/json")
        check_body(body, self._sent)

    def refusal(self, refused: Refused) -> HttpReply:
        """Return the refusal in Anthropic's error object."""
        error: JsonObject = {"type": refused.kind, "message": refused.message}
        return HttpReply(
            refused.status,
            {"type": "error", "error": dict(error), "request_id": "req_fake"},
            headers={"request-id": "req_fake"},
        )

    def models(self, names: tuple[str, ...]) -> JsonObject:
        """Return the list of models, in one page."""
        return {
            "data": [
                {
                    "type": "model",
                    "id": name,
                    "display_name": name,
                    "created_at": "2025-01-01T00:00:00Z",
                }
                for name in names
            ],
            "has_more": False,
            "first_id": names[0] if names else None,
            "last_id": names[-1] if names else None,
        }

    def render(self, reply: Reply, body: JsonObject) -> list[Step]:
        """Return the events of `reply`."""
        steps: list[Step] = [_event(_start(body, reply.usage))]
        blocks = [block for block in reply.blocks if not isinstance(block, Hold)]
        self._sent.remember([_sent_block(block) for block in blocks])
        index = 0
        for block in reply.blocks:
            events = self._events(block, index)
            steps += [event if isinstance(event, Hold) else _event(event) for event in events]
            index += not isinstance(block, Hold)
        steps += [_event(event) for event in _end(reply)]
        if reply.keep_alive:
            return [part for step in steps for part in (reply.keep_alive.encode(), step)]
        return steps

    def _events(self, block: Block, index: int) -> Iterable[JsonObject | Hold]:
        match block:
            case Hold():
                yield block
                return
            case Say(text=text, size=size):
                yield _block_start(index, {"type": "text", "text": ""})
                yield from _deltas(index, "text_delta", "text", text, size)
            case Think(text=text, size=size):
                yield _block_start(index, {"type": "thinking", "thinking": "", "signature": ""})
                yield from _deltas(index, "thinking_delta", "thinking", text, size)
                yield from _deltas(index, "signature_delta", "signature", signature_of(block), 0)
            case ThinkRedacted(data=data):
                yield _block_start(index, {"type": "redacted_thinking", "data": data})
            case Call():
                yield _block_start(index, self._call_head(block))
                raw = input_text(block)
                yield from _deltas(index, "input_json_delta", "partial_json", raw, block.size)
        yield {"type": "content_block_stop", "index": index}

    def _call_head(self, call: Call) -> JsonObject:
        self._calls += 1
        call_id = call.id or f"toolu_{self._calls:06}"
        return {"type": "tool_use", "id": call_id, "name": call.name, "input": {}}


def signature_of(block: Think) -> str:
    """Return the signature that goes with a thinking block."""
    digest = hashlib.sha256(_plain(block.text).encode("utf-8", "surrogatepass"))
    return block.signature or f"sig+/{digest.hexdigest()}=="


def _plain(text: Pieces) -> str:
    return "".join(piece for piece in pieces_of(text, 0) if isinstance(piece, str))


def _sent_block(block: Block) -> JsonObject:
    match block:
        case Think(text=text):
            return {
                "type": "thinking",
                "thinking": _plain(text),
                "signature": signature_of(block),
            }
        case ThinkRedacted(data=data):
            return {"type": "redacted_thinking", "data": data}
        case _:
            return {"type": "other"}


def _start(body: JsonObject, usage: Usage | None) -> JsonObject:
    return {
        "type": "message_start",
        "message": {
            "id": "msg_fake",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            **({} if usage is None else {"usage": _counts(usage)}),
        },
    }


def _counts(usage: Usage) -> dict[str, JsonValue]:
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": 1,
        "service_tier": "standard",
    }


def _end(reply: Reply) -> list[JsonObject]:
    if reply.error is not None:
        error: JsonObject = {"type": reply.error.type, "message": reply.error.message}
        return [{"type": "error", "error": dict(error), "request_id": "req_fake"}]
    has_calls = any(isinstance(block, Call) for block in reply.blocks)
    delta: JsonObject = {
        "stop_reason": reply.stop or ("tool_use" if has_calls else "end_turn"),
        "stop_sequence": None,
    }
    end: dict[str, JsonValue] = {"type": "message_delta", "delta": dict(delta)}
    if reply.usage is not None:
        end["usage"] = {"output_tokens": reply.usage.output_tokens}
    return [end, {"type": "message_stop"}]


def _block_start(index: int, block: JsonObject) -> JsonObject:
    return {"type": "content_block_start", "index": index, "content_block": dict(block)}


def _deltas(
    index: int, kind: str, key: str, text: Pieces, size: int
) -> Iterable[JsonObject | Hold]:
    for piece in pieces_of(text, size):
        if isinstance(piece, Hold):
            yield piece
        else:
            yield {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": kind, key: piece},
            }


def _event(data: JsonObject) -> bytes:
    text = json.dumps(data, ensure_ascii=False)
    return f"event: {data['type']}\ndata: {text}\n\n".encode()
