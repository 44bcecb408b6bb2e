"""The page of `/audit`: who has decided what, as Markdown. Pure.

All that it quotes came from a model, a tool or a file and is escaped.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from crush_kernel.history.decisions import DecisionRecord
from crush_kernel.kernel.auditreport import (
    AuditedCall,
    AuditedTurn,
    counted_words,
    counts,
    words_of,
)
from crush_kernel.kernel.plaintext import escape
from crush_kernel.kernel.render import folded, short
from crush_kernel.wording import clipped, counted

PERSON: Final = "you"

MAX_TURNS: Final = 60
"""That are told one by one, the last ones."""

MAX_ROWS: Final = 100
"""Of one turn, or of a list of refusals."""

MAX_WHAT_CHARS: Final = 300

_HEAD: Final = "| when (UTC) | what | decided |\n|---|---|---|\n"


def page(turns: Sequence[AuditedTurn]) -> str:
    """Return what was decided in `turns`, oldest first, the counts first."""
    if not any(turn.calls for turn in turns):
        return "Nothing was decided yet: no tool has been called."
    numbered = [(number, turn) for number, turn in enumerate(turns, 1) if turn.calls]
    shown = numbered[-MAX_TURNS:]
    parts = [summary(turns)]
    if more := len(numbered) - len(shown):
        parts.append(f"<sub>{counted(more, 'turn')} before are only counted.</sub>")
    parts += (_folded_turn(number, turn) for number, turn in shown)
    parts.append("`/audit denied` lists what was refused, `/audit turn 3` shows one turn in full.")
    return "\n\n".join(parts)


def turn_page(number: int, turn: AuditedTurn) -> str:
    """Return everything about one turn."""
    if not turn.calls:
        return f"In {_title(number, turn)} nothing was called."
    title = f"**{_title(number, turn)}**"
    return "\n\n".join((title, summary((turn,)), _table(turn.calls, is_full=True)))


def denied_page(turns: Sequence[AuditedTurn]) -> str:
    """Return what was refused, and why."""
    refused = [call for turn in turns for call in turn.calls if call.is_denied]
    if not refused:
        return "Nothing was refused."
    head = f"{counted(len(refused), 'call')} refused."
    return f"{head}\n\n{_table(refused, is_full=True)}"


def project_page(notebooks: Iterable[tuple[str, Sequence[DecisionRecord]]]) -> str:
    """Return what was decided in each notebook of a project, in counts."""
    rows = [
        f"| {escape(clipped(path, MAX_WHAT_CHARS))} | {len(records):,} | {_in_counts(records)} |"
        for path, records in notebooks
        if records
    ]
    if not rows:
        return "The project's journal has no decisions."
    return "| notebook | decisions | |\n|---|---:|---|\n" + "\n".join(rows)


def summary(turns: Iterable[AuditedTurn]) -> str:
    """Return how many calls were decided how, in a line."""
    found = counts(turns, person=PERSON)
    return f"**{counted(found.total(), 'call')}**: {escape(counted_words(found))}"


def _in_counts(records: Iterable[DecisionRecord]) -> str:
    return escape(counted_words(Counter(words_of(record, person=PERSON) for record in records)))


def _folded_turn(number: int, turn: AuditedTurn) -> str:
    denied = sum(call.is_denied for call in turn.calls)
    asked = sum(not call.is_routine for call in turn.calls)
    notes = [counted(len(turn.calls), "call")]
    notes += [f"{asked} decided"] if asked else []
    notes += [f"{denied} denied"] if denied else []
    return folded(f"{_title(number, turn)} · {escape(' · '.join(notes))}", _turn_table(turn.calls))


def _title(number: int, turn: AuditedTurn) -> str:
    day = f" · {escape(turn.when[:16].replace('T', ' '))}" if turn.when else ""
    return f"Turn {number}{day} · “{escape(short(turn.asked))}”"


def _turn_table(calls: Sequence[AuditedCall]) -> str:
    """Return the calls of a turn, those that are always allowed in a line."""
    told = [call for call in calls if not call.is_routine]
    parts = [_table(told, is_full=False)] if told else []
    routine = Counter(call.tool for call in calls if call.is_routine)
    if routine:
        listed = ", ".join(f"{escape(short(tool))} × {count}" for tool, count in routine.items())
        parts.append(f"<sub>Always allowed: {listed}</sub>")
    return "\n\n".join(parts)


def _table(calls: Sequence[AuditedCall], *, is_full: bool) -> str:
    rows = [_row(call, is_full=is_full) for call in calls[:MAX_ROWS]]
    more = len(calls) - len(rows)
    tail = f"\n\n<sub>and {more:,} more</sub>" if more else ""
    return _HEAD + "\n".join(rows) + tail


def _row(call: AuditedCall, *, is_full: bool) -> str:
    when = call.decision.at[11:19] if call.decision is not None else ""
    cells = (escape(when), _what(call, is_full=is_full), _decided(call, is_full=is_full))
    return f"| {' | '.join(cells)} |"


def _what(call: AuditedCall, *, is_full: bool) -> str:
    agent = f"{escape(short(call.agent))} (sub-agent) · " if call.agent else ""
    limit = 4 * MAX_WHAT_CHARS if is_full else MAX_WHAT_CHARS
    what = f" <code>{escape(clipped(call.what, limit))}</code>" if call.what else ""
    outcome = f" · {escape(short(call.outcome))}" if call.outcome else ""
    return f"{agent}<b>{escape(short(call.tool))}</b>{what}{outcome}"


def _decided(call: AuditedCall, *, is_full: bool) -> str:
    lines = [escape(words_of(call.decision, person=PERSON))]
    if not call.is_recorded and call.decisions:
        lines.append("<sub>as the notebook says; your journal does not know it</sub>")
    for record in call.decisions if is_full else call.decisions[-1:]:
        lines += (f"<sub>{line}</sub>" for line in _details(record, is_full=is_full))
    return "<br>".join(dict.fromkeys(lines))


def _details(record: DecisionRecord, *, is_full: bool) -> Iterator[str]:
    words = words_of(record, person=PERSON)
    if record.rule and record.rule not in words and record.rule != "denied":
        yield escape(clipped(record.rule, MAX_WHAT_CHARS))
    if record.reason:
        yield f"“{escape(clipped(record.reason, MAX_WHAT_CHARS))}”"
    if record.kept_rules:
        where = "everywhere" if record.kept_scope == "everywhere" else "in this project"
        yield f"from then on, {where}: {_listed(record.kept_rules)}"
    if not is_full:
        return
    for name, texts in (("parts", record.parts), ("paths", record.paths)):
        if texts:
            yield f"{name}: {_listed(texts)}"
    yield from (escape(clipped(danger, MAX_WHAT_CHARS)) for danger in record.dangers)
    if record.effective_input:
        yield f"a hook has made it {escape(clipped(record.effective_input, MAX_WHAT_CHARS))}"


def _listed(texts: Sequence[str]) -> str:
    shown = [f"<code>{escape(clipped(text, MAX_WHAT_CHARS))}</code>" for text in texts[:20]]
    more = len(texts) - len(shown)
    return ", ".join((*shown, *([f"{more} more"] if more else [])))
