"""What was done in a conversation and by whose leave: the report behind `/audit` and the exporter.

Pure. It is made from turns, which anybody can have written, and from the decisions of the user's
own journal, where there are some. A decision is joined to the call it was about; a call without
one has what the notebook says of it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from crush_kernel.history.decisions import DecisionRecord
from crush_kernel.history.subagentrecord import SubagentRecord, nested_calls, subagent_of
from crush_kernel.history.turn import Turn
from crush_kernel.kernel.recordedcall import arguments_in_short
from crush_kernel.kernel.turntext import asked
from crush_kernel.messages import JsonObject, ToolCall, ToolResult, Usage, calls_of
from crush_kernel.permissions.request import BE_USED

MAX_CALLS: Final = 5_000
"""Of one turn; nobody reads more."""

UNDECIDED: Final = "not decided"
"""Calls that came to nothing before anybody had to say."""

_DIFFS: Final = frozenset(("diff", "diff_blob"))
"""What the metadata of a result has that has changed a file."""

_FREE: Final[Mapping[str, str]] = {
    "read": "read in the project",
    "list": "read in the project",
    "execute": "run as commands that only read",
    "use": "of tools that touch nothing",
    "reading inside the project": "read in the project",
    "a command that only reads": "run as commands that only read",
    "nothing but the conversation": "of tools that touch nothing",
}
"""What is always allowed, by the action, or by the rule where the action is not known."""

_ALLOWED: Final[Mapping[str, str]] = {
    "person": "allowed by {person}",
    "grant": "allowed by {person} for the session",
    "rule": "allowed by rules",
    "hook": "allowed by hooks",
    "bounds": "part of what was allowed",
}

_DENIED: Final[Mapping[str, str]] = {
    "person": "denied by {person}",
    "nobody": "denied since nobody could be asked",
    "rule": "denied by rules",
    "hook": "denied by hooks",
    "bounds": "denied to a sub-agent",
}


@dataclass(frozen=True, slots=True)
class AuditedCall:
    """A call, or something else that took leave, such as an attached file."""

    tool: str
    what: str
    """What it was made with, in short; like all texts here as somebody wrote it."""
    decisions: tuple[DecisionRecord, ...] = ()
    """The last one counts."""
    outcome: str = ""
    """How it went, in a few words; empty if it is not known."""
    is_error: bool = False
    agent: str = ""
    """Of the sub-agent whose call it was."""
    is_recorded: bool = False
    """Whether the journal has the decisions; else the notebook says so, as anybody can write."""

    @property
    def decision(self) -> DecisionRecord | None:
        """What was decided in the end."""
        return self.decisions[-1] if self.decisions else None

    @property
    def is_denied(self) -> bool:
        """Whether it was refused."""
        return self.decision is not None and not self.decision.is_allowed

    @property
    def is_routine(self) -> bool:
        """Whether it is of the kind that is always allowed."""
        word = self.decision
        return word is not None and word.is_allowed and word.by == "built-in"


@dataclass(frozen=True, slots=True)
class AuditedTurn:
    """A turn and its calls, in the order of the conversation."""

    asked: str
    id: str = ""
    end: str = ""
    models: tuple[str, ...] = ()
    spent: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    """What its requests used, by `provider/model`."""
    calls: tuple[AuditedCall, ...] = ()
    files: tuple[str, ...] = ()
    """The files that it has changed."""
    when: str = ""
    """When it ended, or else when something was decided last; in UTC."""

    @property
    def usage(self) -> Usage:
        """What all its requests used."""
        return sum(self.spent.values(), Usage())


def audited(turn: Turn, decisions: Iterable[DecisionRecord] = ()) -> AuditedTurn:
    """Return what was done in `turn`.

    Args:
        turn: as it is kept; running ones will do.
        decisions: the journal's about it, oldest first.
    """
    waiting = _by_call(decisions)
    calls = [*_attached(waiting), *_calls(turn, waiting)]
    calls += (_lone(record) for records in waiting.values() for record in records)
    made = tuple(calls[:MAX_CALLS])
    replies = [message for message in turn.messages if message.role == "assistant"]
    return AuditedTurn(
        asked=asked(turn),
        id=turn.id,
        end=turn.end,
        models=tuple(dict.fromkeys(f"{m.provider}/{m.model}" for m in replies if m.model)),
        spent=turn.spent,
        calls=made,
        files=tuple(dict.fromkeys(_changed(turn))),
        when=_when(turn, made),
    )


def orphaned(turn_id: str, decisions: Iterable[DecisionRecord], *, asked: str) -> AuditedTurn:
    """Return a turn of which nothing is there any more but its decisions."""
    calls = tuple(map(_lone, decisions))
    return AuditedTurn(asked=asked, id=turn_id, calls=calls, when=_last_time(calls))


def by_turn(
    decisions: Iterable[tuple[str, DecisionRecord]],
) -> dict[str, list[DecisionRecord]]:
    """Return decisions by the ids of their turns, both in the order in which they came."""
    found: dict[str, list[DecisionRecord]] = {}
    for turn_id, items in groupby(decisions, key=lambda item: item[0]):
        found.setdefault(turn_id, []).extend(record for _, record in items)
    return found


def counts(turns: Iterable[AuditedTurn], *, person: str) -> Counter[str]:
    """Return how many calls of `turns` were decided how, in words.

    Args:
        turns: of one report.
        person: what to call the person who was asked: `you`.
    """
    return Counter(words_of(call.decision, person=person) for turn in turns for call in turn.calls)


def words_of(decision: DecisionRecord | None, *, person: str) -> str:
    """Return who has decided what, in words that count many alike."""
    if decision is None:
        return UNDECIDED
    if not decision.is_allowed:
        if decision.by == "mode":
            return f"denied by {decision.rule or 'the mode'}"
        return _DENIED.get(decision.by, "denied").format(person=person)
    if decision.by == "built-in":
        return _FREE.get(decision.action) or _FREE.get(decision.rule, "always allowed")
    if decision.by == "mode":
        return f"allowed by {decision.rule or 'the mode'}"
    return _ALLOWED.get(decision.by, "allowed").format(person=person)


def counted_words(found: Counter[str]) -> str:
    """Return the counts in a line: what is always allowed first, refusals last."""
    free = {*_FREE.values(), UNDECIDED}

    def order(item: tuple[str, int]) -> tuple[bool, bool, int]:
        words, count = item
        return words.startswith("denied"), words not in free, -count

    return ", ".join(f"{count:,} {words}" for words, count in sorted(found.items(), key=order))


def _by_call(decisions: Iterable[DecisionRecord]) -> dict[str, list[DecisionRecord]]:
    waiting: dict[str, list[DecisionRecord]] = {}
    for decision in decisions:
        waiting.setdefault(decision.call_id, []).append(decision)
    return waiting


def _attached(waiting: dict[str, list[DecisionRecord]]) -> Iterator[AuditedCall]:
    """Yield what took leave outside of a call, before the model was asked."""
    yield from map(_lone, waiting.pop("", ()))


def _lone(record: DecisionRecord) -> AuditedCall:
    return AuditedCall(
        tool=record.tool,
        what=record.command or record.title,
        decisions=(record,),
        agent=record.on_behalf.removeprefix("agent: "),
        is_recorded=True,
    )


def _calls(turn: Turn, waiting: dict[str, list[DecisionRecord]]) -> Iterator[AuditedCall]:
    results = _results(turn)
    for message in turn.messages:
        for call in calls_of(message):
            result = next(iter(results.get(call.id, ())), None)
            if result is not None:
                results[call.id] = results[call.id][1:]
            yield _call(call, result, _taken(waiting, call.id, call.name), turn)
            if result is not None and (record := subagent_of(result)) is not None:
                yield from _nested(call.id, record, waiting, turn)


def _nested(
    call_id: str,
    record: SubagentRecord,
    waiting: dict[str, list[DecisionRecord]],
    turn: Turn,
) -> Iterator[AuditedCall]:
    for nested in nested_calls(record):
        taken = _taken(waiting, f"{call_id}/{nested.call.id}", nested.call.name)
        made = _call(nested.call, nested.result, taken, turn)
        yield replace(made, agent=record.name or "a sub-agent")


def _taken(
    waiting: dict[str, list[DecisionRecord]], call_id: str, name: str
) -> tuple[DecisionRecord, ...]:
    """Return the decisions about a call; a model may use an id twice, for another tool."""
    found = waiting.get(call_id, ())
    taken = tuple(record for record in found if record.tool == name)
    if taken:
        waiting[call_id] = [record for record in found if record.tool != name]
    return taken


def _call(
    call: ToolCall,
    result: ToolResult | None,
    decisions: tuple[DecisionRecord, ...],
    turn: Turn,
) -> AuditedCall:
    is_recorded = bool(decisions)
    if not decisions and result is not None:
        decisions = tuple(_noted(call, result))
    # What the journal says was decided about, goes before what the notebook says was done.
    what = decisions[-1].command or decisions[-1].title if is_recorded else ""
    return AuditedCall(
        tool=call.name,
        what=arguments_in_short(call.input) if what in ("", BE_USED) else what,
        decisions=decisions,
        outcome=_outcome(result, turn),
        is_error=result is None or result.is_error,
        is_recorded=is_recorded,
    )


def _noted(call: ToolCall, result: ToolResult) -> Iterator[DecisionRecord]:
    """Yield what the notebook says of a decision."""
    rule, by = _text(result.metadata, "permission"), _text(result.metadata, "permission_by")
    if not (rule or by):
        return
    is_denied = result.is_error and result.metadata.get("summary") == "denied"
    yield DecisionRecord(tool=call.name, is_allowed=not is_denied, by=by, rule=rule)


def _outcome(result: ToolResult | None, turn: Turn) -> str:
    if result is None:
        return "running" if turn.end == "running" else "interrupted"
    said = _text(result.metadata, "summary")
    return said or ("failed" if result.is_error else "done")


def _results(turn: Turn) -> dict[str, Sequence[ToolResult]]:
    found: dict[str, list[ToolResult]] = {}
    for message in turn.messages:
        for part in message.parts:
            if isinstance(part, ToolResult):
                found.setdefault(part.call_id, []).append(part)
    return dict(found)


def _changed(turn: Turn) -> Iterator[str]:
    """Yield the files of which results show a change."""
    results = _results(turn)
    for message in turn.messages:
        for call in calls_of(message):
            for result in results.get(call.id, ()):
                if not result.is_error and not _DIFFS.isdisjoint(result.metadata):
                    yield arguments_in_short(call.input)


def _when(turn: Turn, calls: tuple[AuditedCall, ...]) -> str:
    return _text(turn.volatile, "ended") or _last_time(calls)


def _last_time(calls: Iterable[AuditedCall]) -> str:
    times = (record.at for call in calls for record in call.decisions)
    return max(times, default="")


def _text(values: JsonObject, name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""
