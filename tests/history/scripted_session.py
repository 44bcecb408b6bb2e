"""A session of five turns as calls of the journal, and what has to be there after each call.

What is expected is computed from the calls alone, without a journal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crush_kernel.history.journal.entries import (
    Answered,
    Began,
    Drafted,
    Dropped,
    Entry,
    Published,
    Said,
    Unsaid,
)
from crush_kernel.history.journal.journal import Journal
from crush_kernel.history.journal.replay import Replayed, fold
from crush_kernel.history.outputs import Output
from crush_kernel.history.record import write_turn
from crush_kernel.history.subagentmessages import Nested
from crush_kernel.history.turn import Turn, digest_of
from crush_kernel.messages import JsonObject, Message, Text, ToolCall, ToolResult, Usage

SESSION = "session-1"
PATH = "/project/analysis.ipynb"

Call = tuple[str, tuple[Any, ...]]
"""The name of a method of the journal and its arguments after the session."""


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def reply(*parts: Text | ToolCall) -> Message:
    stop = "tool_use" if any(isinstance(part, ToolCall) for part in parts) else "end_turn"
    usage = Usage(100, output_tokens=20)
    return Message("assistant", parts, provider="fake", model="m", stop=stop, usage=usage)


def results(*answers: ToolResult) -> Message:
    return Message("tool", answers)


def shown(text: str, display_id: str) -> dict[str, Any]:
    return {
        "data": {"text/markdown": text, "text/plain": text},
        "metadata": {"crush": {"pending": True}},
        "transient": {"display_id": display_id},
    }


VIEW = ToolCall("a", "view", '{"path": "a.py"}')
GREP = ToolCall("b", "grep", '{"pattern": "x"}')
BASH = ToolCall("c", "bash", '{"command": "make"}')
TASK = ToolCall("d", "agent", '{"prompt": "look"}')
VIEWED = ToolResult("a", "print(1)", metadata={"summary": "1 line"})
GREPPED = ToolResult("b", "no match", is_error=True)
MADE = ToolResult("c", "done", metadata={"permission": "allowed once"})


def nested(*parts: Text | ToolCall) -> Nested:
    """What a sub-agent says whose call is `TASK`."""
    return Nested("d", "task", "fake/m", reply(*parts))


def script() -> list[Call]:
    """Return the calls of the session, the turns one after the other."""
    return [("adopt", (PATH,)), *_first(), *_second(), *_third(), *_rerun(), *_last()]


def _first() -> Iterator[Call]:
    """A prompt and a reply that is shown while it is written."""
    turn = Turn("c1", fingerprint="f", source="s1")
    yield "began", (turn,)
    yield "said", (turn.id, user("What is here?"))
    yield "drafted", (turn.id, 1, 1, "reasoning", "They ask ")
    yield "published", (turn.id, "display_data", shown("…", "d1"))
    yield "drafted", (turn.id, 1, 1, "text", "A proj")
    yield "published", (turn.id, "update_display_data", shown("A proj", "d1"))
    yield "drafted", (turn.id, 1, 1, "text", "ect.")
    answer = reply(Text("A project."))
    yield "said", (turn.id, answer)
    yield "drafted", (turn.id, 1, 1, "text", "late")
    yield "published", (turn.id, "update_display_data", shown("A project.", "d1"))
    yield from _end(turn, (user("What is here?"), answer), "A project.")


def _second() -> Iterator[Call]:
    """Parallel calls, one of them asked for; a reply that broke off and was made anew."""
    turn = Turn("c2", fingerprint="g", source="s2")
    asked = reply(Text("I look."), VIEW, GREP, BASH)
    answers = results(VIEWED, GREPPED, MADE)
    done = reply(Text("All made."))
    yield "began", (turn,)
    yield "said", (turn.id, user("Make it."))
    yield "drafted", (turn.id, 1, 1, "text", "I loo")
    yield "said", (turn.id, asked)
    yield "answered", (turn.id, GREPPED)
    yield "answered", (turn.id, VIEWED)
    yield "published", (turn.id, "display_data", shown("make?", "d2"))
    yield "decided", (turn.id, {"call": "c", "rule": "allowed once"})
    yield "file_changed", (turn.id, "/out", None, b"made")
    yield "answered", (turn.id, MADE)
    yield "said", (turn.id, answers)
    yield "drafted", (turn.id, 2, 1, "text", "Al")
    yield "drafted", (turn.id, 2, 1, "text", "l br")
    yield "dropped", (turn.id, 2, 1)
    yield "drafted", (turn.id, 2, 2, "text", "All made")
    yield "said", (turn.id, done)
    yield from _end(turn, (user("Make it."), asked, answers, done), "All made.")


def _third() -> Iterator[Call]:
    """An empty reply that is taken back."""
    turn = Turn("c3", source="s3")
    empty, done = Message("assistant", (), stop="end_turn"), reply(Text("Hello."))
    yield "began", (turn,)
    yield "said", (turn.id, user("Hi"))
    yield "said", (turn.id, empty)
    yield "unsaid", (turn.id,)
    yield "drafted", (turn.id, 2, 1, "text", "Hello.")
    yield "said", (turn.id, done)
    yield "published", (turn.id, "stream", {"name": "stdout", "text": "Hel"})
    yield "published", (turn.id, "stream", {"name": "stdout", "text": "lo."})
    yield from _end(turn, (user("Hi"), done), "Hello.")


def _rerun() -> Iterator[Call]:
    """The first cell again."""
    turn = Turn("c1", run=2, source="s1b")
    yield "mark_saved", (["c1.1", "c2.1", "c3.1"],)
    yield "began", (turn,)
    yield "said", (turn.id, user("What is there?"))
    yield "said", (turn.id, reply(Text("Nothing.")))
    yield from _end(turn, (user("What is there?"), reply(Text("Nothing."))), "Nothing.")


def _last() -> Iterator[Call]:
    """A turn that never ends."""
    turn = Turn("c4", source="s4")
    yield "began", (turn,)
    yield "said", (turn.id, user("Once more."))
    yield "said", (turn.id, reply(VIEW, GREP, TASK))
    yield "nested", (turn.id, nested(VIEW))
    yield "answered", (turn.id, VIEWED)
    yield "nested", (turn.id, nested(Text("It is there.")))
    yield "published", (turn.id, "display_data", shown("running", "d3"))


def _end(turn: Turn, messages: tuple[Message, ...], text: str) -> Iterator[Call]:
    turn = replace(turn, messages=messages, revision=9, end="end_turn", digest=digest_of(messages))
    outputs = [{"output_type": "display_data", "data": {"text/markdown": text}, "metadata": {}}]
    yield "ended", (replace(turn, record=write_turn(turn)), outputs, turn.run)


def play(journal: Journal, calls: Sequence[Call]) -> Iterator[None]:
    """Make the calls, one for each step."""
    for name, arguments in calls:
        getattr(journal, name)(SESSION, *arguments)
        yield


@dataclass(slots=True)
class Expected:
    """What has to be in the journal."""

    ended: dict[str, tuple[JsonObject | None, list[Output], int]]
    open: dict[str, Replayed]
    decisions: list[tuple[str, JsonObject]]
    files: list[str]


@dataclass(slots=True)
class _Notes:
    entries: dict[str, list[Entry]] = field(default_factory=dict[str, list[Entry]])
    expected: Expected = field(default_factory=lambda: Expected({}, {}, [], []))

    def take(self, name: str, arguments: tuple[Any, ...]) -> None:
        match name, arguments:
            case "began", (turn,):
                self.entries[turn.id] = [Began(turn)]
            case "ended", (turn, outputs, count):
                del self.entries[turn.id]
                self.expected.ended[turn.id] = turn.record, outputs, count
            case "decided", (turn_id, facts):
                self.expected.decisions.append((turn_id, facts))
            case "file_changed", (_, path, _, _):
                self.expected.files.append(path)
            case (("adopt" | "mark_saved"), _):
                pass
            case _:
                self.entries[arguments[0]].append(_entry(name, arguments[1:]))


def expected(calls: Sequence[Call]) -> Expected:
    """Return what has to be there when all `calls` have returned."""
    notes = _Notes()
    for name, arguments in calls:
        notes.take(name, arguments)
    for turn_id, entries in notes.entries.items():
        folded = fold(turn_id, entries)
        if folded.turn.messages or folded.outputs:
            notes.expected.open[turn_id] = folded
    return notes.expected


def _entry(name: str, arguments: tuple[Any, ...]) -> Entry:
    if name == "nested":
        (entry,) = arguments
        return entry
    kinds = {
        "said": Said,
        "unsaid": Unsaid,
        "answered": Answered,
        "drafted": Drafted,
        "dropped": Dropped,
        "published": Published,
    }
    return kinds[name](*arguments)
