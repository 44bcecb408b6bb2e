"""The card that shows a plan and asks whether the work may begin.

The plan is what a model wrote: it is made safe as Markdown and rendered by the front end, like
everything else that the model says.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# ipywidgets carries no types.

import asyncio
from typing import Literal

from ipywidgets import (  # pyright: ignore[reportMissingTypeStubs]
    Box,
    HBox,
    Layout,
    Output,
    Text,
    VBox,
)

from crush_kernel.kernel import plantext
from crush_kernel.kernel.cardframe import CardFrame
from crush_kernel.kernel.debounce import Debounce
from crush_kernel.kernel.widgets import REASON_GRACE_S, button, html_line, on_submit, written
from crush_kernel.tools.present_plan import Approved, KeepPlanning, Plan, PlanAnswer

Pressed = Literal["approve", "accept_edits", "keep"]


class PlanCard:
    """A plan, and buttons to approve it or to have it changed.

    Args:
        plan: what is to be approved, without secrets.
        debounce: lets presses through.
    """

    def __init__(self, plan: Plan, debounce: Debounce) -> None:
        self.fallback = plantext.waiting(plan)
        self._debounce = debounce
        self._pressed: asyncio.Future[Pressed] = asyncio.get_running_loop().create_future()
        self._words = Text(
            placeholder="what to change, or to add (optional)",
            layout=Layout(flex="1 1 12em", width="auto", min_width="8em"),
            tooltip="What to change, or to add; Enter keeps planning",
        )
        self._words.add_class("crush-reason")
        on_submit(self._words, self._keep_planning)
        shown = Output(layout=Layout(width="100%", max_height="36em", overflow="auto"))
        shown.outputs = (
            {
                "output_type": "display_data",
                "metadata": {},
                "data": plantext.plan(plan).bundle(),
            },
        )
        shown.add_class("crush-plan")
        title = html_line(f"<b>{plantext.TITLE}</b>")
        self._frame = CardFrame([title, shown], self._buttons())
        self._frame.box.add_class("crush-plan-card")

    @property
    def box(self) -> VBox:
        """The widget."""
        return self._frame.box

    async def answer(self) -> PlanAnswer:
        """Return what the user presses. Cancelling leaves the buttons without effect."""
        pressed = await self._pressed
        # Letters may come a moment after the click.
        await asyncio.sleep(REASON_GRACE_S)
        words = written(self._words)
        if pressed == "keep":
            return KeepPlanning(words)
        return Approved(accepts_edits=pressed == "accept_edits", words=words)

    def press(self, what: Pressed) -> None:
        """Answer; what comes after the first answer does nothing."""
        if not self._pressed.done() and self._debounce.admit():
            self._pressed.set_result(what)
            self._frame.settle(plantext.SETTLED[what])

    def settle(self, line: str) -> None:
        """Show `line` in the place of the buttons, unless a person has answered."""
        self._pressed.cancel()
        if self._pressed.cancelled():
            self._frame.settle(line)

    def close(self) -> None:
        """Withdraw the plan and remove all its models; safe to repeat."""
        self._pressed.cancel()
        self._frame.close()

    def _keep_planning(self) -> None:
        if written(self._words):
            self.press("keep")

    def _buttons(self) -> Box:
        approve = button("Approve", "Leave plan mode and begin; steps are asked", "crush-approve")
        edits = button(
            "Approve, edits without asking",
            "Leave plan mode and begin; edits inside the project need no question",
            "crush-approve-edits",
        )
        keep = button("Keep planning", "Change nothing yet", "crush-keep-planning")
        approve.on_click(lambda _: self.press("approve"))
        edits.on_click(lambda _: self.press("accept_edits"))
        keep.on_click(lambda _: self.press("keep"))
        return HBox(
            [approve, edits, keep, self._words],
            layout=Layout(width="100%", flex_flow="row wrap", margin="6px 0 0 0"),
        )
