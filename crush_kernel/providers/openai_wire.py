"""What is said to servers that speak OpenAI's chat completions, as bytes.

Servers differ in which parameters they know. What is known of one is a `Dialect`; what a
refusal teaches makes another one. A message is encoded once: the parts of a conversation
are values, so the bytes of the old part can be sent again as they are.

Pure. Source: OpenAI API reference, "Create chat completion"; DeepSeek, "Thinking mode".
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from pydantic import JsonValue

from crush_kernel.messages import (
    JsonObject,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    calls_of,
    text_of,
)
from crush_kernel.providers.base import ModelInfo, ModelRequest, ToolSpec

LimitField = Literal["max_tokens", "max_completion_tokens"]

IMAGE_TYPES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""What every server that takes images takes."""

REASONING_FIELDS: Final = ("reasoning_content", "reasoning")
"""Where servers put thinking; the name is one or the other, never both with a meaning."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one server understands."""

    limit_field: LimitField = "max_tokens"
    """How the output limit is called."""
    asks_usage: bool = True
    """Whether `stream_options` may ask for the token counts."""
    replays_reasoning: bool = False
    """Whether the model wants its thinking back with the calls it led to."""


_DIALECTS: Final = {
    "openai": Dialect(limit_field="max_completion_tokens"),
    "deepseek": Dialect(replays_reasoning=True),
    "moonshot": Dialect(replays_reasoning=True),
    "zai": Dialect(replays_reasoning=True),
}

_UNSUPPORTED: Final = re.compile(
    r"unsupported|not supported|unknown|unrecognized|unexpected|extra|not permitted|"
    r"not allowed|invalid param|instead"
)


def dialect_of(provider: str) -> Dialect:
    """Return what is known beforehand of a provider's dialect."""
    return _DIALECTS.get(provider, Dialect())


def adapted(dialect: Dialect, complaint: str) -> Dialect | None:
    """Return the dialect that heeds a refusal, `None` if it is about something else.

    Args:
        dialect: the one that was refused.
        complaint: the body of the refusal.
    """
    text = complaint.lower()
    if dialect.asks_usage and ("stream_options" in text or "include_usage" in text):
        return replace(dialect, asks_usage=False)
    if "reasoning_content" in text:
        # Some refuse the field, others refuse to go on without it.
        return replace(dialect, replays_reasoning=not dialect.replays_reasoning)
    if re.search(rf"\b{dialect.limit_field}\b", text) and _UNSUPPORTED.search(text):
        is_old = dialect.limit_field == "max_tokens"
        return replace(dialect, limit_field="max_completion_tokens" if is_old else "max_tokens")
    return None


class RequestEncoder:
    """Turns requests to one model into bodies; keeps the bytes of what it has encoded."""

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self._dialect = Dialect()
        self._messages: dict[_Key, _Encoded] = {}
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def encode(self, request: ModelRequest, dialect: Dialect) -> bytes:
        """Return the JSON of `request`. What `request` no longer holds is forgotten."""
        options: dict[str, JsonValue] = {"model": self._info.id, "stream": True}
        if dialect.asks_usage:
            options["stream_options"] = {"include_usage": True}
        if request.max_output_tokens:
            options[dialect.limit_field] = request.max_output_tokens
        body = _dumps(options)[:-1] + b',"messages":['
        body += b",".join(self._all_messages(request, dialect)) + b"]"
        if request.tools:
            body += b',"tools":' + self._all_tools(request.tools)
        return body + b"}"

    def _all_messages(self, request: ModelRequest, dialect: Dialect) -> list[bytes]:
        """Return the messages in order; files of tool results go after all results.

        Results must follow their calls at once, and may hold text only.
        """
        if self._dialect != dialect:
            self._dialect, self._messages = dialect, {}
        fresh: dict[_Key, _Encoded] = {}
        wire: list[bytes] = []
        held: list[bytes] = []
        if request.system:
            wire.append(_dumps({"role": "system", "content": request.system}))
        for message in request.messages:
            if message.role != "tool" and held:
                wire += held
                held = []
            # Parts, unlike messages, keep their identity through repair.
            key = (message.role, *map(id, message.parts))
            encoded = self._messages.get(key) or self._encode(message, dialect)
            fresh[key] = encoded
            wire += encoded.wire
            held += encoded.afterwards
        self._messages = fresh
        return wire + held

    def _all_tools(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if self._tools[0] is not tools:
            self._tools = (tools, _dumps([_tool(tool) for tool in tools]))
        return self._tools[1]

    def _encode(self, message: Message, dialect: Dialect) -> "_Encoded":
        match message.role:
            case "user":
                return _Encoded(message.parts, _dump_all(_user(message, self._info)))
            case "assistant":
                spoken = _assistant(message, self._info, dialect)
                return _Encoded(message.parts, _dump_all(spoken))
            case "tool":
                results = [part for part in message.parts if isinstance(part, ToolResult)]
                return _Encoded(
                    message.parts,
                    _dump_all(_result(result, self._info) for result in results),
                    _dump_all(_files(results, self._info)),
                )


_Key = tuple[str | int, ...]
"""A message's role and the identities of its parts."""


@dataclass(frozen=True, slots=True)
class _Encoded:
    """The bytes of one message, and its parts, which keeps their identities from reuse."""

    parts: tuple[Part, ...]
    wire: tuple[bytes, ...]
    afterwards: tuple[bytes, ...] = ()


def _user(message: Message, info: ModelInfo) -> list[JsonObject]:
    blocks = [block for part in message.parts if (block := _content_block(part, info)) is not None]
    return [{"role": "user", "content": _content(blocks)}] if blocks else []


def _content(blocks: Sequence[JsonObject]) -> JsonValue:
    """Return a plain text where that is enough; some servers take nothing else."""
    if all(block["type"] == "text" for block in blocks):
        return "\n\n".join(str(block["text"]) for block in blocks)
    return [dict(block) for block in blocks]


def _content_block(part: Part, info: ModelInfo) -> JsonObject | None:
    match part:
        case Text(text=text) if text:
            return {"type": "text", "text": text}
        case Media():
            return _media_block(part, info) or {"type": "text", "text": _left_out(part)}
        case _:
            return None


def _media_block(media: Media, info: ModelInfo) -> JsonObject | None:
    """Return the file as the model takes it, `None` if it takes no such file."""
    url = f"data:{media.media_type};base64,{media.data}"
    if media.media_type in IMAGE_TYPES and info.accepts_images:
        return {"type": "image_url", "image_url": {"url": url}}
    if media.media_type == "application/pdf" and info.accepts_documents:
        name = media.name or "document.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": url}}
    return None


def _left_out(media: Media) -> str:
    name = f" {media.name}" if media.name else ""
    return f"[The file{name} ({media.media_type}) is not shown: this model cannot read it.]"


def _assistant(message: Message, info: ModelInfo, dialect: Dialect) -> list[JsonObject]:
    text, calls = text_of(message), calls_of(message)
    if not text and not calls:
        return []
    spoken: dict[str, JsonValue] = {"role": "assistant", "content": text or None}
    if calls:
        spoken["tool_calls"] = [_call(call) for call in calls]
    if dialect.replays_reasoning:
        field, reasoning = _reasoning(message, info)
        if reasoning or calls:
            spoken[field] = reasoning
    return [spoken]


def _reasoning(message: Message, info: ModelInfo) -> tuple[str, str]:
    """Return the field and the text of the model's own thinking, empty if it is another's."""
    field, texts = REASONING_FIELDS[0], list[str]()
    if (message.provider, message.model) == (info.provider, info.id):
        for part in message.parts:
            if isinstance(part, Reasoning) and part.provider_data.get("field") in REASONING_FIELDS:
                field = str(part.provider_data["field"])
                texts.append(part.text)
    return field, "".join(texts)


def _call(call: ToolCall) -> JsonValue:
    arguments = call.input if is_object_text(call.input) else "{}"
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def is_object_text(text: str) -> bool:
    """Return whether `text` is a JSON object by the letter of JSON."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _result(result: ToolResult, info: ModelInfo) -> JsonObject:
    notes = [
        "[The file is in the message after the results.]"
        if _media_block(media, info)
        else _left_out(media)
        for media in result.media
    ]
    # The API has no flag for failure, and not every error text says that it is one.
    head = "Error: " if result.is_error and not result.content.lower().startswith("error") else ""
    content = "\n\n".join((f"{head}{result.content or '(no output)'}", *notes))
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


def _files(results: Iterable[ToolResult], info: ModelInfo) -> list[JsonObject]:
    """Return the message that carries the files of `results`, if any can be carried."""
    blocks: list[JsonObject] = []
    for result in results:
        for media in result.media:
            if (block := _media_block(media, info)) is not None:
                name = f", {media.name}" if media.name else ""
                label = f"[The file of the tool result {result.call_id}{name}:]"
                blocks += ({"type": "text", "text": label}, block)
    return [{"role": "user", "content": _content(blocks)}] if blocks else []


def _tool(tool: ToolSpec) -> JsonValue:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.input_schema),
        },
    }


def _dump_all(values: Iterable[JsonObject]) -> tuple[bytes, ...]:
    return tuple(_dumps(value) for value in values)


def _dumps(value: JsonObject | list[JsonValue]) -> bytes:
    """Return compact UTF-8; a lone surrogate, which no server takes, becomes `?`."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
