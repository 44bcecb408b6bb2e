"""Where a person changes the rules that are to be kept, inside of a card.

What cannot be kept is said under the field as it is typed, and is not kept.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# ipywidgets carries no types.

import asyncio
from collections.abc import Callable
from typing import cast

from ipywidgets import (  # pyright: ignore[reportMissingTypeStubs]
    HBox,
    Layout,
    RadioButtons,
    Textarea,
    VBox,
)

from crush_kernel.config.ruletexts import RuleScope
from crush_kernel.kernel.cardframe import chip
from crush_kernel.kernel.ruleoffer import RuleOffer, rules_in
from crush_kernel.kernel.widgets import REASON_GRACE_S, button, escaped, grey, html_line
from crush_kernel.permissions.gate import Answer

_SCOPES: tuple[tuple[str, RuleScope], ...] = (
    ("in this project", "project"),
    ("everywhere", "everywhere"),
)
_HINT = "One rule a line, kept in your own settings; /permissions shows and removes them."
MAX_ROWS = 8


class RuleEditor:
    """The rules, where they are to hold, and buttons to save or cancel.

    Args:
        offer: the rules that are proposed, and what is wrong with others.
        save: takes the answer when it can be given.
        cancel: is called when nothing is to be kept.
    """

    def __init__(
        self, offer: RuleOffer, *, save: Callable[[Answer], None], cancel: Callable[[], None]
    ) -> None:
        self._offer = offer
        self._save = save
        self._text = Textarea(
            value="\n".join(offer.proposed),
            rows=min(MAX_ROWS, max(2, len(offer.proposed))),
            layout=Layout(width="100%", height="auto", margin="2px 0 0 0"),
            tooltip="Rules that allow it, one a line",
        )
        self._text.add_class("crush-words")
        self._text.add_class("crush-rules")
        self._text.observe(self._on_change, "value")
        self._scope = RadioButtons(
            options=_SCOPES,
            layout=Layout(width="auto", height="auto", margin="0"),
            tooltip="Where the rules hold",
        )
        self._scope.add_class("crush-choices")
        self._problem = html_line("")
        self._problem.layout.min_height = "1.5em"
        saving = button("Save", "Keep these rules and let this call run", "crush-rules-save")
        # The front end sends letters one at a time but clicks at once.
        saving.on_click(lambda _: asyncio.get_running_loop().call_later(REASON_GRACE_S, self.save))
        leaving = button("Cancel", "Keep nothing; the question stays", "crush-rules-cancel")
        leaving.on_click(lambda _: cancel())
        self.box = VBox(
            [
                html_line(grey("Always allow, as one rule a line:")),
                self._text,
                self._problem,
                VBox(
                    [html_line(grey("Where it holds:")), self._scope],
                    layout=Layout(width="100%", flex="0 0 auto"),
                ),
                HBox([saving, leaving], layout=Layout(width="100%", margin="6px 0 0 0")),
            ],
            layout=Layout(width="100%", margin="6px 0 0 0", flex="0 0 auto"),
        )
        self.box.add_class("crush-rule-editor")
        self._show_problem()

    def save(self) -> None:
        """Give the answer, unless the rules cannot be kept, which is said then."""
        if not self._show_problem():
            scope = cast("RuleScope", self._scope.value)
            self._save(Answer("always", rules=self._rules(), scope=scope))

    def _rules(self) -> tuple[str, ...]:
        return rules_in(str(cast("object", self._text.value)))

    def _on_change(self, _change: object) -> None:
        self._show_problem()

    def _show_problem(self) -> bool:
        """Say what is wrong with the rules, and return whether anything is."""
        problem = self._offer.problem(self._rules())
        if problem:
            said = f'<span role="alert">{chip("not saved", "failed")} {escaped(problem)}</span>'
        else:
            said = grey(_HINT)
        if self._problem.value != said:
            self._problem.value = said
        return bool(problem)
