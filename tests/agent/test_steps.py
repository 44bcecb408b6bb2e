"""What a turn does next, by what was said in it."""

import pytest

from crush_kernel.agent.steps import (
    CIRCLING,
    STUCK,
    CallTools,
    Fail,
    Finish,
    Limits,
    Remind,
    Request,
    SoFar,
    Step,
    Summarize,
    next_step,
)
from crush_kernel.errors import (
    CostLimitReached,
    CrushKernelError,
    LoopDetected,
    StepLimitReached,
    TimeLimitReached,
    TokenLimitReached,
)
from crush_kernel.messages import Message, SummaryMark, Text, ToolCall, ToolResult

PROMPT = Message("user", (Text("go"),))
SUMMARY = Message("user", (SummaryMark("c"), Text("in short")))
REPLY = Message("assistant", (Text("done"),), stop="end_turn")


def ran(*rounds: str) -> tuple[Message, ...]:
    """A turn of rounds, each `name=result`; `!` after the result says that it failed."""
    messages = [PROMPT]
    for number, each in enumerate(rounds):
        name, _, result = each.partition("=")
        call = ToolCall(f"c{number}", name, "{}")
        answer = ToolResult(call.id, result, is_error=result.endswith("!"))
        messages += Message("assistant", (call,), stop="tool_use"), Message("tool", (answer,))
    return tuple(messages)


def after(
    messages: tuple[Message, ...], so_far: SoFar | None = None, limits: Limits | None = None
) -> Step:
    return next_step(messages, so_far=so_far or SoFar(), limits=limits or Limits())


def verdict(messages: tuple[Message, ...]) -> str:
    """Return `stop`, `remind` or `go on`, going through a turn as it grows."""
    said: list[Message] = []
    word = "go on"
    for message in messages:
        said.append(message)
        if message.role != "tool":
            continue
        match after(tuple(said)):
            case Fail(error=LoopDetected()):
                return "stop"
            case Remind(text=text):
                assert text in (STUCK, CIRCLING)
                said.append(Message("user", (Text(text),)))
                word = "remind"
            case Request():
                pass
            case other:
                pytest.fail(f"unexpected: {other}")
    return word


@pytest.mark.parametrize(
    ("rounds", "word"),
    [
        pytest.param(["a=1"] * 2, "go on", id="twice"),
        pytest.param(["a=1"] * 3, "remind", id="three times"),
        pytest.param(["a=1"] * 5, "remind", id="five times"),
        pytest.param(["a=1"] * 6, "stop", id="more than five times"),
        pytest.param(["a=1", "b=1"] * 2, "go on", id="two in turn, twice"),
        pytest.param(["a=1", "b=1"] * 5, "remind", id="two in turn, five times each"),
        pytest.param(["a=1", "b=1"] * 6, "stop", id="two in turn, over and over"),
        pytest.param([f"a={n}" for n in range(5)], "go on", id="other results, five times"),
        pytest.param([f"a={n}" for n in range(6)], "remind", id="other results, six times"),
        pytest.param([f"a={n}" for n in range(10)], "stop", id="other results, ten times"),
        pytest.param([f"{n}=1" for n in range(30)], "go on", id="other calls"),
        pytest.param(["a=1!"], "go on", id="failed once"),
        pytest.param(["a=1!", "a=2!"], "remind", id="failed twice"),
        pytest.param(["a=1!", "a=2!", "a=3!"], "stop", id="failed three times"),
        pytest.param(["a=1!", "b=1", "a=1!"], "go on", id="failed with something between"),
        pytest.param(
            ["a=1"] * 3 + [f"{n}=1" for n in range(9)] + ["a=1"] * 2, "remind", id="long ago"
        ),
    ],
)
def test_a_loop_is_reminded_of_then_stopped(rounds: list[str], word: str) -> None:
    assert verdict(ran(*rounds)) == word


def test_a_loop_is_seen_across_a_summary() -> None:
    messages = ran(*["a=1"] * 6)
    assert isinstance(after((*messages[:5], SUMMARY, *messages[5:])), Fail)


def test_a_reminder_is_not_repeated_at_once() -> None:
    messages = ran(*["a=1", "b=1", "c=1"] * 3)
    reminder = Message("user", (Text(STUCK),))
    assert isinstance(after(messages), Remind)
    assert after((*messages[:-2], reminder, *messages[-2:])) == Request()


@pytest.mark.parametrize(
    ("limits", "so_far", "error"),
    [
        pytest.param(Limits(steps=2), SoFar(), StepLimitReached, id="requests"),
        pytest.param(Limits(duration_s=60), SoFar(duration_s=60), TimeLimitReached, id="time"),
        pytest.param(Limits(cost_usd=1), SoFar(cost_usd=1.5), CostLimitReached, id="money"),
        pytest.param(Limits(tokens=100), SoFar(tokens=100), TokenLimitReached, id="tokens"),
    ],
)
def test_a_limit_ends_the_turn_before_another_request(
    limits: Limits, so_far: SoFar, error: type[CrushKernelError]
) -> None:
    step = after(ran("a=1", "b=1"), so_far, limits)
    assert isinstance(step, Fail)
    assert type(step.error) is error
    assert "CRUSH_MAX_TURN_" in step.error.hint


@pytest.mark.parametrize(
    ("limits", "so_far"),
    [
        pytest.param(Limits(steps=3), SoFar(), id="requests"),
        pytest.param(Limits(steps=0), SoFar(), id="no limit"),
        pytest.param(Limits(duration_s=60), SoFar(duration_s=59.9), id="time"),
        pytest.param(Limits(cost_usd=1), SoFar(cost_usd=0.99), id="money"),
        pytest.param(Limits(), SoFar(duration_s=1e6, cost_usd=1e6, tokens=10**9), id="defaults"),
    ],
)
def test_below_its_limits_a_turn_goes_on(limits: Limits, so_far: SoFar) -> None:
    assert after(ran("a=1", "b=1"), so_far, limits) == Request()


def test_a_limit_does_not_take_back_a_reply_that_is_there() -> None:
    assert after((PROMPT, REPLY), SoFar(duration_s=99), Limits(duration_s=1)) == Finish()


FULL = SoFar(needs_summary=True)


@pytest.mark.parametrize(
    ("messages", "step"),
    [
        pytest.param((PROMPT,), Summarize(is_last=False), id="before the first request"),
        pytest.param(ran("a=1"), Summarize(is_last=False), id="after results"),
        pytest.param((PROMPT, REPLY), Summarize(is_last=True), id="after the last reply"),
        pytest.param(ran("a=1")[:-1], CallTools((ToolCall("c0", "a", "{}"),)), id="before calls"),
    ],
)
def test_a_summary_is_made_in_place_of_a_request_or_of_the_end(
    messages: tuple[Message, ...], step: Step
) -> None:
    assert after(messages, FULL) == step


@pytest.mark.parametrize(
    ("messages", "step"),
    [
        pytest.param((*ran("a=1"), SUMMARY), Request(), id="after results"),
        pytest.param((SUMMARY, PROMPT), Request(), id="before the prompt"),
        pytest.param((PROMPT, REPLY, SUMMARY), Finish(), id="after the last reply"),
        pytest.param((PROMPT, REPLY, SUMMARY, PROMPT), Request(), id="more was said"),
    ],
)
def test_after_a_summary_a_turn_does_what_it_would_have_done(
    messages: tuple[Message, ...], step: Step
) -> None:
    assert after(messages) == step
