"""What Anthropic's messages API streams, as stream events: bytes in, events out, no I/O.

The event's type is in its data; kinds of events, blocks and deltas that are not known are
passed over, as Anthropic asks its clients to do. A reply is complete when both its stop
reason and `message_stop` have come.

Pure. Source: Anthropic, "Streaming messages"; "Stop reasons".
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from pydantic import JsonValue
from pydantic_core import from_json

from crush_kernel.errors import ProviderError
from crush_kernel.messages import StopReason
from crush_kernel.providers.base import (
    ReasoningData,
    ReasoningDelta,
    Stop,
    StreamEvent,
    TextDelta,
    ToolCallStart,
    ToolInputDelta,
    UsageReport,
)
from crush_kernel.providers.failures import cut_off, from_error_event, garbled, overfull
from crush_kernel.providers.reported import anthropic_usage, merged
from crush_kernel.providers.sse import EventLines, NotAReply

_WINDOW_IS_FULL: Final = "model_context_window_exceeded"
_STOPS: Final[Mapping[str, StopReason]] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "pause_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    _WINDOW_IS_FULL: "max_tokens",
    "refusal": "refused",
}
"""Reasons to stop; one that is not known means that the reply is over."""

MAX_WORD: Final = 100
"""Characters of a reason that is not known."""

_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")

_Event: TypeAlias = dict[str, JsonValue]


class ReplyDecoder:
    """Adds up one reply and tells its events."""

    def __init__(self, provider: str, *, secrets: tuple[str, ...] = ()) -> None:
        """Start a reply.

        Args:
            provider: whom to name in errors.
            secrets: texts that must not appear in errors, such as the key.
        """
        self._provider = provider
        self._secrets = secrets
        self._lines = EventLines()
        self._blocks: dict[int, _Event] = {}
        self._thinking: dict[int, list[str]] = {}
        self._signatures: dict[int, list[str]] = {}
        self._has_input: set[int] = set()
        self._counts: _Event = {}
        self._reason = ""
        self.is_done = False
        """Whether `Stop` was told: nothing that follows matters."""

    @property
    def is_complete(self) -> bool:
        """Whether the reply is over."""
        return self.is_done

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Yield what `chunk` adds to the reply, however the bytes are split.

        Raises:
            ProviderError: the provider reports an error, or what it says makes no sense.
            NotAReply: it is no reply at all.
        """
        for data in self._lines.feed(chunk):
            yield from self._event(_parsed(data, self._provider))

    def finish(self) -> Iterator[StreamEvent]:
        """Yield what the end of the stream adds.

        Raises:
            ConnectionLost: the reply is not complete.
            NotAReply: it is no reply at all.
        """
        if not self.is_done:
            for data in self._lines.flush():
                yield from self._event(_last(data))
        if not self.is_done:
            if document := self._lines.document:
                raise NotAReply(document)
            raise cut_off(self._provider)

    def _event(self, event: _Event) -> Sequence[StreamEvent]:
        if self.is_done:
            return ()
        match event.get("type"):
            case "content_block_delta":
                return self._delta(_index(event), _object(event, "delta"))
            case "content_block_start":
                return self._block_start(_index(event), _object(event, "content_block"))
            case "content_block_stop":
                return self._block_stop(_index(event))
            case "message_start":
                return self._used(_object(event, "message"))
            case "message_delta":
                self._reason = _text(_object(event, "delta"), "stop_reason") or self._reason
                return self._used(event)
            case "message_stop" if self._reason:
                self.is_done = True
                if self._reason == _WINDOW_IS_FULL and not self._blocks:
                    raise overfull(self._provider)
                unknown = "" if self._reason in _STOPS else self._reason[:MAX_WORD]
                return (Stop(_STOPS.get(self._reason, "end_turn"), unknown),)
            case "error":
                raise self._failure(_object(event, "error"))
            case _:
                return ()

    def _block_start(self, index: int, block: _Event) -> Sequence[StreamEvent]:
        self._blocks[index] = block
        match block.get("type"):
            case "text" if text := _text(block, "text"):
                return (TextDelta(index, text),)
            case "thinking" if text := _text(block, "thinking"):
                return (ReasoningDelta(index, text),)
            case "redacted_thinking":
                return (ReasoningData(index, block),)
            case "tool_use":
                return (ToolCallStart(index, id=_text(block, "id"), name=_text(block, "name")),)
            case _:
                return ()

    def _delta(self, index: int, delta: _Event) -> Sequence[StreamEvent]:
        match delta.get("type"):
            case "text_delta":
                return (TextDelta(index, _text(delta, "text")),)
            case "input_json_delta" if self._kind(index) == "tool_use":
                self._has_input.add(index)
                return (ToolInputDelta(index, _text(delta, "partial_json")),)
            case "thinking_delta":
                self._thinking.setdefault(index, []).append(text := _text(delta, "thinking"))
                return (ReasoningDelta(index, text),)
            case "signature_delta":
                self._signatures.setdefault(index, []).append(_text(delta, "signature"))
                return ()
            case _:
                return ()

    def _block_stop(self, index: int) -> Sequence[StreamEvent]:
        block = self._blocks.get(index, {})
        match block.get("type"):
            case "thinking":
                return self._signed(index, block)
            case "tool_use" if index not in self._has_input and block.get("input"):
                # Some servers that copy the API send the input whole, with the start.
                return (ToolInputDelta(index, json.dumps(block["input"], ensure_ascii=False)),)
            case _:
                return ()

    def _signed(self, index: int, block: _Event) -> Sequence[StreamEvent]:
        """Return the block as it has to come back; one without a signature may not."""
        thinking = "".join((_text(block, "thinking"), *self._thinking.get(index, ())))
        signature = "".join((_text(block, "signature"), *self._signatures.get(index, ())))
        if not signature:
            return ()
        return (ReasoningData(index, {**block, "thinking": thinking, "signature": signature}),)

    def _failure(self, error: _Event) -> ProviderError:
        kind, message = _text(error, "type"), _text(error, "message")
        return from_error_event(self._provider, kind, message, secrets=self._secrets)

    def _used(self, holder: _Event) -> Sequence[StreamEvent]:
        """Return the counts so far: those of `holder` replace earlier ones, one by one."""
        counts = _object(holder, "usage")
        if not counts:
            return ()
        self._counts = merged(self._counts, counts)
        usage = anthropic_usage(self._counts)
        return () if usage is None else (UsageReport(usage),)

    def _kind(self, index: int) -> str:
        return _text(self._blocks.get(index, {}), "type")


def _parsed(data: bytes, provider: str) -> _Event:
    try:
        return _as_object(_loads(data))
    except (ValueError, RecursionError) as error:
        detail = data[:200].decode("utf-8", "replace")
        raise garbled(provider, detail=f"{error}: {detail}") from error


def _last(data: bytes) -> _Event:
    """Return the event at the end of a stream, nothing if it was cut off."""
    try:
        return _as_object(_loads(data))
    except (ValueError, RecursionError):
        return {}


def _loads(data: bytes) -> JsonValue:
    try:
        return from_json(data)
    except ValueError:
        # Slower, and takes the lone surrogates that a careless server lets through.
        text = json.dumps(json.loads(data), ensure_ascii=False)
        return from_json(_SURROGATE.sub("\ufffd", text))


def _as_object(value: JsonValue) -> _Event:
    return value if isinstance(value, dict) else {}


def _object(event: _Event, key: str) -> _Event:
    value = event.get(key)
    return value if isinstance(value, dict) else {}


def _text(event: _Event, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _index(event: _Event) -> int:
    value = event.get("index")
    return value if isinstance(value, int) else 0
