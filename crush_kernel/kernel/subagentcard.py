"""The call of a sub-agent as it is shown when it is over: its line, its steps, its answer.

Pure. What it did is one line for each of its calls, without their results: whoever wants to
know more looks at what it says. All of it came from a model, and maybe from a stranger's file.
"""

from collections.abc import Iterator
from dataclasses import replace

from crush_kernel.history.subagentrecord import SubagentRecord, nested_calls, subagent_of
from crush_kernel.kernel import render
from crush_kernel.kernel.markdown import escape, neutralize, visible
from crush_kernel.kernel.recordedcall import recorded_call
from crush_kernel.kernel.render import CallFacts, FooterFacts, Rendered
from crush_kernel.messages import Text, ToolResult, Usage
from crush_kernel.tools.subagentresult import without_calls

MAX_STEPS = 40
"""Of which lines are shown; from there on the middle ones are left out."""

MAX_PLAIN_STEPS = 10
MAX_ANSWER_CHARS = 12_000
MAX_ANSWER_LINES = 400
MAX_PROMPT_CHARS = 2_000
MAX_PROMPT_LINES = 30

STARTER = "agent"
"""The tool that starts a sub-agent by its name."""


def call(facts: CallFacts, *, is_short: bool = False) -> Rendered:
    """Show a tool call, that of a sub-agent with what the sub-agent did.

    Args:
        facts: the call.
        is_short: leave all but the line out, since the turn already shows very much.
    """
    record = subagent_of(facts.result) if facts.result is not None else None
    if record is None:
        return render.call(facts, is_short=is_short)
    named = replace(facts, summary=_task(facts, record))
    title = " · ".join(filter(None, (render.call_title(named), _duration(facts))))
    heading = filter(None, (render.call(named, is_short=True).plain, _duration(facts)))
    plain = "\n".join((" · ".join(heading), *(f"  ▸ {line}" for line in _plain_steps(record))))
    if is_short:
        return Rendered(f"<sub>{title}</sub>", plain)
    body = "\n\n".join(filter(None, _parts(facts, record)))
    return Rendered(render.folded(title, body), plain)


def steps_in_short(result: ToolResult) -> list[str]:
    """Return what a sub-agent did, a line each call, as plain text; the first ones and the last.

    Nothing if `result` is of no sub-agent's call.
    """
    record = subagent_of(result)
    return [] if record is None else _plain_steps(record)


def _plain_steps(record: SubagentRecord) -> list[str]:
    calls = (recorded_call(each.call, each.result) for each in nested_calls(record))
    lines = [render.call(each, is_short=True).plain.removeprefix("▸ ") for each in calls]
    return _middle_out(lines, MAX_PLAIN_STEPS)


def _parts(facts: CallFacts, record: SubagentRecord) -> Iterator[str]:
    yield _asked(facts, record)
    calls = [recorded_call(each.call, each.result) for each in nested_calls(record)]
    lines = _middle_out([render.call_title(each) for each in calls], MAX_STEPS)
    shown = "<br>\n".join(lines)
    yield f"<sub>{shown}</sub>" if lines else ""
    # Of what was stopped, the line says it and the steps are shown: the rest is for the model.
    if facts.result is not None and not facts.is_denied and record.end != "interrupted":
        words = (
            without_calls(facts.result.content) if facts.result.is_error else facts.result.content
        )
        answer = render.bounded(words, MAX_ANSWER_CHARS, MAX_ANSWER_LINES)
        yield neutralize(answer).strip("\n")
    usage = sum(record.usage.values(), Usage())
    yield render.footer(FooterFacts(record.model, usage=usage)).markdown if record.model else ""


def _asked(facts: CallFacts, record: SubagentRecord) -> str:
    """Return what the sub-agent was told to do, unless the line of the call says it all."""
    message = next((each for each in record.messages if each.role == "user"), None)
    parts = message.parts if message is not None else ()
    prompt = next((part.text for part in parts if isinstance(part, Text)), "").strip()
    if not prompt or render.short(prompt) in render.short(_task(facts, record)):
        return ""
    text = render.bounded(visible(prompt), MAX_PROMPT_CHARS, MAX_PROMPT_LINES)
    lines = "<br>".join(map(escape, text.split("\n")))
    return f"> {lines}"


def _task(facts: CallFacts, record: SubagentRecord) -> str:
    """Return who does what."""
    if facts.name != STARTER:
        return facts.summary
    return " · ".join(filter(None, (record.name, facts.summary.removeprefix(f"{record.name} · "))))


def _duration(facts: CallFacts) -> str:
    """Return how long it took, in whole seconds; what takes less is not worth a word."""
    volatile = facts.result.metadata.get("volatile") if facts.result is not None else None
    seconds = volatile.get("duration_s") if isinstance(volatile, dict) else None
    if isinstance(seconds, int | float) and 1 <= seconds < MAX_DURATION_S:
        return render.clock_time(seconds)
    return ""


MAX_DURATION_S = 10_000_000
"""What is longer is no duration, whatever a record says."""


def _middle_out(lines: list[str], limit: int) -> list[str]:
    left_out = len(lines) - limit
    if left_out <= 1:
        return lines
    half = limit // 2
    return [*lines[:half], f"… {left_out} more calls …", *lines[len(lines) - (limit - half) :]]
