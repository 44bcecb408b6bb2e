"""Requests as Anthropic's messages API takes them.

The JSON of every message is made once and kept: a later request encodes only what is new.
Whatever the API would refuse on sight is put right here, so that one bad part never locks
a conversation; that calls and results go in pairs is the business of `history.repair`.

Cache marks are set here and nowhere else, at most the four that are allowed and all of the
same lifetime: one that came in with a part of the history is dropped. What holds for one
request only comes after the last mark. Up to there a request is, mark by mark, the beginning
of the next one.

Pure. Source: Anthropic, "Messages", "Prompt caching", "Extended thinking", "Vision".
"""

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Final

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
    object_text,
    well_formed,
)
from crush_kernel.providers.base import ModelInfo, ModelRequest, ToolSpec
from crush_kernel.providers.closing import closing_words
from crush_kernel.providers.encoded import EncodedHistory, Group, groups_of
from crush_kernel.providers.media import sendable
from crush_kernel.providers.places import Place, WirePath

DEFAULT_MAX_TOKENS: Final = 32_000
"""The reply's limit where nobody sets one. A larger one counts against the rate limit and
the context window before a word is written."""

MAX_FILE_BYTES: Final = 5_000_000
"""Of an image; the API refuses larger ones, again and again."""

MAX_DOCUMENT_BYTES: Final = 24_000_000
"""Of a PDF, so that it fits into a request of 32 MB in Base64."""

_MARK: Final = b',"cache_control":{"type":"ephemeral"}'
_MARKED_MESSAGES: Final = 2
"""The last prompt or results, where the next request goes on, and the ones before, where
this one did. With the system prompt and the tools that makes the four that are allowed."""

_USER: Final = b'{"role":"user","content":['
_BEGINNING: Final = _USER + b'{"type":"text","text":"(The conversation begins here.)"}]}'
_GO_ON: Final = _USER + b'{"type":"text","text":"(Go on.)"}]}'

_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SORTED_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


class RequestEncoder:
    """Turns requests to one model into bodies; keeps the JSON of what it has encoded."""

    def __init__(self, info: ModelInfo, *, use_cache: bool) -> None:
        self._info = info
        self._use_cache = use_cache
        self._history = EncodedHistory(self._encode)
        self._specs: tuple[tuple[ToolSpec, ...], tuple[str, ...]] = ((), ())
        """The tools of the last request that had any, and their JSON."""

    def encode(self, request: ModelRequest) -> bytes:
        """Return the JSON of `request`. What `request` no longer holds is forgotten."""
        messages = _ended(self._history.chunks(request.messages))
        for index in _places_to_mark(messages) if self._use_cache else ():
            # A message ends with the end of its last block, of its content, and of itself.
            messages[index] = b"".join((messages[index][:-3], _MARK, b"}]}"))
        if words := closing_words(request, says_no_calls=False):
            block = _utf8(_dumps({"type": "text", "text": words}))
            messages[-1] = b"".join((messages[-1][:-2], b",", block, b"]}"))
        head = [f'"model":{_dumps(self._info.id)}', '"stream":true']
        tail = [f'],"max_tokens":{self._max_tokens(request)}']
        if specs := self._tools(request):
            head.append(f'"tools":[{",".join(specs)}]')
        if specs and (request.forbids_tools or not request.tools):
            tail.append('"tool_choice":{"type":"none"}')
        if request.system.strip():
            system = _dumps({"type": "text", "text": request.system})
            head.append(f'"system":[{_marked(system) if self._use_cache else system}]')
        # Joined once: the messages may be large.
        messages[0] = _utf8(f'{{{",".join(head)},"messages":[') + messages[0]
        messages[-1] += f"{','.join(tail)}}}".encode()
        return b",".join(messages)

    def places(self, messages: tuple[Message, ...], path: WirePath) -> tuple[Place, ...]:
        """Return which parts of `messages` are sent at `path`."""
        sent: list[list[Place]] = []
        for group in groups_of(messages):
            if places := [place for place, _ in self._blocks(group)]:
                # Before a reply that would come first, something is sent that is from nowhere.
                sent += ([], places) if group.is_reply and not sent else (places,)
        found = sent[path.message] if path.message < len(sent) else []
        return tuple(found[path.item : path.item + 1] if path.field else found)

    def _max_tokens(self, request: ModelRequest) -> int:
        most = self._info.max_output_tokens
        wanted = request.max_output_tokens or min(most or DEFAULT_MAX_TOKENS, DEFAULT_MAX_TOKENS)
        return min(wanted, most) if most else wanted

    def _tools(self, request: ModelRequest) -> list[str]:
        """Return the tools, in an order that does not depend on the caller's.

        A history with calls in it is refused where no tools are defined. A request without
        tools therefore names those in the history, and they are forbidden.
        """
        if request.tools:
            specs = list(self._specs_of(request.tools))
        else:
            names = _called(request.messages)
            specs = [_dumps(_tool(ToolSpec(name, "", {"type": "object"}))) for name in names]
        if specs and self._use_cache:
            specs[-1] = _marked(specs[-1])
        return specs

    def _specs_of(self, tools: tuple[ToolSpec, ...]) -> tuple[str, ...]:
        if self._specs[0] != tools:
            in_order = sorted(tools, key=lambda tool: tool.name)
            self._specs = (tools, tuple(_dumps(_tool(tool)) for tool in in_order))
        return self._specs[1]

    def _encode(self, group: Group) -> bytes:
        blocks = [block for _, block in self._blocks(group)]
        if not blocks:
            return b""
        return _message("assistant" if group.is_reply else "user", blocks)

    def _blocks(self, group: Group) -> list[tuple[Place, str]]:
        """Return the content of the message that `group` becomes, and where each block is from.

        Results must go first, right after their calls.
        """
        results: list[tuple[Place, str]] = []
        others: list[tuple[Place, str]] = []
        for index, message in enumerate(group.messages, group.start):
            is_ours = (message.provider, message.model) == (self._info.provider, self._info.id)
            for number, part in enumerate(message.parts):
                if isinstance(part, Reasoning) and not is_ours:
                    continue
                if block := _block(part, message.role, self._info):
                    into = results if isinstance(part, ToolResult) else others
                    into.append(((index, number), block))
        return results + others


def _message(role: str, blocks: list[str]) -> bytes:
    return _utf8(f'{{"role":"{role}","content":[{",".join(blocks)}]}}')


def _is_user(message: bytes) -> bool:
    return message.startswith(_USER)


def _ended(messages: list[bytes]) -> list[bytes]:
    """Return `messages` so that they begin and end with the user, as they must."""
    if not messages or not _is_user(messages[0]):
        messages = [_BEGINNING, *messages]
    if not _is_user(messages[-1]):
        messages = [*messages, _GO_ON]
    return messages


def _places_to_mark(messages: list[bytes]) -> list[int]:
    """Return the indices of the last messages of the user, where the cache is to end.

    Not of one that no later request will have.
    """
    places: list[int] = []
    for index in range(len(messages) - 1, -1, -1):
        if _is_user(messages[index]) and messages[index] is not _GO_ON:
            places.append(index)
            if len(places) == _MARKED_MESSAGES:
                break
    return places


def _called(messages: Iterable[Message]) -> list[str]:
    parts = (part for message in messages for part in message.parts)
    return sorted({_name(part.name) for part in parts if isinstance(part, ToolCall)})


def _block(part: Part, role: str, info: ModelInfo) -> str:
    """Return the JSON of `part`, nothing where it has no place in a message."""
    match part:
        case Text(text=text):
            return _dumps({"type": "text", "text": text}) if text.strip() else ""
        case Media() if role == "user":
            return _dumps(_media(part, info))
        case Reasoning(provider_data=data) if role == "assistant":
            return _thinking(data)
        case ToolCall() if role == "assistant":
            return _call(part)
        case ToolResult():
            return _dumps(_result(part, info))
        case _:
            return ""


def _thinking(data: JsonObject) -> str:
    """Return the provider's own block as it came, nothing unless it is all there."""
    match data:
        case {"type": "thinking", "thinking": str(), "signature": str(seal)} if seal:
            pass
        case {"type": "redacted_thinking", "data": str(seal)} if seal:
            pass
        case _:
            return ""
    kept = {key: value for key, value in data.items() if key != "cache_control"}
    # A notebook sorts the keys: the same history is the same bytes before and after.
    block = _SORTED_JSON.encode(kept)
    # What cannot be sent as it is may not be sent at all.
    return block if well_formed(block) is block else ""


def _call(call: ToolCall) -> str:
    head = _dumps({"type": "tool_use", "id": _wire_id(call.id), "name": _name(call.name)})
    # Not read and written again: the numbers and the order are the model's own.
    return f'{head[:-1]},"input":{object_text(call.input) or "{}"}}}'


def _result(result: ToolResult, info: ModelInfo) -> JsonObject:
    block: dict[str, JsonValue] = {"type": "tool_result", "tool_use_id": _wire_id(result.call_id)}
    content = [_media(media, info) for media in result.media]
    # The API takes no files in a result that is an error: there it is said in words.
    is_flagged = result.is_error and all(inner["type"] == "text" for inner in content)
    says_error = result.is_error and not is_flagged
    words = f"Error: {result.content}" if says_error else result.content
    if words.strip():
        content.insert(0, {"type": "text", "text": words})
    if content:
        block["content"] = [dict(inner) for inner in content]
    if is_flagged:
        block["is_error"] = True
    return block


def _media(media: Media, info: ModelInfo) -> JsonObject:
    """Return the file as the model takes it, else a text that says that it is left out."""
    content = sendable(
        media, info, max_image_bytes=MAX_FILE_BYTES, max_document_bytes=MAX_DOCUMENT_BYTES
    )
    if isinstance(content, str):
        return {"type": "text", "text": content}
    source: JsonObject = {"type": "base64", "media_type": content.media_type, "data": media.data}
    return {"type": "image" if content.is_image else "document", "source": dict(source)}


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


def _marked(block: str) -> str:
    """Return the JSON of a block with a mark that the cache ends after it."""
    return f"{block[:-1]}{_MARK.decode()}}}"


def _dumps(value: JsonValue | JsonObject) -> str:
    """Return compact JSON."""
    return _JSON.encode(value)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return well_formed(text).encode()
