"""A turn in a console, which knows no updates and no widgets: plain text, and a prompt.

Source: jupyter-console and qtconsole ignore `update_display_data`; what they are sent once
stays.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from crush_kernel.agent.events import (
    Event,
    HookTold,
    Notice,
    PermissionSettled,
    ReplyDropped,
    Retrying,
    Steered,
    SummaryFinished,
    SummaryStarted,
    TextAdded,
    TodosChanged,
    ToolFinished,
    ToolRewritten,
    ToolStarted,
)
from crush_kernel.errors import CrushKernelError
from crush_kernel.history.todos import Todo
from crush_kernel.kernel import (
    permissionconsole,
    permissiontext,
    plantext,
    questiontext,
    render,
    subagentcard,
)
from crush_kernel.kernel.markdown import visible
from crush_kernel.kernel.render import CallFacts, FooterFacts
from crush_kernel.kernel.ruleoffer import RuleOffer
from crush_kernel.kernel.slots import Publish
from crush_kernel.permissions.gate import Answer
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.present_plan import KeepPlanning, Plan, PlanAnswer
from crush_kernel.tools.question import DISMISSED, Answered, Given, QuestionForm, Unanswered

INTERVAL_S = 0.05
DIFF_LINES = 40


class ConsoleDisplay:
    """Writes a turn to `stdout` as it happens, at most every `INTERVAL_S`."""

    def __init__(
        self,
        publish: Publish,
        *,
        loop: asyncio.AbstractEventLoop,
        read_line: Callable[[str], Awaitable[str]],
    ) -> None:
        self._publish = publish
        self._loop = loop
        self._read_line = read_line
        self._text: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_at_margin = True
        self._calls: dict[str, ToolStarted] = {}
        self._words: dict[str, PermissionSettled] = {}
        self._todos: tuple[Todo, ...] = ()
        self._keyboard = asyncio.Lock()
        """Held by what is asked: there is one keyboard."""
        self._withdrawn: set[str] = set()
        """Calls whose question stands there, though nobody needs an answer any more."""

    def start(self) -> None:
        """Show nothing: there is no line to take back."""

    def say(self, text: str, *, is_heard: bool) -> None:
        """Show nothing: a console has no place where something could be said meanwhile."""

    def on_event(self, event: Event) -> None:  # noqa: C901, PLR0912 - one arm per event
        """Show `event` if it is worth a line."""
        match event:
            case TextAdded(text=text):
                self._write(visible(text))
            case ToolStarted():
                self._calls[event.call_id] = event
                self._line(f"● {render.short(event.name)} {render.short(event.summary)}".rstrip())
            case PermissionSettled():
                self._settled(event)
            case ToolFinished():
                self._finished(event)
            case ReplyDropped():
                self._line("[the reply broke off; it is made anew]")
            case Retrying():
                self._line(visible(render.countdown(event, event.delay_s)))
            case ToolRewritten(summary=summary):
                self._line(f"  ├ now {render.short(summary)}")
            case HookTold(text=text) | Notice(text=text):
                self._line(visible(text))
            case SummaryStarted():
                self._line("[summarizing the conversation…]")
            case SummaryFinished():
                self._line(f"[{render.summary(event).plain}]")
            case TodosChanged(todos=todos):
                self._list(todos)
            case Steered(text=text):
                self._line(render.steered(text).plain)
            case _:
                pass

    async def ask(self, request: PermissionRequest, offer: RuleOffer | None) -> Answer:
        """Ask on the keyboard, one thing at a time.

        Whatever is no clear yes is a no, and is passed on as the reason. Cancelling withdraws the
        question: one that has not been put yet is not put any more.
        """
        async with self._keyboard:
            for line in permissionconsole.question(request):
                self._line(line)
            self._flush()
            try:
                return await self._answer(request, offer)
            except EOFError:
                return Answer("deny", "nobody answered")
            except asyncio.CancelledError:
                self._withdrawn.add(request.call_id)
                raise

    async def _answer(self, request: PermissionRequest, offer: RuleOffer | None) -> Answer:
        prompt = permissionconsole.prompt(offer)
        while True:
            line = await self._read_line(prompt)
            answer = permissionconsole.answer_in(line, has_offer=offer is not None)
            if isinstance(answer, Answer):
                return answer
            if offer is not None and (answer := await self._always(offer)) is not None:
                self._line(permissiontext.answer_line(request, answer))
                return answer

    async def _always(self, offer: RuleOffer) -> Answer | None:
        """Return the rules that are to be kept, `None` if they are not."""
        rules = offer.proposed
        while True:
            for line in permissionconsole.rules(rules):
                self._line(line)
            self._flush()
            said = (await self._read_line(permissionconsole.SCOPE_PROMPT)).strip()
            match permissionconsole.scope_in(said):
                case "back":
                    return None
                case None:
                    written = permissionconsole.rules_in(said)
                    if problem := offer.problem(written):
                        self._line(visible(problem))
                    else:
                        rules = written
                case scope:
                    return Answer("always", rules=rules, scope=scope)

    async def ask_questions(self, form: QuestionForm) -> Answered | Unanswered:
        """Ask on the keyboard, one question after the other; the end of input dismisses all."""
        async with self._keyboard:
            return await self._ask_all(form)

    async def _ask_all(self, form: QuestionForm) -> Answered | Unanswered:
        for line in questiontext.heading_lines(form):
            self._line(line)
        total = len(form.questions)
        given: list[Given] = []
        for number, question in enumerate(form.questions, start=1):
            for line in questiontext.question_lines(question, number, total):
                self._line(line)
            self._flush()
            try:
                answer = await self._read_line(questiontext.prompt_of(question))
            except EOFError:
                return DISMISSED
            given.append(questiontext.answer_in(question, answer))
        return Answered(tuple(given))

    async def review_plan(self, plan: Plan) -> PlanAnswer:
        """Show `plan` and ask on the keyboard; the end of input keeps planning."""
        async with self._keyboard:
            for line in plantext.lines(plan):
                self._line(line)
            self._flush()
            try:
                return plantext.verdict_in(await self._read_line(plantext.PROMPT))
            except EOFError:
                return KeepPlanning()

    def _settled(self, event: PermissionSettled) -> None:
        call_id = event.request.call_id
        self._words[call_id] = event
        if call_id in self._withdrawn:
            self._withdrawn.discard(call_id)
            self._line(f"[{permissiontext.settled_line(event)}; the prompt above asks nothing]")

    def fail(self, error: CrushKernelError) -> None:
        """Show what went wrong."""
        self._line(render.failure(error).plain)

    def interrupted(self) -> None:
        """Show that the user stopped the turn."""
        self._line("interrupted")

    def finish(
        self,
        facts: FooterFacts | None,
        record: Mapping[str, object] | None = None,  # noqa: ARG002 - a console keeps no outputs
    ) -> None:
        """Write out what is left, and the footer."""
        if facts is not None:
            self._line("")
            self._line(render.footer(facts).plain)
        elif not self._is_at_margin:
            self._write("\n")
        self._flush()

    def _list(self, todos: tuple[Todo, ...]) -> None:
        """Write out what is to do, of a list that goes on only what has changed in it."""
        former, self._todos = self._todos, todos
        is_same = [todo.content for todo in former] == [todo.content for todo in todos]
        news = [todo for todo in todos if not is_same or todo not in former]
        for line in render.todos(news).plain.splitlines():
            self._line(f"  {line}")

    def _finished(self, event: ToolFinished) -> None:
        started = self._calls.get(event.result.call_id)
        settled = self._words.get(event.result.call_id)
        facts = CallFacts(
            name=started.name if started else "",
            summary="",
            state="done",
            result=event.result,
            permission=render.permission_words(settled) if settled else "",
            is_denied=settled is not None and not settled.is_allowed,
        )
        for line in subagentcard.steps_in_short(event.result):
            self._line(f"  ├ {line}")
        words = [render.short(facts.name), render.outcome(facts), render.duration(event.duration_s)]
        self._line("  └ " + " · ".join(filter(None, words)))
        diff = event.result.metadata.get("diff")
        if isinstance(diff, str) and diff:
            for line in permissionconsole.first_lines(diff, DIFF_LINES):
                self._line(f"    {line}")

    def _line(self, text: str) -> None:
        self._write(("" if self._is_at_margin else "\n") + text + "\n")

    def _write(self, text: str) -> None:
        if not text:
            return
        self._text.append(text)
        self._is_at_margin = text.endswith("\n")
        if self._timer is None:
            self._timer = self._loop.call_later(INTERVAL_S, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        text = "".join(self._text)
        self._text.clear()
        if text:
            self._publish("stream", {"name": "stdout", "text": text})
