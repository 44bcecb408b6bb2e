"""What a turn does, from its prompt to its end."""

import json
from dataclasses import dataclass, field, replace

import anyio
import pytest

from crush_kernel.agent.agent import Agent, Watcher
from crush_kernel.agent.events import (
    Event,
    PermissionSettled,
    ReplyDropped,
    Retrying,
    TextAdded,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from crush_kernel.agent.steps import CUT_OFF, Limits
from crush_kernel.errors import (
    AuthenticationFailed,
    ConnectionLost,
    EmptyReply,
    LoopDetected,
    OutputLimitReached,
    Overloaded,
    RateLimited,
    ReplyRefused,
    StepLimitReached,
    ToolError,
)
from crush_kernel.history.conversation import CellRun
from crush_kernel.history.repair import INTERRUPTED, repair
from crush_kernel.messages import Message, Text, ToolCall, ToolResult, text_of
from crush_kernel.permissions.gate import Answer, Asker, Gate
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.prompt.system import PromptPart, SystemPrompt
from crush_kernel.providers.base import TextDelta
from crush_kernel.tools.base import AnyTool, ToolContext, ToolOutput
from tests.fakes.model import FakeModel, Item, calls, says
from tests.fakes.tools import EchoArguments, asking, echo, hanging, meeting, raising, tool

pytestmark = pytest.mark.anyio


@dataclass
class ScriptedAsker:
    answers: list[Answer]
    asked: list[PermissionRequest] = field(default_factory=list[PermissionRequest])

    async def ask(self, request: PermissionRequest) -> Answer:
        self.asked.append(request)
        return self.answers.pop(0)


@dataclass
class Bench:
    """An agent, its model, and what it told."""

    agent: Agent
    model: FakeModel
    asker: Asker
    events: list[Event] = field(default_factory=list[Event])

    async def run(self, text: str = "go", *, cell_id: str = "") -> None:
        with anyio.fail_after(5):
            self.agent.conversation.begin(CellRun(cell_id))
            await self.agent.prompt(
                Message("user", (Text(text),)),
                model=self.model,
                watcher=Watcher(self.events.append, self.asker),
            )

    def results(self) -> list[ToolResult]:
        return [
            part
            for message in self.agent.conversation.messages
            for part in message.parts
            if isinstance(part, ToolResult)
        ]

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


def bench(
    *replies: list[Item],
    tools: tuple[AnyTool, ...] = (),
    answers: list[Answer] | None = None,
    limits: Limits | None = None,
) -> Bench:
    async def system_prompt() -> SystemPrompt:
        return SystemPrompt((PromptPart("instructions", "be good"),))

    agent = Agent(tools=tools or (echo(),), gate=Gate(), system_prompt=system_prompt, limits=limits)
    return Bench(agent, FakeModel(list(replies)), ScriptedAsker(answers or []))


async def test_a_turn_ends_when_the_model_calls_no_tool() -> None:
    turn = bench(calls(("c1", "echo", '{"text": "hi"}')), says("done"))
    await turn.run()
    roles = [message.role for message in turn.agent.conversation.messages]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert [result.content for result in turn.results()] == ["hi"]


async def test_the_model_reads_system_prompt_tools_and_the_turns_before() -> None:
    turn = bench(says("one"), says("two"))
    await turn.run("first")
    await turn.run("second")
    request = turn.model.requests[-1]
    assert request.system == "be good"
    assert [tool.name for tool in request.tools] == ["echo"]
    assert [text_of(message) for message in request.messages] == ["first", "one", "second"]


async def test_running_a_cell_again_replaces_its_turn() -> None:
    turn = bench(says("one"), says("two"))
    await turn.run("first", cell_id="a")
    await turn.run("second", cell_id="a")
    texts = [text_of(message) for message in turn.agent.conversation.messages]
    assert texts == ["second", "two"]


async def test_the_last_event_of_a_turn_says_what_it_took() -> None:
    turn = bench(calls(("c1", "echo", '{"text": "hi"}')), says("done"))
    await turn.run()
    finished = turn.events[-1]
    assert isinstance(finished, TurnFinished)
    assert (finished.end, finished.steps, finished.tool_calls) == ("end_turn", 2, 1)
    # The reply with the call said nothing of what it used.
    assert finished.usage.is_estimated
    assert finished.usage.output_tokens > 2


async def test_read_only_calls_of_one_reply_run_together() -> None:
    wanted = [(f"c{n}", "meet", f'{{"text": "{n}"}}') for n in range(3)]
    turn = bench(calls(*wanted), says("done"), tools=(meeting(3),))
    await turn.run()
    assert [result.content for result in turn.results()] == ["0", "1", "2"]


async def test_other_calls_run_one_after_another() -> None:
    wanted = [(f"c{n}", "echo", f'{{"text": "{n}"}}') for n in range(3)]
    turn = bench(calls(*wanted), says("done"))
    await turn.run()
    order = [type(event) for event in turn.events if isinstance(event, (ToolStarted, ToolFinished))]
    assert order == [ToolStarted, ToolFinished] * 3


@pytest.mark.parametrize(
    ("name", "arguments", "reads"),
    [
        pytest.param("nope", "{}", "There is no tool 'nope'", id="unknown tool"),
        pytest.param("echo", "", "text: Field required", id="empty arguments"),
        pytest.param("echo", '{"text": "a', "not valid JSON", id="cut-off JSON"),
        pytest.param("echo", "[1]", "are a list and not an object", id="not an object"),
        pytest.param("echo", '{"text": "a", "x": 1}', "no parameter 'x'", id="extra argument"),
        pytest.param("echo", '{"text": {}}', "text: Input should be", id="wrong type"),
        pytest.param("echo", "[" * 100_000, "not valid JSON", id="hostile nesting"),
    ],
)
async def test_a_bad_call_is_answered_with_what_is_wrong(
    name: str, arguments: str, reads: str
) -> None:
    turn = bench(calls(("c1", name, arguments)), says("done"))
    await turn.run()
    (result,) = turn.results()
    assert result.is_error
    assert reads in result.content


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param("n" * 1_000_000, "{}", id="the name"),
        pytest.param("echo", f'{{"{"k" * 1_000_000}": 1}}', id="the name of an argument"),
        pytest.param("broken", '{"text": "x"}', id="what the tool raises"),
    ],
)
async def test_what_is_wrong_with_a_call_is_said_in_short(name: str, arguments: str) -> None:
    tools = (echo(), raising(ValueError("v" * 1_000_000)))
    turn = bench(calls(("c1", name, arguments)), says("ok"), tools=tools)
    await turn.run()
    [result] = turn.results()
    assert result.is_error
    assert len(result.content) < 3000


async def test_a_call_that_cannot_be_described_is_run_all_the_same() -> None:
    def describe(_: EchoArguments) -> str:
        raise UnicodeError("no such name")

    shy = replace(echo(), describe=describe)
    turn = bench(calls(("c1", "echo", '{"text": "hi"}')), says("ok"), tools=(shy,))
    await turn.run()
    assert [result.content for result in turn.results()] == ["hi"]


async def test_raw_line_breaks_in_arguments_are_let_pass() -> None:
    turn = bench(calls(("c1", "echo", '{"text": "a\nb"}')), says("done"))
    await turn.run()
    assert turn.results()[0].content == "a\nb"


@pytest.mark.parametrize(
    ("error", "reads"),
    [
        pytest.param(ToolError("no such file"), "no such file", id="tool error"),
        pytest.param(OSError("disk on fire"), "disk on fire", id="anything else"),
    ],
)
async def test_what_a_tool_raises_goes_to_the_model_and_the_turn_goes_on(
    error: Exception, reads: str
) -> None:
    both = calls(("c1", "broken", '{"text": "x"}'), ("c2", "echo", '{"text": "y"}'))
    turn = bench(both, says("done"), tools=(raising(error), echo()))
    await turn.run()
    bad, good = turn.results()
    assert bad.is_error
    assert reads in bad.content
    assert (good.content, good.is_error) == ("y", False)


async def test_base64_that_a_tool_gives_stays_text_and_is_left_out_where_it_is_long() -> None:
    short = "sig=data:image/webp;base64,UklGRgAAAABXRUJQ"
    text = f"{short}\n{short}{'Q0RFRkdI' * 200}"
    turn = bench(calls(("c1", "echo", json.dumps({"text": text}))), says("done"))
    await turn.run()
    (result,) = turn.results()
    assert result.media == ()
    assert result.content == f"{short}\n{short}[… 1,600 characters of Base64 left out …]"


async def test_a_denial_reaches_the_model_with_its_reason_and_the_turn_goes_on() -> None:
    turn = bench(
        calls(("c1", "risky", '{"text": "rm"}')),
        says("all right"),
        tools=(asking(),),
        answers=[Answer("deny", "use a branch instead")],
    )
    await turn.run()
    (result,) = turn.results()
    assert result.is_error
    assert "use a branch instead" in result.content
    assert [text_of(m) for m in turn.agent.conversation.messages][-1] == "all right"
    (settled,) = turn.told(PermissionSettled)
    assert isinstance(settled, PermissionSettled)
    assert (settled.is_allowed, settled.reason) == (False, "use a branch instead")


async def test_what_is_allowed_for_the_session_is_not_asked_again() -> None:
    again = calls(("c1", "risky", '{"text": "ls"}'))
    turn = bench(again, again, says("done"), tools=(asking(),), answers=[Answer("session")])
    await turn.run()
    assert [result.content for result in turn.results()] == ["ran ls", "ran ls"]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Overloaded("overloaded", retry_after_s=0.0), id="overloaded"),
        pytest.param(RateLimited("slow down", retry_after_s=0.0), id="rate limit"),
        pytest.param(ConnectionLost("cut", retry_after_s=0.0), id="cut off"),
    ],
)
async def test_a_failed_request_is_made_again_and_its_fragment_leaves_no_trace(
    error: Overloaded,
) -> None:
    turn = bench([TextDelta(0, "Let me"), error], says("Let me check."))
    await turn.run()
    assert text_of(turn.agent.conversation.messages[-1]) == "Let me check."
    kinds = [type(event) for event in turn.events if not isinstance(event, TextAdded)]
    assert kinds.index(ReplyDropped) < kinds.index(Retrying)


async def test_retries_are_bounded_and_the_error_reaches_the_user() -> None:
    turn = bench([Overloaded("overloaded", retry_after_s=0.0)])
    with pytest.raises(Overloaded):
        await turn.run()
    assert len(turn.model.requests) == 5


async def test_what_cannot_succeed_is_not_tried_again() -> None:
    turn = bench([AuthenticationFailed("bad key")])
    with pytest.raises(AuthenticationFailed):
        await turn.run()
    assert len(turn.model.requests) == 1


async def test_a_call_cut_off_at_the_output_limit_is_not_run() -> None:
    cut = calls(("c1", "echo", '{"text": "# Title'), stop="max_tokens")
    turn = bench(cut, says("smaller"))
    await turn.run()
    assert turn.told(ToolStarted) == []
    assert [result.content for result in turn.results()] == [CUT_OFF]


async def test_cut_off_replies_in_a_row_are_bounded() -> None:
    turn = bench(calls(("c1", "echo", '{"text": "#'), stop="max_tokens"))
    with pytest.raises(OutputLimitReached):
        await turn.run()
    assert len(turn.model.requests) == 3


async def test_a_cut_off_text_goes_on_in_the_same_turn() -> None:
    turn = bench(says("one ", stop="max_tokens"), says("two"))
    await turn.run()
    assert [text_of(m) for m in turn.agent.conversation.messages][1::2] == ["one ", "two"]


@pytest.mark.parametrize(
    "arguments",
    [pytest.param("", id="empty input"), pytest.param('{"text": 3, "x": 1}', id="bad input")],
)
async def test_the_same_failing_call_is_stopped(arguments: str) -> None:
    turn = bench(calls(("c1", "echo", arguments)))
    with pytest.raises(LoopDetected):
        await turn.run()
    assert len(turn.model.requests) == 3


async def test_the_same_call_with_the_same_result_is_reminded_then_stopped() -> None:
    turn = bench(calls(("c1", "echo", '{"text": "again"}')))
    with pytest.raises(LoopDetected):
        await turn.run()
    assert len(turn.model.requests) == 6
    assert any("Do not repeat" in text_of(m) for m in turn.agent.conversation.messages)


async def test_alternating_calls_to_no_effect_are_stopped_too() -> None:
    a, b = (calls(("c1", "echo", f'{{"text": "{word}"}}')) for word in "ab")
    turn = bench(*[a, b] * 12)
    with pytest.raises(LoopDetected):
        await turn.run()


async def test_a_runaway_turn_stops_at_the_step_limit() -> None:
    endless = [calls(("c1", "echo", f'{{"text": "{n}"}}')) for n in range(10)]
    turn = bench(*endless, limits=Limits(steps=7))
    with pytest.raises(StepLimitReached):
        await turn.run()
    assert len(turn.model.requests) == 7


async def test_an_empty_reply_is_asked_for_once_more() -> None:
    turn = bench(says("  "), says("here"))
    await turn.run()
    assert [text_of(m) for m in turn.agent.conversation.messages] == ["go", "here"]


async def test_two_empty_replies_end_the_turn() -> None:
    turn = bench(says(""))
    with pytest.raises(EmptyReply):
        await turn.run()


async def test_a_refusal_by_the_filter_ends_the_turn_with_its_reason() -> None:
    turn = bench(says("I", stop="refused"))
    with pytest.raises(ReplyRefused):
        await turn.run()


async def test_cancelling_while_streaming_keeps_the_partial_reply() -> None:
    reached = anyio.Event()
    turn = bench([TextDelta(0, "I was just"), reached])
    await cancelled_when(reached, turn)
    last = turn.agent.conversation.messages[-1]
    assert (text_of(last), last.stop) == ("I was just", "interrupted")
    finished = turn.events[-1]
    assert isinstance(finished, TurnFinished)
    assert finished.end == "interrupted"


async def test_cancelling_in_a_tool_answers_every_open_call() -> None:
    started = anyio.Event()
    wanted = calls(
        ("c1", "echo", '{"text": "a"}'),
        ("c2", "hang", '{"text": "b"}'),
        ("c3", "echo", '{"text": "c"}'),
    )
    turn = bench(wanted, tools=(echo(), hanging(started)))
    await cancelled_when(started, turn)
    assert [result.content for result in turn.results()] == ["a", INTERRUPTED, INTERRUPTED]


async def test_cancelling_while_a_call_is_written_leaves_no_open_call() -> None:
    reached = anyio.Event()
    writing = calls(("c1", "echo", '{"te'))[:-1]
    turn = bench([*writing, reached])
    await cancelled_when(reached, turn)
    messages = turn.agent.conversation.messages
    assert [result.content for result in turn.results()] == [INTERRUPTED]
    assert repair(messages)[1].parts == (ToolCall("c1", "echo", "{}"),)


async def test_stopping_one_tool_lets_the_turn_go_on() -> None:
    started = anyio.Event()
    turn = bench(calls(("c1", "hang", '{"text": "b"}')), says("done"), tools=(hanging(started),))
    async with anyio.create_task_group() as group:
        group.start_soon(turn.run)
        with anyio.fail_after(5):
            await started.wait()
        turn.agent.stop_tool("c1")
    assert "user stopped this call" in turn.results()[0].content
    assert text_of(turn.agent.conversation.messages[-1]) == "done"


async def cancelled_when(event: anyio.Event, turn: Bench) -> None:
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(turn.run)
            await event.wait()
            group.cancel_scope.cancel()


async def test_what_a_stopped_call_has_printed_is_not_lost() -> None:
    started = anyio.Event()

    async def run(_: EchoArguments, context: ToolContext) -> ToolOutput:
        context.progress("half of it\n")
        started.set()
        await anyio.sleep_forever()
        raise AssertionError

    turn = bench(calls(("c1", "slow", '{"text": "b"}')), tools=(tool("slow", run),))
    await cancelled_when(started, turn)
    assert turn.results()[0].content == f"{INTERRUPTED}\nIts last output:\nhalf of it"
