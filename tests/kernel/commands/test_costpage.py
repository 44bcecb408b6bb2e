"""`/cost` says what was used of which model, what the cache saved, and why it was missed."""

import html
import re

import pytest

from crush_kernel.kernel.commands.costpage import MAX_MISSES, cost_page
from crush_kernel.messages import Usage
from crush_kernel.providers.base import ModelInfo
from crush_kernel.providers.cachemisses import Miss
from tests.kernel.parsers import jupyterlab

PRICED = ModelInfo(
    "anthropic",
    "claude",
    input_price=3,
    output_price=15,
    cache_read_price=0.3,
    cache_write_price=3.75,
)


def row(info: ModelInfo, usage: Usage) -> list[str]:
    """Return the cells of the only row."""
    *_, last = jupyterlab(cost_page([(info, usage)], ())).split("<tr>")
    cells = re.findall(r"<td[^>]*>(.*?)</td>", last)
    return [html.unescape(re.sub("<[^>]*>", "", cell)) for cell in cells]


@pytest.mark.parametrize(
    ("info", "usage", "cells"),
    [
        pytest.param(
            PRICED, Usage(input_tokens=1_000, output_tokens=100),
            ["1.0 k", "0", "0", "100", "$0.0045", ""], id="no cache",
        ),
        pytest.param(
            PRICED,
            Usage(input_tokens=1_000, cache_read_tokens=100_000, cache_write_tokens=10_000),
            ["1.0 k", "100 k", "10 k", "0", "$0.071", "$0.263"], id="mostly read",
        ),
        pytest.param(
            PRICED, Usage(cache_write_tokens=10_000),
            ["0", "0", "10 k", "0", "$0.037", "−$0.0075"], id="written only",
        ),
        pytest.param(
            PRICED, Usage(cache_read_tokens=10_000, is_estimated=True),
            ["~0", "~10 k", "~0", "~0", "~$0.0030", "~$0.027"], id="estimated",
        ),
        pytest.param(
            ModelInfo("ollama", "qwen3:8b"), Usage(input_tokens=10, cache_read_tokens=5),
            ["10", "5", "0", "0", "", ""], id="prices are not known",
        ),
    ],
)  # fmt: skip
def test_each_model_has_a_row(info: ModelInfo, usage: Usage, cells: list[str]) -> None:
    assert row(info, usage) == [info.label, *cells]


def test_nothing_spent_is_a_sentence() -> None:
    assert cost_page([], ()) == "Nothing was spent yet."


def test_the_last_misses_are_listed_with_their_reasons() -> None:
    misses = [Miss("a/b", 10_000 + n, f"reason <b> {n}") for n in range(MAX_MISSES + 2)]
    page = cost_page([(PRICED, Usage(input_tokens=1))], misses)
    lines = [line for line in page.splitlines() if line.startswith("- ")]
    assert len(lines) == MAX_MISSES
    assert "10 k tokens for `a/b`: reason" in lines[0]
    assert "reason <b>" not in page
    assert lines[-1].endswith("6.")


def test_no_misses_are_not_mentioned() -> None:
    assert "Read anew" not in cost_page([(PRICED, Usage(input_tokens=1))], ())
