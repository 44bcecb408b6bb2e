"""The way of a reply's calls: read, permit, run, answer; every call gets exactly one result.

Read-only calls that stand together run together, the others one after another, and results
are recorded in the order of the calls. Nothing a tool does ends the turn: what it raises
becomes an error result, except cancellation, which answers every open call as interrupted.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Protocol

import anyio
from anyio import CancelScope
from pydantic import JsonValue

from crush_kernel.agent.calls import prepare
from crush_kernel.agent.events import (
    Emit,
    PermissionSettled,
    TodosChanged,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
)
from crush_kernel.agent.timelimit import TimeLimit
from crush_kernel.errors import PermissionDenied
from crush_kernel.history.repair import INTERRUPTED
from crush_kernel.history.todos import todos_of
from crush_kernel.messages import Message, ToolCall, ToolResult
from crush_kernel.permissions.gate import Asker, Gate
from crush_kernel.permissions.rules import Deny, PermissionRequest
from crush_kernel.tools.base import AnyTool, Permit, ToolContext, ToolOutput
from crush_kernel.tools.encoded import without_base64

logger = logging.getLogger(__name__)

MAX_TOGETHER = 8
"""Read-only calls that run at the same time; more would only fight for the disk."""

STOPPED = "The user stopped this call. Do not simply repeat it."


class Keeper(Protocol):
    """Keeps what happens to a call, before anybody is told."""

    def answer(self, result: ToolResult) -> None:
        """Keep the result of a call whose fellows are still running."""

    def decide(self, event: PermissionSettled) -> None:
        """Keep by what right something was done, or refused."""

    def keep_version(self, path: Path, before: bytes | None, after: bytes | None) -> None:
        """Keep a file as it was and as it will be. Any thread."""


@dataclass(slots=True)
class Dispatcher:
    """Carries out the calls of one turn."""

    tools: Mapping[str, AnyTool]
    gate: Gate
    asker: Asker
    emit: Emit
    keeper: Keeper
    _running: dict[str, CancelScope] = field(default_factory=dict[str, CancelScope])
    _tails: dict[str, str] = field(default_factory=dict[str, str])
    """What running calls have printed last, so that a stop does not lose it."""

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
                await self._run_batch(batch, results)
        finally:
            answers = (
                results.get(index) or ToolResult(call.id, INTERRUPTED, is_error=True)
                for index, call in enumerate(calls)
            )
            record(Message("tool", tuple(answers)))

    def stop(self, call_id: str) -> None:
        """Stop the running call `call_id`; unknown and finished ones are ignored."""
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
        settled: list[PermissionSettled] = []
        output: ToolOutput | None = None
        scope = self._running[call.id] = CancelScope()
        limit = TimeLimit(prepared.timeout_s)
        try:
            with scope, limit.running():
                output = await prepared.run(self._context(call, settled, limit))
        finally:
            self._running.pop(call.id, None)
            duration = anyio.current_time() - started
            tail = self._tails.pop(call.id, "")
            if output is None and limit.is_over:
                output = _timed_out(call.name, tail, limit.seconds or 0)
            elif output is None:
                output = _cut_short(tail, is_stopped=scope.cancelled_caught)
            result = _result(call, output, settled, duration)
            logger.info("%s took %.3f s: %s", call.name, duration, output.summary)
            self.keeper.answer(result)
            answer(result)
            self.emit(ToolFinished(result, duration))
            if (todos := todos_of(result)) is not None:
                self.emit(TodosChanged(todos))

    def _progress(self, call: ToolCall, tail: str) -> None:
        self._tails[call.id] = tail
        self.emit(ToolProgressed(call.id, tail))

    def _context(
        self, call: ToolCall, settled: list[PermissionSettled], limit: TimeLimit
    ) -> ToolContext:
        permit = permission(self.gate, self.asker, self._told(settled))

        async def permit_off_the_clock(request: PermissionRequest) -> None:
            with limit.paused():
                await permit(request)

        return ToolContext(
            call_id=call.id,
            permit=permit_off_the_clock,
            progress=partial(self._progress, call),
            keep_version=self.keeper.keep_version,
        )

    def _told(self, settled: list[PermissionSettled]) -> Callable[[PermissionSettled], None]:
        def tell(event: PermissionSettled) -> None:
            settled.append(event)
            self.keeper.decide(event)
            self.emit(event)

        return tell


def permission(gate: Gate, asker: Asker, tell: Callable[[PermissionSettled], None]) -> Permit:
    """Return a way to ask for permission that tells every answer and raises on a refusal."""

    async def permit(request: PermissionRequest) -> None:
        word = await gate.settle(request, asker)
        reason = word.reason if isinstance(word, Deny) else ""
        is_allowed = not isinstance(word, Deny)
        tell(PermissionSettled(request, is_allowed=is_allowed, rule=word.rule, reason=reason))
        if not is_allowed:
            raise PermissionDenied(_denial(reason))

    return permit


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


def _result(
    call: ToolCall, output: ToolOutput, settled: list[PermissionSettled], duration_s: float
) -> ToolResult:
    facts: dict[str, JsonValue] = dict(output.metadata)
    if output.summary:
        facts["summary"] = output.summary
    if output.diff:
        facts["diff"] = output.diff
    if settled:
        facts["permission"] = settled[-1].rule
    facts["volatile"] = {"duration_s": round(duration_s, 3)}
    return ToolResult(
        call_id=call.id,
        content=without_base64(output.text),
        is_error=output.is_error,
        media=output.media,
        metadata=facts,
    )


def _cut_short(tail: str, *, is_stopped: bool) -> ToolOutput:
    """Return why there is no result, with what the call had printed last."""
    reason, summary = (STOPPED, "stopped") if is_stopped else (INTERRUPTED, "interrupted")
    return ToolOutput(_with_tail(reason, tail), is_error=True, summary=summary)


def _timed_out(name: str, tail: str, seconds: float) -> ToolOutput:
    reason = (
        f"{name} was stopped after {seconds:g} s, the longest that a call of it may take. Ask for "
        "less at once, or find out what is slow before you repeat it."
    )
    return ToolOutput(_with_tail(reason, tail), is_error=True, summary="timed out")


def _with_tail(reason: str, tail: str) -> str:
    printed = tail.rstrip()
    return f"{reason}\nIts last output:\n{printed}" if printed else reason


def _denial(reason: str) -> str:
    if reason:
        return f"Permission denied: {reason}. Do not try to get the same result another way."
    return "Permission denied by the user. Do not try to get the same result another way."
