"""What a turn has come to, where prices are known and where they are not."""

import pytest

from crush_kernel.agent.meter import Meter
from crush_kernel.history.conversation import CellRun, Conversation
from crush_kernel.messages import Message, Usage
from crush_kernel.providers.base import ModelInfo

pytestmark = pytest.mark.anyio

BIG = ModelInfo("p", "big", input_price=10.0, output_price=20.0)
SMALL = ModelInfo("p", "small", input_price=1.0, output_price=2.0)
FREE = ModelInfo("p", "unknown")


async def metered(**used: int) -> Meter:
    """Return the meter of a turn in which models have read millions of tokens."""
    talk = Conversation()
    talk.begin(CellRun("a"))
    meter = Meter(talk)
    for info in (BIG, SMALL, FREE):
        if info.id in used:
            meter.count_request(info)
            talk.use(info.label, Usage(used[info.id] * 1_000_000))
    return meter


async def test_each_model_counts_at_its_own_price() -> None:
    meter = await metered(big=1, small=3)
    so_far = meter.so_far(own_requests=1)
    assert (so_far.cost_usd, so_far.tokens, so_far.other_steps) == (13.0, 4_000_000, 1)
    assert meter.cost({BIG.label: Usage(1_000_000), SMALL.label: Usage(1_000_000)}) == 11.0


async def test_a_model_without_a_price_makes_the_sum_unknown_and_the_limit_hold_for_the_rest() -> (
    None
):
    meter = await metered(big=1, unknown=5)
    assert meter.cost(meter.conversation.used_by_model) is None
    assert meter.so_far(own_requests=2).cost_usd == 10.0


async def test_nothing_used_costs_nothing_that_is_known() -> None:
    meter = await metered()
    assert meter.cost({}) is None
    assert meter.so_far(own_requests=0).cost_usd == 0.0


async def test_a_turn_begins_at_nothing_whatever_was_spent_before() -> None:
    meter = await metered(big=1)
    talk = meter.conversation
    talk.end("end_turn")
    talk.begin(CellRun("b"), Message("user", ()))
    assert meter.usage == Usage()
    assert talk.spent_by_model[BIG.label] == Usage(1_000_000)
