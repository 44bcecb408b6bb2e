"""What a request tells the offline provider: the prompt to answer and what came of it so far.

Pure. Works on any history that `ModelRequest` can carry: replies of other providers, calls
that failed, were denied or interrupted, prompts without text.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import JsonValue

from crush_kernel.messages import Message, Text, ToolCall, ToolResult, calls_of, object_in
from crush_kernel.wording import clipped

Outcome = Literal["ok", "failed", "denied"]

_MAX_RECAP_TURNS = 20
_MAX_SHORT_CHARS = 300
_MAX_PROMPT_CHARS = 80

_PAST = {
    "view": "viewed",
    "ls": "listed",
    "glob": "looked for files named",
    "grep": "searched for",
    "write": "wrote",
    "edit": "edited",
    "bash": "ran",
}
"""What each tool is said to have done; any other is said to have been called."""

_REWOUND = re.compile(r"(/undo|/redo): I have (taken|brought) back ")
"""How the message begins that tells of the command."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A call and what came of it."""

    call: ToolCall
    result: ToolResult

    @property
    def outcome(self) -> Outcome:
        """Return how it ended. A denial is told from a failure by the mark that it bears.

        A result from elsewhere, such as a history without its metadata, is told by its words.
        """
        if not self.result.is_error:
            return "ok"
        mark = self.result.metadata.get("summary")
        is_denied = mark == "denied" or self.result.content.startswith("Permission denied")
        return "denied" if is_denied else "failed"

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """Return the arguments, empty if the model wrote no object."""
        return object_in(self.call.input) or {}

    @property
    def target(self) -> str:
        """Return the argument that says what the call was about."""
        names = ("file_path", "command", "pattern", "path")
        values = (self.arguments.get(name) for name in names)
        return next((value for value in values if isinstance(value, str) and value), "")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One reply and the answers to its calls."""

    reply: Message
    answers: tuple[Answered, ...]


@dataclass(frozen=True, slots=True)
class CurrentTurn:
    """The turn that a request asks to go on with."""

    prompt: str
    exchanges: tuple[Exchange, ...] = ()
    """The steps of this turn, oldest first."""
    earlier: tuple[Message, ...] = ()
    """The conversation before the prompt."""

    @property
    def answers(self) -> tuple[Answered, ...]:
        """Return every call of this turn with its result, oldest first."""
        return tuple(answered for exchange in self.exchanges for answered in exchange.answers)

    @property
    def is_cut_off_before(self) -> bool:
        """Return whether the prompt follows a reply that was cut off at the output limit."""
        return bool(self.earlier) and self.earlier[-1].stop == "max_tokens"


def current_turn(messages: tuple[Message, ...]) -> CurrentTurn:
    """Return the turn that the last prompt of `messages` began."""
    numbers = (number for number, message in enumerate(messages) if prompt_of(message))
    start = max(numbers, default=None)
    if start is None:
        return CurrentTurn("", _exchanges(messages))
    return CurrentTurn(
        prompt=prompt_of(messages[start]),
        exchanges=_exchanges(messages[start + 1 :]),
        earlier=messages[:start],
    )


def prompt_of(message: Message) -> str:
    """Return what the user typed in `message`, empty if it is no prompt.

    The first text is the prompt; further ones are attached files, which give no orders.
    """
    if message.role != "user":
        return ""
    texts = (part.text for part in message.parts if isinstance(part, Text) and part.text.strip())
    return next(texts, "")


def whole_turn(turn: CurrentTurn) -> CurrentTurn:
    """Return `turn` with the replies before it that were cut off at the output limit.

    After such a reply the agent asks to go on, in words that look like a prompt.
    """
    while turn.is_cut_off_before:
        before = current_turn(turn.earlier)
        turn = replace(before, exchanges=before.exchanges + turn.exchanges)
    return turn


def shortened(text: str, limit: int = _MAX_SHORT_CHARS) -> str:
    """Return `text` on one line, cut to `limit` characters."""
    return clipped(" ".join(text.split()), limit)


def in_code(text: str) -> str:
    """Return `text` as inline code in Markdown, whatever is in it; never empty."""
    line = " ".join(text.split()) or " "
    runs = [len(run) for run in re.findall("`+", line)]
    if not runs:
        return f"`{line}`"
    fence = "`" * (max(runs) + 1)
    return f"{fence} {line} {fence}"


def recap(turn: CurrentTurn) -> str:
    """Return a Markdown list of the turns before this one and of what was done in each."""
    turns = _turns(turn.earlier)
    if not turns:
        return "Nothing yet: there is no turn above that I know of."
    first = max(0, len(turns) - _MAX_RECAP_TURNS)
    lines = [f"{number}. {_turn_line(past)}" for number, past in enumerate(turns, 1)][first:]
    return "\n".join(lines)


def _turns(messages: tuple[Message, ...]) -> list[CurrentTurn]:
    starts = [number for number, message in enumerate(messages) if prompt_of(message)]
    ends = [*starts[1:], len(messages)]
    return [current_turn(messages[s:e]) for s, e in zip(starts, ends, strict=False)]


def _turn_line(turn: CurrentTurn) -> str:
    asked = in_code(shortened(turn.prompt, _MAX_PROMPT_CHARS))
    if rewound := _REWOUND.match(turn.prompt):
        return f"{in_code(rewound[1])} – you have {rewound[2]} back what a turn had done to files."
    if not turn.exchanges:
        return asked
    done = [_deed(answered) for answered in turn.answers]
    what = ", ".join(dict.fromkeys(done)) if done else "answered"
    return f"{asked} – I {what}."


def _deed(answered: Answered) -> str:
    verb = _PAST.get(answered.call.name, f"called {in_code(answered.call.name)}")
    target = f" {in_code(shortened(answered.target, 60))}" if answered.target else ""
    match answered.outcome:
        case "ok":
            return f"{verb}{target}"
        case "failed":
            return f"{verb}{target} (failed)"
        case "denied":
            return f"asked for {in_code(answered.call.name)}{target} (denied)"


def _exchanges(messages: tuple[Message, ...]) -> tuple[Exchange, ...]:
    """Return the replies of `messages`, each with the results that stand before the next one."""
    starts = [number for number, m in enumerate(messages) if m.role == "assistant"]
    ends = [*starts[1:], len(messages)]
    return tuple(
        Exchange(messages[start], _answers(messages[start], messages[start + 1 : end]))
        for start, end in zip(starts, ends, strict=False)
    )


def _answers(reply: Message, following: tuple[Message, ...]) -> tuple[Answered, ...]:
    parts = [part for message in following for part in message.parts]
    results = {part.call_id: part for part in parts if isinstance(part, ToolResult)}
    return tuple(Answered(c, results[c.id]) for c in calls_of(reply) if c.id in results)
