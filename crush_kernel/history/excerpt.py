"""Histories made shorter, for a model that has to summarize one that does not fit.

First the outputs of old calls go, then what calls have written, then long texts; the messages
stay what they are, so that what is cached of them still helps. Where that is not enough, a
history becomes a transcript, which can be cut anywhere.

Pure.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from pydantic import JsonValue

from crush_kernel.history.estimate import tokens_of
from crush_kernel.history.summary import shortened
from crush_kernel.messages import (
    Media,
    Message,
    Part,
    ShellCommand,
    Text,
    ToolCall,
    ToolResult,
    object_in,
)

KEPT_CHARS: Final = 600
"""Of an output, an argument or a text that is shortened."""

_Shorten: TypeAlias = Callable[[Part], Part]


def elided(messages: tuple[Message, ...], excess: int) -> tuple[Message, ...] | None:
    """Return `messages` with at least `excess` tokens less, what is oldest shortened first.

    `None` if that much cannot be had this way.
    """
    for shorten in (_without_output, _without_arguments, _without_text):
        messages, excess = _shortened_by(messages, excess, shorten)
        if excess <= 0:
            return messages
    return None


def _shortened_by(
    messages: tuple[Message, ...], excess: int, shorten: _Shorten
) -> tuple[tuple[Message, ...], int]:
    done = list(messages)
    for index, message in enumerate(messages):
        if excess <= 0:
            break
        parts = tuple(map(shorten, message.parts))
        if parts != message.parts:
            done[index] = replace(message, parts=parts)
            excess -= tokens_of(message) - tokens_of(done[index])
    return tuple(done), excess


def _without_output(part: Part) -> Part:
    match part:
        case ToolResult():
            return replace(part, content=shortened(part.content, KEPT_CHARS), media=())
        case ShellCommand():
            return replace(part, output=shortened(part.output, KEPT_CHARS))
        case Media():
            return Text(f"[{part.name or part.media_type} is left out here]")
        case _:
            return part


def _without_arguments(part: Part) -> Part:
    if not isinstance(part, ToolCall) or len(part.input) <= KEPT_CHARS:
        return part
    arguments = object_in(part.input) or {}
    short = {name: _short_value(value) for name, value in arguments.items()}
    return replace(part, input=json.dumps(short, ensure_ascii=False))


def _short_value(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return shortened(value, KEPT_CHARS // 2)
    if isinstance(value, list | dict):
        text = json.dumps(value, ensure_ascii=False)
        return value if len(text) <= KEPT_CHARS else shortened(text, KEPT_CHARS // 2)
    return value


def _without_text(part: Part) -> Part:
    if not isinstance(part, Text):
        return part
    return replace(part, text=shortened(part.text, 4 * KEPT_CHARS))


@dataclass(frozen=True, slots=True)
class Detail:
    """How much of everything a transcript tells, in characters."""

    text: int = 4_000
    call: int = 400
    output: int = KEPT_CHARS


BRIEF: Final = Detail(text=600, call=120, output=120)


def transcript(messages: Iterable[Message], detail: Detail) -> Iterator[str]:
    """Yield what was said and done in words, a paragraph each, oldest first."""
    for message in messages:
        speaker = "You" if message.role == "assistant" else "User"
        for part in message.parts:
            if told := _told(part, speaker, detail):
                yield told


def _told(part: Part, speaker: str, detail: Detail) -> str:
    match part:
        case Text(text=text) if text.strip():
            return f"{speaker}: {shortened(text.strip(), detail.text)}"
        case ToolCall(name=name, input=arguments):
            return f"You called {name[:100]}: {shortened(arguments, detail.call)}"
        case ToolResult(content=content, is_error=is_error):
            what = "It failed" if is_error else "It gave"
            return f"{what}: {shortened(content.strip(), detail.output)}"
        case ShellCommand(command=command, output=output):
            ran = shortened(command, detail.call)
            return f"User ran: {ran}\nIt printed: {shortened(output.strip(), detail.output)}"
        case Media(name=name, media_type=media_type):
            return f"{speaker} attached: {name or media_type}"
        case _:
            return ""


def pieces(paragraphs: Iterable[str], max_chars: int) -> list[str]:
    """Return `paragraphs` in texts of at most `max_chars`, cut between two where possible."""
    found: list[str] = []
    current = ""
    for paragraph in paragraphs:
        for start in range(0, len(paragraph), max_chars):
            chunk = paragraph[start : start + max_chars]
            joined = f"{current}\n\n{chunk}" if current else chunk
            if len(joined) > max_chars:
                found.append(current)
                joined = chunk
            current = joined
    return [*found, current] if current else found


def in_few_pieces(messages: tuple[Message, ...], max_chars: int, most: int) -> list[str]:
    """Return a transcript of `messages` in at most `most` pieces of at most `max_chars`.

    The longer it is, the less of it is told: first outputs and long texts are cut more
    sharply, then the middle is left out.
    """
    for detail in (Detail(), BRIEF):
        found = pieces(transcript(messages, detail), max_chars)
        if len(found) <= most:
            return found
    first = max(1, most // 4)
    last = most - first
    return [*found[:first], *found[len(found) - last :]] if last else found[:first]


def outline(messages: tuple[Message, ...], max_chars: int) -> str:
    """Return what is known of `messages` without a model: beginning and end of a transcript."""
    return shortened("\n\n".join(transcript(messages, BRIEF)), max_chars)
