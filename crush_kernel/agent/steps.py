"""What a turn does next: pure functions of what has been said in it.

`next_step` looks at the messages of the running turn alone, its prompt first. The rules
that end a turn against the model's will (limits, loops, refusals) live here, in words that
the user reads; `retry_delay` says whether and when a failed request is made again.
"""

from dataclasses import dataclass

from crush_kernel.errors import (
    CostLimitReached,
    EmptyReply,
    LoopDetected,
    OutputLimitReached,
    ProviderError,
    ReplyRefused,
    StepLimitReached,
    TimeLimitReached,
    TokenLimitReached,
    TurnError,
)
from crush_kernel.history.summary import is_summary
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
CIRCLING = (
    "You have made the same calls many times, though their results differ. If you wait for "
    "something, wait longer in one call; else try another way, or end your turn and say what "
    "stands in the way."
)

MAX_ATTEMPTS = 5
"""How often one request is made at most."""

MAX_RETRY_AFTER_S = 180.0
"""A provider that asks for more patience than this is not waited for."""

BACKOFF_S = (1.0, 3.0, 8.0, 20.0)
"""Seconds before the second, third … attempt where the provider names no time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a turn ends even if the model would go on. Zero sets no limit."""

    steps: int = 1_000
    """Requests in one turn."""
    duration_s: float = 0.0
    """Seconds since the turn began."""
    cost_usd: float = 0.0
    """US dollars, where the prices of the model are known."""
    tokens: int = 0
    """Tokens of all requests together, read, cached and written."""
    cut_off_replies: int = 3
    """Replies in a row that were cut off at the output limit."""
    failed_repeats: int = 3
    """The same calls in a row, all of them failing."""
    repeats: int = 6
    """The same calls with the same results, among the last `window` rounds."""
    window: int = 10
    circle: int = 12
    """Rounds in a row that are made of the same two, over and over."""


@dataclass(frozen=True, slots=True)
class SoFar:
    """What a turn has come to besides what was said in it."""

    empty_replies: int = 0
    """How many empty replies were forgotten."""
    duration_s: float = 0.0
    cost_usd: float = 0.0
    tokens: int = 0
    other_steps: int = 0
    """Requests that others have sent in the same turn: sub-agents, or who runs this one."""
    needs_summary: bool = False
    """Whether the next request would fill the window too far."""


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
class Summarize:
    """Have a summary stand for what was said, since the window is nearly full."""

    is_last: bool
    """Whether the turn is over then; else it goes on."""


@dataclass(frozen=True, slots=True)
class Finish:
    """End the turn."""


@dataclass(frozen=True, slots=True)
class Fail:
    """End the turn with `error`."""

    error: TurnError


Step = Request | CallTools | RefuseCalls | Remind | AskAgain | Summarize | Finish | Fail


def next_step(messages: tuple[Message, ...], *, so_far: SoFar, limits: Limits) -> Step:
    """Return the step that follows `messages`.

    Args:
        messages: the running turn, oldest first, its prompt included.
        so_far: what the turn has come to.
        limits: where to stop.

    Source: design, "a small `match` over a pure `next_step`"; weaknesses W-13 and W-14.
    """
    step = _without_window(messages, so_far=so_far, limits=limits)
    if so_far.needs_summary and isinstance(step, Request | Finish):
        return Summarize(is_last=isinstance(step, Finish))
    return step


def _without_window(messages: tuple[Message, ...], *, so_far: SoFar, limits: Limits) -> Step:
    """Return the step that follows as long as the window is large enough."""
    last = messages[-1]
    if last.role == "assistant":
        return _after_reply(messages, empty_replies=so_far.empty_replies, limits=limits)
    if is_summary(last) and len(messages) > 1 and messages[-2].role == "assistant":
        return Finish()  # it stands behind the reply that ended the turn
    if last.role == "tool" and (loop := _loop(messages, limits)):
        return loop
    if error := _limit_reached(messages, so_far=so_far, limits=limits):
        return Fail(error)
    return Request()


def _limit_reached(
    messages: tuple[Message, ...], *, so_far: SoFar, limits: Limits
) -> TurnError | None:
    """Return the limit that forbids another request, if one does."""
    steps = so_far.other_steps + sum(message.role == "assistant" for message in messages)
    if limits.steps and steps >= limits.steps:
        return StepLimitReached(
            f"The turn was stopped after {limits.steps} requests.", hint=_hint("STEPS")
        )
    if limits.duration_s and so_far.duration_s >= limits.duration_s:
        minutes = f"{limits.duration_s / 60:g}"
        return TimeLimitReached(
            f"The turn was stopped after {minutes} minutes.", hint=_hint("MINUTES")
        )
    if limits.cost_usd and so_far.cost_usd >= limits.cost_usd:
        spent = f"${so_far.cost_usd:.2f} of ${limits.cost_usd:.2f}"
        return CostLimitReached(f"The turn was stopped: it has cost {spent}.", hint=_hint("COST"))
    if limits.tokens and so_far.tokens >= limits.tokens:
        used = f"{so_far.tokens:,} of {limits.tokens:,}"
        return TokenLimitReached(
            f"The turn was stopped: it has used {used} tokens.", hint=_hint("TOKENS")
        )
    return None


def _hint(name: str) -> str:
    return f"Run a cell that says how to go on, or set `CRUSH_MAX_TURN_{name}` higher."


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


def _recent_rounds(messages: tuple[Message, ...], most: int) -> list[_Round]:
    """Return the last rounds of calls in `messages`, at most `most`, the newest first."""
    rounds: list[_Round] = []
    results: tuple[ToolResult, ...] = ()
    for message in reversed(messages):
        if message.role == "tool":
            found = tuple(part for part in message.parts if isinstance(part, ToolResult))
            results = (*found, *results)
        elif message.role == "assistant":
            if calls := calls_of(message):
                rounds.append(_round(calls, results))
                if len(rounds) == most:
                    break
            results = ()
    return rounds


def _round(calls: tuple[ToolCall, ...], results: tuple[ToolResult, ...]) -> _Round:
    return _Round(
        calls=tuple((call.name, call.input) for call in calls),
        answers=tuple(result.content for result in results),
        has_failed=bool(results) and all(result.is_error for result in results),
    )


def _loop(messages: tuple[Message, ...], limits: Limits) -> Step | None:
    """Return how to break a loop: a reminder at first, then a stop; `None` without a loop.

    Source: Crush, loop detection: the same calls with the same results more than five times
    among the last ten. Here calls count too whose results alone differ, such as by a clock.
    """
    recent = _recent_rounds(messages, max(limits.window, limits.circle))
    if not recent:
        return None
    rounds = recent[: limits.window]
    last = rounds[0]
    failed = next(
        (i for i, past in enumerate(rounds) if past.calls != last.calls or not past.has_failed),
        len(rounds),
    )
    same = sum(past == last for past in rounds)
    alike = sum(past.calls == last.calls for past in rounds)
    names = ", ".join(sorted({name for name, _ in last.calls}))
    is_circle = len(recent) >= limits.circle and len(set(recent[: limits.circle])) <= 2
    if failed >= limits.failed_repeats or same >= limits.repeats or is_circle:
        return Fail(_looping(f"the model repeated the same calls of {names} to no effect"))
    if alike >= limits.window:
        return Fail(_looping(f"the model made the same calls of {names} {alike} times"))
    if failed == limits.failed_repeats - 1 or same == limits.repeats // 2:
        return _reminded(messages, STUCK)
    return _reminded(messages, CIRCLING) if alike >= limits.repeats else None


def _looping(what: str) -> LoopDetected:
    return LoopDetected(
        f"The turn was stopped: {what}.", hint="Say in the next cell what it should do differently."
    )


def _reminded(messages: tuple[Message, ...], text: str) -> Step | None:
    """Return the reminder `text`, unless it was given only a moment ago."""
    recent = messages[-_QUIET:]
    if any(message.role == "user" and text_of(message) == text for message in recent):
        return None
    return Remind(text, "The model repeats itself and was told so.")


_QUIET = 9
"""Messages within which a reminder is not repeated: three rounds."""
