"""The form by which the user answers questions: radio buttons, check boxes, lines of text.

Like the permission card it is imported with the first one, shows no raw HTML, and knows one
answer: what is pressed after that does nothing.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# ipywidgets carries no types.

import asyncio
from collections.abc import Sequence
from typing import Literal, cast

from ipywidgets import (  # pyright: ignore[reportMissingTypeStubs]
    Box,
    Checkbox,
    HBox,
    Layout,
    RadioButtons,
    Text,
    Textarea,
    VBox,
    Widget,
)

from crush_kernel.kernel import questiontext
from crush_kernel.kernel.cardframe import CardFrame
from crush_kernel.kernel.debounce import Debounce
from crush_kernel.kernel.markdown import visible
from crush_kernel.kernel.widgets import (
    GREY,
    REASON_GRACE_S,
    button,
    escaped,
    grey,
    html_line,
    on_submit,
    written,
)
from crush_kernel.tools.question import (
    DISMISSED,
    Answered,
    Choice,
    Given,
    Question,
    QuestionForm,
    Unanswered,
)

Pressed = Literal["send", "yes", "no", "dismiss"]


class QuestionCard:
    """A form, and buttons to send or dismiss it.

    Args:
        form: what is asked.
        debounce: lets presses through.
    """

    def __init__(self, form: QuestionForm, debounce: Debounce) -> None:
        self._debounce = debounce
        self.fallback = questiontext.waiting(form)
        self._pressed: asyncio.Future[Pressed] = asyncio.get_running_loop().create_future()
        self._is_proposal = len(form.questions) == 1 and form.questions[0].type == "yes_no"
        self._fields = [
            _Field(question, has_buttons=self._is_proposal) for question in form.questions
        ]
        for each in self._fields if len(self._fields) == 1 else ():
            on_submit(each.words, self._send_words)
        self._frame = CardFrame(
            [*_heading(form), *(each.box for each in self._fields)], self._buttons()
        )
        self._frame.box.add_class("crush-question")

    @property
    def box(self) -> VBox:
        """The widget."""
        return self._frame.box

    async def answer(self) -> Answered | Unanswered:
        """Return what the user sends. Cancelling leaves the buttons without effect."""
        pressed = await self._pressed
        if pressed == "dismiss":
            return DISMISSED
        # Values may come a moment after the click.
        await asyncio.sleep(REASON_GRACE_S)
        yes = {"yes": True, "no": False}.get(pressed)
        return Answered(tuple(each.given(yes) for each in self._fields))

    def press(self, what: Pressed) -> None:
        """Answer the form; what comes after the first answer does nothing."""
        if not self._pressed.done() and self._debounce.admit():
            self._pressed.set_result(what)
            self._frame.settle("dismissed" if what == "dismiss" else "answered")

    def settle(self, line: str) -> None:
        """Show `line` in the place of the buttons, unless a person has answered."""
        self._pressed.cancel()
        if self._pressed.cancelled():
            self._frame.settle(line)

    def close(self) -> None:
        """Withdraw the form and remove all its models; safe to repeat."""
        self._pressed.cancel()
        self._frame.close()

    def _send_words(self) -> None:
        if self._fields[0].has_words:
            self.press("send")

    def _buttons(self) -> Box:
        if self._is_proposal:
            yes = button("Yes", "Answer yes", "crush-yes")
            no = button("No", "Answer no", "crush-no")
            yes.on_click(lambda _: self.press("yes"))
            no.on_click(lambda _: self.press("no"))
            senders = (yes, no)
        else:
            send = button("Send answers", "Send what is filled in", "crush-answer")
            send.on_click(lambda _: self.press("send"))
            senders = (send,)
        dismiss = button("Dismiss", "Answer nothing; the turn goes on", "crush-dismiss")
        dismiss.on_click(lambda _: self.press("dismiss"))
        return HBox(
            [*senders, dismiss],
            layout=Layout(width="100%", flex_flow="row wrap", margin="6px 0 0 0"),
        )


class _Field:
    """One question and what it is answered with."""

    def __init__(self, question: Question, *, has_buttons: bool) -> None:
        self._question = question
        self._radio: RadioButtons | None = None
        self._checks: list[Checkbox] = []
        self.words = _words(question)
        self.box = VBox(
            [*_question(question), *self._choices(has_buttons=has_buttons), self.words],
            layout=Layout(width="100%", flex="0 0 auto", margin="2px 0 6px 0"),
        )

    @property
    def has_words(self) -> bool:
        """Whether something was written."""
        return bool(self._text())

    def given(self, yes: bool | None) -> Given:  # noqa: FBT001 - `None` if no button said it
        """Return the answer as it stands, `yes` if that was a button of its own."""
        places = self._places()
        if self._question.type == "yes_no":
            said = yes if yes is not None else (places[0] == 0 if places else None)
            return Given(yes=said, text=self._text())
        chosen = tuple(each.id for n, each in enumerate(self._question.choices) if n in places)
        return Given(chosen=chosen, text=self._text())

    def _text(self) -> str:
        return written(self.words)

    def _places(self) -> list[int]:
        """Return which choices are marked, from 0."""
        if self._radio is not None:
            place = cast("int | None", self._radio.index)
            return [] if place is None else [place]
        return [n for n, check in enumerate(self._checks) if check.value]

    def _choices(self, *, has_buttons: bool) -> Sequence[Widget]:
        question = self._question
        match question.type:
            case "yes_no" if not has_buttons:
                self._radio = _radio(["Yes", "No"], question)
                return [self._radio]
            case "single_choice":
                self._radio = _radio([_label(each) for each in question.choices], question)
                return [self._radio]
            case "multi_choice":
                self._checks = [_check(each) for each in question.choices]
                return self._checks
            case _:
                return []


def _heading(form: QuestionForm) -> list[Widget]:
    if len(form.questions) == 1:
        return []
    title = form.title or f"{len(form.questions)} questions"
    lines = [html_line(f"<b>{escaped(title)}</b>")]
    if form.description:
        lines.append(html_line(grey(form.description)))
    return [*lines]


def _question(question: Question) -> list[Widget]:
    label = f'<span style="{GREY}">{escaped(question.label)}</span> ' if question.label else ""
    lines = [html_line(f"{label}<b>{escaped(question.text)}</b>")]
    if question.description:
        style = f"{GREY}; white-space: pre-wrap"
        lines.append(html_line(f'<span style="{style}">{escaped(question.description)}</span>'))
    return [*lines]


def _radio(labels: list[str], question: Question) -> RadioButtons:
    # By number: two labels may be the same.
    options = [(label, place) for place, label in enumerate(labels)]
    widget = RadioButtons(
        options=options,
        index=None,
        layout=Layout(width="100%", height="auto"),
        tooltip=visible(question.text),
    )
    widget.add_class("crush-choices")
    return widget


def _check(choice: Choice) -> Checkbox:
    widget = Checkbox(
        description=_label(choice),
        indent=False,
        layout=Layout(width="100%", height="auto", margin="0"),
        tooltip=_label(choice),
    )
    widget.add_class("crush-choice")
    return widget


def _words(question: Question) -> Text | Textarea:
    """Return the place to write in one's own words."""
    is_free = question.type == "free_text"
    hint = "your answer" if is_free else "other, or what to add (optional)"
    widget = (Textarea if is_free else Text)(
        placeholder=hint,
        tooltip=f"{visible(question.text)}: {hint}",
        layout=Layout(width="100%", margin="2px 0 0 0"),
    )
    widget.add_class("crush-words")
    return widget


def _label(choice: Choice) -> str:
    about = f" – {choice.description}" if choice.description else ""
    return " ".join(visible(f"{choice.label}{about}").split())
