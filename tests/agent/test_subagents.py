"""What a sub-agent does inside a call, and what is left of it however the call ends."""

import json
from dataclasses import replace

import anyio
import pytest

from crush_kernel.agent.events import (
    PermissionSettled,
    StepStarted,
    TextAdded,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
    TurnFinished,
)
from crush_kernel.agent.runningcall import STOPPED
from crush_kernel.agent.steps import Limits
from crush_kernel.agent.subagents import NEVER_HANDED_OVER
from crush_kernel.errors import (
    AuthenticationFailed,
    CostLimitReached,
    StepLimitReached,
    TokenLimitReached,
)
from crush_kernel.history.record import read_turn, write_turn
from crush_kernel.history.repair import INTERRUPTED
from crush_kernel.history.subagentmessages import MAX_RECORD_BYTES
from crush_kernel.history.subagentrecord import KEY, nested_calls
from crush_kernel.messages import Message, ToolResult, Usage, text_of
from crush_kernel.permissions.decision import Allow, Deny
from crush_kernel.permissions.gate import Answer, DenyAll, Gate
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.providers.base import Stop, TextDelta, UsageReport
from crush_kernel.tools.base import Delegation, ToolContext, ToolOutput
from tests.agent.subagent_bench import BIG, SMALL, bench, delegating
from tests.fakes.model import Item, calls, says
from tests.fakes.tools import EchoArguments, asking, echo, hanging, meeting, raising, tool

pytestmark = pytest.mark.anyio

TASK = calls(("p1", "delegate", '{"text": "look"}'))


def uses(tokens: int, text: str = "found") -> list[Item]:
    """A reply that has used so many tokens."""
    return [TextDelta(0, text), UsageReport(Usage(input_tokens=tokens)), Stop("end_turn")]


def calls_and_uses(tokens: int, *wanted: tuple[str, str, str]) -> list[Item]:
    *events, stop = calls(*wanted)
    return [*events, UsageReport(Usage(input_tokens=tokens)), stop]


# What it is


async def test_the_last_words_of_a_sub_agent_are_the_result_of_the_call() -> None:
    turn = bench(
        [TASK, says("done")],
        [calls(("c1", "echo", '{"text": "hi"}')), says("It is there.")],
        tools=(delegating(echo()),),
    )
    await turn.run()
    (result,) = turn.results()
    assert (result.content, result.is_error) == ("It is there.", False)
    assert result.metadata["summary"] == "1 call"


async def test_a_sub_agent_knows_its_task_and_nothing_of_the_conversation() -> None:
    turn = bench([TASK, says("done")], [says("ok")], tools=(delegating(echo()),))
    await turn.run("a secret wish")
    (request,) = turn.openings.models[0].requests
    assert request.system == "Help."
    assert [tool.name for tool in request.tools] == ["echo"]
    assert [text_of(message) for message in request.messages] == ["look"]


async def test_the_model_of_the_turn_reads_the_answer_and_nothing_else_of_it() -> None:
    turn = bench(
        [TASK, says("done")],
        [calls(("c1", "echo", '{"text": "nested words"}')), says("ok")],
        tools=(delegating(echo()),),
    )
    await turn.run()
    assert "nested words" not in repr([m.parts[0] for m in turn.agent.conversation.running[:2]])
    sent = turn.model.requests[-1].messages[-1].parts[0]
    assert getattr(sent, "content", "") == "ok"


async def test_a_sub_agent_gets_the_model_that_it_is_meant_to_have() -> None:
    turn = bench([TASK, says("done")], [says("ok")], tools=(delegating(echo(), model="small"),))
    await turn.run()
    assert (turn.openings.asked, turn.openings.open) == (["small"], 0)
    assert turn.record().model == SMALL.label


async def test_a_model_that_cannot_be_had_is_replaced_and_that_is_said() -> None:
    turn = bench(
        [TASK, says("done")], [says("ok")], tools=(delegating(echo(), model="unknown/one"),)
    )
    await turn.run()
    assert turn.openings.asked == ["large"]
    (result,) = turn.results()
    assert result.content == (
        "ok\n\n[The model 'unknown/one' cannot be used here, so fake/big did it.]"
    )


@pytest.mark.parametrize("name", sorted(NEVER_HANDED_OVER))
async def test_tools_that_are_the_agents_own_are_never_handed_over(name: str) -> None:
    turn = bench(
        [TASK, says("done")],
        [calls(("c1", name, '{"text": "hi"}')), says("ok")],
        tools=(delegating(echo(), echo(name)),),
    )
    await turn.run()
    assert [tool.name for tool in turn.openings.models[0].requests[0].tools] == ["echo"]
    (nested,) = nested_calls(turn.record())
    assert nested.result is not None
    assert nested.result.is_error


async def test_a_sub_agent_starts_no_further_one_whatever_its_tools_try() -> None:
    turn = bench(
        [TASK, says("done")],
        [calls(("c1", "inner", '{"text": "hi"}')), says("ok")],
        tools=(delegating(delegating(echo(), name="inner")),),
    )
    await turn.run()
    (nested,) = nested_calls(turn.record())
    assert nested.result is not None
    assert "cannot be started from here" in nested.result.content
    assert len(turn.openings.asked) == 1


async def test_one_call_starts_one_sub_agent() -> None:
    async def run(arguments: EchoArguments, context: ToolContext) -> ToolOutput:
        task = Delegation(agent="helper", prompt=arguments.text, system="", tools=())
        await context.delegate(task)
        await context.delegate(task)
        raise AssertionError

    turn = bench([TASK, says("done")], [says("ok")], tools=(tool("delegate", run),))
    await turn.run()
    assert turn.results()[0].content == "One call can start one sub-agent only."


# What is shown


async def test_what_it_does_is_the_progress_of_its_call() -> None:
    turn = bench(
        [TASK, says("done")],
        [
            calls(("c1", "echo", '{"text": "one"}'), ("c2", "echo", '{"text": "two"}')),
            says("nested words"),
        ],
        tools=(delegating(echo()),),
    )
    await turn.run()
    tails = [event for event in turn.told(ToolProgressed) if isinstance(event, ToolProgressed)]
    assert {event.call_id for event in tails} == {"p1"}
    assert tails[-1].tail == "echo one · ok\necho two · ok"
    assert [e.call_id for e in turn.events if isinstance(e, ToolStarted)] == ["p1"]
    assert [e.result.call_id for e in turn.events if isinstance(e, ToolFinished)] == ["p1"]
    assert len(turn.told(StepStarted)) == 2
    assert "nested words" not in [e.text for e in turn.events if isinstance(e, TextAdded)]


# Permission


async def test_a_question_says_on_whose_behalf_it_is_and_which_call_it_is_about() -> None:
    turn = bench(
        [TASK, says("done")],
        [calls(("c1", "risky", '{"text": "rm"}')), says("ok")],
        tools=(delegating(asking()),),
        answers=[Answer("once")],
    )
    await turn.run()
    (request,) = turn.asker.asked
    assert (request.on_behalf, request.call_id, request.tool) == (
        "agent: helper",
        "p1/c1",
        "risky",
    )
    settled = [e for e in turn.events if isinstance(e, PermissionSettled)]
    assert [e.request.call_id for e in settled] == ["p1/c1"]


async def test_a_denial_inside_is_a_result_that_the_sub_agent_reads() -> None:
    turn = bench(
        [TASK, says("done")],
        [calls(("c1", "risky", '{"text": "rm"}')), says("It may not.")],
        tools=(delegating(asking()),),
        answers=[Answer("deny", "not today")],
    )
    await turn.run()
    (nested,) = nested_calls(turn.record())
    assert nested.result is not None
    assert "not today" in nested.result.content
    assert nested.result.metadata["permission"] == "denied"
    (result,) = turn.results()
    assert (result.content, result.is_error) == ("It may not.", False)
    assert "permission" not in result.metadata


async def test_where_nobody_can_answer_a_sub_agent_is_refused_at_once() -> None:
    turn = bench(
        [TASK, says("done")],
        [calls(("c1", "risky", '{"text": "rm"}')), says("It may not.")],
        tools=(delegating(asking()),),
    )
    await turn.run(asker=DenyAll())
    (nested,) = nested_calls(turn.record())
    assert nested.result is not None
    assert "nobody can be asked" in nested.result.content
    assert turn.results()[0].content == "It may not."


async def test_bounds_refuse_what_the_session_grants_and_allow_without_a_question() -> None:
    def bounds(request: PermissionRequest) -> Allow | Deny | None:
        if request.command == "rm":
            return Deny("out of bounds", "bounds")
        return Allow("within bounds") if request.command == "ls" else None

    risky = asking()
    turn = bench(
        [
            calls(("a1", "risky", '{"text": "rm"}')),
            TASK,
            says("done"),
        ],
        [
            calls(("c1", "risky", '{"text": "rm"}')),
            calls(("c2", "risky", '{"text": "ls"}')),
            says("ok"),
        ],
        tools=(risky, delegating(risky, bounds=bounds)),
        answers=[Answer("session")],
    )
    await turn.run()
    assert [request.command for request in turn.asker.asked] == ["rm"]
    rules = [e.rule for e in turn.events if isinstance(e, PermissionSettled)]
    assert rules == ["allowed for the session", "bounds", "within bounds"]


async def test_yolo_mode_does_not_widen_bounds() -> None:
    turn = bench(
        [TASK, says("done")],
        [calls(("c1", "risky", '{"text": "rm"}')), says("ok")],
        tools=(delegating(asking(), bounds=lambda _: Deny("out of bounds", "bounds")),),
        gate=Gate("yolo"),
    )
    await turn.run()
    assert [e.rule for e in turn.events if isinstance(e, PermissionSettled)] == ["bounds"]


# What it costs


async def test_what_a_sub_agent_uses_counts_at_its_own_price() -> None:
    turn = bench(
        [calls_and_uses(1_000_000, ("p1", "delegate", '{"text": "look"}')), uses(1_000_000)],
        [calls_and_uses(200, ("c1", "echo", '{"text": "hi"}')), uses(999_800)],
        tools=(delegating(echo()),),
    )
    await turn.run()
    finished = turn.events[-1]
    assert isinstance(finished, TurnFinished)
    assert finished.usage.input_tokens == 3_000_000
    assert finished.cost_usd == pytest.approx(21.0)
    spent = turn.agent.conversation.spent_by_model
    assert spent[BIG.label].input_tokens == 2_000_000
    assert spent[SMALL.label].input_tokens == 1_000_000
    assert turn.record().usage == {SMALL.label: Usage(input_tokens=1_000_000)}


@pytest.mark.parametrize(
    "last",
    [
        pytest.param([TextDelta(0, "half"), UsageReport(Usage(7)), None], id="in a reply"),
        pytest.param([UsageReport(Usage(7)), None], id="before the first word"),
    ],
)
@pytest.mark.parametrize("is_cancelled", [False, True], ids=["failed", "cancelled"])
async def test_what_a_sub_agent_used_counts_however_it_ended(
    last: list[Item | None], *, is_cancelled: bool
) -> None:
    reached = anyio.Event()
    end: Item = reached if is_cancelled else AuthenticationFailed("No.", provider="fake")
    turn = bench(
        [TASK, uses(0, "done")],
        [
            calls_and_uses(5, ("c1", "echo", '{"text": "hi"}')),
            [end if item is None else item for item in last],
        ],
        tools=(delegating(echo()),),
    )
    async with anyio.create_task_group() as group:
        group.start_soon(turn.run)
        if is_cancelled:
            await reached.wait()
            group.cancel_scope.cancel()
    assert turn.agent.conversation.spent_by_model[SMALL.label].input_tokens == 12
    assert turn.record().usage[SMALL.label].input_tokens == 12


async def test_usage_is_the_same_when_the_turn_is_read_again() -> None:
    turn = bench(
        [TASK, says("done")],
        [calls_and_uses(5, ("c1", "echo", '{"text": "hi"}')), uses(7)],
        tools=(delegating(echo()),),
    )
    await turn.run()
    kept = turn.agent.conversation.turn_in("a")
    assert kept is not None
    assert kept.spent == turn.agent.conversation.spent_by_model
    assert kept.usage.input_tokens >= 12


# Limits


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        pytest.param(Limits(cost_usd=1.0), CostLimitReached, id="cost"),
        pytest.param(Limits(tokens=1_000_000), TokenLimitReached, id="tokens"),
        pytest.param(Limits(steps=3), StepLimitReached, id="requests"),
    ],
)
async def test_limits_hold_for_the_turn_with_its_sub_agents(
    limits: Limits, error: type[Exception]
) -> None:
    again = calls_and_uses(500_000, ("c1", "echo", '{"text": "hi"}'))
    turn = bench([TASK, says("done")], [again], tools=(delegating(echo()),), limits=limits)
    with pytest.raises(error):
        await turn.run()
    assert len(turn.openings.models[0].requests) == 2
    assert len(turn.model.requests) == 1
    (result,) = turn.results()
    assert result.content.startswith("The helper did not finish: The turn was stopped")
    assert "- echo hi · ok" in result.content
    assert turn.record().end == "error"


async def test_sub_agents_that_run_together_share_what_is_left() -> None:
    together = calls(*((f"p{n}", "delegate", '{"text": "look"}') for n in range(3)))
    again = calls_and_uses(400_000, ("c1", "meet", '{"text": "hi"}'))
    turn = bench(
        [together, says("done")],
        [again],
        [again],
        [again],
        tools=(delegating(meeting(3)),),
        limits=Limits(tokens=1_000_000),
    )
    with pytest.raises(TokenLimitReached):
        await turn.run()
    assert [len(model.requests) for model in turn.openings.models] == [1, 1, 1]
    assert len(turn.results()) == 3


# Together


async def test_sub_agents_of_one_reply_run_together_and_do_not_mix() -> None:
    together = calls(("p1", "delegate", '{"text": "a"}'), ("p2", "delegate", '{"text": "b"}'))
    turn = bench(
        [together, says("done")],
        [calls(("c1", "meet", '{"text": "one"}')), says("first")],
        [calls(("c1", "meet", '{"text": "two"}')), says("second")],
        tools=(delegating(meeting(2)),),
    )
    await turn.run()
    assert {result.content for result in turn.results()} == {"first", "second"}
    tails = {(e.call_id, e.tail) for e in turn.events if isinstance(e, ToolProgressed)}
    assert len({call_id for call_id, _ in tails}) == 2
    assert all(("one" in tail) != ("two" in tail) for _, tail in tails)


async def test_two_calls_of_one_id_keep_what_each_sub_agent_did() -> None:
    together = calls(("p", "delegate", '{"text": "a"}'), ("p", "delegate", '{"text": "b"}'))
    turn = bench(
        [together, says("done")],
        [calls(("c1", "meet", '{"text": "one"}')), says("first")],
        [calls(("c1", "meet", '{"text": "two"}')), says("second")],
        tools=(delegating(meeting(2)),),
    )
    await turn.run()
    results = turn.results()
    assert {result.content for result in results} == {"first", "second"}
    assert all(KEY in result.metadata for result in results)


# Endings


async def test_cancelling_the_turn_keeps_what_the_sub_agent_did() -> None:
    started = anyio.Event()
    turn = bench(
        [TASK, says("done")],
        [
            calls(("c1", "echo", '{"text": "hi"}')),
            calls(("c2", "hang", '{"text": "x"}')),
        ],
        tools=(delegating(echo(), hanging(started)),),
    )
    async with anyio.create_task_group() as group:
        group.start_soon(turn.run)
        await started.wait()
        group.cancel_scope.cancel()
    (result,) = turn.results()
    assert result.content.startswith(INTERRUPTED)
    assert "echo hi · ok" in result.content
    record = turn.record()
    assert record.end == "interrupted"
    answers = [each.result.content for each in nested_calls(record) if each.result]
    assert answers == ["hi", INTERRUPTED]
    assert turn.openings.open == 0


async def test_stopping_the_call_stops_its_sub_agent_and_the_turn_goes_on() -> None:
    started = anyio.Event()
    turn = bench(
        [TASK, says("then without")],
        [calls(("c1", "hang", '{"text": "x"}'))],
        tools=(delegating(hanging(started)),),
    )
    async with anyio.create_task_group() as group:
        group.start_soon(turn.run)
        await started.wait()
        turn.agent.stop_tool("p1")
    (result,) = turn.results()
    assert result.content.startswith(STOPPED)
    assert turn.record().end == "interrupted"
    assert text_of(turn.agent.conversation.running[-1]) == "then without"


async def test_one_call_of_a_sub_agent_can_be_stopped_by_its_full_id() -> None:
    started = anyio.Event()
    turn = bench(
        [TASK, says("done")],
        [calls(("c1", "hang", '{"text": "x"}')), says("It hung.")],
        tools=(delegating(hanging(started)),),
    )
    async with anyio.create_task_group() as group:
        group.start_soon(turn.run)
        await started.wait()
        turn.agent.stop_tool("c1")
        turn.agent.stop_tool("p1/c1")
    (nested,) = nested_calls(turn.record())
    assert nested.result is not None
    assert nested.result.content.startswith(STOPPED)
    assert turn.results()[0].content == "It hung."


async def test_a_failure_of_the_provider_is_a_result_with_what_was_found() -> None:
    turn = bench(
        [TASK, says("done")],
        [
            [
                *calls(("c1", "echo", '{"text": "hi"}'))[:2],
                TextDelta(1, "I look."),
                Stop("tool_use"),
            ],
            [AuthenticationFailed("The provider refused the key (401).", provider="fake")],
        ],
        tools=(delegating(echo()),),
    )
    await turn.run()
    (result,) = turn.results()
    assert result.is_error
    assert result.content.startswith(
        "The helper did not finish: The provider refused the key (401)."
    )
    assert "I look." in result.content
    assert turn.record().end == "error"
    assert text_of(turn.agent.conversation.running[-1]) == "done"


async def test_a_sub_agent_without_words_is_an_error_that_says_so() -> None:
    turn = bench([TASK, says("done")], [[Stop("end_turn")]], tools=(delegating(echo()),))
    await turn.run()
    (result,) = turn.results()
    assert result.is_error
    assert result.content == (
        "The helper did not finish: The model ended its turn without a word, twice."
    )


async def test_a_sub_agent_that_goes_in_circles_is_stopped() -> None:
    turn = bench(
        [TASK, says("done")],
        [calls(("c1", "broken", '{"text": "x"}'))],
        tools=(delegating(raising(ValueError("no"), "broken")),),
    )
    await turn.run()
    (result,) = turn.results()
    assert result.is_error
    assert "repeated the same calls" in result.content


async def test_a_fault_of_ours_in_a_sub_agent_ends_neither_the_turn_nor_its_record() -> None:
    turn = bench([TASK, says("done")], [], tools=(delegating(echo()),))
    await turn.run()
    (result,) = turn.results()
    assert (result.is_error, turn.record().end) == (True, "error")
    assert "IndexError" in result.content


# The record


async def test_the_record_survives_the_notebook_and_keeps_what_a_later_version_adds() -> None:
    turn = bench(
        [TASK, says("done")],
        [calls(("c1", "echo", '{"text": "hi"}')), says("ok")],
        tools=(delegating(echo()),),
    )
    await turn.run()
    kept = turn.agent.conversation.turn_in("a")
    assert kept is not None
    (result,) = turn.results()
    facts = json.loads(json.dumps(dict(result.metadata)))
    facts[KEY]["later"] = {"field": [1]}
    facts.pop("volatile")
    message = Message("tool", (ToolResult("p1", "ok", metadata=facts),))
    written = json.loads(json.dumps(dict(write_turn(replace(kept, messages=(message,))))))
    read = read_turn(written, cell_id="a")
    assert read.messages == (message,)
    assert turn.record().name == "helper"


async def test_a_record_is_bounded_whatever_the_sub_agent_read() -> None:
    page = "x\n" * 40_000

    async def shout(_: EchoArguments, __: ToolContext) -> ToolOutput:
        return ToolOutput(page, summary="long")

    many = [calls((f"c{n}", "shout", json.dumps({"text": f"{n}" * 3_000}))) for n in range(60)]
    turn = bench(
        [TASK, says("done")],
        [*many, says("end " * 3_000)],
        tools=(delegating(tool("shout", shout)),),
    )
    await turn.run()
    record = turn.results()[0].metadata[KEY]
    assert len(json.dumps(record)) < MAX_RECORD_BYTES + 3_000
    told = turn.record()
    assert text_of(told.messages[0]) == "look"
    assert text_of(told.messages[-1]).endswith("end ")
    assert "not kept" in text_of(told.messages[1])
    assert turn.results()[0].content.count("end") > 2_000
