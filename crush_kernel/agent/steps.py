"""What a turn does next: pure functions of what has been said in it.

`next_step` looks at the messages of the running turn alone, its prompt first. The rules
that end a turn against the model's will (limits, loops, refusals) live here, in words that
the user reads; `retry_delay` says whether and when a failed request is made again.
"""

from dataclasses import dataclass

from crush_kernel.errors import (
    EmptyReply,
    LoopDetected,
    OutputLimitReached,
    ProviderError,
    ReplyRefused,
    StepLimitReached,
    TurnError,
)
from crush_kernel.messages import Message, ToolCall, ToolResult, calls_of, text_of

CUT_OFF = (
    "This call was not run: your reply was cut off at the output limit, so its arguments may be "
    "incomplete. Do the work in smaller parts, for example write the file in several edits."
)
GO_ON = "Your reply was cut off at the output limit. Go on exactly where it stopped."
STUCK = (
    "You have made the same calls with the same results several times. Do not repeat them: try "
    "another way, or end your turn and say what stands in the way."
)

MAX_ATTEMPTS = 5
"""How often one request is made at most."""

MAX_RETRY_AFTER_S = 180.0
"""A provider that asks for more patience than this is not waited for."""

BACKOFF_S = (1.0, 3.0, 8.0, 20.0)
"""Seconds before the second, third … attempt where the provider names no time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a turn ends even if the model would go on."""

    steps: int = 200
    """Requests in one turn."""
    cut_off_replies: int = 3
    """Replies in a row that were cut off at the output limit."""
    failed_repeats: int = 3
    """The same calls in a row, all of them failing."""
    repeats: int = 6
    """The same calls with the same results, among the last `window` rounds."""
    window: int = 12


@dataclass(frozen=True, slots=True)
class Request:
    """Send the conversation to the model."""


@dataclass(frozen=True, slots=True)
class CallTools:
    """Run these calls."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class RefuseCalls:
    """Answer these calls with `reason` instead of running them."""

    calls: tuple[ToolCall, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Remind:
    """Say `text` to the model in the user's place, and `notice` to the user."""

    text: str
    notice: str


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Forget the last reply, which says nothing, and send the conversation once more."""


@dataclass(frozen=True, slots=True)
class Finish:
    """End the turn."""


@dataclass(frozen=True, slots=True)
class Fail:
    """End the turn with `error`."""

    error: TurnError


Step = Request | CallTools | RefuseCalls | Remind | AskAgain | Finish | Fail


def next_step(messages: tuple[Message, ...], *, empty_replies: int, limits: Limits) -> Step:
    """Return the step that follows `messages`.

    Args:
        messages: the running turn, oldest first, its prompt included.
        empty_replies: how many empty replies were forgotten in this turn so far.
        limits: where to stop.

    Source: design, "a small `match` over a pure `next_step`"; weaknesses W-13 and W-14.
    """
    last = messages[-1]
    if last.role == "assistant":
        return _after_reply(messages, empty_replies=empty_replies, limits=limits)
    if last.role == "tool" and (loop := _loop(_recent_rounds(messages, limits), limits)):
        return loop
    if sum(message.role == "assistant" for message in messages) >= limits.steps:
        return Fail(
            StepLimitReached(
                f"The turn was stopped after {limits.steps} requests.",
                hint="Run a cell that says how to go on, or ask for a smaller piece of work.",
            )
        )
    return Request()


def retry_delay(error: ProviderError, *, attempt: int, jitter: float) -> float | None:
    """Return the seconds to wait before the request is made again, or `None` to give up.

    Args:
        error: why the request failed.
        attempt: how many attempts have failed, this one included, from 1.
        jitter: a random number from 0 to 1 that spreads the clients of one provider.
    """
    if not error.is_retryable or attempt >= MAX_ATTEMPTS:
        return None
    if error.retry_after_s is not None:
        asked = error.retry_after_s
        return asked + min(asked * 0.1, 1.0) * jitter if asked <= MAX_RETRY_AFTER_S else None
    return BACKOFF_S[min(attempt, len(BACKOFF_S)) - 1] * (0.75 + 0.5 * jitter)


def _after_reply(messages: tuple[Message, ...], *, empty_replies: int, limits: Limits) -> Step:
    reply = messages[-1]
    calls = calls_of(reply)
    if reply.stop == "max_tokens":
        return _after_cut_off(messages, calls, limits)
    if reply.stop == "refused":
        return Fail(
            ReplyRefused(
                "The provider's content filter stopped the reply.",
                hint="Put the request in other words, or choose another model with `/model`.",
            )
        )
    if calls:
        return CallTools(calls)
    if text_of(reply).strip():
        return Finish()
    if empty_replies == 0:
        return AskAgain()
    return Fail(
        EmptyReply(
            "The model ended its turn without a word, twice.",
            hint="Run the cell again, or choose another model with `/model`.",
        )
    )


def _after_cut_off(
    messages: tuple[Message, ...], calls: tuple[ToolCall, ...], limits: Limits
) -> Step:
    if _cut_off_in_a_row(messages) >= limits.cut_off_replies:
        return Fail(
            OutputLimitReached(
                f"The reply hit the output limit {limits.cut_off_replies} times in a row.",
                hint="Ask for a smaller piece of work, or choose a model with a larger limit.",
            )
        )
    if calls:
        return RefuseCalls(calls, CUT_OFF)
    return Remind(GO_ON, "The reply was cut off at the output limit and goes on.")


def _cut_off_in_a_row(messages: tuple[Message, ...]) -> int:
    count = 0
    for message in reversed(messages):
        if message.role == "assistant":
            if message.stop != "max_tokens":
                break
            count += 1
    return count


@dataclass(frozen=True, slots=True)
class _Round:
    """The calls of one reply and how they went, without their ids."""

    calls: tuple[tuple[str, str], ...]
    answers: tuple[str, ...]
    has_failed: bool


def _recent_rounds(messages: tuple[Message, ...], limits: Limits) -> list[_Round]:
    """Return the last rounds of calls in `messages`, at least `limits.window`, oldest first."""
    rounds: list[_Round] = []
    calls: tuple[ToolCall, ...] = ()
    # A round is a reply, its results and at most one reminder.
    for message in messages[-3 * (limits.window + 1) :]:
        if message.role == "assistant":
            calls = calls_of(message)
        elif message.role == "tool" and calls:
            results = [part for part in message.parts if isinstance(part, ToolResult)]
            rounds.append(
                _Round(
                    calls=tuple((call.name, call.input) for call in calls),
                    answers=tuple(result.content for result in results),
                    has_failed=all(result.is_error for result in results),
                )
            )
    return rounds


def _loop(rounds: list[_Round], limits: Limits) -> Step | None:
    """Return how to break a loop: a stop, a reminder half-way, or `None` without a loop."""
    if not rounds:
        return None
    last = rounds[-1]
    failed = 0
    for past in reversed(rounds):
        if past.calls != last.calls or not past.has_failed:
            break
        failed += 1
    same = sum(past == last for past in rounds[-limits.window :])
    if failed >= limits.failed_repeats or same >= limits.repeats:
        names = ", ".join(sorted({name for name, _ in last.calls}))
        return Fail(
            LoopDetected(
                f"The turn was stopped: the model repeated the same calls of {names} to no effect.",
                hint="Say in the next cell what it should do differently.",
            )
        )
    if same == limits.repeats // 2 and not last.has_failed:
        return Remind(STUCK, "The model repeats itself and was told so.")
    return None
