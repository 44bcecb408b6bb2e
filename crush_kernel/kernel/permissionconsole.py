"""Permission questions as lines of text, and answers read from lines: for consoles. Pure."""

from collections.abc import Iterator
from typing import Final, Literal

from crush_kernel.config.ruletexts import RuleScope
from crush_kernel.kernel import permissiontext
from crush_kernel.kernel.markdown import visible
from crush_kernel.kernel.permissiontext import PartRow
from crush_kernel.kernel.ruleoffer import RuleOffer
from crush_kernel.permissions.gate import Answer
from crush_kernel.permissions.request import PermissionRequest

DIFF_LINES: Final = 2000
"""Of a diff that is asked about, as good as all; a console can be scrolled."""

SCOPE_PROMPT: Final = "Keep? [p] in this project  [e] everywhere  [n] back, or other rules: "

_ONCE = "Allow? [y] once  [s] for this session  "


def question(request: PermissionRequest) -> Iterator[str]:
    """Yield what is wanted, where, and what is unusual about it."""
    yield permissiontext.title_of(request)
    if request.command:
        yield from _command(request)
    yield from (f"  {line}" for line in first_lines(request.diff, DIFF_LINES))
    yield from (f"  dangerous: {permissiontext.one_line(each)}" for each in request.dangers)
    paths = permissiontext.outside_paths(request)
    yield from (f"  {permissiontext.OUTSIDE}: {path}" for path in paths)
    if request.is_outside and not paths:
        yield f"  {permissiontext.OUTSIDE}"
    yield from (f"  {note}" for note in permissiontext.notes_of(request))
    if request.cwd is not None:
        yield f"  in {permissiontext.one_line(str(request.cwd))}"


def prompt(offer: RuleOffer | None) -> str:
    """Return what stands before the place to type."""
    always = "" if offer is None else "[a] always …  "
    return f"{_ONCE}{always}[n] no, or say why not: "


def answer_in(line: str, *, has_offer: bool) -> Answer | Literal["always"]:
    """Return what `line` says; whatever is no clear yes is a no, with the line as the reason."""
    line = line.strip()
    word, _, rest = line.partition(" ")
    match word.lower():
        case "y" | "yes" if not rest:
            return Answer("once")
        case "s" | "session" if not rest:
            return Answer("session")
        case "a" | "always" if not rest and has_offer:
            return "always"
        case "n" | "no":
            return Answer("deny", rest.strip())
        case _:
            return Answer("deny", line)


def rules(rules: tuple[str, ...]) -> Iterator[str]:
    """Yield the rules that would be kept."""
    yield "Always allow:"
    yield from (f"  {permissiontext.one_line(rule)}" for rule in rules)


def scope_in(line: str) -> RuleScope | Literal["back"] | None:
    """Return where rules are to be kept, `None` if `line` writes other rules."""
    match line.strip().lower():
        case "p" | "project":
            return "project"
        case "e" | "everywhere":
            return "everywhere"
        case "" | "n" | "no":
            return "back"
        case _:
            return None


def rules_in(line: str) -> tuple[str, ...]:
    """Return the rules that `line` writes, with blanks between them."""
    found: list[str] = []
    depth, rule = 0, ""
    for character in line:
        if character.isspace() and depth == 0:
            found.append(rule)
            rule = ""
            continue
        depth = max(0, depth + {"(": 1, ")": -1}.get(character, 0))
        rule += character
    return tuple(dict.fromkeys(filter(None, (*found, rule.strip()))))


def first_lines(diff: str, limit: int) -> list[str]:
    """Return the first lines of a diff, and how many are left out."""
    lines = visible(diff).strip("\n").split("\n") if diff else []
    rest = len(lines) - limit
    return lines if rest <= 0 else [*lines[:limit], f"[… {rest} more lines …]"]


def _command(request: PermissionRequest) -> Iterator[str]:
    view = permissiontext.command_view(request)
    if view.is_unread:
        yield f"  {permissiontext.UNREAD}"
    yield from (f"  {line}" for line in view.whole if line)
    for row in view.rows:
        yield from _part(row)


def _part(row: PartRow) -> Iterator[str]:
    number = f"{row.number}  " if row.number else ""
    first, *rest = row.lines
    lines = [f"{number}{first}", *(f"{' ' * len(number)}{line}" for line in rest if line)]
    joiner = f" {row.joiner}" if row.joiner else ""
    *before, last = lines
    does = f"   ({row.does})" if row.does else ""
    yield from (f"  {line}" for line in before)
    yield f"  {last}{joiner}{does}"
