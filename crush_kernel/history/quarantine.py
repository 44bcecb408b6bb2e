"""What a provider refuses of a request, and a history without it.

A damaged image or a signature that no longer fits would make every later request fail in the
same way. What a refusal points at is found by its place or, where only the words tell, by what
could be meant; it is left out of what is sent. What is stored stays.

Pure. Source: Anthropic, "Errors", "Extended thinking"; OpenAI, "Error codes"; refusals as
users of both report them.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from crush_kernel.errors import RequestRejected
from crush_kernel.messages import (
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    calls_of,
)

Refusable: TypeAlias = Media | Reasoning | ToolCall | ToolResult
"""What can be left out while the rest still makes sense."""

Key: TypeAlias = tuple[str, ...]
"""A part by what it is, so that it is known again wherever it comes from."""

REFUSED_RESULT: Final = "[The result is left out: the provider refused it.]"

_THINKING: Final = re.compile(
    r"thinking.{0,80}(signature|cannot be modified|must remain|expected|disabled)"
    r"|(signature|expected|final|cannot).{0,80}thinking",
    re.IGNORECASE | re.DOTALL,
)
_IMAGE: Final = re.compile(r"image|picture", re.IGNORECASE)
_DOCUMENT: Final = re.compile(r"\bpdfs?\b|\bdocuments?\b|\bfiles?\b|file_data", re.IGNORECASE)
_MANY: Final = re.compile(r"many-image", re.IGNORECASE)
"""A limit for each of many images: the refusal names one, and the next one would follow."""
_ARGUMENTS: Final = re.compile(r"arguments|tool_use\.input", re.IGNORECASE)
_PAIRS: Final = re.compile(r"tool_(use|call)_?ids?\b|must be unique", re.IGNORECASE)
"""How calls and results go together, for which no single part is to blame."""


@dataclass(frozen=True, slots=True)
class Blame:
    """What of a request was refused."""

    keys: frozenset[Key]
    notice: str
    """What to tell the user: one sentence."""


def blamed(refusal: RequestRejected, messages: tuple[Message, ...]) -> Blame | None:
    """Return what of `messages` is to blame for `refusal`; `None` if that is not clear.

    Args:
        refusal: with the places that it names, if it names any.
        messages: the request as it was sent.
    """
    words = f"{refusal} {refusal.detail}"
    named = tuple(
        messages[index].parts[number]
        for index, number in refusal.places
        if index < len(messages) and number < len(messages[index].parts)
    )
    if _THINKING.search(words):
        thinking = [part for m in messages for part in m.parts if isinstance(part, Reasoning)]
        return _blame(thinking, "the thinking in earlier replies, which is")
    if _ARGUMENTS.search(words):
        calls = _refused_calls(words, named, messages)
        return _blame(calls, "the arguments of a tool call, which are")
    if _PAIRS.search(words):
        return None
    if files := _refused_files(words, named, messages, refusal.provider):
        return _blame(files, _named(files))
    results = [part for part in named if isinstance(part, ToolResult)]
    if len(results) == len(named) == 1:
        return _blame(results, "the result of a tool call, which is")
    return None


def without(messages: Iterable[Message], refused: frozenset[Key]) -> tuple[Message, ...]:
    """Return `messages` with a note in place of what is `refused`; thinking just goes.

    Args:
        messages: repaired ones, so that no reply consists of thinking alone.
        refused: the keys of what to leave out.
    """
    if not refused:
        return tuple(messages)
    return tuple(_without(message, refused) for message in messages)


def _blame(parts: Sequence[Refusable], what: str) -> Blame | None:
    if not parts:
        return None
    notice = f"The provider refused {what} left out from now on."
    return Blame(frozenset(map(_key, parts)), notice)


def _refused_files(
    words: str, named: Sequence[Part], messages: tuple[Message, ...], provider: str
) -> list[Media]:
    """Return the files that `words` are about: those in the named places, if they name any.

    What stands before a reply of the provider was taken by it, so it is rather to blame for
    what came later.
    """
    everything = [part for message in messages for part in message.parts]
    is_wanted = _file_filter(words)
    if _MANY.search(words):
        return list(filter(_is_image, _files(everything)))
    if found := [media for media in _files(named) if is_wanted is None or is_wanted(media)]:
        return found
    if is_wanted is None:
        return []
    replies = [
        i for i, m in enumerate(messages) if m.role == "assistant" and m.provider == provider
    ]
    newer = [part for message in messages[max(replies, default=0) :] for part in message.parts]
    return list(filter(is_wanted, _files(newer))) or list(filter(is_wanted, _files(everything)))


def _file_filter(words: str) -> Callable[[Media], bool] | None:
    """Return which files `words` are about, `None` if they are about none."""
    is_about_images, is_about_documents = _IMAGE.search(words), _DOCUMENT.search(words)
    if is_about_images and not is_about_documents:
        return _is_image
    if is_about_documents and not is_about_images:
        return lambda media: not _is_image(media)
    return (lambda _: True) if is_about_images else None


def _is_image(media: Media) -> bool:
    return media.media_type.startswith("image/")


def _files(parts: Iterable[Part]) -> Iterator[Media]:
    for part in parts:
        if isinstance(part, Media):
            yield part
        elif isinstance(part, ToolResult):
            yield from part.media


def _named(files: Sequence[Media]) -> str:
    noun = "image" if all(map(_is_image, files)) else "file"
    if len(files) > 1:
        return f"{len(files)} {noun}s, which are"
    name = " ".join(files[0].name.split())
    return f"the {noun} {name}, which is" if name else f"the {noun}, which is"


def _refused_calls(
    words: str, named: Sequence[Part], messages: tuple[Message, ...]
) -> list[ToolCall]:
    calls = [part for part in named if isinstance(part, ToolCall)]
    return calls or [
        call
        for message in messages
        for call in calls_of(message)
        if re.search(rf"(?<![\w-]){re.escape(call.id)}(?![\w-])", words)
    ]


def _without(message: Message, refused: frozenset[Key]) -> Message:
    parts = tuple(part for raw in message.parts if (part := _replaced(raw, refused)) is not None)
    return message if parts == message.parts else replace(message, parts=parts)


def _replaced(part: Part, refused: frozenset[Key]) -> Part | None:
    match part:
        case Reasoning():
            return None if _key(part) in refused else part
        case Media():
            return Text(_note(part)) if _key(part) in refused else part
        case ToolCall():
            return replace(part, input="{}") if _key(part) in refused else part
        case ToolResult():
            if _key(part) in refused:
                return replace(part, content=REFUSED_RESULT, media=())
            return _without_files(part, refused) if part.media else part
        case _:
            return part


def _without_files(result: ToolResult, refused: frozenset[Key]) -> ToolResult:
    notes = [_note(media) for media in result.media if _key(media) in refused]
    if not notes:
        return result
    media = tuple(media for media in result.media if _key(media) not in refused)
    return replace(result, content="\n\n".join((result.content, *notes)), media=media)


def _note(media: Media) -> str:
    kind = "image" if _is_image(media) else "file"
    name = f" {media.name}" if media.name else ""
    return f"[The {kind}{name} is left out: the provider refused it.]"


def _key(part: Refusable) -> Key:
    match part:
        case Media(data=data):
            return ("media", data)
        case Reasoning(text=text, provider_data=data):
            return ("reasoning", text, json.dumps(dict(data), sort_keys=True))
        case ToolCall(id=call_id, input=arguments):
            return ("call", call_id, arguments)
        case ToolResult(call_id=call_id, content=content):
            return ("result", call_id, content)
