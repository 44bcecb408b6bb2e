"""What is known about a model, and what it charges."""

import pytest

from crush_kernel.messages import Usage
from crush_kernel.providers.base import ModelInfo

PRICED = ModelInfo(
    provider="openai",
    id="m",
    input_price=3.0,
    output_price=15.0,
    cache_read_price=0.3,
    cache_write_price=3.75,
)
FREE = ModelInfo(provider="ollama", id="m", input_price=0.0, output_price=0.0)
UNKNOWN = ModelInfo(provider="openai", id="m")
NO_CACHE_PRICE = ModelInfo(provider="openai", id="m", input_price=3.0, output_price=15.0)


@pytest.mark.parametrize(
    ("info", "usage", "dollars"),
    [
        pytest.param(
            PRICED,
            Usage(input_tokens=10_000, cache_read_tokens=90_000, output_tokens=1_000),
            0.072,
            id="what was read from the cache is charged once, at its own price",
        ),
        pytest.param(
            PRICED,
            Usage(input_tokens=1_000, cache_write_tokens=1_000, cache_read_tokens=1_000),
            0.00705,
            id="writing the cache costs more than reading anew, and reading it less",
        ),
        pytest.param(PRICED, Usage(), 0.0, id="nothing was used"),
        pytest.param(FREE, Usage(input_tokens=10, output_tokens=5), 0.0, id="a model for free"),
        pytest.param(UNKNOWN, Usage(input_tokens=10), None, id="no price is known"),
        pytest.param(UNKNOWN, Usage(), None, id="...and nothing was used"),
        pytest.param(
            NO_CACHE_PRICE, Usage(cache_read_tokens=10), None, id="a price that counts is unknown"
        ),
        pytest.param(
            NO_CACHE_PRICE, Usage(input_tokens=1_000), 0.003, id="...or one that does not count"
        ),
    ],
)
def test_what_was_used_costs_what_its_prices_say(
    info: ModelInfo, usage: Usage, dollars: float | None
) -> None:
    assert info.cost(usage) == (None if dollars is None else pytest.approx(dollars))
