"""What a person can press while a cell runs: running calls with Stop, and a line to say more.

The one module that imports ipywidgets, itself imported when the first widget is needed.
`HTML` widgets render raw HTML, so every text is escaped on its way in. Callbacks only set
a future or call what they were given; a second click finds the question answered.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# ipywidgets carries no types.

import asyncio
from collections.abc import Callable, Mapping, Sequence
from html import escape as escape_html
from typing import Any, Protocol, cast

from ipywidgets import (  # pyright: ignore[reportMissingTypeStubs]
    HTML,
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
        on_submit(self._text, self.send)
        self._send = button("Send", "Send the message to this turn", "crush-steer-send")
        # The front end sends letters one at a time but clicks at once.
        self._send.on_click(
            lambda _: asyncio.get_running_loop().call_later(REASON_GRACE_S, self.send)
        )
        self.box = HBox([self._text, self._send], layout=Layout(width="100%", flex="0 0 auto"))
        self.box.add_class("crush-steering")

    def send(self) -> None:
        """Say what was typed, if anything, and empty the line."""
        if text := written(self._text):
            self._text.value = ""
            self._say(text)

    def close(self) -> None:
        """Remove the box and all its models; safe to repeat."""
        close_tree(self.box)


class WaitingCard(Protocol):
    """What waits in the live card for a person."""

    fallback: render.Rendered
    """The question where widgets are not shown: in a file that is saved meanwhile."""

    @property
    def box(self) -> VBox:
        """The widget."""
        ...

    def settle(self, line: str) -> None:
        """Show how the question was settled, in the same height; its buttons are dead from now on.

        Args:
            line: plain text. What a person answered stands there already, and stays.
        """
        ...

    def close(self) -> None:
        """Withdraw the question and remove all its models; safe to repeat."""
        ...


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


def escaped(text: str) -> str:
    """Return `text` as HTML that shows it, with nothing hidden in it."""
    return escape_html(visible(text))


def html_line(value: str) -> HTML:
    """Return a widget that shows `value`, which is HTML."""
    widget = HTML(value, layout=Layout(width="100%", margin="0", height="auto"))
    widget.add_class("crush-text")
    return widget


def grey(text: str) -> str:
    """Return `text` as HTML that shows it in grey."""
    return f'<span style="{GREY}">{escaped(text)}</span>'


def on_submit(line: Widget, call: Callable[[], None]) -> None:
    """Have `call` called when a person presses Enter in `line`."""

    def heard(_widget: object, content: object, _buffers: object) -> None:
        if cast("Mapping[str, object]", content).get("event") == "submit":
            call()

    line.on_msg(heard)


def written(line: Widget) -> str:
    """Return what a person has written into `line`, without blanks around it."""
    return str(cast("object", getattr(line, "value", ""))).strip()


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
