"""The offline provider: an honest, deterministic stand-in that needs no key and no network.

It says what it is, plays a script (`script`) where one is written for the prompt, and
otherwise does plain requests (`requests`, `answers`) with the real tools.
Behind the same port as every other provider, it has no state of its own: what comes next is
read from the history, so the same history gets the same reply, on any machine, after any
restart.
"""

import hashlib
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager

import anyio

from crush_kernel.messages import (
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from crush_kernel.providers.base import (
    ModelInfo,
    ModelRequest,
    ReasoningDelta,
    Stop,
    StreamEvent,
    TextDelta,
    ToolCallStart,
    ToolInputDelta,
    UsageReport,
)
from crush_kernel.providers.offline.answers import INTRODUCTION, answer, closing
from crush_kernel.providers.offline.requests import plan
from crush_kernel.providers.offline.script import (
    ANY_PROMPT,
    ERRORS,
    Reply,
    Script,
    WrittenCall,
    open_script,
)
from crush_kernel.providers.offline.turn import (
    CurrentTurn,
    current_turn,
    in_code,
    recap,
    shortened,
    whole_turn,
)

PROVIDER = "offline"
"""The provider's id, and that of its only model."""

_CHARS_PER_TOKEN = 4
"""The usual guess for English and code."""

_INPUT_PIECE_CHARS = 24
"""How much of a call's arguments comes at once, about as from a real model."""


class OfflineModel:
    """Answers by script and by rule.

    Args:
        info: what the catalog says of it.
        script: what is written for which prompt; by default the script that the
            environment names, or the one of the tour, read once and here.

    Raises:
        ConfigError: the script that the environment names cannot be used.
    """

    def __init__(self, info: ModelInfo, *, script: Script | None = None) -> None:
        self._info = info
        self._script = open_script() if script is None else script

    @property
    def info(self) -> ModelInfo:
        """What is known about the model."""
        return self._info

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        """Yield the reply to `request` word by word; never waits on anything outside.

        Iterating raises the error that a script asks for, after the text before it.
        """
        turn = current_turn(request.messages)
        reply = next_reply(self._script, turn, tools=frozenset(t.name for t in request.tools))
        text = _filled(reply.text, turn)
        introduction = INTRODUCTION if self._script.introduce and _is_first(request) else ""
        async with aclosing(_events(reply, introduction, text, request)) as events:
            yield events

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


def next_reply(script: Script, turn: CurrentTurn, *, tools: frozenset[str]) -> Reply:
    """Return what is said next in `turn`: as written, else by rule."""
    written = script.find(turn.prompt)
    if written is not None and written.prompt != ANY_PROMPT:
        return written.reply(turn) or closing(turn)
    if (carried_on := _reply_carried_on(script, turn)) is not None:
        return carried_on
    if written is not None:
        return written.reply(turn) or closing(turn)
    return answer(plan(turn.prompt), turn, tools=tools)


def _reply_carried_on(script: Script, turn: CurrentTurn) -> Reply | None:
    """Return the next written step after a reply that was cut off at the output limit.

    The agent then asks in words of its own to go on, which is not a new prompt.
    """
    whole = whole_turn(turn)
    written = script.find(whole.prompt) if whole is not turn else None
    return written.reply(whole) if written else None


def _is_first(request: ModelRequest) -> bool:
    """Return whether the conversation has no reply by this provider yet."""
    return not any(message.provider == PROVIDER for message in request.messages)


def _filled(text: str, turn: CurrentTurn) -> str:
    """Return `text` with the places that a script leaves open filled in, in one pass."""
    return re.sub(r"\{result\}|\{recap\}", lambda place: _filling(place[0], turn), text)


def _filling(place: str, turn: CurrentTurn) -> str:
    if place == "{recap}":
        return recap(turn)
    return in_code(shortened(turn.answers[-1].result.content) if turn.answers else "")


async def _events(
    reply: Reply, introduction: str, text: str, request: ModelRequest
) -> AsyncGenerator[StreamEvent]:
    if reply.delay_s:
        await anyio.sleep(reply.delay_s)
    for piece in _words(reply.reasoning):
        yield ReasoningDelta(0, piece)
    for piece in _spoken(introduction, text, reply.repeat):
        # A pace of zero still lets the other tasks, a cancellation among them, have a turn.
        await anyio.sleep(reply.pace_s)
        yield TextDelta(1, piece)
    for number, call in enumerate(reply.tool_calls):
        for event in _call_events(number, call, request):
            yield event
    if reply.error is not None:
        raise ERRORS[reply.error](
            f"The offline script asks for this failure: {reply.error}.",
            provider=PROVIDER,
            retry_after_s=reply.retry_after_s,
        )
    yield UsageReport(_usage(request, reply, introduction, text))
    yield Stop(_stop_reason(reply))


def _spoken(introduction: str, text: str, repeat: int) -> Iterator[str]:
    yield from _words(introduction)
    if introduction and text:
        yield "\n\n"
    for _ in range(repeat if text else 0):
        yield from _words(text)


def _words(text: str) -> Iterator[str]:
    """Yield `text` in pieces of one word with the white space after it."""
    return (match[0] for match in re.finditer(r"\s+\S*\s*|\S+\s*", text))


def _call_events(number: int, call: WrittenCall, request: ModelRequest) -> Iterator[StreamEvent]:
    index = 2 + number
    arguments = call.input if isinstance(call.input, str) else json.dumps(call.input)
    yield ToolCallStart(index, _call_id(number, request), call.name)
    for start in range(0, len(arguments), _INPUT_PIECE_CHARS):
        yield ToolInputDelta(index, arguments[start : start + _INPUT_PIECE_CHARS])


def _call_id(number: int, request: ModelRequest) -> str:
    """Return an id that is the same in every run, and differs within a conversation."""
    place = json.dumps([len(request.messages), current_turn(request.messages).prompt, number])
    return f"call_{hashlib.sha256(place.encode()).hexdigest()[:20]}"


def _stop_reason(reply: Reply) -> StopReason:
    return reply.stop_reason or ("tool_use" if reply.tool_calls else "end_turn")


def _usage(request: ModelRequest, reply: Reply, introduction: str, text: str) -> Usage:
    """Return a guess at the tokens, from the number of characters."""
    calls = sum(len(json.dumps(call.input)) + len(call.name) for call in reply.tool_calls)
    written = len(introduction) + len(reply.reasoning) + len(text) * reply.repeat + calls
    read = len(request.system) + sum(map(_size, request.messages))
    return Usage(
        input_tokens=read // _CHARS_PER_TOKEN,
        output_tokens=written // _CHARS_PER_TOKEN,
        is_estimated=True,
    )


def _size(message: Message) -> int:
    """Return the characters of `message` that a model would read."""
    size = 0
    for part in message.parts:
        match part:
            case Text(text=text) | Reasoning(text=text):
                size += len(text)
            case ToolCall(name=name, input=arguments):
                size += len(name) + len(arguments)
            case ToolResult(content=content):
                size += len(content)
            case _:
                pass
    return size
