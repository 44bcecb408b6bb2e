"""How much room messages take in a notebook. Pure."""

from collections.abc import Iterable

from pydantic import JsonValue

from crush_kernel.messages import (
    JsonObject,
    Media,
    Message,
    Part,
    Reasoning,
    ShellCommand,
    Text,
    ToolCall,
    ToolResult,
)


def weight_of(messages: Iterable[Message]) -> int:
    """Return roughly how many characters `messages` take in a record."""
    return sum(_weight(part) for message in messages for part in message.parts)


def _weight(part: Part) -> int:
    match part:
        case Text(text=text):
            return len(text)
        case Reasoning(text=text, provider_data=data):
            return len(text) + _texts(data)
        case ToolCall(input=arguments):
            return len(arguments)
        case ToolResult(content=content, media=media, metadata=facts):
            return len(content) + sum(len(each.data) for each in media) + _texts(facts)
        case Media(data=data):
            return len(data)
        case ShellCommand(output=output):
            return len(output)
        case _:
            return 0


def _texts(data: JsonObject) -> int:
    """Return how many characters the texts in `data` have, at any depth."""
    count = 0
    waiting: list[JsonValue] = list(data.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            count += len(value)
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return count
