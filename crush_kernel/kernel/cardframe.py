"""What all cards that wait for a person have in common: an amber edge, a body, and buttons.

When a question is settled, one grey line takes the place of the buttons, in their height, so
that nothing moves under a pointer that is about to press again.
"""

# pyright: reportUnknownMemberType=false
# ipywidgets carries no types.

from collections.abc import Iterator, Sequence
from typing import Literal, cast

from ipywidgets import (  # pyright: ignore[reportMissingTypeStubs]
    HTML,
    Box,
    Layout,
    VBox,
    Widget,
)

from crush_kernel.kernel.widgets import AMBER, close_tree, escaped, grey, html_line

_PAST = "var(--jp-border-color1, #bdbdbd)"

_CHIPS = {
    "failed": "background: var(--jp-error-color0, #c62828); color: #fff",
    "waiting": f"background: {AMBER}; color: #000",
}


class CardFrame:
    """The box of a card."""

    def __init__(self, body: Sequence[Widget], buttons: Box) -> None:
        self._buttons = buttons
        self._line: HTML | None = None
        self.box = VBox(
            [*body, buttons],
            layout=Layout(
                width="100%",
                padding="6px 10px",
                margin="4px 0",
                border_left=f"3px solid {AMBER}",
                flex="0 0 auto",
            ),
        )
        self.box.add_class("crush-card")

    def disable(self) -> None:
        """Have all controls do nothing."""
        for control in _controls(self.box):
            control.set_trait("disabled", value=True)

    def settle(self, line: str) -> None:
        """Show `line`, plain text, in the place of the buttons; the last one counts."""
        if self._line is None:
            self.disable()
            self._line = html_line("")
            self._line.layout.display = "flex"
            self._line.layout.margin = "6px 0 0 0"
            self._line.add_class("crush-settled")
            # Beside what it stands for, which keeps its height and cannot be reached any more.
            self._buttons.layout.visibility = "hidden"
            self._buttons.layout.margin = "-28px 0 0 0"
            self._line.layout.min_height = "28px"
            self._insert_before_buttons(self._line)
            self.box.layout.border_left = f"3px solid {_PAST}"
        self._line.value = grey(line)

    def append(self, widget: Widget) -> None:
        """Put `widget` at the end."""
        self.box.children = (*self._children, widget)

    def remove(self, widget: Widget) -> None:
        """Take `widget` out; it stays open."""
        self.box.children = [child for child in self._children if child is not widget]

    def close(self) -> None:
        """Remove the card and all its models; safe to repeat."""
        close_tree(self.box)

    @property
    def _children(self) -> tuple[Widget, ...]:
        return tuple(cast("Sequence[Widget]", self.box.children))

    def _insert_before_buttons(self, widget: Widget) -> None:
        children = [child for child in self._children if child is not self._buttons]
        place = self._children.index(self._buttons)
        self.box.children = (*children[:place], widget, self._buttons, *children[place:])


def chip(words: str, meaning: Literal["failed", "waiting"]) -> str:
    """Return `words` on the colour of what they mean, as HTML."""
    style = f"{_CHIPS[meaning]}; padding: 0 6px; border-radius: 2px; font-weight: 600"
    return f'<span style="{style}">{escaped(words)}</span>'


def _controls(widget: Widget) -> Iterator[Widget]:
    """Yield what in `widget` can be pressed or written into."""
    for child in cast("Sequence[Widget]", getattr(widget, "children", ())):
        yield from _controls(child)
    if widget.has_trait("disabled"):
        yield widget
