"""Whatever a server reports, the counts add up to what was asked and said."""

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.messages import Usage
from crush_kernel.providers.reported import anthropic_usage, merged, openai_usage

Json = dict[str, Any]


def used(read: int = 0, cached: int = 0, written: int = 0, said: int = 0) -> Usage:
    return Usage(
        input_tokens=read, cache_read_tokens=cached, cache_write_tokens=written, output_tokens=said
    )


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        pytest.param(
            {"input_tokens": 5, "cache_read_input_tokens": 100,
             "cache_creation_input_tokens": 20, "output_tokens": 7},
            used(5, 100, 20, 7), id="all four",
        ),
        pytest.param({"input_tokens": 5, "output_tokens": 7}, used(5, said=7), id="no cache"),
        pytest.param(
            {"input_tokens": 0, "cache_read_input_tokens": 9, "output_tokens": 1},
            used(0, 9, said=1), id="all of it cached",
        ),
        pytest.param({"input_tokens": 0, "output_tokens": 0}, None, id="zeros"),
        pytest.param({"input_tokens": 0, "output_tokens": 9}, None, id="a reply without a prompt"),
        pytest.param({}, None, id="nothing"),
        pytest.param({"input_tokens": -1, "output_tokens": "5"}, None, id="nonsense"),
        pytest.param({"input_tokens": 1e300, "output_tokens": True}, None, id="more nonsense"),
    ],
)  # fmt: skip
def test_anthropics_counts_exclude_each_other(counts: Json, usage: Usage | None) -> None:
    assert anthropic_usage(counts) == usage


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        pytest.param(
            {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
             "prompt_tokens_details": {"cached_tokens": 64},
             "completion_tokens_details": {"reasoning_tokens": 30}},
            used(36, 64, said=50), id="OpenAI",
        ),
        pytest.param(
            {"prompt_tokens": 184_704, "completion_tokens": 49,
             "prompt_tokens_details": {"cached_tokens": 183_936}},
            used(768, 183_936, said=49), id="nearly all of it cached",
        ),
        pytest.param(
            {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 64,
             "prompt_cache_miss_tokens": 36},
            used(36, 64, said=5), id="DeepSeek",
        ),
        pytest.param(
            {"prompt_tokens": 100, "completion_tokens": 5, "cached_tokens": 64},
            used(36, 64, said=5), id="Moonshot",
        ),
        pytest.param(
            {"prompt_tokens": 100, "completion_tokens": 5,
             "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30}},
            used(10, 60, 30, 5), id="OpenRouter",
        ),
        pytest.param(
            {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135,
             "completion_tokens_details": {"reasoning_tokens": 94}},
            used(32, said=103), id="xAI, with thinking on top",
        ),
        pytest.param(
            {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 100},
            used(32, said=68), id="Gemini, with thinking untold",
        ),
        pytest.param(
            {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 9_000,
             "completion_tokens_details": {"reasoning_tokens": 4}},
            used(32, said=9), id="a total of something else",
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 3},
            used(10, said=5), id="a total that is too small",
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
             "prompt_tokens_details": {"cached_tokens": 400}},
            used(10, 400, said=5), id="cached tokens on top",
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 5,
             "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 40}},
            used(0, 8, 2, 5), id="more written than there is",
        ),
        pytest.param({"prompt_tokens": 7}, used(7), id="no reply yet"),
        pytest.param({"prompt_tokens": 7, "prompt_tokens_details": None}, used(7), id="null"),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 0}, None, id="zeros"),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 9}, None, id="no prompt"),
        pytest.param({"prompt_tokens": None, "completion_tokens": None}, None, id="nulls"),
        pytest.param({}, None, id="nothing"),
        pytest.param({"prompt_tokens": "10", "cached_tokens": [1]}, None, id="nonsense"),
    ],
)  # fmt: skip
def test_openais_counts_are_taken_apart(counts: Json, usage: Usage | None) -> None:
    assert openai_usage(counts) == usage


@pytest.mark.parametrize(
    ("reports", "counts"),
    [
        pytest.param([{"a": 1}, {"a": 2}], {"a": 2}, id="the last one counts"),
        pytest.param([{"a": 3}, {"a": 2}], {"a": 2}, id="even if it is smaller"),
        pytest.param([{"a": 1}, {"b": 2}], {"a": 1, "b": 2}, id="each field for itself"),
        pytest.param([{"a": 1}, {"a": 0}], {"a": 1}, id="zero replaces nothing"),
        pytest.param([{"a": 1}, {"a": None}], {"a": 1}, id="null replaces nothing"),
        pytest.param([{"a": 0}, {"a": 1}], {"a": 1}, id="but is replaced"),
        pytest.param([{"d": {"a": 1}}, {"d": {"b": 2}}], {"d": {"a": 1, "b": 2}}, id="inside too"),
        pytest.param([{"d": None}, {"d": {"b": 2}}], {"d": {"b": 2}}, id="an object for null"),
        pytest.param([{"d": {"b": 2}}, {"d": None}], {"d": {"b": 2}}, id="not null for an object"),
    ],
)
def test_later_reports_replace_earlier_ones(reports: list[Json], counts: Json) -> None:
    *_, last = accumulate(reports, merged)
    assert last == counts


numbers = st.one_of(
    st.integers(-10, 10**16), st.floats(), st.none(), st.text(max_size=2), st.booleans()
)
details = st.one_of(numbers, st.dictionaries(st.sampled_from(
    ["cached_tokens", "cache_write_tokens", "reasoning_tokens"]), numbers))  # fmt: skip
reports = st.dictionaries(
    st.sampled_from([
        "prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens",
        "prompt_cache_hit_tokens", "prompt_tokens_details", "completion_tokens_details",
        "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
    ]),
    details,
)  # fmt: skip


@given(st.lists(reports, max_size=3))
def test_no_count_is_ever_negative_or_without_a_prompt(said: list[Json]) -> None:
    counts: Json = {}
    for report in said:
        counts = merged(counts, report)
    for usage in (anthropic_usage(counts), openai_usage(counts)):
        if usage is not None:
            numbers = (
                usage.input_tokens,
                usage.cache_read_tokens,
                usage.cache_write_tokens,
                usage.output_tokens,
            )
            assert min(numbers) >= 0
            assert usage.context_tokens > usage.output_tokens
            assert not usage.is_estimated
