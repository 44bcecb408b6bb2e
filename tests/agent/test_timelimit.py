"""How long a call may take, and what of its time counts."""

from dataclasses import dataclass, field, replace

import anyio
import pytest

from crush_kernel.agent.dispatch import Dispatcher
from crush_kernel.agent.events import Event, ToolFinished
from crush_kernel.messages import Message, ToolCall, ToolResult
from crush_kernel.permissions.gate import Answer, Gate
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.base import AnyTool, ToolContext, ToolOutput
from tests.fakes.tools import EchoArguments, echo, hanging, tool

pytestmark = pytest.mark.anyio

SHORT_S = 0.1
CALL = ToolCall("c1", "slow", '{"text": "x"}')


class SlowPerson:
    """Allows everything, after longer than a call may take."""

    async def ask(self, request: PermissionRequest) -> Answer:
        assert request.command
        await anyio.sleep(3 * SHORT_S)
        return Answer("once")


@dataclass
class Kept:
    """Keeps nothing."""

    results: list[ToolResult] = field(default_factory=list[ToolResult])

    def answer(self, result: ToolResult) -> None:
        self.results.append(result)

    def decide(self, event: object) -> None: ...

    def keep_version(self, path: object, before: object, after: object) -> None: ...


async def results_of(*tools: AnyTool, calls: tuple[ToolCall, ...] = (CALL,)) -> list[ToolResult]:
    events: list[Event] = []
    keeper = Kept()
    dispatcher = Dispatcher(
        tools={tool.name: tool for tool in tools},
        gate=Gate(),
        asker=SlowPerson(),
        emit=events.append,
        keeper=keeper,
    )
    recorded: list[Message] = []
    with anyio.fail_after(10):
        await dispatcher.call_tools(calls, record=recorded.append)
    told = [event.result for event in events if isinstance(event, ToolFinished)]
    assert keeper.results == told
    (message,) = recorded
    return [part for part in message.parts if isinstance(part, ToolResult)]


def limited(tool: AnyTool) -> AnyTool:
    return replace(tool, timeout_s=SHORT_S)


async def _ask(context: ToolContext, command: str) -> None:
    await context.permit(
        PermissionRequest(
            call_id=context.call_id, tool="slow", action="execute", title="run", command=command
        )
    )


async def test_a_call_that_takes_too_long_is_stopped_with_what_it_had_by_then() -> None:
    ended = anyio.Event()

    async def run(_: EchoArguments, context: ToolContext) -> ToolOutput:
        context.progress("half of it\n")
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    [result] = await results_of(limited(tool("slow", run)))
    assert ended.is_set()
    assert result.is_error
    assert result.content.startswith("slow was stopped after 0.1 s, the longest that")
    assert result.content.endswith("\nIts last output:\nhalf of it")
    assert result.metadata["summary"] == "timed out"


async def test_the_calls_beside_and_after_it_go_on() -> None:
    slow = replace(limited(hanging(anyio.Event(), "slow")), is_read_only=True)
    calls = (CALL, ToolCall("c2", "echo", '{"text": "a"}'), ToolCall("c3", "last", '{"text": "b"}'))
    results = await results_of(slow, echo(is_read_only=True), echo("last"), calls=calls)
    assert [result.call_id for result in results] == ["c1", "c2", "c3"]
    assert [result.content for result in results[1:]] == ["a", "b"]


async def test_the_time_of_a_question_does_not_count() -> None:
    async def run(arguments: EchoArguments, context: ToolContext) -> ToolOutput:
        await _ask(context, "one")
        await _ask(context, "two")
        return ToolOutput(arguments.text)

    [result] = await results_of(limited(tool("slow", run)))
    assert (result.is_error, result.content) == (False, "x")


async def test_the_time_before_and_after_a_question_counts_together() -> None:
    steps: list[str] = []

    async def run(_: EchoArguments, context: ToolContext) -> ToolOutput:
        await anyio.sleep(0.3 * SHORT_S)
        await _ask(context, "one")
        steps.append("asked")
        await anyio.sleep(0.8 * SHORT_S)
        steps.append("too late")
        raise AssertionError

    [result] = await results_of(limited(tool("slow", run)))
    assert (result.metadata["summary"], steps) == ("timed out", ["asked"])


async def test_questions_at_the_same_time_stop_the_clock_until_the_last() -> None:
    async def run(arguments: EchoArguments, context: ToolContext) -> ToolOutput:
        async with anyio.create_task_group() as group:
            # They are put one after another.
            for command in ("one", "two", "three"):
                group.start_soon(_ask, context, command)
        return ToolOutput(arguments.text)

    [result] = await results_of(limited(tool("slow", run)))
    assert (result.is_error, result.content) == (False, "x")


async def test_without_a_limit_a_call_takes_as_long_as_it_takes() -> None:
    async def run(arguments: EchoArguments, context: ToolContext) -> ToolOutput:
        await _ask(context, "one")
        return ToolOutput(arguments.text)

    [result] = await results_of(tool("slow", run))
    assert result.content == "x"
