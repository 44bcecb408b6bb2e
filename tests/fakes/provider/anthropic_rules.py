"""What Anthropic's messages API refuses, in its order: shapes first, then sense."""

from collections.abc import Iterable
from typing import Annotated, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from crush_kernel.messages import JsonObject
from tests.fakes.provider.dialect import Refused, deepest
from tests.fakes.provider.media import check_media

MAX_CACHE_MARKS: Final = 4
_Id = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$", min_length=1, max_length=64)]
_ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _CacheControl(_Shape):
    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class _Markable(_Shape):
    cache_control: _CacheControl | None = None


class _Text(_Markable):
    type: Literal["text"]
    text: str


class _ImageSource(_Shape):
    type: Literal["base64"]
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: str


class _Image(_Markable):
    type: Literal["image"]
    source: _ImageSource


class _DocumentSource(_Shape):
    type: Literal["base64"]
    media_type: Literal["application/pdf"]
    data: str


class _Document(_Markable):
    type: Literal["document"]
    source: _DocumentSource
    title: str | None = None
    context: str | None = None


class _Thinking(_Shape):
    type: Literal["thinking"]
    thinking: str
    signature: str


class _RedactedThinking(_Shape):
    type: Literal["redacted_thinking"]
    data: str


class _ToolUse(_Markable):
    type: Literal["tool_use"]
    id: _Id
    name: _ToolName
    input: dict[str, JsonValue]


_Content = Annotated[_Text | _Image | _Document, Field(discriminator="type")]


class _ToolResult(_Markable):
    type: Literal["tool_result"]
    tool_use_id: _Id
    content: str | list[_Content] | None = None
    is_error: bool | None = None


_UserBlock = Annotated[_Text | _Image | _Document | _ToolResult, Field(discriminator="type")]
_AssistantBlock = Annotated[
    _Text | _Thinking | _RedactedThinking | _ToolUse, Field(discriminator="type")
]


class _User(_Shape):
    role: Literal["user"]
    content: str | list[_UserBlock]


class _Assistant(_Shape):
    role: Literal["assistant"]
    content: str | list[_AssistantBlock]


_Message = Annotated[_User | _Assistant, Field(discriminator="role")]


class _InputSchema(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)
    type: Literal["object"]


class _Tool(_Markable):
    name: _ToolName
    input_schema: _InputSchema
    description: str | None = None
    type: Literal["custom"] | None = None
    strict: bool | None = None
    eager_input_streaming: bool | None = None


class _ToolChoice(_Shape):
    type: Literal["auto", "any", "none", "tool"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class _Metadata(_Shape):
    user_id: str | None = None


class _Body(_Shape):
    model: str
    messages: list[_Message]
    max_tokens: Annotated[int, Field(ge=1)]
    stream: Literal[True]
    system: str | list[_Text] | None = None
    tools: list[_Tool] | None = None
    tool_choice: _ToolChoice | None = None
    thinking: dict[str, JsonValue] | None = None
    output_config: dict[str, JsonValue] | None = None
    metadata: _Metadata | None = None
    stop_sequences: list[str] | None = None
    service_tier: Literal["auto", "standard_only"] | None = None


_ThinkingBlock = _Thinking | _RedactedThinking


class SentThinking:
    """The thinking blocks that were sent, by their signature or data."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._companions: dict[str, tuple[str, ...]] = {}
        self._late: set[str] = set()

    def remember(self, blocks: list[JsonObject]) -> None:
        """Take in the blocks of one reply, in order."""
        keys: list[str] = []
        is_late = False
        for block in blocks:
            if block["type"] == "other":
                is_late = True
                continue
            key = cast("str", block.get("signature") or block.get("data"))
            self._texts[key] = cast("str", block.get("thinking", ""))
            if is_late:
                self._late.add(key)
            keys.append(key)
        self._companions |= dict.fromkeys(keys, tuple(keys))

    def check(self, message: _Assistant, path: str) -> None:
        """Check that thinking comes back unchanged and where it stood, from its start on.

        How much of an interrupted reply has arrived, the API cannot know.
        """
        keys: list[str] = []
        has_other = False
        for number, block in enumerate(_blocks(message)):
            if not isinstance(block, _ThinkingBlock):
                has_other = True
                continue
            key = self._check_block(block, f"{path}.content.{number}")
            if has_other and key not in self._late:
                raise Refused(
                    f"{path}.content.0.type: Expected `thinking` or `redacted_thinking`, but "
                    "found `text`. Thinking blocks come first."
                )
            keys.append(key)
        if keys and self._companions[keys[0]][: len(keys)] != tuple(keys):
            raise Refused(
                f"{path}.content: `thinking` or `redacted_thinking` blocks in an assistant "
                "message cannot be modified. These blocks must remain as they were in the "
                "original response."
            )

    def _check_block(self, block: _ThinkingBlock, path: str) -> str:
        if isinstance(block, _RedactedThinking):
            if block.data not in self._texts:
                raise Refused(f"{path}: Invalid `data` in `redacted_thinking` block")
            return block.data
        if self._texts.get(block.signature) != block.thinking:
            raise Refused(f"{path}: Invalid `signature` in `thinking` block")
        return block.signature


def check_body(body: JsonObject, sent: SentThinking) -> None:
    """Raise `Refused` for the first thing that is wrong with a request."""
    try:
        request = _Body.model_validate(body)
    except ValidationError as error:
        first = deepest(error)
        path = ".".join(str(key) for key in first["loc"])
        raise Refused(f"{path}: {first['msg']}") from error
    _check_order(request.messages)
    _check_ends(request.messages)
    _check_texts(request)
    _check_files(request.messages)
    _check_tools(request)
    _check_marks(request)
    _check_calls(request.messages)
    for number, message in enumerate(request.messages):
        if isinstance(message, _Assistant):
            sent.check(message, f"messages.{number}")


def _blocks(message: _Message) -> list[_UserBlock] | list[_AssistantBlock]:
    return message.content if isinstance(message.content, list) else []


def _check_order(messages: list[_Message]) -> None:
    if not messages:
        raise Refused("messages: at least one message is required")
    if not isinstance(messages[0], _User):
        raise Refused('messages: first message must use the "user" role')
    for number, message in enumerate(messages):
        if not message.content:
            raise Refused(
                f"messages.{number}: all messages must have non-empty content except for the "
                "optional final assistant message"
            )
    last = messages[-1]
    if isinstance(last, _Assistant):
        end = last.content if isinstance(last.content, str) else _last_text(last.content)
        if end != end.rstrip():
            raise Refused("messages: final assistant content cannot end with trailing whitespace")


def _check_ends(messages: list[_Message]) -> None:
    for number, message in enumerate(messages):
        *_, last = (None, *_blocks(message))
        if isinstance(last, _ThinkingBlock):
            raise Refused(
                f"messages.{number}: The final block in an assistant message cannot be `thinking`."
            )


def _last_text(blocks: list[_AssistantBlock]) -> str:
    block = blocks[-1]
    return block.text if isinstance(block, _Text) else ""


def _texts(request: _Body) -> Iterable[tuple[str, str]]:
    """Yield every text that must say something, and where it stands."""
    if isinstance(request.system, list):
        yield from (("system", block.text) for block in request.system)
    for message in request.messages:
        if isinstance(message.content, str):
            yield "messages", message.content
        for block in _blocks(message):
            if isinstance(block, _Text):
                yield "messages", block.text
            if isinstance(block, _ToolResult) and isinstance(block.content, list):
                inner = (part.text for part in block.content if isinstance(part, _Text))
                yield from (("messages", text) for text in inner)


def _check_texts(request: _Body) -> None:
    for path, text in _texts(request):
        if not text:
            raise Refused(f"{path}: text content blocks must be non-empty")
        if not text.strip():
            raise Refused(f"{path}: text content blocks must contain non-whitespace text")


def _check_files(messages: list[_Message]) -> None:
    for number, message in enumerate(messages):
        for index, block in enumerate(_blocks(message)):
            path = f"messages.{number}.content.{index}"
            if not isinstance(block, _ToolResult):
                _check_file(block, path)
            elif isinstance(block.content, list):
                _check_error_result(block, path)
                for inner, part in enumerate(block.content):
                    _check_file(part, f"{path}.tool_result.content.{inner}")


def _check_error_result(result: _ToolResult, path: str) -> None:
    parts = result.content if isinstance(result.content, list) else []
    if result.is_error and not all(isinstance(part, _Text) for part in parts):
        raise Refused(f"{path}.tool_result: all content must be type `text` if `is_error` is true")


def _check_file(block: object, path: str) -> None:
    if not isinstance(block, _Image | _Document):
        return
    if problem := check_media(block.source.media_type, block.source.data):
        kind = "image" if isinstance(block, _Image) else "pdf"
        raise Refused(f"{path}.{kind}.source.base64.data: {problem}")


def _check_tools(request: _Body) -> None:
    tools = request.tools or []
    names = {tool.name for tool in tools}
    if len(names) != len(tools):
        raise Refused("tools: Tool names must be unique.")
    choice = request.tool_choice
    if choice is not None and not tools:
        raise Refused("tool_choice: may only be specified while providing `tools`")
    if choice is not None and choice.type == "tool" and choice.name not in names:
        raise Refused(f"tool_choice: tool {choice.name!r} not found in `tools`")
    uses_tools = any(
        isinstance(block, _ToolUse | _ToolResult)
        for message in request.messages
        for block in _blocks(message)
    )
    if uses_tools and not tools:
        raise Refused("Requests which include `tool_use` or `tool_result` blocks must define tools")


def _check_marks(request: _Body) -> None:
    blocks: list[object] = [*(request.tools or [])]
    if isinstance(request.system, list):
        blocks += request.system
    for message in request.messages:
        for block in _blocks(message):
            blocks.append(block)
            if isinstance(block, _ToolResult) and isinstance(block.content, list):
                blocks += block.content
    marks = [b.cache_control for b in blocks if isinstance(b, _Markable) and b.cache_control]
    if len(marks) > MAX_CACHE_MARKS:
        raise Refused(
            f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}."
        )
    lifetimes = [mark.ttl or "5m" for mark in marks]
    if lifetimes != sorted(lifetimes):  # "1h" comes before "5m"
        raise Refused(
            "messages: a ttl='1h' cache_control block must not come after a ttl='5m' "
            "cache_control block. Note that blocks are processed in the following order: "
            "`tools`, `system`, `messages`."
        )


def _check_calls(messages: list[_Message]) -> None:
    """Check that every call is answered once, directly after and first of all."""
    seen: set[str] = set()
    waiting: list[str] = []
    for number, message in enumerate(messages):
        answered = _answered_ids(message, number)
        for call_id in answered:
            if call_id not in waiting:
                raise Refused(
                    f"messages.{number}.content: unexpected `tool_use_id` found in "
                    f"`tool_result` blocks: {call_id}. Each `tool_result` block must have a "
                    "corresponding `tool_use` block in the previous message."
                )
        if len(set(answered)) != len(answered):
            raise Refused(
                f"messages.{number}.content: each tool_use must have a single result. Found "
                "multiple `tool_result` blocks with one id"
            )
        _check_all_answered(waiting, answered, number - 1)
        waiting = [block.id for block in _blocks(message) if isinstance(block, _ToolUse)]
        if seen & set(waiting) or len(set(waiting)) != len(waiting):
            raise Refused("messages: `tool_use` ids must be unique")
        seen |= set(waiting)
    _check_all_answered(waiting, [], len(messages) - 1)


def _answered_ids(message: _Message, number: int) -> list[str]:
    blocks = _blocks(message)
    results = [block for block in blocks if isinstance(block, _ToolResult)]
    if list(blocks[: len(results)]) != results:
        raise Refused(
            f"messages.{number}.content: `tool_result` blocks must come first in the content"
        )
    return [block.tool_use_id for block in results]


def _check_all_answered(waiting: list[str], answered: list[str], number: int) -> None:
    missing = [call_id for call_id in waiting if call_id not in answered]
    if missing:
        raise Refused(
            f"messages.{number}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
            "corresponding `tool_result` block in the next message."
        )
