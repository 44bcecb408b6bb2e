"""Requests as Anthropic's messages API takes them.

The JSON of every message is made once and kept: a later request encodes only what is new.
Whatever the API would refuse on sight is put right here, so that one bad part never locks
a conversation; that calls and results go in pairs is the business of `history.repair`.

Pure. Source: Anthropic, "Messages", "Prompt caching", "Extended thinking", "Vision".
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Final, Literal, TypeAlias

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
)
from crush_kernel.providers.base import ModelInfo, ModelRequest, ToolSpec

DEFAULT_MAX_TOKENS: Final = 32_000
"""The reply's limit where nobody sets one. A larger one counts against the rate limit and
the context window before a word is written."""

MAX_FILE_BYTES: Final = 5_000_000
"""Of an image; the API refuses larger ones, again and again."""

MAX_DOCUMENT_BYTES: Final = 24_000_000
"""Of a PDF, so that it fits into a request of 32 MB in Base64."""

_MARK: Final = ',"cache_control":{"type":"ephemeral"}}'
_MARKED_MESSAGES: Final = 2
"""The last prompt or results, where the next request goes on, and the ones before, where
this one did. With the system prompt and the tools that makes the four that are allowed."""

_BEGINNING: Final = "(The conversation begins here.)"
_GO_ON: Final = "(Go on.)"
_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_IMAGES: Final[Mapping[str, bytes]] = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}

_Key: TypeAlias = tuple[str, bool, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A message as it is sent; results go before whatever else a user's message holds."""

    role: Literal["user", "assistant"]
    results: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    json: str = ""
    parts: tuple[Part, ...] = ()
    """What it was made of; holding them keeps their identities from reuse."""

    @property
    def content(self) -> tuple[str, ...]:
        return self.results + self.blocks


class RequestEncoder:
    """Turns requests to one model into bodies; keeps the JSON of what it has encoded."""

    def __init__(self, info: ModelInfo, *, use_cache: bool) -> None:
        self._info = info
        self._use_cache = use_cache
        self._kept: dict[_Key, _Encoded] = {}

    def encode(self, request: ModelRequest) -> bytes:
        """Return the JSON of `request`. What `request` no longer holds is forgotten."""
        messages = _ended(self._messages(request.messages))
        fields = [
            f'"model":{_dumps(self._info.id)}',
            f'"max_tokens":{self._max_tokens(request)}',
            '"stream":true',
        ]
        if request.system.strip():
            system = _dumps({"type": "text", "text": request.system})
            fields.append(f'"system":[{_marked(system) if self._use_cache else system}]')
        fields += self._tools(request)
        bodies = [message.json for message in messages]
        for index in _places_to_mark(messages) if self._use_cache else ():
            *before, last = messages[index].content
            bodies[index] = _message_json("user", (*before, _marked(last)))
        fields.append(f'"messages":[{",".join(bodies)}]')
        return f"{{{','.join(fields)}}}".encode()

    def _max_tokens(self, request: ModelRequest) -> int:
        most = self._info.max_output_tokens
        wanted = request.max_output_tokens or min(most or DEFAULT_MAX_TOKENS, DEFAULT_MAX_TOKENS)
        return min(wanted, most) if most else wanted

    def _tools(self, request: ModelRequest) -> list[str]:
        """Return the fields about tools, in an order that does not depend on the caller's.

        A history with calls in it is refused where no tools are defined. A request without
        tools, such as for a summary, therefore names those in the history and forbids them.
        """
        tools = sorted(request.tools, key=lambda tool: tool.name)
        is_forbidden = not tools
        if is_forbidden:
            tools = [ToolSpec(name, "", {"type": "object"}) for name in _called(request.messages)]
        if not tools:
            return []
        specs = [_dumps(_tool(tool)) for tool in tools]
        if self._use_cache:
            specs[-1] = _marked(specs[-1])
        fields = [f'"tools":[{",".join(specs)}]']
        return [*fields, '"tool_choice":{"type":"none"}'] if is_forbidden else fields

    def _messages(self, messages: Iterable[Message]) -> list[_Encoded]:
        """Return `messages` with those of the user in one where they meet, and no empty ones."""
        kept: dict[_Key, _Encoded] = {}
        wire: list[_Encoded] = []
        reply: Message | None = None
        for message in messages:
            is_ours = (message.provider, message.model) == (self._info.provider, self._info.id)
            # Parts, unlike messages, keep their identity through repair.
            key = (message.role, is_ours, tuple(map(id, message.parts)))
            encoded = self._kept.get(key)
            if encoded is None:
                encoded = self._encode(message, reply, is_ours=is_ours)
            kept[key] = encoded
            if message.role == "assistant":
                reply = message
            if encoded.content:
                wire.append(encoded)
        self._kept = kept
        return list(_joined(wire))

    def _encode(self, message: Message, reply: Message | None, *, is_ours: bool) -> _Encoded:
        """Return `message` as it is sent, its results in the order of the calls of `reply`."""
        calls = [] if reply is None else [call.id for call in calls_of(reply)]
        results: dict[str, list[str]] = {call_id: [] for call_id in calls}
        blocks: list[str] = []
        for part in message.parts:
            if isinstance(part, Reasoning) and not is_ours:
                continue
            block = _block(part, message.role, self._info)
            if block is not None:
                into = (
                    results.setdefault(part.call_id, []) if isinstance(part, ToolResult) else blocks
                )
                into.append(_dumps(block))
        role = "assistant" if message.role == "assistant" else "user"
        return _encoded(role, tuple(chain(*results.values())), tuple(blocks), message.parts)


def _encoded(
    role: Literal["user", "assistant"],
    results: tuple[str, ...],
    blocks: tuple[str, ...],
    parts: tuple[Part, ...] = (),
) -> _Encoded:
    return _Encoded(role, results, blocks, _message_json(role, results + blocks), parts)


def _message_json(role: str, content: tuple[str, ...]) -> str:
    return f'{{"role":"{role}","content":[{",".join(content)}]}}'


def _joined(messages: Iterable[_Encoded]) -> Iterator[_Encoded]:
    """Yield `messages`, neighbors of the user as one.

    Replies stay apart: thinking that came first in its reply must not end up in the middle
    of another.
    """
    for role, group in groupby(messages, key=lambda message: message.role):
        neighbors = list(group)
        if role == "assistant" or len(neighbors) == 1:
            yield from neighbors
        else:
            results = tuple(chain.from_iterable(message.results for message in neighbors))
            blocks = tuple(chain.from_iterable(message.blocks for message in neighbors))
            yield _encoded("user", results, blocks)


def _ended(messages: list[_Encoded]) -> list[_Encoded]:
    """Return `messages` so that they begin and end with the user, as they must."""
    if not messages or messages[0].role == "assistant":
        messages = [_encoded("user", (), (_text_json(_BEGINNING),)), *messages]
    if messages[-1].role == "assistant":
        messages = [*messages, _encoded("user", (), (_text_json(_GO_ON),))]
    return messages


def _places_to_mark(messages: list[_Encoded]) -> list[int]:
    """Return the indices of the last messages of the user, where the cache is to end."""
    places = [index for index, message in enumerate(messages) if message.role == "user"]
    return places[-_MARKED_MESSAGES:]


def _called(messages: Iterable[Message]) -> list[str]:
    parts = (part for message in messages for part in message.parts)
    return sorted({_name(part.name) for part in parts if isinstance(part, ToolCall)})


def _block(part: Part, role: str, info: ModelInfo) -> JsonObject | None:
    """Return the content block of `part`, `None` where it has no place in a message."""
    match part:
        case Text(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case Media() if role == "user":
            return _media(part, info)
        case Reasoning(provider_data=data) if role == "assistant":
            return dict(data) if data else None
        case ToolCall() if role == "assistant":
            return _call(part)
        case ToolResult():
            return _result(part, info)
        case _:
            return None


def _call(call: ToolCall) -> JsonObject:
    return {
        "type": "tool_use",
        "id": _wire_id(call.id),
        "name": _name(call.name),
        "input": _arguments(call.input),
    }


def _arguments(text: str) -> JsonValue:
    """Return the object that `text` is, an empty one if it is none."""
    try:
        value: JsonValue = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # `NaN` and the infinities, which JSON does not have


def _result(result: ToolResult, info: ModelInfo) -> JsonObject:
    block: dict[str, JsonValue] = {"type": "tool_result", "tool_use_id": _wire_id(result.call_id)}
    content = [_media(media, info) for media in result.media]
    if result.content.strip():
        content.insert(0, {"type": "text", "text": result.content})
    if content:
        block["content"] = [dict(inner) for inner in content]
    if result.is_error:
        block["is_error"] = True
    return block


def _media(media: Media, info: ModelInfo) -> JsonObject:
    """Return the file as the model takes it, else a text that says that it is left out."""
    name = f" {media.name}" if media.name else ""
    try:
        content = base64.b64decode(media.data, validate=True)
    except (binascii.Error, ValueError):
        return {"type": "text", "text": f"[The file{name} is left out: its data is damaged.]"}
    image = next((kind for kind, magic in _IMAGES.items() if content.startswith(magic)), "")
    is_document = content.startswith(b"%PDF-")
    if len(content) > (MAX_DOCUMENT_BYTES if is_document else MAX_FILE_BYTES):
        return {"type": "text", "text": f"[The file{name} is left out: it is too large.]"}
    if image and info.accepts_images:
        return {"type": "image", "source": _source(image, media.data)}
    if is_document and info.accepts_documents:
        return {"type": "document", "source": _source("application/pdf", media.data)}
    kind = media.media_type or "unknown type"
    return {"type": "text", "text": f"[The file{name} ({kind}) is left out: not readable here.]"}


def _source(media_type: str, data: str) -> JsonValue:
    return {"type": "base64", "media_type": media_type, "data": data}


def _tool(tool: ToolSpec) -> JsonObject:
    spec: dict[str, JsonValue] = {
        "name": tool.name,
        "input_schema": {"type": "object", **tool.input_schema},
    }
    if tool.description:
        spec["description"] = tool.description
    return spec


def _wire_id(call_id: str) -> str:
    """Return `call_id` in the API's alphabet: the same for the same, others for others."""
    if _ID.fullmatch(call_id):
        return call_id
    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[:32]}"


def _name(name: str) -> str:
    return name if _NAME.fullmatch(name) else "unknown_tool"


def _text_json(text: str) -> str:
    return _dumps({"type": "text", "text": text})


def _marked(block: str) -> str:
    """Return the JSON of a block with a mark that the cache ends after it."""
    return block[:-1] + _MARK


def _dumps(value: JsonValue | JsonObject) -> str:
    """Return compact JSON that has no lone surrogate in it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
