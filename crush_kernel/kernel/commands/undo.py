"""The `/commands` about what turns have done to files: `/diff`, `/undo`, `/redo`.

`/undo` and `/redo` are turns, since the model must know: what runs the cells carries them out.
They run on the engine thread.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from anyio.to_thread import run_sync

from crush_kernel.errors import CommandError
from crush_kernel.files.textfile import decode, detect
from crush_kernel.history.checkpoints import Change, State
from crush_kernel.history.turn import Turn
from crush_kernel.kernel.commands.call import CommandCall
from crush_kernel.kernel.commands.notebook import asked
from crush_kernel.kernel.markdown import fenced
from crush_kernel.kernel.plaintext import code_span, escape
from crush_kernel.kernel.render import Rendered, short, thousands
from crush_kernel.messages import Message, Text
from crush_kernel.runtime import Runtime
from crush_kernel.tools.text.diff import unified_diff
from crush_kernel.tools.undo.rewind import Rewinding, Rewound

UNDO: Final = "undo"
REDO: Final = "redo"

_KINDS: Final[dict[str, Literal["undo", "redo"]]] = {UNDO: "undo", REDO: "redo"}

MAX_FILES: Final = 50
"""Whose diffs are shown; of the others only the names."""

MAX_DIFF_CHARS: Final = 20_000
"""Of one file."""

MAX_ALL_CHARS: Final = 100_000
MAX_COMPARED_BYTES: Final = 2_000_000
MAX_NAMED: Final = 500
"""Files that the model is told of by name."""


async def undo(call: CommandCall) -> str:
    """Say that it belongs into a cell of its own."""
    raise CommandError(f"This cannot be carried out here: {call.arguments!r}.")


async def prepare(runtime: Runtime, name: str, arguments: str) -> Rewinding:
    """Return what `/name arguments` would do.

    Raises:
        CommandError: it cannot be done; nothing was written.
    """
    if arguments not in ("", "force"):
        raise CommandError(
            f"/{name} knows no {arguments!r}.",
            hint=f"/{name} takes no more than force, which overwrites what was changed since.",
        )
    return await runtime.rewind.prepare(_KINDS[name], is_forced=bool(arguments))


async def carry_out(runtime: Runtime, rewinding: Rewinding, turn_id: str) -> Rendered:
    """Do it in the turn that was begun, have the model know, and return what to show."""
    rewound = await runtime.rewind.carry_out(rewinding, turn_id)
    name = _name(runtime, rewinding.of)
    talk = runtime.session.conversation
    message = Message("user", (Text(_said(rewinding.kind, name, rewound)),))
    (clean,) = runtime.session.redactor.redact_messages((message,))
    talk.append(clean)
    talk.end("end_turn")
    notes = (*_uncovered(runtime, rewinding), *runtime.rewind.worktree.news())
    return _shown(rewinding.kind, name, rewound, notes)


async def diff(call: CommandCall) -> str:
    """Show what the last turn that changed files has done to them, or the nth, or all."""
    runtime = call.runtime
    await runtime.load(call.cell_id)
    rewind = runtime.rewind
    if call.arguments == "all":
        when, changes = "since the first change that is known", await rewind.all_changes()
    elif call.arguments:
        turn = _nth(call)
        when = f"in turn {call.arguments}: “{short(asked(turn))}”"
        changes = (await rewind.changes()).get(turn.id, ())
    else:
        by_turn = await rewind.changes()
        last = next(reversed(by_turn), "")
        when = f"in the last turn that changed any: “{_name(runtime, last)}”"
        changes = by_turn.get(last, ())
    worktree = rewind.worktree
    notes = worktree.notes() if call.arguments == "all" else worktree.news()
    if not changes:
        return "\n\n".join(("No file has changed.", *_small(notes)))
    return await run_sync(_diff_page, runtime, when, changes, notes)


def _nth(call: CommandCall) -> Turn:
    """Return the turn that the command names by its place above the cell."""
    talk = call.runtime.session.conversation
    cells = talk.above(call.cell_id)
    text = call.arguments
    number = int(text[:9]) if text.isascii() and text.isdigit() else 0
    if not 0 < number <= len(cells):
        raise CommandError(
            f"There is no turn {short(text)!r} above this cell.",
            hint=f"There are {len(cells)}; /diff all shows everything.",
        )
    return talk.turns[cells[number - 1]]


def _name(runtime: Runtime, turn_id: str) -> str:
    """Return what a turn was asked, in a few words."""
    session = runtime.session
    turn = next((t for t in session.conversation.turns.values() if t.id == turn_id), None)
    if turn is None:
        kept = (stored for stored in session.journal.turns(session.id) if stored.id == turn_id)
        turn = next((session.turn_of(stored) for stored in kept), None)
    return short(asked(turn)) if turn is not None else "a turn that is not kept"


def _said(kind: str, name: str, rewound: Rewound) -> str:
    """Return what the model reads about it."""
    if rewound.left and not rewound.done:
        head = f"/{kind}: I wanted that for the files of the turn {name!r}, but it failed."
    elif kind == "undo":
        head = f"/undo: I have taken back what was done to files in the turn {name!r}."
    else:
        head = f"/redo: I have brought back what was done to files in the turn {name!r}."
    lines = [head, *_list("These files have changed by that:", rewound.done)]
    lines += _list("These stay as they were:", rewound.left)
    return "\n".join(lines)


def _list(head: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    rows = tuple(rows)
    if rows:
        yield head
        yield from (f"- {path}: {what}" for path, what in rows[:MAX_NAMED])
    if len(rows) > MAX_NAMED:
        yield f"- and {len(rows) - MAX_NAMED} more"


def _shown(kind: str, name: str, rewound: Rewound, notes: Iterable[str]) -> Rendered:
    is_part = " in part" if rewound.left else ""
    verb = "taken back" if kind == "undo" else "brought back"
    other = "`/redo` takes this back." if kind == "undo" else "`/undo` takes it back again."
    head = f"{verb.capitalize()}{is_part}: “{name}”"
    if rewound.left and not rewound.done:
        head, other = f"Nothing could be {verb}: “{name}”", f"`/{kind}` tries it again."
    markdown = [f"{escape(head)}\n"]
    markdown += [f"- {code_span(path)} · {escape(what)}" for path, what in rewound.done[:MAX_NAMED]]
    markdown += [
        f"- {code_span(path)} · **stays as it is**: {escape(why)}"
        for path, why in rewound.left[:MAX_NAMED]
    ]
    if (more := len(rewound.done) + len(rewound.left) - 2 * MAX_NAMED) > 0:
        markdown.append(f"- and {more} more")
    markdown += ["", f"<sub>{other.replace('`', '')}</sub>", *_small(notes)]
    plain = [head]
    plain += [f"{path} · {what}" for path, what in rewound.done]
    plain += [f"{path} · stays as it is: {why}" for path, why in rewound.left]
    return Rendered("\n".join(markdown), "\n".join(plain))


def _small(notes: Iterable[str]) -> Iterator[str]:
    yield from (f"\n<sub>{escape(note)}</sub>" for note in notes)


def _uncovered(runtime: Runtime, rewinding: Rewinding) -> Iterator[str]:
    if not runtime.rewind.worktree.is_covered(rewinding.of):
        yield "Not all that the commands of this turn have changed is known, and not all is undone."


# A diff


def _diff_page(runtime: Runtime, when: str, changes: Iterable[Change], notes: Iterable[str]) -> str:
    parts: list[str] = []
    added = removed = 0
    room = MAX_ALL_CHARS
    changes = tuple(changes)
    for number, change in enumerate(changes):
        shown = runtime.rewind.shown(change.path)
        text, additions, removals = _file_diff(runtime, change, shown)
        added, removed = added + additions, removed + removals
        counts = f"+{additions} −{removals}" if text else _in_words(change)
        head = f"{code_span(shown)} {escape(counts)}"
        if text and number < MAX_FILES and room > 0:
            cut = text[: min(MAX_DIFF_CHARS, room)]
            room -= len(cut)
            rest = len(text) - len(cut)
            note = f"\n\n… {thousands(rest)} characters more" if rest else ""
            head += f"\n\n{fenced(cut.rstrip(), 'diff')}{note}"
        parts.append(head)
    head = f"{_counted(changes)} changed, +{added} −{removed}, {when}"
    return "\n\n".join((escape(head), *parts, *_small(notes)))


def _counted(changes: Sequence[Change]) -> str:
    """Return how many files and folders there are, in words."""
    left = [change.after or change.before for change in changes]
    folders = sum(state is not None and state.kind == "folder" for state in left)
    counts = (("file", len(changes) - folders), ("folder", folders))
    return " and ".join(f"{n} {noun}" + "s" * (n != 1) for noun, n in counts if n)


def _file_diff(runtime: Runtime, change: Change, shown: str) -> tuple[str, int, int]:
    """Return the diff of a file without secrets, and its counts; empty if it cannot be told."""
    old, new = (_text(runtime, state) for state in (change.before, change.after))
    if old is None or new is None:
        return "", 0, 0
    redact = runtime.session.redactor.redact
    made = unified_diff(shown, None if change.before is None else redact(old), redact(new))
    text = made.text
    if change.after is None:
        first, _, rest = text.partition("\n")
        text = f"{first}\n+++ /dev/null\n{rest.partition(chr(10))[2]}" if text else ""
    return text, made.additions, made.removals


def _text(runtime: Runtime, state: State) -> str | None:
    """Return the text of a file, empty for none; `None` if there is no text to compare."""
    if state is None:
        return ""
    if not state.is_known or state.kind == "folder":
        return None
    data = runtime.rewind.files.content(state.content)
    if data is None or len(data) > MAX_COMPARED_BYTES:
        return None
    text_format = detect(data)
    return None if text_format is None else decode(data, text_format)


def _in_words(change: Change) -> str:
    before, after = change.before, change.after
    if before is None:
        return "made" if after is None or after.kind != "folder" else "folder made"
    if after is None:
        return "folder deleted" if before.kind == "folder" else "deleted"
    if before.content and before.content == after.content and before.kind != after.kind:
        return "executable now" if after.kind == "program" else "not executable any more"
    return f"changed, {change.reason or 'not as text'}"
