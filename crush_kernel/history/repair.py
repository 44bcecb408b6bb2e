"""Make a history acceptable to every provider, on every request.

What is stored stays raw; what is sent goes through `repair`: every call is answered
exactly once and directly after its reply, every answer was asked for, ids are unique
and in the alphabet that all providers take, arguments are the text of a JSON object,
nothing is empty or said twice by a replay, no text holds a lone surrogate, no reply ends in
thinking, and parts that no provider knows are put in words or left out. Pure and idempotent.

A history is repaired in units: a reply with all that follows it up to the next one. Of a
unit that is over, nothing changes when the history goes on, which is what `history.repairer`
lives on.

Source: design §4 "Repair"; Anthropic and OpenAI message rules.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, cast

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
    object_text,
    well_formed,
)

INTERRUPTED: Final = (
    "The call was interrupted before it returned a result; what it had done by then is not "
    "known. It can be made again."
)
UNFINISHED: Final = (
    "The call was cut off while its arguments were written: nothing was run. It can be made again."
)
BAD_ARGUMENTS: Final = (
    "The arguments of this call were not a valid JSON object and are left out above."
)
NO_OUTPUT: Final = "(no output)"
UNKNOWN_TOOL: Final = "unknown_tool"
"""Stands on the wire for a tool name that the model made up and no provider takes back."""

_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""The alphabet and length that both Anthropic (64) and OpenAI (40) take."""
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The names of tools that both take."""


def repair(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return `messages` with everything mended that a provider would refuse.

    Args:
        messages: a conversation, oldest first; any prefix, cut, merger or reordering of one.

    Returns:
        A conversation in which each `ToolCall` has exactly one `ToolResult`, in the
        order of the calls, in the message after its reply. Idempotent.
    """
    units = tuple(units_of(messages))
    _bring_home(units)
    ids = Ids()
    return trimmed(tuple(message for unit in units for message in repaired(unit, ids)))


@dataclass(slots=True)
class Unit:
    """A reply, cleaned, and what follows it up to the next one; the first may have no reply."""

    reply: Message | None = None
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    answer: Message | None = None
    """The message that holds `results` and nothing else, if there is one."""
    others: list[Message] = field(default_factory=list[Message])
    """What else follows, all of it the user's."""
    end: int = 0
    """The index of the message that ended it: the next reply, or the end of the history."""
    is_settled: bool = False
    """Whether its results are those of its calls, one by one; known once it has ended."""

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing yet."""
        return self.reply is None and not self.others and not self.results

    def answers(self) -> list[ToolResult | None]:
        """Return the result of each call, in their order.

        Results that bear the id of several calls are dealt out in turn; what is left over is
        ignored, first of all that a call was interrupted.
        """
        if self.is_settled:
            return list(self.results)
        given: dict[str, list[ToolResult]] = {}
        for result in self.results:
            given.setdefault(result.call_id, []).append(result)
        for call_id, count in Counter(call.id for call in self.calls).items():
            if len(given.get(call_id, ())) > count:
                given[call_id].sort(key=lambda result: result.content == INTERRUPTED)
        left = {call_id: iter(results) for call_id, results in given.items()}
        return [next(left.get(call.id, iter(())), None) for call in self.calls]

    def open_ids(self) -> list[str]:
        """Return the ids of the calls that have no result here."""
        answers = zip(self.calls, self.answers(), strict=True)
        return [call.id for call, answer in answers if answer is None]

    def strays(self) -> list[ToolResult]:
        """Return the results that no call here has asked for."""
        asked = {call.id for call in self.calls}
        return [result for result in self.results if result.call_id not in asked]


def units_of(messages: Iterable[Message], start: int = 0) -> Iterator[Unit]:
    """Yield the units of `messages`, cleaned, the last one as far as it goes.

    Args:
        messages: from the beginning of a unit on.
        start: the index of the first of `messages` in the history.
    """
    unit, index = Unit(), start - 1
    for index, message in enumerate(messages, start):
        said, results = _cleaned(message)
        if said is not None and said.role == "assistant" and not _is_replay(said, unit):
            if not unit.is_empty:
                yield _ended(unit, index)
            unit = Unit(said, calls_of(said))
        elif said is not None and said.role == "user":
            unit.others.append(said)
        if results:
            unit.answer = message if results == message.parts and not unit.results else None
            unit.results += results
    if not unit.is_empty:
        yield _ended(unit, index + 1)


def repaired(unit: Unit, ids: "Ids") -> tuple[Message, ...]:
    """Return `unit` as it may be sent: its reply, the answers to its calls, and the rest."""
    if unit.reply is None:
        return tuple(unit.others)
    if not unit.calls:
        return (unit.reply, *unit.others)
    calls = tuple([_sent_call(call, ids.fresh(call.id)) for call in unit.calls])
    is_same = calls == unit.calls
    if is_same and unit.is_settled and unit.answer is not None:
        return (unit.reply, unit.answer, *unit.others)
    answers = tuple(
        _answer(sent.id, answer, raw=call.input if object_text(call.input) is None else None)
        for sent, call, answer in zip(calls, unit.calls, unit.answers(), strict=True)
    )
    reply = unit.reply if is_same else _with_calls(unit.reply, calls)
    return (reply, Message("tool", answers), *unit.others)


def trimmed(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return `messages` without blanks at the end of a reply that is the last of them.

    Anthropic refuses them there, and only there.
    """
    if not messages or messages[-1].role != "assistant":
        return messages
    *parts, last = messages[-1].parts
    if not isinstance(last, Text) or last.text == (text := last.text.rstrip()):
        return messages
    return (*messages[:-1], replace(messages[-1], parts=(*parts, replace(last, text=text))))


class Ids:
    """Gives every call an id that no earlier call has, its own where that will do."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        self._given: list[tuple[str, str, int]] = []

    @property
    def count(self) -> int:
        """How many were given."""
        return len(self._given)

    def fresh(self, wanted: str) -> str:
        """Return an id for the next call, as much like `wanted` as can be."""
        name = wanted if _ID.fullmatch(wanted) else re.sub(r"[^a-zA-Z0-9_-]", "_", wanted)[:40]
        name = name or "call"
        base = name[:32]
        before = number = self._next.get(base, 2)
        if name in self._taken:
            while (name := f"{base}_{number}") in self._taken:
                number += 1
            self._next[base] = number + 1
        self._given.append((name, base, before))
        self._taken.add(name)
        return name

    def take_back(self, count: int) -> None:
        """Forget all but the first `count` ids, as if they had never been given."""
        for name, base, number in reversed(self._given[count:]):
            self._taken.discard(name)
            self._next[base] = number
        del self._given[count:]


def _bring_home(units: Iterable[Unit]) -> None:
    """Give results that came after another reply to the last call before them that has none."""
    waiting: dict[str, list[Unit]] = {}
    for unit in units:
        if unit.is_settled:
            continue
        for result in unit.strays():
            if places := waiting.get(result.call_id):
                home = places.pop()
                home.results += (result,)
                home.answer = None  # no longer all of them
        for call_id in unit.open_ids():
            waiting.setdefault(call_id, []).append(unit)


def _ended(unit: Unit, end: int) -> Unit:
    unit.end = end
    asked = [call.id for call in unit.calls]
    unit.is_settled = asked == [result.call_id for result in unit.results]
    return unit


def _is_replay(reply: Message, unit: Unit) -> bool:
    """Return whether `reply` is that of `unit` over again, its calls with their ids and all."""
    return bool(unit.calls) and not unit.others and not unit.results and reply == unit.reply


def _cleaned(message: Message) -> tuple[Message | None, tuple[ToolResult, ...]]:
    """Return what `message` says once it is cleaned, and the results that it holds.

    `None` if it says nothing. What is not said in a reply is said by the user.
    """
    if not _is_clean(message):
        return _clean(message)
    if message.role == "tool":
        return None, cast("tuple[ToolResult, ...]", message.parts)
    return message, ()


def _is_clean(message: Message) -> bool:
    """Return whether `message` is one of the many that need no closer look.

    It need not know every clean one, but it must be quick.
    """
    role, parts = message.role, message.parts
    if not parts or len(parts) > 2 or (len(parts) == 2 and isinstance(parts[0], ToolCall)):
        return False  # there may be a call twice
    for part in parts:
        match part:
            case Text() if role != "tool":
                text = part.text
            case ToolResult() if role == "tool":
                text = part.content
            case ToolCall() if role == "assistant":
                continue
            case _:
                return False
        if not text or text.isspace() or well_formed(text) is not text:
            return False
    return True


def _clean(message: Message) -> tuple[Message | None, tuple[ToolResult, ...]]:
    said: list[Part] = []
    results: list[ToolResult] = []
    for raw in message.parts:
        part = _clean_part(raw, message.role)
        if isinstance(part, ToolResult):
            results.append(part)
        elif part is not None:
            said.append(part)
    role: Role = "user"
    if message.role == "assistant":
        role, said = "assistant", _clean_reply(said)
    if not said:
        return None, tuple(results)
    parts = tuple(said)
    if role == message.role and parts == message.parts:
        return message, ()
    return replace(message, role=role, parts=parts), tuple(results)


def _clean_reply(parts: list[Part]) -> list[Part]:
    """Return `parts` without calls that were replayed, and without thinking that led nowhere."""
    while parts and isinstance(parts[-1], Reasoning):
        parts = parts[:-1]
    if len([part for part in parts if isinstance(part, ToolCall)]) < 2:
        return parts
    return [
        part
        for index, part in enumerate(parts)
        if not isinstance(part, ToolCall) or part not in parts[:index]
    ]


def _clean_part(part: Part, role: Role) -> Part | None:
    """Return `part` as it may be sent in a message of `role`, `None` to leave it out."""
    match part:
        case Text():
            if not part.text or part.text.isspace():
                return None
            return part if part.text.isascii() else _clean_text(part)
        case ToolResult():
            return _clean_result(part)
        case Reasoning() | ToolCall():
            return part if role == "assistant" else None
        case ShellCommand():
            return Text(_told(part))
        case Media():
            return part if role != "assistant" else None
        case SummaryMark() | Opaque():
            return None


def _clean_text(text: Text) -> Text:
    clean = well_formed(text.text)
    return text if clean is text.text else replace(text, text=clean)


def _clean_result(result: ToolResult) -> ToolResult:
    content = well_formed(result.content) if _says_something(result.content) else NO_OUTPUT
    return result if content is result.content else replace(result, content=content)


def _told(command: ShellCommand) -> str:
    """Return what the user did, in the user's words."""
    output = command.output if _says_something(command.output) else NO_OUTPUT
    return well_formed(
        f"I ran `{command.command}` myself; exit code {command.exit_code}. It printed:\n\n{output}"
    )


def _says_something(text: str) -> bool:
    return bool(text) and not text.isspace()


def _with_calls(reply: Message, calls: Iterable[ToolCall]) -> Message:
    """Return `reply` with `calls` in the places of its own."""
    fresh = iter(calls)
    parts = tuple(next(fresh) if isinstance(part, ToolCall) else part for part in reply.parts)
    return replace(reply, parts=parts)


def _sent_call(call: ToolCall, call_id: str) -> ToolCall:
    name = call.name if _NAME.fullmatch(call.name) else UNKNOWN_TOOL
    arguments = object_text(call.input)
    if call_id == call.id and name is call.name and arguments is call.input:
        return call
    return ToolCall(call_id, name, "{}" if arguments is None else arguments)


def _answer(call_id: str, answer: ToolResult | None, *, raw: str | None) -> ToolResult:
    """Return `answer` as the one to the call `call_id`, or one that says why there is none.

    Args:
        call_id: the id that the call is sent with.
        answer: what was kept, if anything.
        raw: the arguments, if they are none and the call is sent without.
    """
    if answer is None or (answer.content == INTERRUPTED and raw is not None):
        reason = INTERRUPTED if raw is None else UNFINISHED
        return ToolResult(call_id, reason, is_error=True)
    if raw and answer.is_error and "JSON" not in answer.content:
        return replace(answer, call_id=call_id, content=f"{BAD_ARGUMENTS} {answer.content}")
    return answer if answer.call_id == call_id else replace(answer, call_id=call_id)
