"""What OpenAI's chat completions refuse: shapes first, then sense.

Where the servers that copy the API are stricter than OpenAI itself, this one is as strict
as they are: arguments must be the text of a JSON object, contents must say something.
"""

import json
import re
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from crush_kernel.messages import JsonObject
from tests.fakes.provider.dialect import Refused, deepest
from tests.fakes.provider.media import check_media

MAX_ID_LENGTH: Final = 40
MAX_TOOLS: Final = 128
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_REASONING_MODEL: Final = re.compile(r"(o\d|gpt-5)")


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _TextPart(_Shape):
    type: Literal["text"]
    text: str


class _ImageUrl(_Shape):
    url: str
    detail: Literal["auto", "low", "high"] | None = None


class _ImagePart(_Shape):
    type: Literal["image_url"]
    image_url: _ImageUrl


class _File(_Shape):
    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None


class _FilePart(_Shape):
    type: Literal["file"]
    file: _File


_UserPart = Annotated[_TextPart | _ImagePart | _FilePart, Field(discriminator="type")]


class _System(_Shape):
    role: Literal["system", "developer"]
    content: str | list[_TextPart]
    name: str | None = None


class _User(_Shape):
    role: Literal["user"]
    content: str | list[_UserPart]
    name: str | None = None


class _Function(_Shape):
    name: str
    arguments: str


class _ToolCall(_Shape):
    id: str
    type: Literal["function"]
    function: _Function


class _Assistant(_Shape):
    role: Literal["assistant"]
    content: str | list[_TextPart] | None = None
    refusal: str | None = None
    name: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Tool(_Shape):
    role: Literal["tool"]
    content: str | list[_TextPart]
    tool_call_id: str


_Message = Annotated[_System | _User | _Assistant | _Tool, Field(discriminator="role")]


class _FunctionSpec(_Shape):
    name: str
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None
    strict: bool | None = None


class _ToolSpec(_Shape):
    type: Literal["function"]
    function: _FunctionSpec


class _StreamOptions(_Shape):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class _Body(_Shape):
    model: str
    messages: list[_Message]
    stream: Literal[True]
    stream_options: _StreamOptions | None = None
    tools: list[_ToolSpec] | None = None
    tool_choice: JsonValue = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    stop: str | list[str] | None = None
    n: Literal[1] | None = None
    seed: int | None = None
    user: str | None = None
    store: bool | None = None
    metadata: dict[str, str] | None = None
    response_format: dict[str, JsonValue] | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None


def check_body(body: JsonObject) -> None:
    """Raise `Refused` for the first thing that is wrong with a request."""
    try:
        request = _Body.model_validate(body)
    except ValidationError as error:
        raise _shape_refusal(error) from error
    _check_options(request)
    _check_tools(request)
    _check_messages(request.messages)
    _check_pairing(request.messages)


def _shape_refusal(error: ValidationError) -> Refused:
    first = deepest(error)
    path = ""
    for key in first["loc"]:
        path += f"[{key}]" if isinstance(key, int) else f".{key}"
    path = path.lstrip(".")
    if first["type"] == "extra_forbidden":
        return Refused(f"Unknown parameter: '{path}'.", param=path, code="unknown_parameter")
    if first["type"] == "missing":
        return Refused(
            f"Missing required parameter: '{path}'.", param=path, code="missing_required_parameter"
        )
    return Refused(f"Invalid value for '{path}': {first['msg']}.", param=path, code="invalid_value")


def _check_options(request: _Body) -> None:
    if not request.messages:
        raise Refused("[] is too short - 'messages'", param="messages")
    if request.max_tokens is not None and _REASONING_MODEL.match(request.model):
        raise Refused(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )


def _check_tools(request: _Body) -> None:
    if request.tools is None:
        if request.tool_choice is not None:
            raise Refused("'tool_choice' is only allowed when 'tools' are specified")
        return
    if not request.tools or len(request.tools) > MAX_TOOLS:
        raise Refused("[] is too short or too long - 'tools'", param="tools")
    names = [tool.function.name for tool in request.tools]
    for number, tool in enumerate(request.tools):
        _check_name(tool.function.name, f"tools[{number}].function.name")
        parameters = tool.function.parameters
        if parameters is not None and parameters.get("type") != "object":
            raise Refused(
                f"Invalid schema for function '{tool.function.name}': schema must be a JSON "
                "Schema of 'type: \"object\"'.",
                param=f"tools[{number}].function.parameters",
                code="invalid_function_parameters",
            )
    if len(set(names)) != len(names):
        raise Refused("tools: names must be unique", param="tools")


def _check_name(name: str, path: str) -> None:
    if not _NAME.match(name):
        raise Refused(
            f"Invalid '{path}': string does not match pattern '^[a-zA-Z0-9_-]+$', or is longer "
            "than 64.",
            param=path,
            code="invalid_value",
        )


def _check_messages(messages: list[_Message]) -> None:
    for number, message in enumerate(messages):
        path = f"messages[{number}]"
        match message:
            case _System() | _Tool():
                _check_content(message.content, path)
            case _User():
                _check_content(message.content, path)
                _check_files(message, path)
            case _Assistant():
                _check_assistant(message, path)


def _check_content(content: str | list[_UserPart] | list[_TextPart], path: str) -> None:
    texts = [content] if isinstance(content, str) else []
    if isinstance(content, list):
        texts = [part.text for part in content if isinstance(part, _TextPart)]
    if not content or not all(text.strip() for text in texts):
        raise Refused(f"Invalid '{path}.content': text must not be empty.", param=f"{path}.content")


def _check_files(message: _User, path: str) -> None:
    if isinstance(message.content, str):
        return
    for number, part in enumerate(message.content):
        where = f"{path}.content[{number}]"
        if isinstance(part, _ImagePart) and part.image_url.url.startswith("data:"):
            _check_data_url(part.image_url.url, where, expected="image/")
        if isinstance(part, _FilePart) and part.file.file_data is not None:
            _check_data_url(part.file.file_data, where, expected="application/pdf")


def _check_data_url(url: str, path: str, *, expected: str) -> None:
    match = re.fullmatch(r"data:([\w/.+-]+);base64,(.*)", url, re.DOTALL)
    problem = "not a Base64 data URL" if match is None else check_media(match[1], match[2])
    if match is not None and not match[1].startswith(expected):
        problem = f"unsupported type {match[1]}"
    if problem:
        raise Refused(f"Invalid '{path}': {problem}.", param=path, code="invalid_image_url")


def _check_assistant(message: _Assistant, path: str) -> None:
    if message.tool_calls is None:
        _check_content(message.content or "", path)
        return
    if not message.tool_calls:
        raise Refused(f"Invalid '{path}.tool_calls': empty array.", param=f"{path}.tool_calls")
    for number, call in enumerate(message.tool_calls):
        where = f"{path}.tool_calls[{number}]"
        _check_name(call.function.name, f"{where}.function.name")
        if not call.id or len(call.id) > MAX_ID_LENGTH:
            raise Refused(
                f"Invalid '{where}.id': string too long. Expected a string with maximum length "
                f"40, but instead got a string with length {len(call.id)}.",
                param=f"{where}.id",
                code="string_above_max_length",
            )
        _check_arguments(call.function.arguments, f"{where}.function.arguments")


def _check_arguments(arguments: str, path: str) -> None:
    try:
        value = json.loads(arguments)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Refused(
            f"Invalid '{path}': function arguments must be the text of a JSON object.",
            param=path,
            code="invalid_function_arguments",
        )


def _check_pairing(messages: list[_Message]) -> None:
    """Check that tool messages answer the calls right before them, each call once."""
    waiting: set[str] = set()
    for number, message in enumerate(messages):
        if isinstance(message, _Tool):
            if message.tool_call_id not in waiting:
                raise Refused(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceding message with 'tool_calls'.",
                    param=f"messages.[{number}].role",
                )
            waiting.remove(message.tool_call_id)
            continue
        _check_answered(waiting, number)
        if isinstance(message, _Assistant) and message.tool_calls:
            waiting = {call.id for call in message.tool_calls}
            if len(waiting) != len(message.tool_calls):
                raise Refused("Duplicate value for 'tool_call_id'", param=f"messages.[{number}]")
    _check_answered(waiting, len(messages))


def _check_answered(waiting: set[str], number: int) -> None:
    if waiting:
        raise Refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(sorted(waiting))}",
            param=f"messages.[{number}].role",
        )
