"""The card that asks a person for permission: what, where, what is unusual, and the buttons.

Like the form for questions it is imported with the first one, shows no raw HTML, and knows one
answer: what is pressed after that does nothing.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# ipywidgets carries no types.

import asyncio
import os

from ipywidgets import (  # pyright: ignore[reportMissingTypeStubs]
    Box,
    Button,
    HBox,
    Layout,
    Text,
    VBox,
    Widget,
)

from crush_kernel.kernel import permissiontext
from crush_kernel.kernel.cardframe import CardFrame, chip
from crush_kernel.kernel.debounce import Debounce
from crush_kernel.kernel.fold import Line, command_lines, diff_lines
from crush_kernel.kernel.permissiontext import CommandView
from crush_kernel.kernel.ruleeditor import RuleEditor
from crush_kernel.kernel.ruleoffer import RuleOffer
from crush_kernel.kernel.widgets import (
    GREY,
    REASON_GRACE_S,
    button,
    close_tree,
    escaped,
    grey,
    html_line,
    on_submit,
    written,
)
from crush_kernel.permissions.gate import Answer
from crush_kernel.permissions.request import PermissionRequest


class PermissionCard:
    """One question.

    Args:
        request: what is wanted, without secrets.
        offer: what can be allowed for good, if anything.
        debounce: lets presses through.
    """

    def __init__(
        self, request: PermissionRequest, offer: RuleOffer | None, debounce: Debounce
    ) -> None:
        self.fallback = permissiontext.waiting(request)
        self._request = request
        self._debounce = debounce
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._reason = Text(
            placeholder="reason (optional, the model reads it)",
            layout=Layout(flex="1 1 12em", width="auto", min_width="8em", margin="0"),
            tooltip="Why not; Enter denies with this reason",
        )
        self._reason.add_class("crush-reason")
        on_submit(self._reason, self._deny_with_reason)
        self._help = html_line(grey(permissiontext.HELP))
        self._help.layout.display = "none"
        self._is_help_shown = False
        self._editor: RuleEditor | None = None
        self._frame = CardFrame(
            [self._title(), self._help, *_body(request)], self._buttons(request, offer)
        )

    @property
    def box(self) -> VBox:
        """The widget."""
        return self._frame.box

    async def answer(self) -> Answer:
        """Return what the user presses. Cancelling leaves the buttons without effect."""
        answer = await self._answer
        if answer.kind != "deny":
            return answer
        await asyncio.sleep(REASON_GRACE_S)
        answer = Answer("deny", written(self._reason))
        self._frame.settle(permissiontext.answer_line(self._request, answer))
        return answer

    def press(self, answer: Answer) -> None:
        """Answer the question; what comes after the first answer does nothing."""
        if self._answer.done() or not self._debounce.admit():
            return
        self._answer.set_result(answer)
        self._close_editor()
        if answer.kind != "deny":
            # A reason may still be on its way.
            self._frame.settle(permissiontext.answer_line(self._request, answer))
        else:
            self._frame.disable()

    def settle(self, line: str) -> None:
        """Show `line` in the place of the buttons, unless a person has answered."""
        self._answer.cancel()
        if self._answer.cancelled():
            self._close_editor()
            self._frame.settle(line)

    def close(self) -> None:
        """Withdraw the question and remove all its models; safe to repeat."""
        self._answer.cancel()
        self._close_editor()
        self._frame.close()

    def _deny_with_reason(self) -> None:
        if written(self._reason):
            self.press(Answer("deny"))

    def _title(self) -> Box:
        title = html_line(_title(self._request))
        title.layout.flex = "1 1 auto"
        title.layout.min_width = "0"
        what = button("?", "What the buttons mean", "crush-help")
        what.layout.margin = "0 0 0 6px"
        what.on_click(lambda _: self._toggle_help())
        return HBox([title, what], layout=Layout(width="100%", align_items="center"))

    def _toggle_help(self) -> None:
        self._is_help_shown = not self._is_help_shown
        self._help.layout.display = None if self._is_help_shown else "none"

    def _buttons(self, request: PermissionRequest, offer: RuleOffer | None) -> Box:
        scope = "this very command" if request.command else "such calls"
        session = f"Let {scope} run until the kernel is restarted"
        controls = [
            self._pressing("Allow once", "Let this call run", "allow-once", Answer("once")),
            self._pressing("Allow for this session", session, "allow-session", Answer("session")),
        ]
        if offer is not None:
            always = button("Always …", "Write a rule that allows it for good", "crush-always")
            always.on_click(lambda _: self._open_editor(always, offer))
            controls.append(always)
        no = "Refuse this call; the turn goes on"
        controls.append(self._pressing("Deny", no, "deny", Answer("deny")))
        return HBox(
            [*controls, self._reason],
            layout=Layout(width="100%", flex_flow="row wrap", margin="6px 0 0 0"),
        )

    def _pressing(self, label: str, tooltip: str, name: str, answer: Answer) -> Button:
        pressed = button(label, tooltip, f"crush-{name}")
        pressed.on_click(lambda _: self.press(answer))
        return pressed

    def _open_editor(self, always: Button, offer: RuleOffer) -> None:
        if self._editor is not None or self._answer.done():
            return
        always.disabled = True

        def close() -> None:
            always.disabled = False
            self._close_editor()

        self._editor = RuleEditor(offer, save=self.press, cancel=close)
        self._frame.append(self._editor.box)

    def _close_editor(self) -> None:
        if self._editor is not None:
            editor, self._editor = self._editor, None
            self._frame.remove(editor.box)
            close_tree(editor.box)


def _title(request: PermissionRequest) -> str:
    who = escaped(permissiontext.one_line(permissiontext.behalf(request)))
    tool = escaped(permissiontext.one_line(request.tool))
    return f"{who}<b>{tool}</b> wants to {escaped(permissiontext.one_line(request.title))}"


def _body(request: PermissionRequest) -> list[Widget]:
    parts: list[Widget] = []
    if request.command:
        parts.extend(_command(permissiontext.command_view(request)))
    if request.diff:
        parts.extend(diff_lines(request.diff))
    parts.extend(html_line(line) for line in _facts(request))
    return parts


def _command(view: CommandView) -> list[Widget]:
    widgets: list[Widget] = []
    if view.is_unread:
        widgets.append(html_line(f"<b>{escaped(permissiontext.UNREAD)}</b>"))
    if view.whole:
        widgets.extend(command_lines(map(Line, view.whole)))
    if view.rows:
        widgets.extend(command_lines(_part_lines(view)))
    return widgets


def _part_lines(view: CommandView) -> list[Line]:
    lines: list[Line] = []
    for row in view.rows:
        first, *rest = row.lines
        head = str(row.number) if row.number else ""
        here = [Line(first, head, row.does), *map(Line, rest)]
        last = here[-1]
        here[-1] = Line(last.text, last.head, last.tail, row.joiner)
        lines.extend(here)
    return lines


def _facts(request: PermissionRequest) -> list[str]:
    """Return the further lines of a card, as HTML."""
    lines = [
        f"{chip('dangerous', 'failed')} {escaped(permissiontext.one_line(danger))}"
        for danger in request.dangers
    ]
    outside = chip(permissiontext.OUTSIDE, "waiting")
    paths = permissiontext.outside_paths(request)
    lines.extend(f"{outside} {_code(path)}" for path in paths)
    if request.is_outside and not paths:
        lines.append(outside)
    notes = permissiontext.notes_of(request)
    lines.extend(grey(note) for note in notes)
    if request.cwd is not None:
        home = os.path.expanduser("~")  # noqa: PTH111 - Path.expanduser raises without a home
        where = permissiontext.tilde(request.cwd, home)
        lines.append(f'<span style="{GREY}">in {_code(where)}</span>')
    return lines


def _code(text: str) -> str:
    return f'<code style="overflow-wrap: anywhere">{escaped(text)}</code>'
