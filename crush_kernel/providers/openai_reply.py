"""What servers that speak OpenAI's chat completions say, as stream events.

Bytes in, events out, no I/O. Forgives what servers are known to do wrong: no index, no id,
whole calls at once, names repeated, empty choices, no end mark, no blank line at the end,
one JSON document in place of a stream. Never takes a reply that was cut off for a complete
one.

Pure. Source: OpenAI API reference, "Chat completion chunk"; WHATWG, server-sent events.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final

import pydantic_core
from pydantic import JsonValue

from crush_kernel.errors import ConnectionLost, ProviderError
from crush_kernel.messages import JsonObject, StopReason
from crush_kernel.providers.base import (
    ReasoningData,
    ReasoningDelta,
    Stop,
    StreamEvent,
    TextDelta,
    ToolInputDelta,
    UsageReport,
)
from crush_kernel.providers.failures import cut_off, from_error_event, garbled, overfull
from crush_kernel.providers.openai_calls import ToolCalls
from crush_kernel.providers.openai_wire import REASONING_FIELDS
from crush_kernel.providers.reported import merged, openai_usage
from crush_kernel.providers.sse import EventLines, NotAReply

_STOPS: Final[Mapping[str, StopReason]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "content_filter": "refused",
    "safety": "refused",
}
"""Reasons to stop; what else servers make up means that the reply is over."""

MAX_WORD: Final = 100
"""Characters of a reason that is not known."""

_FAILED_STOPS: Final = frozenset(("error", "insufficient_system_resource"))
"""Reasons that mean that the reply is broken, not over."""


class ReplyDecoder:
    """Adds up one reply and tells its events."""

    def __init__(
        self, provider: str, claim_id: Callable[[str], str], *, secrets: tuple[str, ...] = ()
    ) -> None:
        """Start a reply.

        Args:
            provider: whom to name in errors.
            claim_id: returns the id to use for a call, given the server's, which may be
                empty or taken.
            secrets: texts that must not appear in errors, such as the key.
        """
        self._provider = provider
        self._secrets = secrets
        self._lines = EventLines()
        self._calls = ToolCalls(claim_id, self._next_block)
        self._blocks = 0
        self._open = ""
        self._open_block = 0
        self._field = REASONING_FIELDS[0]
        self._reason = ""
        self._used: JsonObject = {}
        self._halves: dict[str, str] = {}
        self._mends = False
        self._has_spoken = False
        self.is_done = False
        """Whether the end mark has come: nothing that follows matters."""

    @property
    def is_complete(self) -> bool:
        """Whether the server has said that the reply is over; its usage may follow."""
        return bool(self._reason) or self.is_done

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Yield what `chunk` adds to the reply, however the bytes are split.

        Raises:
            ProviderError: the server reports an error, or what it says makes no sense.
            NotAReply: it is no reply at all.
        """
        for data in self._lines.feed(chunk):
            yield from self._event(data)

    def finish(self) -> Iterator[StreamEvent]:
        """Yield what the end of the body adds; the last event is `Stop`.

        Raises:
            ConnectionLost: the reply is not complete.
            ContextTooLong: the reply is over, and there was no room for a word of it.
            NotAReply: it is no reply at all.
        """
        document = self._lines.document
        if document.lstrip().startswith(b"{"):
            yield from self._event(document)
            self.is_done = self._has_spoken
        elif not self.is_done:
            yield from self._tail()
        if not self.is_complete:
            if document:
                raise NotAReply(document)
            raise cut_off(self._provider)
        yield from self._closed()
        yield from self._calls.rest()
        stop = self._stop_reason()
        if stop == "max_tokens" and not self._blocks and not self._has_thought():
            raise overfull(self._provider)
        is_known = not self._reason or self._reason in _STOPS
        yield Stop(stop, "" if is_known else self._reason[:MAX_WORD])

    def _tail(self) -> Iterator[StreamEvent]:
        """Yield what the last event says if it lacks only its blank line."""
        for data in self._lines.flush():
            for line in data.split(b"\n"):
                # Half an event is no news: whether the reply is complete was said before.
                with suppress(ConnectionLost):
                    yield from self._event(line)

    def _event(self, data: bytes) -> list[StreamEvent]:
        """Return what the data of one event says."""
        if data.strip() == b"[DONE]":
            self.is_done = True
            return []
        try:
            document = self._parse(data)
        except ConnectionLost:
            if b"\n" not in data:
                raise
            # Some servers forget the blank lines between events.
            return [event for line in data.split(b"\n") for event in self._event(line)]
        if not isinstance(document, dict):
            raise self._garbled(data)
        return self._document(document)

    def _has_thought(self) -> bool:
        """Return whether the reply had tokens, which some models spend on unseen thinking."""
        usage = openai_usage(self._used)
        return usage is not None and usage.output_tokens > 1

    def _stop_reason(self) -> StopReason:
        """Return why the reply ended; servers disagree on whether calls are a reason."""
        reason = _STOPS.get(self._reason, "end_turn")
        if reason in ("end_turn", "tool_use"):
            return "tool_use" if self._calls else "end_turn"
        return reason

    def _parse(self, data: bytes) -> JsonValue:
        try:
            return pydantic_core.from_json(data)
        except ValueError:
            pass
        try:
            # Slower, and takes lone surrogates: halves of a character that was split.
            document = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise self._garbled(data) from error
        self._mends = True
        return document

    def _garbled(self, data: bytes) -> ConnectionLost:
        return garbled(self._provider, detail=data[:500].decode("utf-8", "replace"))

    def _document(self, document: JsonObject) -> list[StreamEvent]:
        if document.get("error") or document.get("object") == "error":
            raise self._failure(document)
        events: list[StreamEvent] = []
        choices = document.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and not choice.get("index"):
                self._choice(choice, events)
        if counts := _counts(document):
            self._used = merged(self._used, counts)
            if (usage := openai_usage(self._used)) is not None:
                events.append(UsageReport(usage))
        return events

    def _choice(self, choice: JsonObject, events: list[StreamEvent]) -> None:
        self._has_spoken = True
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._delta(delta, events)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            if reason in _FAILED_STOPS:
                raise self._reported(reason, "the reply broke off")
            self._reason = reason

    def _delta(self, delta: JsonObject, events: list[StreamEvent]) -> None:
        """Add what `delta` says to `events`: thinking first, then text, then calls."""
        for field in REASONING_FIELDS:
            thought = delta.get(field)
            if isinstance(thought, str) and thought:
                self._field = field
                self._say("reasoning", thought, events)
                break
        content = delta.get("content")
        if isinstance(content, list):
            for kind, text in _content_texts(content):
                self._say(kind, text, events)
        for text in (content, delta.get("refusal")):
            if isinstance(text, str) and text:
                self._say("text", text, events)
        for call in _call_deltas(delta):
            events += self._closed()
            events += map(self._mended_input, self._calls.feed(call))

    def _say(self, kind: str, text: str, events: list[StreamEvent]) -> None:
        if self._mends and not (text := self._mended(kind, text)):
            return
        if self._open != kind:
            events += self._closed()
            self._open, self._open_block = kind, self._next_block()
        delta = TextDelta if kind == "text" else ReasoningDelta
        events.append(delta(self._open_block, text))

    def _closed(self) -> list[StreamEvent]:
        """End the open block; thinking is then marked with the field that it came in."""
        kind, self._open = self._open, ""
        return (
            [ReasoningData(self._open_block, {"field": self._field})] if kind == "reasoning" else []
        )

    def _mended_input(self, event: StreamEvent) -> StreamEvent:
        if self._mends and isinstance(event, ToolInputDelta):
            return ToolInputDelta(event.index, self._mended(f"call {event.index}", event.text))
        return event

    def _mended(self, kind: str, text: str) -> str:
        """Return `text` with halves of characters joined, and lone ones replaced."""
        text = self._halves.pop(kind, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._halves[kind] = text[-1]
            text = text[:-1]
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _next_block(self) -> int:
        self._blocks += 1
        return self._blocks - 1

    def _failure(self, document: JsonObject) -> ProviderError:
        error = document.get("error") or document
        if not isinstance(error, dict):
            return self._reported("", str(error))
        kinds = (error.get("type"), error.get("code"), error.get("status"))
        known = [kind for kind in kinds if isinstance(kind, int)] or [k for k in kinds if k]
        message = error.get("message") or json.dumps(error)
        return self._reported(str(known[0]) if known else "", str(message))

    def _reported(self, kind: str, message: str) -> ProviderError:
        return from_error_event(self._provider, kind, message[:2_000], secrets=self._secrets)


def _call_deltas(delta: JsonObject) -> list[JsonObject]:
    calls = delta.get("tool_calls")
    found: list[JsonObject] = []
    if isinstance(calls, list):
        found += (
            call
            for call in calls
            if isinstance(call, dict) and isinstance(call.get("function"), dict)
        )
    if isinstance(legacy := delta.get("function_call"), dict):
        found.append({"index": 0, "function": legacy})
    return found


def _content_texts(parts: list[JsonValue]) -> Iterator[tuple[str, str]]:
    """Yield kind and text of content that comes in parts, thinking among them."""
    for part in parts:
        if not isinstance(part, dict):
            continue
        if isinstance(inner := part.get("thinking"), list):
            yield from (("reasoning", text) for _, text in _content_texts(inner))
        elif isinstance(thought := part.get("thinking"), str) and thought:
            yield "reasoning", thought
        elif isinstance(text := part.get("text"), str) and text:
            yield "text", text


def _counts(document: JsonObject) -> JsonObject:
    """Return the token counts of a chunk, wherever it has them."""
    usage = document.get("usage")
    if not isinstance(usage, dict):
        groq = document.get("x_groq")
        usage = groq.get("usage") if isinstance(groq, dict) else None
    return usage if isinstance(usage, dict) else {}
