"""One turn of the agent as the front end that ran its cell watches it.

The turn runs on the engine, and what it tells and asks comes to the main loop, where all of
this module is but for what says otherwise.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from crush_kernel.agent.agent import Watcher
from crush_kernel.agent.events import (
    Event,
    Notice,
    ReasoningAdded,
    StepFinished,
    StepStarted,
    TextAdded,
    TurnFinished,
)
from crush_kernel.config.settings import PermissionMode
from crush_kernel.errors import CrushKernelError
from crush_kernel.history.messagejson import write_value
from crush_kernel.history.redaction import Redactor
from crush_kernel.kernel.bridge import Engine, Mailbox, call_main
from crush_kernel.kernel.display import TurnDisplay
from crush_kernel.kernel.pages.pages import Pages
from crush_kernel.kernel.redactedevent import redacted_form, redacted_request
from crush_kernel.kernel.render import FooterFacts
from crush_kernel.kernel.ruleoffer import rule_offer
from crush_kernel.kernel.runningcell import RunningCell
from crush_kernel.kernel.steering import steering_offered
from crush_kernel.messages import JsonObject
from crush_kernel.permissions.gate import Answer, Asker, DenyAll
from crush_kernel.permissions.policy import Policy
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.providers.base import ModelInfo
from crush_kernel.runtime import Runtime
from crush_kernel.tools.present_plan import Plan, PlanAnswer, Unreviewed
from crush_kernel.tools.question import Answered, Nobody, QuestionForm, Unanswered
from crush_kernel.wording import counted

MAX_SAID_CHARS = 100_000
"""Of what is said to a running turn: as good as all."""


@dataclass(frozen=True, slots=True)
class MainAsker:
    """Asks on the main loop what the agent wants to know on the engine."""

    loop: asyncio.AbstractEventLoop
    display: TurnDisplay
    redactor: Redactor
    policy: Callable[[], Policy]
    """Returns the rules that hold."""

    async def ask(self, request: PermissionRequest) -> Answer:
        """Show the question in the running cell and return the answer. Engine thread."""
        shown = redacted_request(request, self.redactor)
        offer = rule_offer(request, self.policy(), self.redactor)
        return await call_main(self.loop, partial(self.display.ask, shown, offer))

    async def ask_questions(self, form: QuestionForm) -> Answered | Unanswered:
        """Show `form` in the running cell and return what comes of it. Engine thread."""
        shown = redacted_form(form, self.redactor)
        reply = await call_main(self.loop, partial(self.display.ask_questions, shown))
        if isinstance(reply, Unanswered):
            return reply
        clean = self.redactor.redact
        return Answered(tuple(replace(each, text=clean(each.text)) for each in reply.given))

    async def review_plan(self, plan: Plan) -> PlanAnswer:
        """Show `plan` in the running cell and return what is said to it. Engine thread."""
        shown = replace(plan, text=self.redactor.redact(plan.text))
        verdict = await call_main(self.loop, partial(self.display.review_plan, shown))
        if isinstance(verdict, Unreviewed):
            return verdict
        return replace(verdict, words=self.redactor.redact(verdict.words))


class WatchedTurn:
    """Runs the turn that a cell has begun, and shows what comes of it."""

    def __init__(
        self,
        cell: RunningCell,
        runtime: Runtime,
        *,
        engine: Engine[Runtime],
        loop: asyncio.AbstractEventLoop,
        pages: Pages,
    ) -> None:
        """Prepare to show the turn of `cell`; nothing is shown yet."""
        self._cell = cell
        self._runtime = runtime
        self._engine = engine
        self._loop = loop
        self._pages = pages
        self._is_alone = cell.front_end == "headless"
        self._display = TurnDisplay(
            cell.outlet.publish,
            loop=loop,
            front_end=cell.front_end,
            model=runtime.models.info.id if runtime.models.info else "",
            stop_tool=self._stop_tool,
            read_line=cell.outlet.read_line,
            # Pages have a place of their own for it.
            say=None if pages.has_writer else self._say,
        )
        self._finished: TurnFinished | None = None
        self._told = 0
        """How many messages were told to runners."""

    async def run(
        self, work: Callable[..., Awaitable[None]], *, record: Callable[[], JsonObject | None]
    ) -> None:
        """Have the engine do `work` with a `watcher`, show it, and settle the outputs.

        Args:
            work: the turn.
            record: returns, when it is over, what its outputs must carry.

        Raises:
            CrushKernelError: the turn failed; that is shown already.

        Cancelling stops the work, and shows that it was interrupted.
        """
        mailbox = Mailbox(self._loop, self._deliver, is_bulk=_is_bulk)
        person = MainAsker(
            self._loop,
            self._display,
            self._runtime.session.redactor,
            lambda: self._runtime.agent.gate.policy,
        )
        asker: Asker = DenyAll() if self._is_alone else person
        watcher = Watcher(mailbox.post, asker)
        questions = self._runtime.questions.manned(Nobody() if self._is_alone else person)
        self._display.start()
        try:
            with self._steering(), questions:
                await self._engine.run(partial(work, watcher=watcher))
        except CrushKernelError as error:
            mailbox.drain()
            self._display.fail(error)
            raise
        except asyncio.CancelledError:
            mailbox.drain()
            self._display.interrupted()
            raise
        finally:
            mailbox.drain()
            self._display.finish(self._footer(), record())

    def _steering(self) -> AbstractContextManager[None]:
        if self._cell.front_end != "rich":
            return nullcontext()
        return steering_offered(self._cell.cell_id, self._say, pages=self._pages, loop=self._loop)

    def _say(self, said: str) -> None:
        """Say something of the user's to the turn."""
        if clean := self._runtime.session.redactor.redact(said[:MAX_SAID_CHARS].strip()):
            self._display.say(clean, is_heard=self._runtime.agent.steering.say(clean))

    def _stop_tool(self, call_id: str) -> None:
        async def stop() -> None:
            self._runtime.agent.stop_tool(call_id)

        self._engine.call(stop)

    def _deliver(self, event: Event) -> None:
        if isinstance(event, TurnFinished):
            self._finished = event
        for shown in self._cell.keeper.watch(event):
            self._display.on_event(shown)
            if isinstance(shown, Notice):
                self._pages.noticed(self._cell.cell_id, shown.text)
        if self._is_alone and isinstance(event, (StepStarted, StepFinished)):
            self._tell_runners()

    def _tell_runners(self) -> None:
        """Tell what was said so far to programs that run the notebook and report on it."""
        session = self._runtime.session
        said = session.conversation.running
        first = min(self._told, len(said))
        if first == self._told == len(said):
            return
        new = session.redactor.redact_messages(said[first:])
        self._pages.said(self._cell.cell_id, first, [write_value(message) for message in new])
        self._told = len(said)

    def _footer(self) -> FooterFacts:
        info = self._runtime.models.info or ModelInfo(provider="", id="")
        info = replace(info, context_window=self._runtime.agent.window_of(info))
        turn = self._finished
        if turn is None:
            return FooterFacts(model=info.id, context_window=info.context_window)
        return _footer_of(turn, info, mode=self._runtime.agent.gate.mode)


def _footer_of(turn: TurnFinished, info: ModelInfo, *, mode: PermissionMode) -> FooterFacts:
    """Return what the last line of `turn` says."""
    notes = (counted(turn.retries, "retry", "retries"),) if turn.retries else ()
    return FooterFacts(
        model=info.id,
        # The stand-in takes no time worth telling, and the same notebook is to read the same.
        duration_s=None if info.provider == "offline" else turn.duration_s,
        context_tokens=turn.context_tokens,
        context_window=info.context_window,
        usage=turn.usage,
        cost_usd=turn.cost_usd,
        tool_calls=turn.tool_calls,
        mode=mode,
        notes=notes,
    )


def _is_bulk(event: Event) -> bool:
    return isinstance(event, (TextAdded, ReasoningAdded))
