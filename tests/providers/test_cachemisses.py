"""A prompt that could have been read from the cache and was not is noted, with the reason."""

from dataclasses import replace

import anyio
import pytest

from crush_kernel.messages import Message, SummaryMark, Text, Usage
from crush_kernel.providers.base import ModelInfo, ModelRequest, Stop, ToolSpec, UsageReport
from crush_kernel.providers.cachemisses import (
    MAX_KEPT,
    CacheLedger,
    Miss,
    change_between,
)
from crush_kernel.providers.watched import WatchedModel
from tests.fakes.model import FakeModel, Item

CLAUDE, GPT = "anthropic/claude", "openai/gpt"
VIEW, BASH, EDIT = (ToolSpec(name, "Does it.", {}) for name in ("view", "bash", "edit"))


def said(*texts: str) -> tuple[Message, ...]:
    return tuple(Message("user", (Text(text),)) for text in texts)


FIRST = ModelRequest("Be good.\nIt is Linux.\nBye.", said("a", "b"), (VIEW, BASH))
GROWN = replace(FIRST, messages=(*FIRST.messages, *said("c")))


def used(read: int = 0, written: int = 0, anew: int = 0) -> Usage:
    return Usage(
        input_tokens=anew, cache_read_tokens=read, cache_write_tokens=written, output_tokens=99
    )


FULL = used(written=10_000)


def missed(
    request: ModelRequest,
    usage: Usage,
    *,
    first: Usage = FULL,
    model: str = CLAUDE,
    pause_s: float = 9,
) -> list[tuple[int, str]]:
    """Return the misses of `request` after `FIRST`, each with its tokens and its reason."""
    ledger = CacheLedger()
    ledger.note(CLAUDE, FIRST, first, now_s=1_000)
    ledger.note(model, request, usage, now_s=1_000 + pause_s)
    return [(miss.tokens, miss.reason) for miss in ledger.misses]


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        pytest.param(
            replace(GROWN, tools=(VIEW, BASH, EDIT)), "the tools changed: edit", id="a new tool"
        ),
        pytest.param(replace(GROWN, tools=(BASH,)), "the tools changed: view", id="one gone"),
        pytest.param(
            replace(GROWN, tools=(replace(VIEW, description="New."), replace(BASH, description="")),
                    system="Hi."),
            "the tools changed: view and 1 more", id="others, before the system prompt",
        ),
        pytest.param(
            replace(GROWN, system="Be good.\nIt is Windows.\nBye."),
            "the system prompt changed from line 2 on", id="the system prompt",
        ),
        pytest.param(
            replace(GROWN, system="Be good.\nIt is Linux.\nBye.\nMore."),
            "the system prompt changed from line 4 on", id="the system prompt's end",
        ),
        pytest.param(
            replace(GROWN, messages=said("a", "B", "c")),
            "the conversation changed from message 2 of 2 on", id="a message",
        ),
        pytest.param(
            replace(GROWN, messages=(Message("user", (SummaryMark("x"), Text("so far"))),)),
            "the conversation was summarized", id="a summary",
        ),
        pytest.param(
            GROWN, "nothing had changed; the provider has dropped it, or asked another server",
            id="nothing",
        ),
    ],
)  # fmt: skip
def test_what_has_changed_is_the_reason(request_: ModelRequest, reason: str) -> None:
    assert missed(request_, used(written=11_000)) == [(10_000, reason)]


def test_after_a_pause_the_cache_is_gone() -> None:
    reason = "nothing was asked for 12 minutes, and caches are kept for about five"
    assert missed(GROWN, used(written=11_000), pause_s=720) == [(10_000, reason)]


def test_what_has_changed_goes_before_the_pause() -> None:
    changed = replace(GROWN, system="Hi.")
    assert "system prompt" in missed(changed, used(written=11_000), pause_s=720)[0][1]


def test_another_model_has_its_own_cache() -> None:
    reason = "another model was asked, and each has its own cache"
    assert missed(GROWN, used(written=11_000), model=GPT) == [(10_000, reason)]


@pytest.mark.parametrize(
    ("request_", "usage", "first", "model"),
    [
        pytest.param(GROWN, used(read=10_000, written=1_000), FULL, CLAUDE, id="all was read"),
        pytest.param(GROWN, used(read=8_100, anew=2_900), FULL, CLAUDE, id="most was read"),
        pytest.param(GROWN, used(written=3_000), used(written=2_000), CLAUDE, id="short prompts"),
        pytest.param(replace(FIRST, system="Hi."), used(written=200), FULL, CLAUDE,
                     id="a short prompt"),
        pytest.param(GROWN, used(anew=11_000), used(anew=10_000), CLAUDE, id="no cache at all"),
        pytest.param(ModelRequest("Title it.", said("a" * 999)), used(written=9_000), FULL, GPT,
                     id="another task of another model"),
    ],
)  # fmt: skip
def test_no_miss(request_: ModelRequest, usage: Usage, first: Usage, model: str) -> None:
    assert missed(request_, usage, first=first, model=model) == []


def test_a_cache_that_is_found_only_later_is_known_from_then_on() -> None:
    """Some providers do not tell what they write."""
    ledger = CacheLedger()
    for usage in (used(anew=9_000), used(anew=9_000), used(read=8_900), used(anew=9_000)):
        ledger.note(GPT, FIRST, usage, now_s=0)
    assert [(miss.model, miss.tokens) for miss in ledger.misses] == [(GPT, 8_900)]


def test_each_model_is_compared_with_its_own_last_request() -> None:
    ledger = CacheLedger()
    ledger.note(CLAUDE, FIRST, FULL, now_s=0)
    ledger.note(GPT, replace(FIRST, system="Title it."), used(written=5_000), now_s=1)
    ledger.note(CLAUDE, GROWN, used(read=10_000), now_s=2)
    assert ledger.misses == ()


def test_the_first_request_misses_nothing() -> None:
    ledger = CacheLedger()
    ledger.note(CLAUDE, FIRST, FULL, now_s=0)
    assert ledger.misses == ()


def test_only_the_last_misses_are_kept() -> None:
    ledger = CacheLedger()
    for number in range(MAX_KEPT + 5):
        ledger.note(CLAUDE, replace(FIRST, system=f"{number}"), FULL, now_s=0)
    assert len(ledger.misses) == MAX_KEPT


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(FIRST, id="the same"),
        pytest.param(GROWN, id="more messages"),
        pytest.param(replace(FIRST, messages=FIRST.messages[:1]), id="fewer messages"),
        pytest.param(replace(FIRST, tools=FIRST.tools[::-1]), id="another order of the tools"),
        pytest.param(
            replace(FIRST, reminder="Hey.", max_output_tokens=9, forbids_tools=True),
            id="what holds once",
        ),
    ],
)
def test_what_shares_the_prefix_is_no_change(request_: ModelRequest) -> None:
    assert change_between(FIRST, request_) == ""


INFO = ModelInfo("anthropic", "claude")


def reporting(usage: Usage) -> list[Item]:
    return [UsageReport(used(written=1)), UsageReport(usage), Stop("end_turn")]


@pytest.mark.anyio
async def test_a_watched_model_notes_the_last_report_of_each_reply() -> None:
    inner = FakeModel([reporting(FULL), reporting(used(anew=11_000))], INFO)
    ledger, times = CacheLedger(), iter((0.0, 900.0))
    model = WatchedModel(inner, ledger, clock=lambda: next(times))
    for request in (FIRST, GROWN):
        async with model.stream(request) as events:
            assert [event async for event in events][-1] == Stop("end_turn")
    await model.aclose()
    assert model.info == INFO
    assert inner.requests == [FIRST, GROWN]
    reason = "nothing was asked for 15 minutes, and caches are kept for about five"
    assert ledger.misses == (Miss(CLAUDE, 10_000, reason),)


@pytest.mark.anyio
async def test_a_reply_that_is_cut_off_counts_as_far_as_it_has_come() -> None:
    inner = FakeModel([[UsageReport(FULL), anyio.Event()], reporting(used(anew=11_000))], INFO)
    ledger = CacheLedger()
    model = WatchedModel(inner, ledger)
    with anyio.fail_after(5):
        async with model.stream(FIRST) as events:
            async for _ in events:
                break
        async with model.stream(GROWN) as events:
            assert [event async for event in events]
    assert len(ledger.misses) == 1
