"""Make a history acceptable to every provider, on every request.

What is stored stays raw; what is sent goes through `repair`: every call is answered
exactly once and directly after its reply, every answer was asked for, ids are unique
and in the alphabet that all providers take, arguments are the text of a JSON object,
nothing is empty, no text holds a lone surrogate, and parts that no provider knows are put
in words or left out. Pure and idempotent.

Source: design §4 "Repair"; Anthropic and OpenAI message rules.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from crush_kernel.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    ShellCommand,
    SummaryMark,
    Text,
    ToolCall,
    ToolResult,
    calls_of,
)

INTERRUPTED = "The call was interrupted before it returned a result. It can be made again."
NO_OUTPUT = "(no output)"

_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""The alphabet and length that both Anthropic (64) and OpenAI (40) take."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The names of tools that both take."""

UNKNOWN_TOOL = "unknown_tool"
"""Stands on the wire for a tool name that the model made up and no provider takes back."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def repair(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return `messages` with everything mended that a provider would refuse.

    Args:
        messages: a conversation, oldest first; any prefix, cut or reordering of one.

    Returns:
        A conversation in which each `ToolCall` has exactly one `ToolResult`, in the
        order of the calls, in the message after its reply. Idempotent.
    """
    return tuple(_paired(_cleaned(messages)))


def is_json_object(text: str) -> bool:
    """Return whether `text` is a JSON object, as the arguments of a call must be."""
    try:
        return isinstance(_JSON.decode(text), dict)
    except (ValueError, RecursionError):
        return False


def _refuse_constant(name: str) -> None:
    """Refuse `NaN` and the infinities, which Python reads and JSON does not have."""
    raise ValueError(name)


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)


def _cleaned(messages: tuple[Message, ...]) -> Iterator[Message]:
    """Yield the messages that still say something after cleaning, part by part."""
    for message in messages:
        parts = tuple(
            part for raw in message.parts if (part := _clean_part(raw, message.role)) is not None
        )
        if parts:
            yield message if parts == message.parts else replace(message, parts=parts)


def _clean_part(part: Part, role: Role) -> Part | None:
    """Return `part` as it may be sent in a message of `role`, `None` to leave it out."""
    match part:
        case Text(text=text):
            if not _says_something(text):
                return None
            return part if _is_clean(text) else Text(_clean(text))
        case Reasoning():
            return part if role == "assistant" else None
        case ToolCall():
            return _clean_call(part) if role == "assistant" else None
        case ToolResult():
            return _clean_result(part) if role == "tool" else None
        case ShellCommand(command=command, output=output, exit_code=code):
            text = (
                f"I ran `{command}` myself; exit code {code}. It printed:\n\n{output or NO_OUTPUT}"
            )
            return Text(_clean(text))
        case Media():
            return part if role == "user" else None
        case SummaryMark() | Opaque():
            return None


def _clean_call(call: ToolCall) -> ToolCall:
    arguments = call.input if _is_clean(call.input) else _clean(call.input)
    if not is_json_object(arguments):
        arguments = "{}"
    name = call.name if _NAME.fullmatch(call.name) else UNKNOWN_TOOL
    if (name, arguments) == (call.name, call.input):
        return call
    return replace(call, name=name, input=arguments)


def _clean_result(result: ToolResult) -> ToolResult:
    content = result.content if _says_something(result.content) else NO_OUTPUT
    content = content if _is_clean(content) else _clean(content)
    return result if content == result.content else replace(result, content=content)


def _says_something(text: str) -> bool:
    return bool(text) and not text.isspace()


def _is_clean(text: str) -> bool:
    return text.isascii() or _SURROGATE.search(text) is None


def _clean(text: str) -> str:
    return _SURROGATE.sub("\ufffd", text)


def _paired(messages: Iterator[Message]) -> Iterator[Message]:
    """Yield every reply followed by the answers to its calls, and no other answers.

    Answers are looked for up to the next reply: a prompt that slipped in between goes
    after them.
    """
    ids = _Ids()
    pending: Message | None = None
    held: list[Message] = []
    for message in messages:
        if message.role == "assistant":
            yield from _reply_with_answers(pending, held, ids)
            pending, held = message, []
        else:
            held.append(message)
    yield from _reply_with_answers(pending, held, ids)


def _reply_with_answers(
    reply: Message | None, held: list[Message], ids: "_Ids"
) -> Iterator[Message]:
    if reply is not None:
        calls = calls_of(reply)
        names = [ids.fresh(call.id) for call in calls]
        yield _renamed(reply, calls, names)
        if calls:
            yield Message("tool", tuple(_answers(calls, names, held)))
    yield from (message for message in held if message.role == "user")


def _renamed(reply: Message, calls: tuple[ToolCall, ...], names: list[str]) -> Message:
    if all(call.id == name for call, name in zip(calls, names, strict=True)):
        return reply
    fresh = iter(names)
    return replace(
        reply,
        parts=tuple(
            replace(part, id=next(fresh)) if isinstance(part, ToolCall) else part
            for part in reply.parts
        ),
    )


def _answers(
    calls: tuple[ToolCall, ...], names: list[str], held: list[Message]
) -> Iterator[ToolResult]:
    """Yield one answer a call, in the order of the calls; the first answer counts."""
    given = [part for message in held for part in message.parts if isinstance(part, ToolResult)]
    for call, name in zip(calls, names, strict=True):
        answer = next((part for part in given if part.call_id == call.id), None)
        if answer is None:
            yield ToolResult(name, INTERRUPTED, is_error=True)
            continue
        given.remove(answer)
        yield answer if answer.call_id == name else replace(answer, call_id=name)


class _Ids:
    """Gives every call an id that no earlier call has, its own where that will do."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, wanted: str) -> str:
        name = wanted if _ID.fullmatch(wanted) else self._mapped(wanted)
        number = 2
        base = name[:34]
        while name in self._taken:
            name = f"{base}_{number}"
            number += 1
        self._taken.add(name)
        return name

    def _mapped(self, wanted: str) -> str:
        return re.sub(r"[^a-zA-Z0-9_-]", "_", wanted)[:40] or "call"
