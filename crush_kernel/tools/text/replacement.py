r"""Find and replace, on whole texts and without I/O.

The old text has to be there exactly, whatever its newlines are, and once. Only if it is not
there at all is it looked for with other whitespace around its lines (`reindent`), and if
that fails too, the answer shows what comes closest (`nearmiss`). The new text is inserted as
it is: `$&` or `\1` mean nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from crush_kernel.tools.text.lineset import LineChange
from crush_kernel.tools.text.nearmiss import near_miss
from crush_kernel.tools.text.newlines import Edit, apply_edits, line_changes, normalize
from crush_kernel.tools.text.reindent import reindented

_MAX_LINES_NAMED = 10

MAX_PLACES = 100_000
MAX_RESULT = 20_000_000
"""Characters; what is replaced everywhere grows by a factor that the model does not see."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The text after the replacement."""

    text: str
    count: int
    """How many places were replaced."""
    line: int
    """The line of the first of them, counted from one."""
    changes: tuple[LineChange, ...]
    """The lines of all of them, as `view` counts them, and what became of them."""
    is_reindented: bool = False
    """Whether whitespace at line ends was adapted to find the place and to fill it."""
    kind: Literal["replaced"] = "replaced"


@dataclass(frozen=True, slots=True)
class Rejected:
    """Nothing was replaced, for a reason that tells the model how to do better."""

    reason: str
    kind: Literal["rejected"] = "rejected"


def replace_text(text: str, old: str, new: str, *, replace_all: bool) -> Replaced | Rejected:
    """Return `text` with `new` in the place of `old`.

    Everything outside the places stays as it is, character for character; lines of `new`
    end as the lines in its place do.
    """
    if not old:
        return _filled(text, new)
    plain, old, plain_new = normalize(text), normalize(old), normalize(new)
    if old == plain_new:
        return Rejected(
            "old_string and new_string are the same, so nothing would change. "
            "Line ends do not count: a file keeps its own."
        )
    first = plain.find(old)
    if first < 0:
        return _replaced_loosely(text, plain, old, plain_new)
    if not replace_all and plain.rfind(old) != first:
        return Rejected(_ambiguous(plain, old))
    if plain_new.partition("\n")[2].strip() and _starts_in_indentation(plain, old, first):
        return _replaced_loosely(text, plain, old, plain_new)
    places = tuple(islice(_places(plain, old), MAX_PLACES + 1)) if replace_all else (first,)
    if len(places) > MAX_PLACES or len(plain) + len(places) * len(new) > MAX_RESULT:
        return Rejected("These are too many places to replace here; use a command such as sed.")
    edits = [Edit(start, start + len(old), new) for start in places]
    return _replaced(text, edits)


def _filled(text: str, new: str) -> Replaced | Rejected:
    if text:
        return Rejected(
            "old_string is empty but the file is not. Give the exact text to replace, or use "
            "`write` to replace the whole file."
        )
    if not new:
        return Rejected("The file is empty already, so nothing would change.")
    return Replaced(new, count=1, line=1, changes=())


def _starts_in_indentation(text: str, old: str, start: int) -> bool:
    """Return whether `old` begins with a part, but not all, of a line's indentation.

    Then it counts from another base: further lines of a new text would be indented too
    little, and nothing would tell.
    """
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return old.startswith((" ", "\t")) and bool(before) and not before.strip(" \t")


def _replaced_loosely(text: str, plain: str, old: str, new: str) -> Replaced | Rejected:
    edit = reindented(plain, old, new)
    if edit is None:
        return Rejected(near_miss(plain, old))
    changed = replace(_replaced(text, [edit]), is_reindented=True)
    if changed.text == text:
        return Rejected("The file has this text already, but for whitespace at the line ends.")
    return changed


def _replaced(text: str, edits: list[Edit]) -> Replaced:
    changes = line_changes(text, edits)
    return Replaced(apply_edits(text, edits), len(edits), changes[0].start + 1, changes)


def _places(text: str, old: str) -> Iterator[int]:
    start = text.find(old)
    while start >= 0:
        yield start
        start = text.find(old, start + len(old))


def _ambiguous(text: str, old: str) -> str:
    # Overlapping places count once, but one place alone would not be ambiguous.
    count = max(2, text.count(old))
    lines = sorted({_line(text, place) for place in islice(_places(text, old), _MAX_LINES_NAMED)})
    named = ", ".join(map(str, lines)) + (", …" if count > _MAX_LINES_NAMED else "")
    return (
        f"old_string is there {count} times (line {named}), so nothing was changed. Include "
        "lines around the one you mean, or set replace_all to change all of them."
    )


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
