"""What hooks do to the calls of a turn, and of the sub-agents in it."""

import json
from typing import Any

import anyio
import pytest

from crush_kernel.agent.callhooks import HALTED
from crush_kernel.agent.events import ToolRewritten, TurnFinished
from crush_kernel.config.settings import PermissionMode
from crush_kernel.history.repair import repair
from crush_kernel.hooks.outcome import Outcome
from crush_kernel.hooks.payload import ToolUse
from crush_kernel.messages import ToolCall, text_of
from crush_kernel.permissions.gate import Answer, Gate
from crush_kernel.tools.base import Arguments, Tool, ToolContext, ToolOutput, erase
from tests.agent.subagent_bench import delegating
from tests.fakes.model import calls, says
from tests.fakes.tools import asking, echo, meeting, raising
from tests.hooks.hooked_bench import Bench, Said, ScriptedHooks, hooked

pytestmark = pytest.mark.anyio


def risky(text: str = "a", call_id: str = "c1") -> tuple[str, str, str]:
    return call_id, "risky", json.dumps({"text": text})


def one_call(
    said: Said, *, answers: list[Answer] | None = None, mode: PermissionMode = "default"
) -> Bench:
    """Return a turn with one call that asks for permission."""
    hooks = ScriptedHooks(pre={"risky": said})
    replies = [calls(risky()), says("done")]
    return hooked(hooks, replies, asking(), answers=answers, gate=Gate(mode))


async def test_a_silent_hook_leaves_a_call_as_it_is() -> None:
    turn = one_call(Outcome(), answers=[Answer("once")])
    await turn.run()
    assert turn.results[0].content == "ran a"
    assert turn.hook_facts() == {
        "hook_count": 1,
        "decision": "none",
        "hooks": [{"name": "h.sh", "decision": "none"}],
    }
    assert turn.told == []


async def test_without_hooks_a_result_says_nothing_of_any() -> None:
    turn = hooked(ScriptedHooks(), [calls(risky()), says("done")], asking(), gate=Gate("yolo"))
    await turn.run()
    assert "hook" not in turn.results[0].metadata
    assert turn.hooks.seen == []


async def test_a_denied_call_is_not_run_and_the_turn_goes_on() -> None:
    turn = one_call(Outcome("deny", "not on Fridays"), mode="yolo")
    await turn.run()
    (result,) = turn.results
    assert result.is_error
    assert result.content.startswith("Blocked by a hook of the user's: not on Fridays")
    assert turn.told == ['Hook "h.sh" denied risky: not on Fridays.']
    assert turn.model.requests[1:], "the model has read it"
    (settled,) = turn.settled
    assert (settled.is_allowed, settled.by, settled.rule) == (False, "hook", "hook h.sh")
    assert result.metadata["permission_by"] == "hook"


async def test_an_allowed_call_asks_nobody_this_once() -> None:
    async def say(use: ToolUse) -> Outcome:
        return Outcome("allow" if use.input["text"] == "a" else None)

    hooks = ScriptedHooks(pre={"risky": say})
    replies = [calls(risky(), risky("b", "c2")), says("done")]
    turn = hooked(hooks, replies, asking(), answers=[Answer("deny", "no")])
    await turn.run()
    assert [result.content.split(":")[0] for result in turn.results] == [
        "ran a",
        "Permission denied",
    ]
    assert [request.command for request in turn.asker.asked] == ["b"]
    assert [(each.is_allowed, each.by) for each in turn.settled] == [
        (True, "hook"),
        (False, "person"),
    ]


async def test_a_hook_can_have_a_person_asked_whatever_the_mode_and_says_why() -> None:
    turn = one_call(Outcome("ask", "it is Friday"), answers=[Answer("once")], mode="yolo")
    await turn.run()
    (request,) = turn.asker.asked
    assert request.notes == ("hook h.sh wants you to decide: it is Friday",)
    assert turn.results[0].content == "ran a"


async def test_plan_mode_is_not_opened_by_a_hook() -> None:
    turn = one_call(Outcome("allow"), mode="plan")
    await turn.run()
    assert turn.results[0].is_error
    assert turn.settled[0].by == "mode"


async def test_a_rewritten_call_is_made_shown_and_recorded_with_both_inputs() -> None:
    turn = one_call(Outcome("allow", patch={"text": "b"}))
    await turn.run()
    assert turn.results[0].content == "ran b"
    facts = turn.hook_facts()
    assert (facts["original_input"], facts["effective_input"]) == ({"text": "a"}, {"text": "b"})
    assert [e.summary for e in turn.events if isinstance(e, ToolRewritten)] == ["b"]
    (settled,) = turn.settled
    assert settled.original_input == '{"text": "a"}'
    assert settled.effective_input == '{"text": "b"}'
    stored = [
        part
        for message in turn.agent.conversation.running
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    assert [call.input for call in stored] == ['{"text": "a"}']


async def test_permission_is_asked_for_what_will_be_done_not_for_what_was_wanted() -> None:
    turn = one_call(Outcome(patch={"text": "b"}), answers=[Answer("once")])
    await turn.run()
    assert [request.command for request in turn.asker.asked] == ["b"]


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        pytest.param({"tex": 1}, "no parameter 'tex'", id="an unknown one"),
        pytest.param({"text": []}, "do not fit", id="a wrong type"),
    ],
)
async def test_a_rewritten_input_is_checked_like_any_other(
    patch: dict[str, Any], words: str
) -> None:
    turn = one_call(Outcome("allow", patch=patch))
    await turn.run()
    assert turn.results[0].is_error
    assert words in turn.results[0].content


async def test_a_call_that_the_model_wrote_wrong_may_be_mended_by_a_hook() -> None:
    hooks = ScriptedHooks(pre={"echo": Outcome(patch={"text": "mended"})})
    turn = hooked(hooks, [calls(("c1", "echo", "not JSON")), says("done")], echo())
    await turn.run()
    assert turn.hooks.seen[0].input == {}
    assert turn.results[0].content == "mended"


class NumberArguments(Arguments):
    number: float


@pytest.mark.parametrize(
    ("number", "is_run"), [("1.5", True), ("NaN", False), ("Infinity", False), ("1e999", False)]
)
async def test_what_hooks_cannot_read_is_not_run_behind_their_back(
    number: str, *, is_run: bool
) -> None:
    seen: list[float] = []

    async def run(arguments: NumberArguments, _: ToolContext) -> ToolOutput:
        seen.append(arguments.number)
        return ToolOutput("ran")

    counting = Tool("count", "Counts.", NumberArguments, run, describe=str)
    hooks = ScriptedHooks(pre={"count": Outcome()})
    wanted = calls(("c1", "count", f'{{"number": {number}}}'))
    turn = hooked(hooks, [wanted, says("done")], erase(counting))
    await turn.run()
    assert turn.results[0].is_error == (not is_run)
    assert bool(seen) == is_run
    assert turn.hooks.seen[0].input == ({"number": 1.5} if is_run else {})


async def test_context_stands_behind_the_result_also_of_one_that_failed() -> None:
    hooks = ScriptedHooks(pre={"broken": Outcome(context="It is Friday.")})
    turn = hooked(hooks, [calls(("c1", "broken", '{"text": ""}')), says("x")], raising(OSError()))
    await turn.run()
    assert turn.results[0].is_error
    assert turn.results[0].content.endswith("\nIt is Friday.")


async def test_a_hook_that_ends_the_turn_leaves_no_call_unanswered() -> None:
    async def say(use: ToolUse) -> Outcome:
        is_second = use.call_id == "c2"
        return Outcome("deny", "enough", is_halt=True) if is_second else Outcome("allow")

    hooks = ScriptedHooks(pre={"risky": say})
    replies = [calls(risky("a"), risky("b", "c2"), risky("c", "c3")), says("never said")]
    turn = hooked(hooks, replies, asking())
    await turn.run()
    first, second, third = turn.results
    assert first.content == "ran a"
    assert "ended the turn: enough" in second.content
    assert third.content == HALTED
    assert (second.is_error, third.is_error) == (True, True)
    assert len(turn.model.requests) == 1
    finished = turn.events[-1]
    assert isinstance(finished, TurnFinished)
    assert finished.end == "end_turn"
    assert turn.told == ['Hook "h.sh" ended the turn: enough.']
    assert turn.hooks.again == [], "nobody is asked whether a turn may end that has to"


async def test_the_history_of_a_turn_that_a_hook_ended_needs_no_repair() -> None:
    turn = one_call(Outcome(is_halt=True))
    await turn.run()
    messages = turn.agent.conversation.running
    assert [message.role for message in messages] == ["user", "assistant", "tool"]
    assert repair(messages) == messages


async def test_calls_that_run_together_are_all_hooked() -> None:
    hooks = ScriptedHooks(pre={"meet": Outcome(context="seen")})
    wanted = [(f"c{n}", "meet", '{"text": "x"}') for n in range(3)]
    turn = hooked(hooks, [calls(*wanted), says("done")], meeting(3))
    await turn.run()
    assert [result.content for result in turn.results] == ["x\nseen"] * 3


async def test_hooks_see_what_a_call_came_to_and_the_model_reads_what_they_say() -> None:
    hooks = ScriptedHooks(post={"echo": Outcome("deny", "lint: 3 errors", context="See a.py.")})
    turn = hooked(hooks, [calls(("c1", "echo", '{"text": "hi"}')), says("done")], echo())
    await turn.run()
    ((use, answer),) = turn.hooks.answers
    assert (use.input, answer.text) == ({"text": "hi"}, "hi")
    (result,) = turn.results
    assert result.content == "hi\nA hook of the user's objects: lint: 3 errors\nSee a.py."
    assert not result.is_error
    assert turn.hook_facts(key="hook_after")["reason"] == "lint: 3 errors"
    assert turn.told == ['Hook "h.sh" objects to what echo has done: lint: 3 errors.']


async def test_hooks_do_not_look_at_what_failed_or_was_denied() -> None:
    hooks = ScriptedHooks(post={"risky": Outcome(), "broken": Outcome()})
    replies = [calls(risky(), ("c2", "broken", '{"text": ""}')), says("done")]
    turn = hooked(hooks, replies, asking(), raising(OSError()), answers=[Answer("deny")])
    await turn.run()
    assert turn.hooks.answers == []


async def test_a_result_can_end_the_turn() -> None:
    hooks = ScriptedHooks(post={"echo": Outcome(is_halt=True, reason="that will do")})
    turn = hooked(hooks, [calls(("c1", "echo", '{"text": "hi"}')), says("never")], echo())
    await turn.run()
    assert len(turn.model.requests) == 1
    assert turn.results[0].content.startswith("hi")


async def test_a_stop_while_hooks_look_at_a_result_takes_nothing_back() -> None:
    looking = anyio.Event()

    async def hang(_: ToolUse) -> Outcome:
        looking.set()
        await anyio.sleep_forever()
        raise AssertionError

    hooks = ScriptedHooks(post={"echo": hang})
    turn = hooked(hooks, [calls(("c1", "echo", '{"text": "hi"}')), says("done")], echo())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turn.run)
        await looking.wait()
        turn.agent.stop_tool("c1")
    assert turn.results[0].content == "hi"
    assert not turn.results[0].is_error


async def test_a_stop_while_hooks_are_asked_runs_nothing() -> None:
    asked = anyio.Event()

    async def hang(_: ToolUse) -> Outcome:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    turn = one_call(hang)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turn.run)
        await asked.wait()
        turn.agent.stop_tool("c1")
    assert turn.results[0].is_error
    assert "stopped" in turn.results[0].content


# Sub-agents


def with_helper(said: Said) -> Bench:
    """Return a turn whose sub-agent makes a call that asks for permission."""
    hooks = ScriptedHooks(pre={"risky": said})
    delegated = calls(("d1", "delegate", '{"text": "help"}'))
    helper = [calls(risky("a", "h1")), says("helped")]
    return hooked(hooks, [delegated, says("done")], delegating(asking()), helper=helper)


async def test_a_sub_agents_calls_are_hooked_and_say_whose_they_are() -> None:
    turn = with_helper(Outcome("deny", "no"))
    await turn.run()
    (use,) = turn.hooks.seen
    assert (use.tool, use.agent, use.call_id) == ("risky", "helper", "d1/h1")
    assert turn.told == ['Hook "h.sh" denied risky: no.']
    assert turn.settled[0].request.on_behalf == "agent: helper"
    assert turn.results[0].content.startswith("helped")


async def test_a_hook_that_ends_a_sub_agent_ends_the_turn() -> None:
    turn = with_helper(Outcome("deny", "enough", is_halt=True))
    await turn.run()
    assert len(turn.model.requests) == 1
    assert len(turn.results) == 1
    assert "has ended the turn" in turn.results[0].content


async def test_what_a_hook_allows_a_delegating_call_its_sub_agent_is_not_allowed() -> None:
    hooks = ScriptedHooks(pre={"delegate": Outcome("allow")})
    delegated = calls(("d1", "delegate", '{"text": "help"}'))
    helper = [calls(risky("a", "h1")), says("helped")]
    turn = hooked(
        hooks,
        [delegated, says("done")],
        delegating(asking()),
        helper=helper,
        answers=[Answer("deny")],
    )
    await turn.run()
    assert [request.tool for request in turn.asker.asked] == ["risky"]


# The end of a turn


async def test_a_turn_goes_on_as_long_as_hooks_want_but_not_for_ever() -> None:
    hooks = ScriptedHooks(stop=[Outcome("deny", f"not yet {n}") for n in range(9)])
    turn = hooked(hooks, [says("done")], echo())
    await turn.run()
    assert turn.hooks.again == [False, True, True, True, True]
    assert len(turn.model.requests) == 6
    asked = str(turn.model.requests[-1].messages)
    assert "not yet 4" in asked
    assert "not yet 5" not in asked


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(Outcome(), id="silent"),
        pytest.param(Outcome("allow"), id="allows"),
        pytest.param(Outcome("deny", "no", is_halt=True), id="ends it for good"),
    ],
)
async def test_a_turn_ends_if_no_hook_is_against_it(said: Outcome) -> None:
    turn = hooked(ScriptedHooks(stop=[said]), [says("done")], echo())
    await turn.run()
    assert len(turn.model.requests) == 1


async def test_the_end_of_a_sub_agent_is_not_the_end_of_the_turn() -> None:
    turn = with_helper(Outcome("allow"))
    await turn.run()
    assert turn.hooks.again == [False]


async def test_what_is_said_to_a_running_turn_passes_hooks_as_a_prompt_does() -> None:
    hooks = ScriptedHooks(
        prompts={"my password": Outcome("deny", "no"), "hurry": Outcome(context="It is late.")}
    )
    turn: Bench

    async def say(_: ToolUse) -> Outcome:
        for text in ("my password", "hurry", "thanks"):
            assert turn.agent.steering.say(text)
        return Outcome()

    hooks.pre["echo"] = say
    turn = hooked(hooks, [calls(("c1", "echo", '{"text": "hi"}')), says("done")], echo())
    await turn.run()
    texts = [text_of(message) for message in turn.model.requests[-1].messages]
    assert "my password" not in str(texts)
    hurry, thanks = texts[-2:]
    assert hurry.startswith("hurry\n\n<prompt_context")
    assert "It is late." in hurry
    assert thanks == "thanks"
    assert turn.told == ['Hook "h.sh" did not let the prompt pass: no.']
