"""Lines of which a few are shown until someone wants all; very many come by the page."""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# ipywidgets carries no types.

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape as escape_html
from itertools import groupby

from ipywidgets import Widget  # pyright: ignore[reportMissingTypeStubs]

from crush_kernel.kernel.markdown import visible
from crush_kernel.kernel.widgets import GREY, button, html_line

DIFF_LINES = 12
SPARED_LINES = 3
"""So few more lines are shown too: a button that shows them takes as much room."""
COMMAND_LINES = 14
LAST_COMMAND_LINES = 4
"""How many of a folded command's lines are its last: what it ends in must be seen."""
BLANK_LINES = 3
"""How many blank lines of a command are shown as such; more of them would only hide the rest."""
PAGE_LINES = 2000
PAGE_CHARS = 200_000
"""How much is shown at once: a browser has to lay it out."""
LINE_CHARS = 5000
"""Longer lines are broken."""
COMMAND_LINE_CHARS = 400
"""The same of a command, whose end must be seen without scrolling."""

_CODE = (
    "white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.4; "
    "font-family: var(--jp-code-font-family, monospace); "
    "font-size: var(--jp-code-font-size, 13px); color: inherit; background: none"
)
_BOX = f"margin: 0; padding: 0; {_CODE}"
_SCROLLED = 'max-height: 24em; overflow-y: auto" tabindex="0'
"""What does not fit scrolls, by keyboard too."""
_GRID = (
    "display: grid; align-items: baseline; column-gap: 1.2em; margin: 2px 0; "
    "grid-template-columns: {}minmax(0, max-content) minmax(6em, 1fr)"
)
_LINE_COLORS = {
    "+": "var(--jp-success-color1, #388e3c)",
    "-": "var(--jp-error-color1, #d32f2f)",
    "@": "var(--jp-ui-font-color2, #757575)",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of what is shown."""

    text: str
    head: str = ""
    """What stands before it, in grey: a number."""
    tail: str = ""
    """What stands behind it, in grey: what it does."""
    joiner: str = ""
    """What its text ends in, in grey: `&&`."""


Frame = Callable[[Sequence[Line], bool], str]
"""Makes HTML of lines; told whether all are shown, however many, so that they may scroll."""


def command_lines(lines: Iterable[Line]) -> list[Widget]:
    """Return widgets that show a command, its beginning and its end at once."""
    every = _squeezed(_broken(lines, COMMAND_LINE_CHARS))
    frame = _grid if any(line.head or line.tail for line in every) else _text
    if len(every) <= COMMAND_LINES:
        return [html_line(frame(every, False))]  # noqa: FBT003 - a `Frame`
    head, tail = every[: COMMAND_LINES - LAST_COMMAND_LINES - 1], every[-LAST_COMMAND_LINES:]
    left_out = Line(f"[… {len(every) - len(head) - len(tail):,} lines …]")
    fold = Fold(every, [*head, left_out, *tail], frame)
    return [fold.body, fold.button]


def diff_lines(diff: str) -> list[Widget]:
    """Return widgets that show a unified diff, its beginning at once.

    Without its first two lines, which only name the file: what is asked names it already.
    """
    written = visible(diff).strip("\n").split("\n")
    is_named = [line[:4] for line in written[:2]] == ["--- ", "+++ "]
    lines = map(Line, (written[2:] if is_named else []) or written)
    every = list(_broken(lines, LINE_CHARS))
    if len(every) <= DIFF_LINES + SPARED_LINES:
        return [html_line(_diff(every, False))]  # noqa: FBT003 - a `Frame`
    fold = Fold(every, every[:DIFF_LINES], _diff)
    return [fold.body, fold.button]


class Fold:
    """Lines of which a few are shown, and the button that shows the rest."""

    def __init__(self, lines: list[Line], few: list[Line], frame: Frame) -> None:
        self._pages = _pages(lines)
        self._next = 0
        self._frame = frame
        self.body = html_line(frame(few, False))  # noqa: FBT003 - a `Frame`
        label = f"Show all {len(lines):,} lines" if len(self._pages) == 1 else self._label()
        self.button = button(label, "Show the rest", "crush-show-all")
        self.button.layout.align_self = "flex-start"
        self.button.on_click(self._turn)

    def _turn(self, _button: object) -> None:
        self.body.value = self._frame(self._pages[self._next].lines, True)  # noqa: FBT003 - ditto
        self._next = (self._next + 1) % len(self._pages)
        if len(self._pages) == 1:
            self.button.layout.display = "none"
        else:
            self.button.description = self._label()

    def _label(self) -> str:
        page, last = self._pages[self._next], self._pages[-1]
        end = page.start + len(page.lines)
        return f"Show lines {page.start + 1:,}–{end:,} of {last.start + len(last.lines):,}"


@dataclass(frozen=True, slots=True)
class _Page:
    """Lines that are shown at once, and how many come before them."""

    start: int
    lines: list[Line]


def _pages(lines: list[Line]) -> list[_Page]:
    pages = [_Page(0, [])]
    chars = 0
    for number, line in enumerate(lines):
        size = len(line.text) + len(line.tail)
        if len(pages[-1].lines) == PAGE_LINES or chars + size > PAGE_CHARS:
            pages.append(_Page(number, []))
            chars = 0
        pages[-1].lines.append(line)
        chars += size
    return pages


def _broken(lines: Iterable[Line], limit: int) -> Iterable[Line]:
    """Yield `lines`, endless ones broken."""
    for line in lines:
        text = line.text
        if len(text) <= limit:
            yield line
            continue
        yield Line(text[:limit], line.head, line.tail)
        pieces = [text[start : start + limit] for start in range(limit, len(text), limit)]
        yield from map(Line, pieces[:-1])
        yield Line(pieces[-1], joiner=line.joiner)


def _squeezed(lines: Iterable[Line]) -> list[Line]:
    """Return `lines` with a note in the place of many blank ones."""
    out: list[Line] = []
    for is_blank, run in groupby(lines, lambda line: not (line.text.strip() or line.head)):
        few = list(run)
        is_many = is_blank and len(few) > BLANK_LINES
        out += [Line(f"[… {len(few):,} blank lines …]")] if is_many else few
    return out


def _text(lines: Sequence[Line], is_all: bool) -> str:  # noqa: FBT001 - a `Frame`
    return _pre("\n".join(map(_with_joiner, lines)), is_all=is_all)


def _diff(lines: Sequence[Line], is_all: bool) -> str:  # noqa: FBT001 - a `Frame`
    return _pre("\n".join(_diff_line(line.text) for line in lines), is_all=is_all)


def _grid(lines: Sequence[Line], is_all: bool) -> str:  # noqa: FBT001 - a `Frame`
    is_numbered = any(line.head for line in lines)
    rows = (
        (f'<span style="{GREY}">{escape_html(line.head)}</span>' if is_numbered else "")
        + f'<span style="{_CODE}">{_with_joiner(line)}</span>'
        + f'<span style="{GREY}; overflow-wrap: anywhere">{escape_html(line.tail)}</span>'
        for line in lines
    )
    grid = _GRID.format("max-content " if is_numbered else "")
    style = f"{grid}; {_SCROLLED}" if is_all else grid
    return f'<div style="{style}">{chr(10).join(rows)}</div>'


def _with_joiner(line: Line) -> str:
    text = escape_html(line.text)
    if not line.joiner:
        return text
    return f'{text} <span style="{GREY}">{escape_html(line.joiner)}</span>'


def _pre(content: str, *, is_all: bool) -> str:
    return f'<pre style="{_BOX}{"; " + _SCROLLED if is_all else ""}">{content}</pre>'


def _diff_line(text: str) -> str:
    is_header = text.startswith(("+++ ", "--- "))
    color = _LINE_COLORS.get("@" if is_header else text[:1])
    shown = escape_html(text)
    return f'<span style="color: {color}">{shown}</span>' if color else shown
