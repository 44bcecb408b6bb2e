"""The one writer of a turn's outputs.

Events only change what is to be shown; one timer, at most ten times a second, brings the
outputs up to date. So no order of events can flood a front end, and a widget never meets
an update that was meant for text. Whatever ends the turn, widgets are replaced by text and
closed.

Runs on the main loop, all of it.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar

from crush_kernel.agent.events import (
    Event,
    PermissionSettled,
    ReasoningAdded,
    ReplyDropped,
    TextAdded,
)
from crush_kernel.errors import CrushKernelError
from crush_kernel.kernel import permissiontext, render
from crush_kernel.kernel.console import ConsoleDisplay
from crush_kernel.kernel.debounce import REST_S, Debounce
from crush_kernel.kernel.render import FooterFacts
from crush_kernel.kernel.ruleoffer import RuleOffer
from crush_kernel.kernel.slots import Publish, Slots
from crush_kernel.kernel.transcript import Transcript
from crush_kernel.permissions.gate import Answer, DenyAll
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.present_plan import Plan, PlanAnswer
from crush_kernel.tools.question import Answered, Nobody, QuestionForm, Unanswered

if TYPE_CHECKING:
    # ipywidgets is imported with the first widget; no cycle is hidden here.
    from crush_kernel.kernel.widgets import LiveCard, SteeringBox, WaitingCard

P = ParamSpec("P")
T = TypeVar("T")

FrontEnd = Literal["rich", "console", "headless"]

INTERVAL_S = 0.1
HEADLESS_INTERVAL_S = 5.0
"""Without a person watching, updates only guard against being killed."""
CARD_AFTER_S = 0.15
"""How long a call runs before it gets a widget: most are done by then."""
TICK_S = 1.0
WITHDRAWN = "no answer needed any more"
"""Said of a question that something else has settled, until it is known what."""


class TurnDisplay:
    """Shows one turn, in the way of its front end.

    Args:
        publish: sends an IOPub message with the turn's parent.
        loop: the main loop.
        front_end: `rich` has widgets, `console` a keyboard, `headless` nobody.
        model: how the model is called in the status line.
        stop_tool: stops the call with this id; called when Stop is pressed.
        read_line: asks for a line on the keyboard; raises `EOFError` at its end.
        say: says something to the turn; offered beside running calls unless it is left out.
        clock: seconds that only grow; the loop's clock if left out.
    """

    def __init__(
        self,
        publish: Publish,
        *,
        loop: asyncio.AbstractEventLoop,
        front_end: FrontEnd,
        model: str,
        stop_tool: Callable[[str], None],
        read_line: Callable[[str], Awaitable[str]],
        say: Callable[[str], None] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._writer: ConsoleDisplay | _SlotDisplay = (
            ConsoleDisplay(publish, loop=loop, read_line=read_line)
            if front_end == "console"
            else _SlotDisplay(
                publish,
                loop=loop,
                is_watched=front_end == "rich",
                model=model,
                stop_tool=stop_tool,
                say=say,
                clock=clock or loop.time,
            )
        )
        self._is_over = False

    def start(self) -> None:
        """Show at once that the turn has begun."""
        self._writer.start()

    def on_event(self, event: Event) -> None:
        """Take in `event`; it is shown within a tenth of a second. Later ones are ignored."""
        if not self._is_over:
            self._writer.on_event(event)

    def say(self, text: str, *, is_heard: bool) -> None:
        """Show what the user says to the turn.

        Args:
            text: what was said.
            is_heard: whether it waits for a `Steered` event; else the turn will never read it.
        """
        if not self._is_over:
            self._writer.say(text, is_heard=is_heard)

    async def ask(self, request: PermissionRequest, offer: RuleOffer | None = None) -> Answer:
        """Return what the user says to `request`; cancelling withdraws the question.

        Several may be asked at the same time.

        Args:
            request: what is wanted, without secrets.
            offer: what can be allowed for good, if anything.
        """
        return await self._writer.ask(request, offer)

    async def ask_questions(self, form: QuestionForm) -> Answered | Unanswered:
        """Return what the user says to `form`; cancelling withdraws it."""
        return await self._writer.ask_questions(form)

    async def review_plan(self, plan: Plan) -> PlanAnswer:
        """Return what the user says to `plan`; cancelling withdraws it."""
        return await self._writer.review_plan(plan)

    def fail(self, error: CrushKernelError) -> None:
        """Show what went wrong; `finish` must follow."""
        if not self._is_over:
            self._writer.fail(error)

    def interrupted(self) -> None:
        """Show that the user stopped the turn; `finish` must follow."""
        if not self._is_over:
            self._writer.interrupted()

    def finish(
        self, facts: FooterFacts | None = None, record: Mapping[str, object] | None = None
    ) -> None:
        """Show the final state at once and close all widgets; safe to repeat.

        Args:
            facts: what the last line says.
            record: the turn, to be kept with what is shown where nobody keeps it elsewhere.
        """
        if not self._is_over:
            self._is_over = True
            self._writer.finish(facts, record)


@dataclass(slots=True)
class _Asked:
    """A card, and the call that waits for it."""

    card: "WaitingCard"
    call_id: str
    until: float | None = None
    """Until when it is still shown, by the loop's clock; `None` while it is open."""

    def is_past(self, now: float) -> bool:
        return self.until is not None and self.until <= now


class _SlotDisplay:
    """Shows a turn in outputs that can be updated."""

    def __init__(
        self,
        publish: Publish,
        *,
        loop: asyncio.AbstractEventLoop,
        is_watched: bool,
        model: str,
        stop_tool: Callable[[str], None],
        say: Callable[[str], None] | None,
        clock: Callable[[], float],
    ) -> None:
        self._loop = loop
        self._is_watched = is_watched
        self._interval_s = INTERVAL_S if is_watched else HEADLESS_INTERVAL_S
        self._stop_tool = stop_tool
        self._say = say
        self._clock = clock
        self._transcript = Transcript(model)
        self._slots = Slots(publish)
        # Widgets belong to the cell that the turn runs in, whoever calls.
        self._context = contextvars.copy_context()
        self._timer: asyncio.TimerHandle | None = None
        self._is_touched = False
        """Whether an update is due as soon as the rate allows."""
        self._updated = float("-inf")
        self._card: LiveCard | None = None
        self._steering: SteeringBox | None = None
        """Kept from card to card, with what was typed so far."""
        self._asked: list[_Asked] = []
        self._debounce = Debounce(loop.time)
        self._is_over = False

    def start(self) -> None:
        if self._is_watched:
            self._update()

    def on_event(self, event: Event) -> None:
        # Deltas come by the thousand: first in line, and nothing but an append.
        if type(event) is TextAdded:
            self._transcript.add_text(event.text)
        elif type(event) is ReasoningAdded:
            self._transcript.add_reasoning(event.text)
        elif type(event) is ReplyDropped:
            self._slots.drop(self._transcript.drop())
        else:
            self._transcript.feed(event, self._clock())
            if type(event) is PermissionSettled:
                self._settled(event)
        if not self._is_touched:
            self._touch()

    def say(self, text: str, *, is_heard: bool) -> None:
        if is_heard:
            self._transcript.queue(text)
        else:
            self._transcript.add(render.unsent(text))
        self._touch()

    async def ask(self, request: PermissionRequest, offer: RuleOffer | None) -> Answer:
        await self._rest()
        if not self._is_watched or self._is_over:
            return await DenyAll().ask(request)
        from crush_kernel.kernel.permissioncard import (  # noqa: PLC0415 - see above
            PermissionCard,
        )

        card = self._in_cell(PermissionCard, request, offer, self._debounce)
        with self._waiting(card, request.call_id):
            return await card.answer()

    async def ask_questions(self, form: QuestionForm) -> Answered | Unanswered:
        await self._rest()
        if not self._is_watched or self._is_over:
            return await Nobody().ask_questions(form)
        from crush_kernel.kernel.questioncard import QuestionCard  # noqa: PLC0415 - see above

        card = self._in_cell(QuestionCard, form, self._debounce)
        with self._waiting(card, form.call_id):
            return await card.answer()

    async def review_plan(self, plan: Plan) -> PlanAnswer:
        await self._rest()
        if not self._is_watched or self._is_over:
            return await Nobody().review_plan(plan)
        from crush_kernel.kernel.plancard import PlanCard  # noqa: PLC0415 - see above

        card = self._in_cell(PlanCard, plan, self._debounce)
        with self._waiting(card, plan.call_id):
            return await card.answer()

    async def _rest(self) -> None:
        """Let no card come up under a pointer that may be about to press twice."""
        # Once is enough: a card that comes up after another answer lets no press through either.
        await asyncio.sleep(self._debounce.rest_s)

    @contextmanager
    def _waiting(self, card: "WaitingCard", call_id: str) -> Generator[None]:
        """Show `card`, which the call waits for, during the block, and a moment longer."""
        asked = _Asked(card, call_id)
        self._asked.append(asked)
        self._transcript.wait(call_id, is_waiting=True)
        self._touch()
        try:
            yield
        finally:
            asked.until = self._loop.time() + REST_S
            self._transcript.wait(call_id, is_waiting=False)
            if self._is_over:
                card.close()
            else:
                self._in_cell(card.settle, WITHDRAWN)
                self._touch()

    def _settled(self, event: PermissionSettled) -> None:
        """Have the card that was withdrawn by something say by what."""
        for asked in self._asked:
            if asked.call_id == event.request.call_id and asked.until is not None:
                self._in_cell(asked.card.settle, permissiontext.settled_line(event))

    def fail(self, error: CrushKernelError) -> None:
        self._transcript.add(render.failure(error))
        self._touch()

    def interrupted(self) -> None:
        self._transcript.end()
        self._transcript.add(render.interrupted())
        self._touch()

    def finish(self, facts: FooterFacts | None, record: Mapping[str, object] | None) -> None:
        self._is_over = True
        self._cancel_timer()
        try:
            self._transcript.end()
            self._slots.keep(self._transcript.settle())
            self._slots.finish([render.footer(facts)] if facts is not None else [], record)
        finally:
            self._close_card()
            if self._steering is not None:
                self._steering.close()
            for asked in self._asked:
                asked.card.close()

    def _in_cell(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._context.copy().run(call, *args, **kwargs)

    def _touch(self) -> None:
        """Have the outputs updated as soon as the rate allows."""
        self._is_touched = True
        self._wake(max(self._loop.time(), self._updated + self._interval_s))

    def _wake(self, when: float) -> None:
        """Update at `when`, by the loop's clock, or earlier if that is planned."""
        if self._is_over or (self._timer is not None and self._timer.when() <= when):
            return
        self._cancel_timer()
        self._timer = self._loop.call_at(when, self._update, context=self._context)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _update(self) -> None:
        """Bring the outputs up to date."""
        self._cancel_timer()
        self._is_touched = False
        settled = [asked for asked in self._asked if asked.is_past(self._loop.time())]
        self._asked = [asked for asked in self._asked if asked not in settled]
        self._updated = self._loop.time()
        now = self._clock()
        if all(asked.until is None for asked in self._asked):
            # While a card rests nothing comes up above it, so that it stays under the pointer.
            self._slots.keep(self._transcript.settle())
        if not self._is_watched:
            self._slots.show([])
        elif self._needs_card(now):
            self._show_card(now)
        else:
            self._slots.show(self._transcript.live(now))
            self._close_card()
        for asked in settled:
            asked.card.close()
        self._plan(now)

    def _needs_card(self, now: float) -> bool:
        return bool(self._asked) or any(
            call.is_running and now - call.started >= CARD_AFTER_S
            for call in self._transcript.calls()
        )

    def _show_card(self, now: float) -> None:
        from crush_kernel.kernel.widgets import LiveCard, SteeringBox  # noqa: PLC0415 - see above

        if self._card is None:
            if self._steering is None and self._say is not None:
                self._steering = SteeringBox(self._say)
            self._card = LiveCard(self._stop_tool, steering=self._steering)
        # What stands on a card stands there alone, also while it is settled.
        on_cards = {asked.call_id for asked in self._asked}
        rows = [c.row(now) for c in self._transcript.calls() if c.call_id not in on_cards]
        todos = render.todo_rows(self._transcript.todos)
        cards = [asked.card for asked in self._asked]
        self._card.show(rows, cards, todos=todos, queued=self._transcript.queued)
        waiting = [asked.card.fallback for asked in self._asked if asked.until is None]
        fallback = [*self._transcript.live(now), *waiting]
        self._slots.show(fallback, view=self._card.view())

    def _close_card(self) -> None:
        if self._card is not None:
            self._card.close()
            self._card = None

    def _plan(self, now: float) -> None:
        """Come back when time alone changes what is shown."""
        if not self._is_watched:
            return
        waits = [
            CARD_AFTER_S - (now - call.started)
            for call in self._transcript.calls()
            if call.is_running and now - call.started < CARD_AFTER_S
        ]
        is_ticking = self._transcript.is_timed or any(
            call.is_running and not call.is_waiting for call in self._transcript.calls()
        )
        if is_ticking:
            waits.append(TICK_S)
        waits += [
            asked.until - self._loop.time() for asked in self._asked if asked.until is not None
        ]
        if waits:
            # Later than now in any case, however the difference was rounded.
            self._wake(self._loop.time() + max(min(waits), 0.001))
