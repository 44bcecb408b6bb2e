"""The way of a reply's calls: read, ask hooks, permit, run, answer; each gets exactly one result.

Read-only calls that stand together run together, the others one after another, and results
are recorded in the order of the calls. Nothing a tool does ends the turn: what it raises
becomes an error result, except cancellation, which answers every open call as interrupted.
Hooks may end it: then the calls that have not begun are answered so.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Protocol

import anyio
from anyio import CancelScope

from crush_kernel.agent.callhooks import (
    HALTED,
    CallHooks,
    Halt,
    adding,
    input_text,
    objections,
    refusal,
    refused,
    use_of,
    word_of,
)
from crush_kernel.agent.calls import Prepared, not_json, prepare
from crush_kernel.agent.events import (
    Emit,
    HookTold,
    PermissionSettled,
    TodosChanged,
    ToolFinished,
    ToolProgressed,
    ToolRewritten,
    ToolStarted,
)
from crush_kernel.agent.permitting import permission, settlement
from crush_kernel.agent.runningcall import RunningCall, cut_short, result_of, timed_out
from crush_kernel.agent.timelimit import TimeLimit
from crush_kernel.errors import PermissionDenied, ToolError
from crush_kernel.history.repair import INTERRUPTED
from crush_kernel.history.todos import todos_of
from crush_kernel.hooks.payload import ToolAnswer, ToolUse, readable
from crush_kernel.hooks.report import facts_of, lines
from crush_kernel.hooks.verdict import Verdict
from crush_kernel.messages import JsonObject, Message, ToolCall, ToolResult
from crush_kernel.permissions.decision import Bounds, no_bounds
from crush_kernel.permissions.gate import Asker, Gate
from crush_kernel.permissions.request import BE_USED, PermissionRequest
from crush_kernel.tools.base import (
    AnyTool,
    Delegated,
    Delegation,
    ToolContext,
    ToolOutput,
    nobody_to_delegate_to,
)

logger = logging.getLogger(__name__)

MAX_TOGETHER = 8
"""Read-only calls that run at the same time; more would only fight for the disk."""


class Keeper(Protocol):
    """Keeps what happens to a call, before anybody is told."""

    def answer(self, result: ToolResult) -> None:
        """Keep the result of a call whose fellows are still running."""

    def decide(self, event: PermissionSettled) -> None:
        """Keep by what right something was done, or refused."""

    def keep_version(self, path: Path, before: bytes | None, after: bytes | None) -> None:
        """Keep a file as it was and as it will be. Any thread."""


class Delegates(Protocol):
    """Runs sub-agents."""

    async def run(self, delegation: Delegation, inside: "Inside") -> Delegated:
        """Have a sub-agent do `delegation` inside a call."""
        ...


@dataclass(frozen=True, slots=True)
class Inside:
    """The call that a sub-agent runs inside of, as far as it concerns the sub-agent."""

    call_id: str
    progress: Callable[[str], None]
    """Shows the last lines of what is being done."""
    tell: Emit
    """Tells whoever watches the turn."""
    keep: Callable[[JsonObject], None]
    """Takes what the result of the call is to tell people, however the call ends."""
    dispatcher: Callable[[Delegation, Mapping[str, AnyTool], Emit], "Dispatcher"]
    """Returns what carries out the sub-agent's own calls of some tools, and whom that tells."""


@dataclass(slots=True)
class Dispatcher:
    """Carries out the calls of one turn, or of a sub-agent in it."""

    tools: Mapping[str, AnyTool]
    gate: Gate
    asker: Asker
    emit: Emit
    keeper: Keeper
    delegates: Delegates | None = None
    """Runs sub-agents; a sub-agent's own calls start none."""
    prefix: str = ""
    """What makes the ids of a sub-agent's calls differ from all others: `<call id>/`."""
    on_behalf: str = ""
    """Whose calls they are if not the agent's own, such as `agent: task`."""
    bounds: Bounds = no_bounds
    """What the calls may do without a question, and never."""
    hooks: CallHooks | None = None
    """Are asked before and after each call."""
    halt: Halt = field(default_factory=Halt)
    """Whether they have ended the turn."""
    _running: dict[str, CancelScope] = field(default_factory=dict[str, CancelScope])

    async def call_tools(
        self, calls: tuple[ToolCall, ...], *, record: Callable[[Message], None]
    ) -> None:
        """Carry out `calls` and `record` one message that answers them all, in their order.

        Cancelling stops the running calls; the message is recorded all the same, with
        what was finished and the rest answered as interrupted.
        """
        results: dict[int, ToolResult] = {}
        try:
            for batch in _batches(calls, self.tools):
                if not self.halt.is_called:
                    await self._run_batch(batch, results)
        finally:
            unanswered = HALTED if self.halt.is_called else INTERRUPTED
            answers = (
                results.get(index) or ToolResult(call.id, unanswered, is_error=True)
                for index, call in enumerate(calls)
            )
            record(Message("tool", tuple(answers)))

    def stop(self, call_id: str) -> None:
        """Stop the running call `call_id`; unknown and finished ones are ignored.

        Those of a sub-agent are called `<id of its call>/<id of the sub-agent's call>`.
        """
        if scope := self._running.get(call_id):
            scope.cancel()

    async def _run_batch(
        self, batch: tuple[tuple[int, ToolCall], ...], results: dict[int, ToolResult]
    ) -> None:
        limiter = anyio.CapacityLimiter(MAX_TOGETHER)

        async def run(index: int, call: ToolCall) -> None:
            async with limiter:
                await self._call(call, answer=partial(results.__setitem__, index))

        if len(batch) == 1:
            await run(*batch[0])
            return
        async with anyio.create_task_group() as group:
            for index, call in batch:
                group.start_soon(run, index, call)

    async def _call(self, call: ToolCall, *, answer: Callable[[ToolResult], None]) -> None:
        """Carry out `call` and give its `answer`, also when the call or the turn is stopped."""
        prepared = prepare(call, self.tools)
        self.emit(ToolStarted(call.id, call.name, prepared.shown))
        started = anyio.current_time()
        running = RunningCall(call, TimeLimit(prepared.timeout_s))
        limit = running.limit
        output: ToolOutput | None = None
        full_id = self.prefix + call.id
        scope = self._running[full_id] = CancelScope()
        try:
            with scope, limit.running():
                output = await self._hooked(running, prepared)
        finally:
            self._running.pop(full_id, None)
            duration = anyio.current_time() - started
            output = output or running.done
            if output is None and limit.is_over:
                output = timed_out(call.name, running.tail, limit.seconds or 0)
            elif output is None:
                output = cut_short(running.tail, is_stopped=scope.cancelled_caught)
            result = result_of(running, output, duration)
            logger.info("%s took %.3f s: %s", call.name, duration, output.summary)
            self.keeper.answer(result)
            answer(result)
            self.emit(ToolFinished(result, duration))
            if (todos := todos_of(result)) is not None:
                self.emit(TodosChanged(todos))

    async def _hooked(self, running: RunningCall, prepared: Prepared) -> ToolOutput:
        """Run the call as hooks will have it, and let them see what came of it."""
        call, hooks = running.call, self.hooks
        if hooks is None or call.name not in self.tools or not hooks.has_any_for(call.name):
            return await self._admitted(running, prepared)
        if not prepared.is_faulty and readable(call.input or "{}") is None:
            # Hooks would see no arguments, and yet it would be run with some.
            prepared = not_json(call.name)
        use = use_of(call, self.prefix + call.id, self.on_behalf.removeprefix("agent: "))
        with running.limit.paused():
            said = await hooks.before(use)
        self._hear(running, said)
        if said.runs:
            running.hooks["hook"] = facts_of(said, use.input, effective=said.input)
        if said.is_refusal:
            self._told(running)(refusal(self._use_request(running), said))
            return refused(said)
        running.word = word_of(said)
        if said.input is not None:
            use = replace(use, input=said.input)
            prepared = self._rewritten(running, said.input)
        output = adding(await self._admitted(running, prepared), said.context)
        return output if output.is_error else await self._looked_at(running, use, output, hooks)

    def _rewritten(self, running: RunningCall, given: JsonObject) -> Prepared:
        """Return the call with another input, read anew."""
        try:
            running.effective_input = input_text(given)
        except RecursionError:
            return not_json(running.call.name)
        prepared = prepare(replace(running.call, input=running.effective_input), self.tools)
        self.emit(ToolRewritten(running.call.id, prepared.shown))
        return prepared

    async def _looked_at(
        self, running: RunningCall, use: ToolUse, output: ToolOutput, hooks: CallHooks
    ) -> ToolOutput:
        # Kept already: a stop of the hooks takes nothing back of what was done.
        running.done = output
        with running.limit.paused():
            said = await hooks.after(use, ToolAnswer(output.text, output.metadata))
        self._hear(running, said)
        if said.runs:
            running.hooks["hook_after"] = facts_of(said, use.input, effective=None)
        return adding(output, objections(said))

    def _hear(self, running: RunningCall, said: Verdict) -> None:
        self.halt.is_called |= said.is_halt
        for line in lines(said, running.call.name):
            self.emit(HookTold(line))

    def _use_request(self, running: RunningCall) -> PermissionRequest:
        return PermissionRequest(
            self.prefix + running.call.id,
            running.call.name,
            "use",
            BE_USED,
            on_behalf=self.on_behalf,
        )

    async def _admitted(self, running: RunningCall, prepared: Prepared) -> ToolOutput:
        """Run the call, unless a rule is against its tool whatever it would do."""
        context = self._context(running)
        try:
            if prepared.is_harmless or self.gate.refuses_tool(running.call.name):
                await context.permit(self._use_request(running))
        except PermissionDenied as error:
            return ToolOutput(str(error), is_error=True, summary="denied")
        return await prepared.run(context)

    def _progress(self, running: RunningCall, tail: str) -> None:
        running.tail = tail
        self.emit(ToolProgressed(running.call.id, tail))

    def _context(self, running: RunningCall) -> ToolContext:
        permit = permission(
            self.gate,
            self.asker,
            self._told(running),
            bounds=self.bounds,
            on_behalf=self.on_behalf,
            hook=running.word,
        )

        async def permit_off_the_clock(request: PermissionRequest) -> None:
            with running.limit.paused():
                await permit(request)

        return ToolContext(
            call_id=self.prefix + running.call.id,
            permit=permit_off_the_clock,
            progress=partial(self._progress, running),
            keep_version=self.keeper.keep_version,
            delegate=partial(self._delegate, running),
            decided=lambda request, word: self.keeper.decide(settlement(request, word)),
        )

    async def _delegate(self, running: RunningCall, delegation: Delegation) -> Delegated:
        if self.delegates is None:
            return await nobody_to_delegate_to(delegation)
        if running.facts:
            raise ToolError("One call can start one sub-agent only.")
        inside = Inside(
            call_id=running.call.id,
            progress=partial(self._progress, running),
            tell=self.emit,
            keep=running.facts.update,
            dispatcher=partial(self._nested, running.call),
        )
        return await self.delegates.run(delegation, inside)

    def _nested(
        self, call: ToolCall, delegation: Delegation, tools: Mapping[str, AnyTool], emit: Emit
    ) -> "Dispatcher":
        """Return what carries out the calls of a sub-agent that runs inside `call`."""
        return Dispatcher(
            tools=tools,
            gate=self.gate,
            asker=self.asker,
            emit=emit,
            keeper=_NestedKeeper(self.keeper),
            prefix=f"{self.prefix}{call.id}/",
            on_behalf=f"agent: {delegation.agent}",
            bounds=delegation.bounds,
            hooks=self.hooks,
            halt=self.halt,
            _running=self._running,
        )

    def _told(self, running: RunningCall) -> Callable[[PermissionSettled], None]:
        def tell(event: PermissionSettled) -> None:
            if effective := running.effective_input:
                event = replace(event, original_input=running.call.input, effective_input=effective)
            running.settled.append(event)
            self.keeper.decide(event)
            self.emit(event)

        return tell


@dataclass(frozen=True, slots=True)
class _NestedKeeper:
    """Keeps for the turn what becomes of a sub-agent's calls; their results are kept with it."""

    keeper: Keeper

    def answer(self, result: ToolResult) -> None:
        """Do nothing: the sub-agent's own conversation has the result."""

    def decide(self, event: PermissionSettled) -> None:
        """Keep by what right something was done, or refused."""
        self.keeper.decide(event)

    def keep_version(self, path: Path, before: bytes | None, after: bytes | None) -> None:
        """Keep a file as it was and as it will be. Any thread."""
        self.keeper.keep_version(path, before, after)


def _batches(
    calls: tuple[ToolCall, ...], tools: Mapping[str, AnyTool]
) -> Iterator[tuple[tuple[int, ToolCall], ...]]:
    """Yield runs of read-only calls as one batch, every other call alone, with positions."""

    def key(item: tuple[int, ToolCall]) -> tuple[bool, int]:
        tool = tools.get(item[1].name)
        is_read_only = tool is not None and tool.is_read_only
        return is_read_only, 0 if is_read_only else item[0]

    for _, batch in groupby(enumerate(calls), key):
        yield tuple(batch)
