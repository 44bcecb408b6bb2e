"""A permission request in words: for cards, for consoles, and for a file that is saved meanwhile.

Pure. A command line is shown as the numbered commands that it consists of, each with what it
does. Where these do not add up to all that was written, the whole of it stands before them, so
that nothing can hide between two parts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from crush_kernel.agent.events import PermissionSettled
from crush_kernel.kernel.markdown import escape, fenced, visible
from crush_kernel.kernel.render import (
    MAX_RESULT_CHARS,
    MAX_RESULT_LINES,
    Rendered,
    bounded,
    permission_words,
    short,
)
from crush_kernel.permissions.gate import Answer
from crush_kernel.permissions.request import CommandPart, PermissionRequest
from crush_kernel.wording import clipped

UNREAD = "This command line could not be taken apart: nobody but you has checked what it does."
"""Said of a command without parts."""

OUTSIDE = "outside the project"

HELP = (
    "Allow once: this call only. For this session: the same again without a question, until the "
    "kernel is restarted. Always: a rule that you can edit first, kept in your own settings. "
    "Deny: it is not done, the turn goes on, and the model reads your reason."
)
"""What the buttons mean."""

MAX_NAMED = 5
"""How many of the files that a part writes are named."""

PART_CHARS = 24
"""Of one command in a line that has several, in short."""

_AND = " · "

_RUNS = "runs another command"
"""What a command does that is nothing without another one."""

_NAMES_ITS_FILES = frozenset(
    {"changes files", "changes permissions", "deletes files", "makes folders", "moves files"}
)
"""What is done to files, in words after which they are named; writing is not the word for it."""

_JOINER = re.compile(r"[\s;&|]*")


@dataclass(frozen=True, slots=True)
class PartRow:
    """One command of a command line as it is shown, safe as plain text."""

    lines: tuple[str, ...]
    does: str
    """`runs the project's code · writes out.txt`."""
    number: int = 0
    """Among several; 0 for the only one."""
    joiner: str = ""
    """What stands between it and the next one: `&&`, `|`."""


@dataclass(frozen=True, slots=True)
class CommandView:
    """How a command line is shown."""

    whole: tuple[str, ...]
    """All of its lines, if its parts do not show everything."""
    rows: tuple[PartRow, ...]
    is_unread: bool
    """Whether it could not be taken apart."""


def title_of(request: PermissionRequest) -> str:
    """Return what is wanted and by whom, on one line."""
    return one_line(f"{behalf(request)}{request.tool} wants to {request.title}")


def behalf(request: PermissionRequest) -> str:
    """Return for whom a tool asks, to stand before its name; nothing for the agent itself."""
    agent = request.on_behalf.removeprefix("agent: ")
    return f"{agent} (sub-agent) · " if agent else ""


def waiting(request: PermissionRequest) -> Rendered:
    """Show a request that is not answered yet, for a file saved meanwhile."""
    title = title_of(request)
    parts = [f"<sub><b>{escape(title)}</b> · waiting for an answer</sub>"]
    if request.command:
        parts.append(fenced(bounded(request.command, MAX_RESULT_CHARS, MAX_RESULT_LINES)))
    if request.diff:
        parts.append(fenced(bounded(request.diff, MAX_RESULT_CHARS, MAX_RESULT_LINES), "diff"))
    return Rendered("\n\n".join(parts), f"{title}: waiting for an answer")


def command_view(request: PermissionRequest) -> CommandView:
    """Return how the command line of `request` is shown: with every sign that is in it."""
    rows = _adding_up(request.command, request.parts)
    whole = () if rows else tuple(_shell_lines(request.command))
    return CommandView(
        whole=whole,
        rows=rows or tuple(_rows(request.parts)),
        is_unread=not request.parts,
    )


def outside_paths(request: PermissionRequest) -> tuple[str, ...]:
    """Return the paths outside the project in full, each on one line; not what the title names."""
    if not request.is_outside:
        return ()
    named = tuple(one_line(str(path)) for path in request.paths)
    title = one_line(request.title)
    return () if len(named) == 1 and title.endswith(f" {named[0]}") else named


def notes_of(request: PermissionRequest) -> tuple[str, ...]:
    """Return what else a person should know, a line each, beside dangers and paths."""
    server = ""
    if request.server and request.server not in request.title:
        server = f"talks to {request.server}"
    reach = "this machine, or one in a private network" if request.is_private else ""
    return tuple(one_line(note) for note in (server, reach, *request.notes) if note)


def answer_line(request: PermissionRequest, answer: Answer) -> str:
    """Return the line that stays when a person has answered."""
    match answer.kind:
        case "once":
            return f"allowed once · {call_in_short(request)}"
        case "session":
            return f"allowed for this session · {call_in_short(request)}"
        case "always":
            where = "in this project" if answer.scope == "project" else "everywhere"
            rules = clipped(", ".join(map(one_line, answer.rules)), 200)
            return f"always allowed {where}: {rules}"
        case "deny":
            reason = short(answer.reason)
            return f'denied: "{reason}"' if reason else f"denied · {call_in_short(request)}"


def settled_line(event: PermissionSettled) -> str:
    """Return the line that stays when something else than a person has settled a question."""
    words = permission_words(event) or "allowed"
    return f"no answer needed any more: {words} · {call_in_short(event.request)}"


def call_in_short(request: PermissionRequest) -> str:
    """Return what is done in a few words: `bash git stash … && pytest …`."""
    if request.action != "execute":
        is_named = request.title.startswith(f"{request.tool} ")
        return short(request.title if is_named else f"{request.tool}: {request.title}")
    rows = _adding_up(request.command, request.parts)
    if len(rows) < 2:
        return short(f"{request.tool} {clipped(' '.join(request.command.split()), 60)}")
    words = (f"{_part_in_short(' '.join(row.lines))} {row.joiner}" for row in rows)
    return short(f"{request.tool} {' '.join(words)}")


def one_line(text: str) -> str:
    """Return `text` on one line, with everything in it that hides or breaks lines made visible."""
    return visible(text.replace("\r", "⟨U+000D⟩").replace("\n", "⟨U+000A⟩"))


def tilde(path: Path, home: str) -> str:
    """Return `path` with `~` for the folder `home`, on one line."""
    text = str(path)
    is_inside = bool(home.rstrip("/")) and (text == home or text.startswith(f"{home}/"))
    return one_line(f"~{text[len(home) :]}" if is_inside else text)


def _adding_up(command: str, parts: tuple[CommandPart, ...]) -> tuple[PartRow, ...]:
    """Return the parts with what joins them, or nothing if they do not make up `command`.

    What only runs another command, such as `timeout 5`, is one row with that.
    """
    kept: list[CommandPart] = []
    joiners: dict[int, str] = {}
    start = end = 0
    for part in parts:
        text = part.text.strip(" ")
        found = command.find(text, end)
        if text and found >= 0 and _JOINER.fullmatch(command, end, found):
            if joiners:
                joiners[max(joiners)] = command[end:found]
            elif command[end:found].strip():
                return ()
            start, end = found, found + len(text)
            joiners[len(kept)] = ""
            kept.append(part)
        elif not text or command.find(text, start, end) < 0:
            return ()
        elif kept and _is_wrapped(part, kept[-1]):
            kept[-1] = _as_one(kept[-1], part)
        else:
            kept.append(part)
    if not joiners or not _JOINER.fullmatch(command, end):
        return ()
    joiners[max(joiners)] = command[end:]
    rows = enumerate(_rows(tuple(kept)))
    return tuple(_joined(row, joiners[at]) if at in joiners else row for at, row in rows)


def _is_wrapped(inner: CommandPart, outer: CommandPart) -> bool:
    words = _known_words(inner)
    outers = _known_words(outer)
    return 0 < len(words) < len(outers) and outers[-len(words) :] == words


def _known_words(part: CommandPart) -> tuple[str | None, ...]:
    """Return its words, without a last one that only the shell can know: what xargs adds."""
    return part.argv[:-1] if part.argv[-1:] == (None,) else part.argv


def _as_one(outer: CommandPart, inner: CommandPart) -> CommandPart:
    # Of several wrappers what they do stands there already.
    does = (*outer.does.split(_AND), inner.does)
    return replace(
        outer,
        argv=inner.argv,
        does=_AND.join(dict.fromkeys(each for each in does if each not in ("", _RUNS))) or _RUNS,
        writes=tuple(dict.fromkeys((*outer.writes, *inner.writes))),
    )


def _joined(row: PartRow, joiner: str) -> PartRow:
    return replace(row, joiner=_inline(" ".join(joiner.split())))


def _rows(parts: tuple[CommandPart, ...]) -> Iterator[PartRow]:
    for number, part in enumerate(parts, start=1):
        yield PartRow(
            lines=tuple(_shell_lines(part.text)),
            does=_does(part),
            number=number if len(parts) > 1 else 0,
        )


def _does(part: CommandPart) -> str:
    """Return what it does and to what: `runs code · writes out.txt`, `deletes files: build`."""
    does = one_line(part.does)
    writes = [one_line(path) for path in part.writes if path]
    if not writes:
        return does
    names = writes[:MAX_NAMED]
    rest = len(writes) - len(names)
    written = ", ".join(names) + (f" and {rest} more" if rest else "")
    if part.does in _NAMES_ITS_FILES and ">" not in part.text:
        return f"{does}: {written}"
    return _AND.join(filter(None, (does, f"writes {written}")))


def _shell_lines(command: str) -> list[str]:
    return _inline(command).strip("\n").split("\n")


def _inline(text: str) -> str:
    # What bash reads is no line end must not look like one.
    return visible(text.replace("\r", "⟨U+000D⟩"))


def _part_in_short(text: str) -> str:
    """Return the first words of a command: `git stash …`."""
    text = " ".join(text.split())
    if len(text) <= PART_CHARS:
        return text
    head = text[:PART_CHARS].rpartition(" ")[0] or text[:PART_CHARS]
    words = head.split(" ")
    while len(words) > 1 and words[-1].startswith("-"):
        words.pop()
    return f"{' '.join(words)} …"
