"""What is said to servers that speak OpenAI's chat completions, as bytes.

Servers differ in which parameters they know, and in what they want of a conversation. What is
known of one is a `Dialect`; what a refusal teaches makes another one. A message is encoded
once: the parts of a conversation are values, so the bytes of the old part can be sent again
as they are. What holds for one request only comes after all messages, or ends the last one:
servers that cache what requests begin with find the rest again.

Pure. Source: OpenAI API reference, "Create chat completion"; DeepSeek, "Thinking mode";
Mistral, errors 3230 and 3280.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

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
from crush_kernel.providers.openai_ids import CallIds
from crush_kernel.providers.places import Place, WirePath

LimitField = Literal["max_tokens", "max_completion_tokens"]
_Kind = TypeVar("_Kind", Text, ToolCall, ToolResult)

MAX_ID_LENGTH: Final = 40
"""Of the id of a call, for OpenAI itself."""

MAX_FILE_BYTES: Final = 20_000_000
"""Of an image or a document; OpenAI refuses a request of 50 MB."""

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
    id_length: int = 0
    """How many letters and digits the id of a call has; zero if any id will do."""
    answers_results: bool = False
    """Whether a reply must stand between results and what the user says next."""
    takes_tool_choice: bool = True
    """Whether calls can be forbidden; else that is said in words."""


_DIALECTS: Final = {
    "openai": Dialect(limit_field="max_completion_tokens"),
    "deepseek": Dialect(replays_reasoning=True),
    "mistral": Dialect(id_length=9, answers_results=True),
    "moonshot": Dialect(replays_reasoning=True),
    "zai": Dialect(replays_reasoning=True),
}

_ID_LENGTH: Final = re.compile(r"tool call ids?\b.{0,200}?\blength (?:of )?(\d{1,2})\b", re.DOTALL)
_RESULTS_UNANSWERED: Final = re.compile(r"role '?user'? after role '?tool\b")
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
    if (wanted := _ID_LENGTH.search(text)) and int(wanted[1]) != dialect.id_length:
        return replace(dialect, id_length=min(int(wanted[1]), MAX_ID_LENGTH))
    if dialect.takes_tool_choice and re.search(r"tool[ _]choice", text):
        return replace(dialect, takes_tool_choice=False)
    if _RESULTS_UNANSWERED.search(text) and not dialect.answers_results:
        return replace(dialect, answers_results=True)
    if re.search(rf"\b{dialect.limit_field}\b", text) and _UNSUPPORTED.search(text):
        is_old = dialect.limit_field == "max_tokens"
        return replace(dialect, limit_field="max_completion_tokens" if is_old else "max_tokens")
    return None


class RequestEncoder:
    """Turns requests to one model into bodies; keeps the bytes of what it has encoded."""

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self._dialect = Dialect()
        self._history = EncodedHistory(self._encode)
        self._ids = CallIds()
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def encode(self, request: ModelRequest, dialect: Dialect) -> bytes:
        """Return the JSON of `request`. What `request` no longer holds is forgotten."""
        if self._dialect != dialect:
            self._dialect = dialect
            self._history.forget()
        options: dict[str, JsonValue] = {"model": self._info.id, "stream": True}
        if dialect.asks_usage:
            options["stream_options"] = {"include_usage": True}
        if request.max_output_tokens:
            options[dialect.limit_field] = request.max_output_tokens
        head = _dumps(options)[:-1] + b',"messages":['
        if request.system:
            head += _dumps({"role": "system", "content": request.system}) + b","
        messages = self._history.chunks(request.messages) or [_BEGINNING]
        if words := closing_words(request, says_no_calls=not dialect.takes_tool_choice):
            messages[-1] = _closed(messages[-1], words, dialect)
        # Joined once: the messages may be large.
        messages[0] = head + messages[0]
        messages[-1] += b"]"
        if request.tools:
            messages[-1] += b',"tools":' + self._all_tools(request.tools)
            if request.forbids_tools and dialect.takes_tool_choice:
                messages[-1] += b',"tool_choice":"none"'
        messages[-1] += b"}"
        return b",".join(messages)

    def places(self, request: ModelRequest, path: WirePath) -> tuple[Place, ...]:
        """Return which parts of the messages of `request` are sent at `path`."""
        groups = groups_of(request.messages)
        sent = [said for group in groups for said in self._said(group)]
        index = path.message - bool(request.system)
        if not 0 <= index < len(sent):
            return ()
        said = sent[index]
        match path.field:
            case "tool_calls":
                return said.calls[path.item : path.item + 1]
            case "content" if not isinstance(said.fields.get("content"), str):
                return said.content[path.item : path.item + 1]
            case _:
                return said.content + said.calls

    def _all_tools(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if self._tools[0] is not tools:
            in_order = sorted(tools, key=lambda tool: tool.name)
            self._tools = (tools, _dumps([_tool(tool) for tool in in_order]))
        return self._tools[1]

    def _encode(self, group: Group) -> bytes:
        return b",".join(_dumps(said.fields) for said in self._said(group))

    def _said(self, group: Group) -> "Iterator[_Said]":
        """Yield the messages that `group` becomes; files of tool results go after all results.

        Results must follow their calls at once, and may hold text only.
        """
        if group.is_reply:
            yield from self._reply(group.messages[0], group.start)
            return
        blocks: list[tuple[Place, JsonObject]] = []
        results = list(_placed(group, ToolResult))
        for place, result in results:
            call_id = self._id(result.call_id)
            files = [(media, _media_block(media, self._info)) for media in result.media]
            yield _Said(_result(result, call_id, files), (place,))
            blocks += ((place, block) for block in _labeled(files, call_id))
        rest = [*([_user(blocks)] if blocks else ()), *self._prompts(group)]
        if results and rest and self._dialect.answers_results:
            said = _FILES_NEXT if blocks else _INTERRUPTED
            yield _Said({"role": "assistant", "content": said})
        yield from rest

    def _reply(self, message: Message, index: int) -> "Iterator[_Said]":
        group = Group(index, (message,))
        texts = list(_placed(group, Text))
        calls = list(_placed(group, ToolCall))
        text = "".join(part.text for _, part in texts)
        if not text and not calls:
            return
        fields: dict[str, JsonValue] = {"role": "assistant", "content": text or None}
        if calls:
            fields["tool_calls"] = [_call(call, self._id(call.id)) for _, call in calls]
        if self._dialect.replays_reasoning:
            field, reasoning = _reasoning(message, self._info)
            if reasoning or calls:
                fields[field] = reasoning
        yield _Said(fields, _places(texts), _places(calls))

    def _prompts(self, group: Group) -> "Iterator[_Said]":
        for index, message in enumerate(group.messages, group.start):
            blocks = [
                ((index, number), block)
                for number, part in enumerate(message.parts)
                if (block := _content_block(part, self._info)) is not None
            ]
            if blocks and message.role == "user":
                yield _user(blocks)

    def _id(self, call_id: str) -> str:
        return self._ids.fitted(call_id, self._dialect.id_length)


_BEGINNING: Final = b'{"role":"user","content":"(The conversation begins here.)"}'
_ROLE: Final = b'{"role":"'
"""How a message begins, and nothing inside one: there quotation marks are escaped."""
_USER: Final = _ROLE + b'user"'
_TOOL: Final = _ROLE + b'tool"'
_ATTACHED: Final = "[The file is in the message after the results.]"
_FILES_NEXT: Final = "(Now the files.)"
_INTERRUPTED: Final = "(Interrupted.)"
_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _Said:
    """One message as it is sent, and the parts that it was made of."""

    fields: JsonObject
    content: tuple[Place, ...] = ()
    """Where each item of its content is from."""
    calls: tuple[Place, ...] = ()


def _closed(said: bytes, words: str, dialect: Dialect) -> bytes:
    """Return the JSON of messages with `words` of the user at their end.

    In a message of its own, unless the last one is the user's already, or a result that the
    user may not speak after.
    """
    last = said[said.rfind(_ROLE) :]
    if (last.startswith(_TOOL) and dialect.answers_results) or last.startswith(_USER):
        if last.endswith(b'"}'):
            return b"".join((said[:-2], _dumps(f"\n\n{words}")[1:-1], b'"}'))
        block = _dumps({"type": "text", "text": words})
        return b"".join((said[:-2], b",", block, b"]}"))
    return b"".join((said, b",", _dumps({"role": "user", "content": words})))


def _placed(group: Group, kind: type[_Kind]) -> Iterator[tuple[Place, _Kind]]:
    """Yield the parts of `group` that are of `kind`, with their places."""
    for index, message in enumerate(group.messages, group.start):
        for number, part in enumerate(message.parts):
            if isinstance(part, kind):
                yield (index, number), part


def _places(placed: Sequence[tuple[Place, object]]) -> tuple[Place, ...]:
    return tuple(place for place, _ in placed)


def _user(blocks: Sequence[tuple[Place, JsonObject]]) -> _Said:
    content = _content([block for _, block in blocks])
    return _Said({"role": "user", "content": content}, _places(blocks))


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
            return _media_block(part, info)
        case _:
            return None


def _media_block(media: Media, info: ModelInfo) -> JsonObject:
    """Return the file as the model takes it, else a text that says why it is left out."""
    content = sendable(
        media, info, max_image_bytes=MAX_FILE_BYTES, max_document_bytes=MAX_FILE_BYTES
    )
    if isinstance(content, str):
        return {"type": "text", "text": content}
    url = f"data:{content.media_type};base64,{media.data}"
    if content.is_image:
        return {"type": "image_url", "image_url": {"url": url}}
    file = {"filename": media.name or "document.pdf", "file_data": url}
    return {"type": "file", "file": dict(file)}


def _reasoning(message: Message, info: ModelInfo) -> tuple[str, str]:
    """Return the field and the text of the model's own thinking, empty if it is another's."""
    field, texts = REASONING_FIELDS[0], list[str]()
    if (message.provider, message.model) == (info.provider, info.id):
        for part in message.parts:
            if isinstance(part, Reasoning) and part.provider_data.get("field") in REASONING_FIELDS:
                field = str(part.provider_data["field"])
                texts.append(part.text)
    return field, "".join(texts)


def _call(call: ToolCall, call_id: str) -> JsonValue:
    arguments = object_text(call.input) or "{}"
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _labeled(files: Iterable[tuple[Media, JsonObject]], call_id: str) -> Iterator[JsonObject]:
    """Yield the blocks of `files`, those of one result, each after words that say whose it is."""
    for media, block in files:
        if block["type"] != "text":
            name = f", {media.name}" if media.name else ""
            yield {"type": "text", "text": f"[The file of the tool result {call_id}{name}:]"}
            yield block


def _result(
    result: ToolResult, call_id: str, files: Iterable[tuple[Media, JsonObject]]
) -> JsonObject:
    notes = [str(block["text"]) if block["type"] == "text" else _ATTACHED for _, block in files]
    # The API has no flag for failure, and not every error text says that it is one.
    head = "Error: " if result.is_error and not result.content.lower().startswith("error") else ""
    content = "\n\n".join((f"{head}{result.content or '(no output)'}", *notes))
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _tool(tool: ToolSpec) -> JsonValue:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.input_schema),
        },
    }


def _dumps(value: JsonObject | list[JsonValue] | str) -> bytes:
    """Return compact UTF-8."""
    text = _JSON.encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return well_formed(text).encode()
