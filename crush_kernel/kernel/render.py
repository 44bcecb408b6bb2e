"""What was said and done, as Markdown that reads well in any front end, and as plain text.

Pure: values in, `Rendered` out. Everything that came from the model, a tool or a file is
made safe here. A result is shown in bounded form with a note of what is left out; the
whole of it is in the conversation.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

from crush_kernel.agent.events import PermissionSettled, Retrying, SummaryFinished
from crush_kernel.config.settings import PermissionMode
from crush_kernel.errors import CrushKernelError
from crush_kernel.history.todos import Todo, TodoStatus, count_done, is_open
from crush_kernel.kernel.markdown import code_span, escape, fenced, neutralize, visible
from crush_kernel.messages import Media, ToolResult, Usage
from crush_kernel.permissions.decision import By
from crush_kernel.wording import clipped, counted

MAX_RESULT_CHARS = 4000
MAX_RESULT_LINES = 80
MAX_DETAIL_CHARS = 4000
MAX_REASONING_CHARS = 12_000
MAX_SUMMARY_CHARS = 12_000
MAX_SAID_CHARS = 4000
MAX_PLAN_CHARS = 20_000
MAX_PLAN_LINES = 1000
MAX_ARGUMENT_CHARS = 100
MAX_RULE_CHARS = 80
MAX_IMAGE_CHARS = 4_000_000
"""Base64 characters of an image that is shown; a larger one is named only."""

LONG_LIST = 8
"""Entries from which on a list of what is to do is shown in short."""

TODO_SIGNS: Mapping[TodoStatus, str] = {"pending": "☐", "in_progress": "◐", "completed": "☑"}

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What front ends show as a picture. SVG is left out: it can carry scripts."""

_QUOTED_WORD = re.compile(r"`(/?\w+)`")


@dataclass(frozen=True, slots=True)
class Rendered:
    """The same thing twice: for a front end that knows Markdown, and for one that does not."""

    markdown: str
    plain: str

    def bundle(self) -> dict[str, str]:
        """Return the MIME bundle of an output."""
        return {"text/markdown": self.markdown, "text/plain": self.plain}


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A tool call, as far as it has come."""

    name: str
    summary: str
    """Its arguments in short."""
    state: Literal["running", "waiting", "done", "interrupted"]
    result: ToolResult | None = None
    """There when the call is done."""
    permission: str = ""
    """By what right it ran, or why not, from `permission_words`."""
    is_denied: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One call on the card of running calls."""

    call_id: str
    name: str
    summary: str
    word: str
    """`running 4 s`, or how it went."""
    is_running: bool
    tail: str = ""
    """The last lines of what it has printed, at most three."""


@dataclass(frozen=True, slots=True)
class TodoRow:
    """One line of a list of what is to do, safe as plain text."""

    sign: str
    text: str
    is_active: bool = False
    """Whether it is being worked on."""


@dataclass(frozen=True, slots=True)
class FooterFacts:
    """What the last line of a turn says; what is zero, empty or `None` is left out."""

    model: str
    duration_s: float | None = None
    context_tokens: int = 0
    context_window: int = 0
    usage: Usage | None = None
    cost_usd: float | None = None
    tool_calls: int = 0
    mode: PermissionMode = "default"
    notes: tuple[str, ...] = ()
    """What else matters: `2 retries`."""


def reply(text: str) -> Rendered:
    """Show what the model says."""
    return Rendered(neutralize(text), visible(text).strip("\n"))


def reasoning(text: str) -> Rendered:
    """Show the model's thinking, folded."""
    if not text.strip():
        return Rendered("", "")
    shown = neutralize(bounded(text, MAX_REASONING_CHARS, 400))
    return Rendered(folded("Reasoning", shown), "")


def call(facts: CallFacts, *, is_short: bool = False) -> Rendered:
    """Show a tool call: one line, and its result folded beneath when there is one.

    A plan that was presented is not folded: it is what the turn was about.

    Args:
        facts: the call.
        is_short: leave the result out, since the turn already shows very much.
    """
    title = call_title(facts)
    words = [short(facts.summary), *call_words(facts)]
    plain = " ".join(filter(None, ("▸", short(facts.name), " · ".join(filter(None, words)))))
    if plan := _plan_of(facts):
        shown = neutralize(bounded(plan, MAX_PLAN_CHARS, MAX_PLAN_LINES))
        return Rendered(folded(title, shown, is_shown=True), f"{plain}\n{visible(plan)}")
    body = "" if is_short else _call_body(facts)
    if not body:
        return Rendered(f"<sub>{title}</sub>", plain)
    return Rendered(folded(title, body), plain)


def listing_call(facts: CallFacts, todos: Sequence[Todo]) -> Rendered:
    """Show a call that has set the list of what is to do, with the list; folded if it is long."""
    brief = call(facts, is_short=True)
    if not todos:
        return brief
    rows = tuple(map(_todo_row, todos))
    is_long = len(todos) > LONG_LIST
    plain = "\n".join((brief.plain, *(f"  {row.sign} {row.text}" for row in rows)))
    body = _todo_lines(rows)
    return Rendered(folded(call_title(facts), body, is_shown=not is_long), plain)


def todos(todos: Sequence[Todo]) -> Rendered:
    """Show what is to do while it is being done."""
    rows = todo_rows(todos)
    return Rendered(_todo_lines(rows), "\n".join(f"{row.sign} {row.text}" for row in rows))


def todo_rows(todos: Sequence[Todo]) -> tuple[TodoRow, ...]:
    """Return the lines of a list as it is shown while it is open: what is done in short."""
    if len(todos) <= LONG_LIST:
        return tuple(map(_todo_row, todos))
    done = count_done(todos)
    rows = [_todo_row(todo) for todo in todos if is_open((todo,))]
    more = len(rows) - LONG_LIST
    head = (TodoRow(TODO_SIGNS["completed"], f"{done} done"),) if done else ()
    tail = (TodoRow("…", f"{more} more"),) if more > 0 else ()
    return (*head, *rows[:LONG_LIST], *tail)


def summary(event: SummaryFinished) -> Rendered:
    """Show that the conversation was summarized, the summary itself folded."""
    tokens = ""
    if event.before_tokens:
        before, after = thousands(event.before_tokens), thousands(event.after_tokens)
        tokens = f": {before} → {after} tokens"
    title = f"The conversation so far was summarized{tokens}"
    body = neutralize(bounded(event.text, MAX_SUMMARY_CHARS, 400))
    return Rendered(folded(title, body) if body.strip() else f"<sub>{title}</sub>", title)


def queued(text: str) -> Rendered:
    """Show what the user has said and the model has not been told yet."""
    return _said("queued for the next step", text)


def unsent(text: str) -> Rendered:
    """Show what the user has said and nobody has heard."""
    return _said("not sent", text)


def left_over(text: str) -> Rendered:
    """Show what the user has said too late for the turn; it is kept behind the turn's messages."""
    return _said("not sent, the turn was over (the next one reads it)", text)


def steered(text: str) -> Rendered:
    """Show what the user has said to the running turn, as a quotation."""
    lines = bounded(visible(text).strip(), MAX_SAID_CHARS, MAX_RESULT_LINES).split("\n")
    return Rendered(
        f"> <b>You:</b> {'<br>'.join(map(escape, lines))}",
        "\n".join(("> You: " + lines[0], *(f"> {line}" for line in lines[1:]))),
    )


def outcome(facts: CallFacts) -> str:
    """Return how a call went, as plain text without its name and arguments."""
    return " · ".join(call_words(facts))


def image_bundle(media: Media) -> dict[str, str] | None:
    """Return the MIME bundle that shows `media`, `None` if it is no image or too large."""
    if media.media_type not in IMAGE_TYPES or len(media.data) > MAX_IMAGE_CHARS:
        return None
    name = visible(media.name) or "image"
    return {media.media_type: media.data, "text/plain": name}


def permission_words(event: PermissionSettled) -> str:
    """Return by what right a call ran, in plain text; empty if it needed none."""
    request = event.request
    is_look = request.action in ("use", "read", "list") or request.is_read_only
    if event.is_allowed and event.by == "built-in" and is_look and not request.is_outside:
        return ""
    reason = event.reason if event.rule == "denied" else ""
    return right_in_words(event.rule, event.by, is_allowed=event.is_allowed, reason=reason)


def right_in_words(rule: str, by: By, *, is_allowed: bool, reason: str = "") -> str:
    """Return by what right a call ran, or why not, in plain text.

    Args:
        rule: what decided.
        by: who decided.
        is_allowed: what was decided.
        reason: why not, in a person's words.
    """
    shown = clipped(" ".join(visible(rule).split()), MAX_RULE_CHARS)
    if is_allowed:
        return f"allowed by a rule: {shown}" if by == "rule" and shown else shown
    if reason:
        return f'denied: "{short(reason)}"'
    if by == "rule" and shown:
        return f"denied by a rule: {shown}"
    return shown if "denied" in shown else f"denied by {shown}"


def notice(text: str) -> Rendered:
    """Show a sentence that is no failure, in grey; a word in backticks is a command or a name."""
    parts = _QUOTED_WORD.split(text)
    shown = (code_span(part) if n % 2 else escape(part) for n, part in enumerate(parts))
    return Rendered(f"<sub>{''.join(shown)}</sub>", visible(text))


def status(text: str) -> Rendered:
    """Show what is going on right now; never part of what is kept."""
    return Rendered(f"<sub>{escape(text)}</sub>", visible(text))


def countdown(event: Retrying, left_s: float) -> str:
    """Return how long it is to the next try, as plain text."""
    wait = f"next try in {clock_time(ceil(left_s))}" if left_s > 0 else "trying again"
    reason = event.reason.rstrip(".")
    return f"{reason} · {wait} ({event.attempt} of {event.attempts})"


def failure(error: CrushKernelError) -> Rendered:
    """Show what happened, what to do, and the detail folded."""
    message = _sentence(str(error) or type(error).__name__)
    markdown = f"**{escape(message)}**"
    if error.hint:
        markdown += f" {neutralize(_sentence(error.hint))}"
    if error.detail:
        detail = fenced(bounded(error.detail, MAX_DETAIL_CHARS, MAX_RESULT_LINES))
        markdown += f"\n\n{folded('details', detail)}"
    plain = " ".join(filter(None, (message, _sentence(error.hint) if error.hint else "")))
    return Rendered(markdown, visible(plain))


def interrupted() -> Rendered:
    """Show that the user stopped the turn."""
    return Rendered("<sub>interrupted</sub>", "interrupted")


def footer(facts: FooterFacts) -> Rendered:
    """Show the one grey line that ends a turn."""
    context, is_filling = _context(facts)
    parts = [
        facts.model,
        context,
        _tokens(facts.usage),
        _money(facts),
        "" if facts.duration_s is None else duration(facts.duration_s),
        counted(facts.tool_calls, "tool") if facts.tool_calls else "",
        f"{facts.mode} mode" if facts.mode != "default" else "",
        *facts.notes,
    ]
    shown = [escape(part) for part in parts]
    if facts.mode == "yolo":
        place = parts.index("yolo mode")
        shown[place] = f'<b style="color: var(--jp-error-color1)">{shown[place]}</b>'
    if sum(part.count("$") for part in parts) == 1:
        # A single sign cannot be taken for a formula.
        shown = [part.replace("<span>&#36;</span>", "$") for part in shown]
    if is_filling:
        shown[1] = f'<span style="color: var(--jp-warn-color0)">{shown[1]}</span>'
    return Rendered(
        f"<sub>{' · '.join(filter(None, shown))}</sub>",
        visible(" · ".join(filter(None, parts))),
    )


def thousands(number: int) -> str:
    """Return a count as people read it: `640`, `3.2 k`, `41 k`, `1.2 M`."""
    if number < 1000:
        return str(number)
    for unit, size in (("k", 1000), ("M", 1_000_000)):
        value = number / size
        if value < 9.95:
            return f"{value:.1f} {unit}"
        if value < 999.5 or unit == "M":
            return f"{value:.0f} {unit}"
    raise AssertionError  # the loop ends with M


def money(usd: float, *, is_estimated: bool) -> str:
    """Return an amount as people read it: `$1.24`, `$0.021`, `~$0.0004`, `<$0.0001`."""
    if 0 < usd < 0.0001:
        return "<$0.0001"
    digits = 2 if usd >= 1 or usd == 0 else 3 if usd >= 0.01 else 4
    return f"{'~' if is_estimated else ''}${usd:.{digits}f}"


def duration(seconds: float) -> str:
    """Return a time span as people read it: `0.02 s`, `3.4 s`, `12 s`, `2 min 5 s`."""
    if seconds < 0.995:
        return f"{seconds:.2f} s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def clock_time(seconds: float) -> str:
    """Return a running time in whole seconds: `4 s`, `2 min 5 s`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def short(text: str) -> str:
    """Return `text` on one line of a few words, safe as plain text."""
    return clipped(" ".join(visible(text).split()), MAX_ARGUMENT_CHARS)


def last_lines(text: str, *, lines: int = 3, chars: int = 160) -> str:
    """Return the end of what a call has printed, safe as plain text, without blank lines."""
    kept = [line for line in visible(text[-lines * 4 * chars :]).split("\n") if line.strip()]
    return "\n".join(line if len(line) <= chars else line[:chars] + "…" for line in kept[-lines:])


def call_title(facts: CallFacts) -> str:
    """Return the line of a call, as Markdown: name, arguments, and how it went."""
    words = [escape(short(facts.summary)), *map(escape, call_words(facts))]
    words = [word for word in words if word]
    if facts.result is not None and facts.result.is_error and not facts.is_denied:
        words[-1] = f'<span style="color: var(--jp-error-color1)">{words[-1]}</span>'
    return f"<b>{escape(short(facts.name))}</b> {' · '.join(words)}".rstrip()


def call_words(facts: CallFacts) -> list[str]:
    """Return what stands after the arguments; the outcome of a failed call comes last."""
    if facts.is_denied:
        return [facts.permission or "denied"]
    if facts.result is None:
        word = {"waiting": "waiting for you", "running": "running"}.get(facts.state, "interrupted")
        return [facts.permission, word] if facts.permission else [word]
    outcome = short(_text_of(facts.result.metadata, "summary"))
    if facts.result.is_error:
        return [word for word in (facts.permission, outcome or "failed") if word]
    return [word for word in (outcome, facts.permission) if word]


def folded(title: str, body: str, *, is_shown: bool = False) -> str:
    """Return Markdown that shows `title`, and `body` when it is opened."""
    tag = "<details open>" if is_shown else "<details>"
    return f"{tag}<summary>{title}</summary>\n\n{body}\n\n</details>"


def bounded(text: str, max_chars: int, max_lines: int) -> str:
    """Return `text`, or its head and tail around a note of what is left out."""
    lines = text.strip("\n").split("\n")
    if len(lines) <= max_lines and len(text) <= max_chars:
        return "\n".join(lines)
    head, tail = "\n".join(lines[: max_lines // 2]), ""
    if len(lines) > max_lines:
        tail = "\n".join(lines[-(max_lines // 2) :])
    else:
        head, tail = text[: max_chars // 2], text[-(max_chars // 2) :]
    head, tail = head[: max_chars // 2], tail[-(max_chars // 2) :]
    missing_lines = text.count("\n") - head.count("\n") - tail.count("\n") - 1
    missing = f"{max(missing_lines, 0)} lines, " if missing_lines > 0 else ""
    count = len(text) - len(head) - len(tail)
    return f"{head}\n[… {missing}{thousands(count)} characters not shown here …]\n{tail}"


# --- a call -------------------------------------------------------------------------------


def _call_body(facts: CallFacts) -> str:
    result = facts.result
    if result is None or facts.is_denied:
        return ""
    parts: list[str] = []
    if len(visible(facts.summary)) > MAX_ARGUMENT_CHARS:
        parts.append(fenced(bounded(facts.summary, MAX_RESULT_CHARS, MAX_RESULT_LINES)))
    diff = _text_of(result.metadata, "diff")
    if diff:
        parts.append(fenced(bounded(diff, 2 * MAX_RESULT_CHARS, 2 * MAX_RESULT_LINES), "diff"))
    if result.content.strip() and (result.is_error or not diff):
        parts.append(fenced(bounded(result.content, MAX_RESULT_CHARS, MAX_RESULT_LINES)))
    hidden = [media for media in result.media if image_bundle(media) is None]
    parts.extend(
        f"<sub>{escape(media.name or media.media_type)} (not shown)</sub>" for media in hidden
    )
    return "\n\n".join(parts)


def _plan_of(facts: CallFacts) -> str:
    """Return the plan that a call has presented, as the model wrote it."""
    return "" if facts.result is None else _text_of(facts.result.metadata, "plan").strip()


def _text_of(metadata: Mapping[str, object], key: str) -> str:
    value = metadata.get(key)
    return value if isinstance(value, str) else ""


def _todo_row(todo: Todo) -> TodoRow:
    is_active = todo.status == "in_progress"
    text = (todo.active_form if is_active else "") or todo.content
    return TodoRow(TODO_SIGNS[todo.status], " ".join(visible(text).split()), is_active)


def _todo_lines(rows: Sequence[TodoRow]) -> str:
    lines = [f"{row.sign} {_strong(escape(row.text), is_strong=row.is_active)}" for row in rows]
    return "<br>\n".join(lines)


def _strong(shown: str, *, is_strong: bool) -> str:
    return f"<b>{shown}</b>" if is_strong else shown


def _said(how: str, text: str) -> Rendered:
    said = bounded(visible(text).strip(), MAX_SAID_CHARS, MAX_RESULT_LINES)
    return Rendered(
        f"<sub>{how}: {'<br>'.join(map(escape, said.splitlines()))}</sub>", f"{how}: {said}"
    )


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…", ":")) else f"{text}."


# --- the footer ---------------------------------------------------------------------------

_GAUGE_CELLS = 8
_FILLING = 0.8


def _context(facts: FooterFacts) -> tuple[str, bool]:
    if not facts.context_tokens:
        return "", False
    used = thousands(facts.context_tokens)
    if facts.usage is not None and facts.usage.is_estimated:
        used = f"~{used}"
    if not facts.context_window:
        return f"{used} in context", False
    share = min(facts.context_tokens / facts.context_window, 1.0)
    full = max(1, round(share * _GAUGE_CELLS))
    gauge = "▮" * full + "▯" * (_GAUGE_CELLS - full)
    return f"{used} of {thousands(facts.context_window)} {gauge}", share >= _FILLING


def _tokens(usage: Usage | None) -> str:
    if usage is None or not (usage.context_tokens):
        return ""
    cached = f" ({thousands(usage.cache_read_tokens)} cached)" if usage.cache_read_tokens else ""
    fresh = thousands(usage.input_tokens + usage.cache_write_tokens)
    guess = "~" if usage.is_estimated else ""
    return f"{guess}{fresh} in{cached} {guess}{thousands(usage.output_tokens)} out"


def _money(facts: FooterFacts) -> str:
    if facts.cost_usd is None:
        return ""
    return money(facts.cost_usd, is_estimated=bool(facts.usage and facts.usage.is_estimated))
