"""Histories as they are, and as crashes, merges, editors and careless programs leave them."""

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from hypothesis import settings
from hypothesis import strategies as st

from crush_kernel.history.repair import INTERRUPTED
from crush_kernel.messages import (
    JsonObject,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    ShellCommand,
    Text,
    ToolCall,
    ToolResult,
)

PROVIDER: Final = "anthropic"
MODEL: Final = "m"

PNG: Final = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()
PDF: Final = base64.b64encode(b"%PDF-1.7 rest").decode()

SOME: Final = settings(max_examples=40)
"""For laws about histories, which take a while to draw."""

History: TypeAlias = tuple[Message, ...]
Damage: TypeAlias = Callable[[list[Message], int, int], list[Message]]
"""Returns a history in which something is wrong around the message `i`, by way of `n`."""


def thinking(text: str) -> Reasoning:
    """Return thinking as Anthropic signs it."""
    block: JsonObject = {"type": "thinking", "thinking": text, "signature": f"sig+/{text}="}
    return Reasoning(text, block)


def user(*parts: Part) -> Message:
    return Message("user", parts)


def reply(*parts: Part) -> Message:
    return Message("assistant", parts, PROVIDER, MODEL)


def results(*parts: Part) -> Message:
    return Message("tool", parts)


@st.composite
def sound_histories(draw: st.DrawFn) -> History:
    """Draw a history in which nothing is wrong; no text and no id is there twice."""
    messages: list[Message] = []
    number = 0

    def fresh(word: str) -> str:
        nonlocal number
        number += 1
        return f"{word}{number}"

    def step(*, calls: int, has_thinking: bool, has_file: bool) -> None:
        asked = [ToolCall(fresh("toolu_"), "view", '{"path": "a"}') for _ in range(calls)]
        said = [thinking(fresh("thought"))] if has_thinking else []
        messages.append(reply(*said, Text(fresh("said")), *asked))
        files = (Media("image/png", PNG, "a.png"),) if has_file else ()
        answers = [ToolResult(call.id, fresh("result"), media=files) for call in asked]
        if answers:
            messages.append(results(*answers))

    for _ in range(draw(st.integers(1, 3))):
        files = [Media("application/pdf", PDF, "b.pdf")] if draw(st.booleans()) else []
        messages.append(user(Text(fresh("prompt")), *files))
        for _ in range(draw(st.integers(0, 2))):
            step(
                calls=draw(st.integers(1, 2)),
                has_thinking=draw(st.booleans()),
                has_file=draw(st.booleans()),
            )
        step(calls=0, has_thinking=draw(st.booleans()), has_file=False)
    return tuple(messages)


def _cut_front(messages: list[Message], i: int, _: int) -> list[Message]:
    return messages[i:]


def _cut_end(messages: list[Message], i: int, _: int) -> list[Message]:
    return messages[:i]


def _drop(messages: list[Message], i: int, _: int) -> list[Message]:
    return messages[:i] + messages[i + 1 :]


def _repeat(messages: list[Message], i: int, n: int) -> list[Message]:
    place = (i + n) % (len(messages) + 1)
    return [*messages[:place], messages[i], *messages[place:]]


def _move(messages: list[Message], i: int, n: int) -> list[Message]:
    rest = _drop(messages, i, 0)
    place = (i + n) % (len(rest) + 1)
    return [*rest[:place], messages[i], *rest[place:]]


def _merge(messages: list[Message], i: int, _: int) -> list[Message]:
    first, *others = messages[i : i + 2]
    parts = (*first.parts, *(part for other in others for part in other.parts))
    return [*messages[:i], replace(first, parts=parts), *messages[i + 2 :]]


def _insert(*parts: Part, role: str = "user") -> Damage:
    def insert(messages: list[Message], i: int, _: int) -> list[Message]:
        message = reply(*parts) if role == "assistant" else user(*parts)
        return [*messages[:i], message, *messages[i:]]

    return insert


def _cut_parts(messages: list[Message], i: int, n: int) -> list[Message]:
    parts = messages[i].parts
    return _changed(messages, i, parts[: n % (len(parts) + 1)])


def _repeat_part(messages: list[Message], i: int, n: int) -> list[Message]:
    parts = messages[i].parts
    return _changed(messages, i, (*parts, *parts[n % max(len(parts), 1) :][:1]))


def _changed(messages: list[Message], i: int, parts: tuple[Part, ...]) -> list[Message]:
    return [*messages[:i], replace(messages[i], parts=parts), *messages[i + 1 :]]


def _each(change: Callable[[Part], Part]) -> Damage:
    """Return the damage that changes every part of one message."""

    def damage(messages: list[Message], i: int, _: int) -> list[Message]:
        return _changed(messages, i, tuple(map(change, messages[i].parts)))

    return damage


def _everywhere(change: Callable[[Part], Part]) -> Damage:
    def damage(messages: list[Message], _: int, __: int) -> list[Message]:
        return [replace(m, parts=tuple(map(change, m.parts))) for m in messages]

    return damage


def _with_id(call_id: str) -> Callable[[Part], Part]:
    def change(part: Part) -> Part:
        if isinstance(part, ToolCall):
            return replace(part, id=call_id)
        return replace(part, call_id=call_id) if isinstance(part, ToolResult) else part

    return change


def _with_arguments(raw: str) -> Callable[[Part], Part]:
    def change(part: Part) -> Part:
        return replace(part, input=raw) if isinstance(part, ToolCall) else part

    return change


def _blank(part: Part) -> Part:
    return Text(" \n") if isinstance(part, Text) else part


def _torn(part: Part) -> Part:
    match part:
        case Text(text=text):
            return Text(f"{text}\ud83d ")
        case ToolResult(content=content):
            return replace(part, content=f"{content}\udc00")
        case _:
            return part


def _unsigned(part: Part) -> Part:
    return Reasoning(part.text) if isinstance(part, Reasoning) else part


def _other_thinking(part: Part) -> Part:
    if not isinstance(part, Reasoning):
        return part
    return replace(part, provider_data={**part.provider_data, "thinking": "something else"})


def _marked(part: Part) -> Part:
    if not isinstance(part, Reasoning):
        return part
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    return replace(part, provider_data={**part.provider_data, **mark})


def _broken_file(part: Part) -> Part:
    match part:
        case Media():
            return replace(part, data=f"{part.data}%")
        case ToolResult(media=media):
            return replace(part, media=tuple(replace(file, data="aGk=") for file in media))
        case _:
            return part


def _interrupted_too(part: Part) -> Part:
    if isinstance(part, ToolResult):
        return replace(part, content=INTERRUPTED, is_error=True)
    return part


def _answer_twice(messages: list[Message], i: int, _: int) -> list[Message]:
    again = _each(_interrupted_too)([messages[i]], 0, 0)
    return [*messages[: i + 1], *again, *messages[i + 1 :]]


DAMAGES: Final[dict[str, Damage]] = {
    "cut at the front": _cut_front,
    "cut at the end": _cut_end,
    "a message lost": _drop,
    "a message repeated": _repeat,
    "a message moved": _move,
    "two messages merged": _merge,
    "the parts cut": _cut_parts,
    "a part repeated": _repeat_part,
    "answered again as interrupted": _answer_twice,
    "steered": _insert(Text("steering")),
    "a command in between": _insert(ShellCommand("ls", "a\ud800", 0)),
    "an empty message": _insert(),
    "a blank message": _insert(Text("\t\n")),
    "a part from the future": _insert(Opaque({"kind": "new"})),
    "a stray result": _insert(ToolResult("gone", "42 lines")),
    "a thought that led nowhere": _insert(thinking("cut off"), role="assistant"),
    "blank texts": _each(_blank),
    "torn texts": _each(_torn),
    "no arguments": _each(_with_arguments("")),
    "arguments cut off": _each(_with_arguments('{"path": "sr')),
    "a list of arguments": _each(_with_arguments("[1]")),
    "arguments with raw line breaks": _each(_with_arguments('{"a": "b\nc\\ud800"}')),
    "arguments that are no JSON": _each(_with_arguments('{"a": NaN, "b": 1e999}')),
    "an id elsewhere": _each(_with_id("functions.view:0|é")),
    "no id": _each(_with_id("")),
    "a long id": _each(_with_id("x" * 90)),
    "the same id everywhere": _everywhere(_with_id("call_1")),
    "no signature": _each(_unsigned),
    "other thinking": _each(_other_thinking),
    "a cache mark": _everywhere(_marked),
    "broken files": _each(_broken_file),
}


@st.composite
def damaged_histories(draw: st.DrawFn) -> History:
    """Draw a history to which up to five things have happened, in any order."""
    messages = list(draw(sound_histories()))
    for name in draw(st.lists(st.sampled_from(sorted(DAMAGES)), max_size=5)):
        if messages:
            i = draw(st.integers(0, len(messages) - 1))
            messages = DAMAGES[name](messages, i, draw(st.integers(0, 9)))
    return tuple(messages)
