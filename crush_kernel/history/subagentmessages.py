"""What a sub-agent says, as it is kept: message by message in the journal, then with its call.

Pure. A sub-agent may read a whole project in order to answer in a line, so only the ends of
long texts are kept, and of very many messages the first and the last ones. What it has used is
told with its record and counts for the turn in which it ran, see `spent_by`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue
from pydantic_core import to_json

from crush_kernel.history.messagejson import read_usage, write_value
from crush_kernel.history.plainjson import plain
from crush_kernel.history.repair import INTERRUPTED
from crush_kernel.history.subagentrecord import (
    KEY,
    MAX_MODELS,
    SubagentEnd,
    SubagentRecord,
    write_subagent,
)
from crush_kernel.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    ShellCommand,
    SummaryMark,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from crush_kernel.wording import clipped

MAX_RECORD_BYTES: Final = 58_000
"""Of all messages of one record, as JSON; what stands beside them takes little."""

MAX_MESSAGE_BYTES: Final = 16_000
"""Of one message, as JSON: a reply may make a hundred calls at once."""

MAX_NAME_CHARS: Final = 200
"""Of ids and names, which a model may make as long as it likes."""

MAX_LABEL_CHARS: Final = 512

_LIMITS: Final = (2_000, 500, 100)
"""Bytes of one text: the first with which its message is short enough is taken."""

_MAX_PARTS: Final = 24
"""Of a message that no limit makes short enough."""

_KEPT_FACTS: Final = ("summary", "permission", "diff")
"""Of what is told to people with a result."""


@dataclass(frozen=True, slots=True)
class Nested:
    """A sub-agent has said something, or its calls were answered."""

    call_id: str
    """The call that has started the sub-agent."""
    agent: str
    """The sub-agent's name."""
    model: str
    """The model that it asks, as `provider/model`."""
    message: Message


def shortened(message: Message) -> Message:
    """Return `message` as it is kept: bounded, without files, times and what providers want back.

    Idempotent. Take secrets out before: half of one is not recognized any more.
    """
    for limit in _LIMITS:
        short = replace(message, parts=tuple(_parts(message.parts, limit)))
        if size_of(short) <= MAX_MESSAGE_BYTES:
            return short
    few = tuple(_parts(message.parts, _LIMITS[-1]))
    return replace(message, parts=few[:_MAX_PARTS])


def bounded(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return messages that are `shortened`, without the middle ones if they are too many."""
    sizes = [size_of(message) for message in messages]
    if sum(sizes) <= MAX_RECORD_BYTES:
        return tuple(messages)
    left = MAX_RECORD_BYTES - sizes[0] - _NOTE_BYTES
    first = len(messages)
    while first > 1 and sizes[first - 1] <= left:
        first -= 1
        left -= sizes[first]
    note = f"[… {first - 1} messages are not kept …]"
    return (messages[0], Message("user", (Text(note),)), *messages[first:])


_NOTE_BYTES: Final = 200
"""What the note about messages that are not kept takes at most."""


def size_of(message: Message) -> int:
    """Return how many bytes `message` takes as JSON."""
    return len(to_json(plain(write_value(message))))


def facts_of(
    said: Sequence[Nested], *, end: SubagentEnd, usage: dict[str, Usage] | None = None
) -> dict[str, JsonValue]:
    """Return what the result of a call tells of the sub-agent that has said `said`.

    Args:
        said: in order, all by one sub-agent, the messages `shortened`; not empty.
        end: how it ended.
        usage: what it has used by model; by default what its messages say.
    """
    messages = tuple(each.message for each in said)
    record = SubagentRecord(
        name=said[0].agent[:MAX_NAME_CHARS],
        model=said[0].model[:MAX_LABEL_CHARS],
        end=end,
        usage=_own_usage(messages) if usage is None else usage,
        messages=bounded(messages),
    )
    return {KEY: dict(write_subagent(record))}


def cut_short(call_id: str, said: Sequence[Nested]) -> ToolResult:
    """Return the result of a call whose sub-agent ended with the kernel."""
    facts: dict[str, JsonValue] = {"summary": "interrupted"}
    return ToolResult(
        call_id, INTERRUPTED, is_error=True, metadata=facts | facts_of(said, end="interrupted")
    )


def spent_by(message: Message) -> Iterator[tuple[str, Usage]]:
    """Yield what `message` has used, and what the sub-agents have whose results it holds.

    By `provider/model`; one may come several times.
    """
    if message.usage:
        yield f"{message.provider}/{message.model}", message.usage
    for part in message.parts:
        if isinstance(part, ToolResult) and KEY in part.metadata:
            yield from _usage_in(part.metadata[KEY])


def summed(spent: Iterable[tuple[str, Usage]]) -> dict[str, Usage]:
    """Return `spent` by model, each once."""
    sums: dict[str, Usage] = {}
    for label, usage in spent:
        sums[label] = sums.get(label, Usage()) + usage
    return sums


def _own_usage(messages: Iterable[Message]) -> dict[str, Usage]:
    return summed(pair for message in messages for pair in spent_by(message))


def _usage_in(record: JsonValue) -> Iterator[tuple[str, Usage]]:
    """Yield what a record says was used; it may come from anybody's notebook."""
    told = record.get("usage") if isinstance(record, dict) else None
    if not isinstance(told, dict):
        return
    for label, raw in list(told.items())[:MAX_MODELS]:
        if len(label) <= MAX_LABEL_CHARS and (usage := read_usage(raw)) is not None:
            yield label, usage


def _parts(parts: Iterable[Part], limit: int) -> Iterator[Part]:
    for part in parts:
        match part:
            case Text(text=text):
                yield Text(_ends(text, limit))
            case Reasoning(text=text) if text.strip():
                yield Reasoning(_ends(text, limit))
            case ToolCall(id=call_id, name=name, input=arguments):
                # Half of some JSON is none, and as it is sent to nobody it need not be.
                yield ToolCall(_name(call_id), _name(name), _ends(arguments, limit))
            case ToolResult():
                yield _result(part, limit)
            case Media(media_type=media_type, name=name):
                yield Text(_name(f"[{name or media_type}]"))
            case ShellCommand(command=command):
                yield Text(_ends(f"!{command}", limit))
            case SummaryMark(covers=covers):
                yield SummaryMark(_name(covers))
            case Reasoning() | Opaque():
                pass


def _result(result: ToolResult, limit: int) -> ToolResult:
    told = ((name, result.metadata.get(name)) for name in _KEPT_FACTS)
    return ToolResult(
        call_id=_name(result.call_id),
        content=_ends(result.content, limit),
        is_error=result.is_error,
        metadata={name: _ends(value, limit) for name, value in told if isinstance(value, str)},
    )


def _name(text: str) -> str:
    return clipped(text, MAX_NAME_CHARS)


_LEFT_OUT: Final = "\n[… not kept …]\n"


def _ends(text: str, limit: int) -> str:
    """Return `text` in at most `limit` bytes of UTF-8, its middle left out."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    half = (limit - len(_LEFT_OUT.encode())) // 2
    head, tail = (piece.decode("utf-8", "ignore") for piece in (data[:half], data[-half:]))
    return f"{head}{_LEFT_OUT}{tail}"
