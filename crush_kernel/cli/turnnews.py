"""What is new in a turn that is told again and again, as it grows.

Pure, with one mutable owner per run of a cell: records go in, events come out, each once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from crush_kernel.cli.runevents import (
    PermissionDenied,
    RunEvent,
    SubagentCalled,
    Text,
    ToolAnswered,
    ToolCalled,
)
from crush_kernel.cli.unasked import DENIED_ATTACHMENT, is_unasked, is_unasked_attachment
from crush_kernel.history.subagentrecord import NestedCall, nested_calls, subagent_of
from crush_kernel.history.summary import is_summary
from crush_kernel.history.turn import Turn
from crush_kernel.kernel.plaintext import visible
from crush_kernel.messages import Message, ToolResult, calls_of, text_of
from crush_kernel.messages import Text as TextPart
from crush_kernel.wording import clipped

MAX_TEXT_CHARS = 100_000
MAX_INPUT_CHARS = 2_000
MAX_LINE_CHARS = 200

DENIED = "denied"
"""The summary of a call that was refused."""


@dataclass(slots=True)
class TurnNews:
    """Reads the growing record of one cell's turn."""

    cell: str
    denied: int = 0
    """How often something was refused so far."""
    unasked: int = 0
    """How often of these because nobody could be asked."""
    model: str = ""
    """The label of the model that replied last."""
    usage: dict[str, int] | None = None
    """What the turn has used so far."""
    has_turn: bool = False
    """Whether the kernel has told anything."""
    _messages: tuple[Message, ...] = ()
    _seen: int = 0
    """How many messages were told."""
    _answered: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    """Results that were told, by message and position."""
    _names: dict[str, str] = field(default_factory=dict[str, str])
    """The tools that were called, by call id."""

    def grow(self, index: int, messages: Sequence[Message]) -> Iterator[RunEvent]:
        """Yield what `messages` say, of a turn that goes on; they stand from `index` on."""
        self._messages = (*self._messages[:index], *messages)
        yield from self.feed(Turn(self.cell, messages=self._messages))

    def feed(self, turn: Turn) -> Iterator[RunEvent]:
        """Yield what `turn` says beyond what it said before, in its order."""
        self.has_turn = True
        self.usage = asdict(turn.usage) if turn.usage.context_tokens else self.usage
        for index, message in enumerate(turn.messages):
            if message.role == "tool":
                yield from self._results(index, message)
            elif index >= self._seen and _is_complete(turn, index):
                yield from self._prompt(message) if message.role == "user" else self._reply(message)
            else:
                continue
            self._seen = max(self._seen, index + 1)
        # A reply that was taken back is told anew when it is made anew.
        self._seen = min(self._seen, len(turn.messages))

    def _prompt(self, message: Message) -> Iterator[RunEvent]:
        """Yield a denial for each file that a prompt mentions and that may not be read."""
        for part in () if is_summary(message) else message.parts[1:]:
            if isinstance(part, TextPart) and DENIED_ATTACHMENT in part.text[:MAX_INPUT_CHARS]:
                self.denied += 1
                self.unasked += is_unasked_attachment(part.text)
                yield PermissionDenied(self.cell, "attach", line(part.text.strip("[]")))

    def _reply(self, message: Message) -> Iterator[RunEvent]:
        if message.model:
            self.model = f"{message.provider}/{message.model}"
        if text := text_of(message).strip():
            yield Text(self.cell, cut(text))
        for call in calls_of(message):
            self._names[call.id] = call.name
            yield ToolCalled(self.cell, call.id, call.name, cut(call.input, MAX_INPUT_CHARS))

    def _results(self, index: int, message: Message) -> Iterator[RunEvent]:
        for position, part in enumerate(message.parts):
            key = (index, position)
            if isinstance(part, ToolResult) and key not in self._answered:
                self._answered.add(key)
                yield from self._result(part)

    def _result(self, result: ToolResult) -> Iterator[RunEvent]:
        name = self._names.get(result.call_id, "")
        yield from self._inside(result)
        yield ToolAnswered(self.cell, result.call_id, name, outcome_of(result), summary_of(result))
        yield from self._refusal(name, result)

    def _inside(self, result: ToolResult) -> Iterator[RunEvent]:
        """Yield what the sub-agent did whose call has this result."""
        record = subagent_of(result)
        if record is None:
            return
        for nested in nested_calls(record):
            yield self._nested(result.call_id, record.name, nested)
            if nested.result is not None:
                yield from self._refusal(nested.call.name, nested.result)

    def _nested(self, call_id: str, agent: str, nested: NestedCall) -> SubagentCalled:
        answer = nested.result
        return SubagentCalled(
            cell=self.cell,
            call=call_id,
            agent=agent,
            tool=nested.call.name,
            input=cut(nested.call.input, MAX_INPUT_CHARS),
            outcome="interrupted" if answer is None else outcome_of(answer),
            summary="" if answer is None else summary_of(answer),
        )

    def _refusal(self, tool: str, result: ToolResult) -> Iterator[RunEvent]:
        if outcome_of(result) == DENIED:
            self.denied += 1
            self.unasked += is_unasked(result)
            yield PermissionDenied(self.cell, tool, line(result.content))


def outcome_of(result: ToolResult) -> Literal["ok", "error", "denied"]:
    """Return how a call went."""
    is_denied = result.is_error and result.metadata.get("summary") == DENIED
    return "denied" if is_denied else "error" if result.is_error else "ok"


def summary_of(result: ToolResult) -> str:
    """Return a call's outcome in a few words."""
    summary = result.metadata.get("summary")
    told = summary if isinstance(summary, str) else ""
    return line(told or (result.content if result.is_error else ""))


def cut(text: str, limit: int = MAX_TEXT_CHARS) -> str:
    """Return `text`, or its beginning and a note of how much is missing."""
    missing = len(text) - limit
    return text if missing <= 0 else f"{text[:limit]}\n[… {missing} more characters …]"


def line(text: str, limit: int = MAX_LINE_CHARS) -> str:
    """Return `text` on one line of at most `limit` characters, safe for a terminal."""
    return clipped(" ".join(visible(text[: 4 * limit]).split()), limit)


def _is_complete(turn: Turn, index: int) -> bool:
    """Return whether nothing more can come to the message: it ended, or another one follows."""
    is_last = index == len(turn.messages) - 1
    message = turn.messages[index]
    return not is_last or turn.end != "running" or message.role == "user" or bool(message.stop)
