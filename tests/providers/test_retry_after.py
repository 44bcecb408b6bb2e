"""How long to wait is read in every form that providers have for it."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.providers.retry_after import parse_duration, retry_after, wait_in_body

NOW = datetime(2026, 10, 21, 7, 28, 0, tzinfo=UTC)

RETRY_INFO = json.dumps(
    {"error": {"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "38s"}]}}
)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({"retry-after": "20"}, 20.0, id="seconds"),
        pytest.param({"Retry-After": " 1.5 "}, 1.5, id="any case"),
        pytest.param({"retry-after-ms": "38000"}, 38.0, id="milliseconds"),
        pytest.param({"retry-after-ms": "1500", "retry-after": "2"}, 1.5, id="the finer one"),
        pytest.param({"retry-after": "Wed, 21 Oct 2026 07:28:38 GMT"}, 38.0, id="a date"),
        pytest.param(
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:38 GMT",
                "date": "Wed, 21 Oct 2026 07:28:30 GMT",
            },
            8.0,
            id="a date by the server's clock",
        ),
        pytest.param({"x-ratelimit-reset-requests": "38s"}, 38.0, id="a reset"),
        pytest.param({"x-ratelimit-reset-tokens": "1m2s"}, 62.0, id="a reset in minutes"),
        pytest.param({"x-ratelimit-reset-tokens": "6ms"}, 0.006, id="a reset in milliseconds"),
        pytest.param(
            {
                "x-ratelimit-reset-requests": "23h59m0s",
                "x-ratelimit-remaining-requests": "90",
                "x-ratelimit-reset-tokens": "8s",
                "x-ratelimit-remaining-tokens": "0",
            },
            8.0,
            id="the budget that is used up",
        ),
        pytest.param(
            {"x-ratelimit-reset-requests": "23h59m0s", "x-ratelimit-reset-tokens": "8s"},
            8.0,
            id="the shortest if none is",
        ),
        pytest.param({"x-ratelimit-reset": "1792567718"}, 38.0, id="an instant in seconds"),
        pytest.param({"x-ratelimit-reset": "1792567718000"}, 38.0, id="an instant in ms"),
        pytest.param({"retry-after": "-1", "x-ratelimit-reset-tokens": "3s"}, 3.0, id="next best"),
    ],
)
def test_headers(headers: dict[str, str], seconds: float) -> None:
    """Case c05."""
    assert retry_after(headers, "", NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value",
    ["-1", "0", "soon", "", "nan", "inf", "1e999", "Wed, 21 Oct 2020 07:28:38 GMT", "1s2", "s"],
)
@pytest.mark.parametrize("name", ["retry-after", "retry-after-ms", "x-ratelimit-reset-requests"])
def test_garbage_the_past_and_nothing_count_as_not_said(name: str, value: str) -> None:
    assert retry_after({name: value}, "", NOW) is None


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        pytest.param(RETRY_INFO, 38.0, id="google.rpc.RetryInfo"),
        pytest.param(f"[{RETRY_INFO}]", 38.0, id="in a list"),
        pytest.param('{"error":{"message":"Please try again in 7.66s."}}', 7.66, id="a sentence"),
        pytest.param("Rate limited, try again in 1m2.5s", 62.5, id="plain text"),
        pytest.param("<html>retry after 20 minutes", None, id="a page"),
        pytest.param('{"retryDelay": "-3s"}', None, id="the past"),
        pytest.param('{"retryDelay": 3}', None, id="no text"),
        pytest.param("[" * 100_000, None, id="nested too deep"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_bodies(body: str, seconds: float | None) -> None:
    assert wait_in_body(body) == seconds
    assert retry_after({}, body, NOW) == seconds


def test_a_header_goes_before_the_body() -> None:
    assert retry_after({"retry-after": "5"}, RETRY_INFO, NOW) == 5


@given(
    headers=st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "date"]),
        st.text(max_size=30),
    ),
    body=st.text(max_size=60),
)
def test_no_answer_is_ever_negative_or_infinite(headers: dict[str, str], body: str) -> None:
    wait = retry_after(headers, body, NOW)
    assert wait is None or 0 < wait < float("inf")


@given(hours=st.integers(0, 9), minutes=st.integers(0, 59), seconds=st.integers(1, 59))
def test_durations_add_up(hours: int, minutes: int, seconds: int) -> None:
    text = f"{hours}h{minutes}m{seconds}s"
    assert parse_duration(text) == hours * 3600 + minutes * 60 + seconds
