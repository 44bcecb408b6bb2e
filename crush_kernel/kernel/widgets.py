"""What a person can press while a cell runs: running calls with Stop, and permission cards.

The one module that imports ipywidgets, itself imported when the first widget is needed.
`HTML` widgets render raw HTML, so every text is escaped on its way in. Callbacks only set
a future or call what they were given; a second click finds the question answered.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# ipywidgets carries no types.

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape as escape_html
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from ipywidgets import (  # pyright: ignore[reportMissingTypeStubs]
    HTML,
    Box,
    Button,
    HBox,
    Layout,
    Text,
    VBox,
    Widget,
)

from crush_kernel.kernel import render
from crush_kernel.kernel.markdown import visible
from crush_kernel.kernel.render import Row, TodoRow
from crush_kernel.permissions.gate import Answer
from crush_kernel.permissions.request import PermissionRequest

DIFF_LINES = 12
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
REASON_GRACE_S = 0.1
"""How long typed letters may be behind the click that ends the typing: the front end sends
values one at a time but clicks at once."""

GREY = "color: var(--jp-ui-font-color2, #757575)"
AMBER = "var(--jp-warn-color1, #f57c00)"
_PRE = (
    "margin: 0; padding: 0; white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.4; "
    "font-family: var(--jp-code-font-family, monospace); "
    "font-size: var(--jp-code-font-size, 13px); color: inherit; background: none"
)
_LINE_COLORS = {
    "+": "var(--jp-success-color1, #388e3c)",
    "-": "var(--jp-error-color1, #d32f2f)",
    "@": "var(--jp-ui-font-color2, #757575)",
}


class LiveCard:
    """The widget in the live slot: a row per call, what is to do, and the questions that wait.

    Args:
        stop: stops the call with this id.
        steering: stands at the end; it is not the card's, and outlives it.
    """

    def __init__(
        self, stop: Callable[[str], None], *, steering: "SteeringBox | None" = None
    ) -> None:
        self._stop = stop
        self._rows: dict[str, _RowWidget] = {}
        self._standing = html_line("")
        self._last = () if steering is None else (steering.box,)
        self._box = VBox([], layout=Layout(width="100%", margin="0"))
        self._box.add_class("crush-live")

    def view(self) -> dict[str, object]:
        """Return the part of a MIME bundle that shows the card."""
        return {
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self._box.model_id,
            }
        }

    def show(
        self,
        rows: Sequence[Row],
        questions: Sequence["WaitingCard"],
        *,
        todos: Sequence[TodoRow] = (),
        queued: Sequence[str] = (),
    ) -> None:
        """Bring the card to this state; what has not changed is not sent."""
        for row in rows:
            if row.call_id not in self._rows:
                self._rows[row.call_id] = _RowWidget(row, self._stop)
            self._rows[row.call_id].show(row)
        standing = _standing(todos, queued)
        _set(self._standing, "value", standing)
        children = [
            *(self._rows[row.call_id].box for row in rows),
            *((self._standing,) if standing else ()),
            *(question.box for question in questions),
            *self._last,
        ]
        if list(cast("Sequence[Widget]", self._box.children)) != children:
            self._box.children = children

    def close(self) -> None:
        """Remove the card and all its models; safe to repeat."""
        for row in self._rows.values():
            row.close()
        self._rows.clear()
        # What was never shown is in no tree.
        close_tree(self._standing)
        if self._last:
            self._box.children = ()
        close_tree(self._box)


class _RowWidget:
    """`● bash  pytest -q …  running 4 s  [Stop]`, and up to three lines beneath."""

    def __init__(self, row: Row, stop: Callable[[str], None]) -> None:
        self._title = html_line("")
        self._title.layout.flex = "1 1 auto"
        self._title.layout.min_width = "0"
        self._stop = button("Stop", f"Stop this call of {row.name}", "crush-stop")
        self._stop.layout.margin = "0 6px 0 12px"
        self._stop.on_click(lambda _: stop(row.call_id))
        self._tail = html_line("")
        self._tail.layout.display = "none"
        line = HBox([self._title, self._stop], layout=Layout(width="100%", align_items="center"))
        self.box = VBox([line, self._tail], layout=Layout(width="100%", flex="0 0 auto"))
        self.box.add_class("crush-call")

    def show(self, row: Row) -> None:
        _set(self._title, "value", _row_title(row))
        _set(self._stop.layout, "visibility", "visible" if row.is_running else "hidden")
        if row.tail:
            # Three lines high from the first one on, so that nothing below it moves.
            style = f"{_PRE}; {GREY}; margin-left: 1.4em; min-height: 4.2em; white-space: pre"
            text = escape_html(row.tail)
            _set(self._tail, "value", f'<pre style="{style}; overflow: hidden">{text}</pre>')
            _set(self._tail.layout, "display", None)

    def close(self) -> None:
        close_tree(self.box)


class SteeringBox:
    """A line of text and a button, to say something to the turn while it runs."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._text = Text(
            placeholder="Add a message to this turn…",
            layout=Layout(flex="1 1 auto", width="auto", min_width="8em", margin="0 6px 0 0"),
            tooltip="Add a message to this turn; Enter sends it",
        )
        self._text.add_class("crush-steer")
        self._text.on_msg(self._on_message)
        self._send = button("Send", "Send the message to this turn", "crush-steer-send")
        # The front end sends letters one at a time but clicks at once.
        self._send.on_click(
            lambda _: asyncio.get_running_loop().call_later(REASON_GRACE_S, self.send)
        )
        self.box = HBox([self._text, self._send], layout=Layout(width="100%", flex="0 0 auto"))
        self.box.add_class("crush-steering")

    def send(self) -> None:
        """Say what was typed, if anything, and empty the line."""
        text = str(cast("object", self._text.value)).strip()
        if text:
            self._text.value = ""
            self._say(text)

    def close(self) -> None:
        """Remove the box and all its models; safe to repeat."""
        close_tree(self.box)

    def _on_message(self, _widget: object, content: object, _buffers: object) -> None:
        if cast("Mapping[str, object]", content).get("event") == "submit":
            self.send()


class WaitingCard(Protocol):
    """What waits in the live card for a person."""

    box: VBox
    fallback: render.Rendered
    """The question where widgets are not shown: in a file that is saved meanwhile."""

    def close(self) -> None:
        """Withdraw the question and remove all its models; safe to repeat."""
        ...


class PermissionCard:
    """One question, with an amber edge: what, where, and three buttons."""

    def __init__(self, request: PermissionRequest) -> None:
        self.fallback = render.question(request)
        """The question where widgets are not shown: in a file that is saved meanwhile."""
        self._answer: asyncio.Future[Literal["once", "session", "deny"]] = (
            asyncio.get_running_loop().create_future()
        )
        self._reason = Text(
            placeholder="reason (optional, the model reads it)",
            layout=Layout(flex="1 1 12em", width="auto", min_width="8em"),
            tooltip="Why not; Enter denies with this reason",
        )
        self._reason.add_class("crush-reason")
        self._reason.on_msg(self._on_reason_message)
        self.box = VBox(
            [*self._body(request), self._buttons(request)],
            layout=Layout(
                width="100%",
                padding="6px 10px",
                margin="4px 0",
                border_left=f"3px solid {AMBER}",
                flex="0 0 auto",
            ),
        )
        self.box.add_class("crush-card")

    async def answer(self) -> Answer:
        """Return what the user presses. Cancelling leaves the buttons without effect."""
        kind = await self._answer
        if kind != "deny":
            return Answer(kind)
        await asyncio.sleep(REASON_GRACE_S)
        return Answer(kind, self._reason_text())

    def press(self, kind: Literal["once", "session", "deny"]) -> None:
        """Answer the question; what comes after the first answer does nothing."""
        if not self._answer.done():
            self._answer.set_result(kind)
            for button in self._controls:
                button.disabled = True

    def close(self) -> None:
        """Withdraw the question and remove all its models; safe to repeat."""
        self._answer.cancel()
        close_tree(self.box)

    def _reason_text(self) -> str:
        return str(cast("object", self._reason.value)).strip()

    def _on_reason_message(self, _widget: object, content: object, _buffers: object) -> None:
        event = cast("Mapping[str, object]", content).get("event")
        if event == "submit" and self._reason_text():
            self.press("deny")

    def _buttons(self, request: PermissionRequest) -> Box:
        scope = "this very command" if request.action == "execute" else "such calls"
        once = button("Allow once", "Let this call run", "crush-allow-once")
        session = button(
            "Allow for this session",
            f"Let {scope} run until the kernel is restarted",
            "crush-allow-session",
        )
        deny = button("Deny", "Refuse this call; the turn goes on", "crush-deny")
        once.on_click(lambda _: self.press("once"))
        session.on_click(lambda _: self.press("session"))
        deny.on_click(lambda _: self.press("deny"))
        self._controls = (once, session, deny)
        return HBox(
            [once, session, deny, self._reason],
            layout=Layout(width="100%", flex_flow="row wrap", margin="6px 0 0 0"),
        )

    def _body(self, request: PermissionRequest) -> list[Widget]:
        who = f"{escaped(render.behalf(request))}<b>{escaped(request.tool)}</b>"
        title = f"{who} wants to {escaped(request.title)}"
        parts: list[Widget] = [html_line(title)]
        if request.command:
            parts.extend(_command(request.command))
        if request.diff:
            parts.extend(_diff(request.diff))
        parts.extend(html_line(line) for line in _facts(request))
        return parts


class _Fold:
    """Lines of which a few are shown until someone wants all; very many come by the page."""

    def __init__(self, lines: list[str], few: list[str], *, diff: bool) -> None:
        self._pages = _pages(lines)
        self._next = 0
        self._diff = diff
        self.body = html_line(_pre(few, diff=diff))
        label = f"Show all {len(lines):,} lines" if len(self._pages) == 1 else self._label()
        self.button = button(label, "Show the rest", "crush-show-all")
        self.button.layout.align_self = "flex-start"
        self.button.on_click(self._turn)

    def _turn(self, _button: object) -> None:
        self.body.value = _pre(self._pages[self._next].lines, diff=self._diff)
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
    lines: list[str]


def _pages(lines: list[str]) -> list[_Page]:
    pages = [_Page(0, [])]
    chars = 0
    for number, line in enumerate(lines):
        if len(pages[-1].lines) == PAGE_LINES or chars + len(line) > PAGE_CHARS:
            pages.append(_Page(number, []))
            chars = 0
        pages[-1].lines.append(line)
        chars += len(line)
    return pages


def _command(command: str) -> list[Widget]:
    # What bash reads is no line end must not look like one.
    lines = _squeezed(_lines(command.replace("\r", "⟨U+000D⟩")))
    if len(lines) <= COMMAND_LINES:
        return [html_line(_pre(lines, diff=False))]
    head, tail = lines[: COMMAND_LINES - LAST_COMMAND_LINES - 1], lines[-LAST_COMMAND_LINES:]
    left_out = f"[… {len(lines) - len(head) - len(tail):,} lines …]"
    fold = _Fold(lines, [*head, left_out, *tail], diff=False)
    return [fold.body, fold.button]


def _diff(diff: str) -> list[Widget]:
    lines = _lines(diff)
    if len(lines) <= DIFF_LINES:
        return [html_line(_pre(lines, diff=True))]
    fold = _Fold(lines, lines[:DIFF_LINES], diff=True)
    return [fold.body, fold.button]


def _lines(text: str) -> list[str]:
    """Return the lines of `text`, endless ones broken, with nothing hidden in them."""
    return [
        line[start : start + LINE_CHARS]
        for line in visible(text).strip("\n").split("\n")
        for start in range(0, max(len(line), 1), LINE_CHARS)
    ]


def _squeezed(lines: list[str]) -> list[str]:
    """Return `lines` with a note in the place of many blank ones."""
    out: list[str] = []
    for is_blank, run in groupby(lines, lambda line: not line.strip()):
        few = list(run)
        is_many = is_blank and len(few) > BLANK_LINES
        out += [f"[… {len(few):,} blank lines …]"] if is_many else few
    return out


def _facts(request: PermissionRequest) -> list[str]:
    """Return the further lines of a card, as HTML."""
    lines: list[str] = []
    if request.is_outside:
        paths = ", ".join(_code(str(path)) for path in request.paths)
        lines.append(f'<b style="color: {AMBER}">outside the project</b> {paths}'.rstrip())
    lines.extend(f'<span style="{GREY}">{escaped(note)}</span>' for note in request.notes)
    if request.cwd is not None:
        lines.append(f'<span style="{GREY}">in {_code(_tilde(request.cwd))}</span>')
    return lines


def _row_title(row: Row) -> str:
    dot = "●" if row.is_running else "▸"
    return (
        # No wider than its place, whatever the summary: the rest of the line must be seen.
        '<div style="display: flex; gap: 0.6em; line-height: 1.5; white-space: nowrap; '
        'width: 0; min-width: 100%">'
        f"<span>{dot}</span><b>{escaped(row.name)}</b>"
        '<span style="overflow: hidden; text-overflow: ellipsis; flex: 0 1 auto">'
        f"{escaped(row.summary)}</span>"
        f'<span style="{GREY}; margin-left: auto; flex: none">{escaped(row.word)}</span></div>'
    )


def _standing(todos: Sequence[TodoRow], queued: Sequence[str]) -> str:
    """Return what stands below the calls, as HTML."""
    lines = [_todo_line(row) for row in todos]
    for text in queued:
        shown = escape_html(render.queued(text).plain)
        style = f"{GREY}; white-space: pre-wrap; overflow-wrap: anywhere"
        lines.append(f'<div style="{style}">{shown}</div>')
    return f'<div style="line-height: 1.5">{"".join(lines)}</div>' if lines else ""


def _todo_line(row: TodoRow) -> str:
    text = escape_html(row.text)
    return f"<div>{row.sign} {f'<b>{text}</b>' if row.is_active else text}</div>"


def _tilde(path: Path) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.expanduser raises without a home
    text = str(path)
    return "~" + text[len(home) :] if text == home or text.startswith(home + os.sep) else text


def escaped(text: str) -> str:
    """Return `text` as HTML that shows it, with nothing hidden in it."""
    return escape_html(visible(text))


def _code(text: str) -> str:
    return f"<code>{escaped(text)}</code>"


def _pre(lines: list[str], *, diff: bool) -> str:
    shown = (_diff_line(line) if diff else escape_html(line) for line in lines)
    return f'<pre style="{_PRE}; max-height: 24em; overflow-y: auto">{chr(10).join(shown)}</pre>'


def _diff_line(line: str) -> str:
    is_header = line.startswith(("+++ ", "--- "))
    color = _LINE_COLORS.get("@" if is_header else line[:1])
    text = escape_html(line)
    return f'<span style="color: {color}">{text}</span>' if color else text


def html_line(value: str) -> HTML:
    """Return a widget that shows `value`, which is HTML."""
    widget = HTML(value, layout=Layout(width="100%", margin="0", height="auto"))
    widget.add_class("crush-text")
    return widget


def button(label: str, tooltip: str, css_class: str) -> Button:
    """Return a button as wide as its label."""
    widget = Button(
        description=label,
        tooltip=tooltip,
        layout=Layout(width="auto", flex="0 0 auto", margin="0 6px 0 0"),
    )
    widget.add_class(css_class)
    return widget


def _set(target: Any, name: str, value: object) -> None:  # noqa: ANN401 - any widget or layout
    if getattr(target, name) != value:
        setattr(target, name, value)


def close_tree(widget: Widget) -> None:
    """Close `widget`, what it contains, and the layout and style models of each."""
    for child in cast("Sequence[Widget]", getattr(widget, "children", ())):
        close_tree(child)
    for name in ("layout", "style"):
        part = getattr(widget, name, None)
        if isinstance(part, Widget):
            part.close()
    widget.close()
