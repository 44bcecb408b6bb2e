"""How long a provider asks to be left alone, in all the ways that providers say it.

Pure. What cannot be read, or lies in the past, counts as not said: the caller has its own
backoff.

Source: RFC 9110 §10.2.3; OpenAI and Anthropic rate limit headers; google.rpc.RetryInfo.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, cast

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TERM: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_SAID: Final = re.compile(
    r"(?:try again|retry)\s+(?:in|after)\s+((?:\d+(?:\.\d+)?(?:ms|[smhd]))+)\b"
)
_MAX_LENGTH: Final = 40
"""Characters of a duration that anyone means."""
_RESET: Final = "x-ratelimit-reset"
_REMAINING: Final = "x-ratelimit-remaining"
_EPOCH_S: Final = 1e9
"""A reset time beyond this many seconds is a date, not a distance; a thousand times more,
one in milliseconds."""


def retry_after(headers: Mapping[str, str], body: str, now: datetime) -> float | None:
    """Return the seconds that a provider asks to wait, or `None` if it does not say.

    Args:
        headers: of the reply, names in any case.
        body: of the reply; looked at only if no header says anything.
        now: the time by our clock; the reply's own `Date` goes before it.
    """
    plain = {name.lower(): value.strip() for name, value in headers.items()}
    now = _http_date(plain.get("date", "")) or now
    waits = (
        _milliseconds(plain.get("retry-after-ms", "")),
        _seconds_or_date(plain.get("retry-after", ""), now),
        _reset(plain, now),
        wait_in_body(body),
    )
    return next((wait for wait in waits if wait is not None), None)


def parse_duration(text: str) -> float | None:
    """Return the seconds of `38s`, `1m2.5s`, `120ms` or a bare number of seconds."""
    if (number := _number(text)) is not None:
        return _positive(number)
    terms = _TERM.findall(text) if len(text) <= _MAX_LENGTH else []
    if not terms or "".join(amount + unit for amount, unit in terms) != text:
        return None
    return _positive(sum(float(amount) * _UNITS[unit] for amount, unit in terms))


def wait_in_body(body: str) -> float | None:
    """Return the seconds to wait that a body or message asks for, if it does."""
    try:
        delays = list(_retry_delays(json.loads(body)))
    except (ValueError, RecursionError):
        delays = []
    said = _SAID.search(body)
    if said is not None:
        delays.append(said[1])
    return next((wait for delay in delays if (wait := parse_duration(delay)) is not None), None)


def _milliseconds(text: str) -> float | None:
    number = _number(text)
    return None if number is None else _positive(number / 1000)


def _seconds_or_date(text: str, now: datetime) -> float | None:
    if (seconds := parse_duration(text)) is not None:
        return seconds
    date = _http_date(text)
    return None if date is None else _positive((date - now) / timedelta(seconds=1))


def _reset(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the wait for the budget that is used up, or the shortest if none says so.

    A reply names the resets of several budgets, some of them a day away; only one of them
    is why it failed.
    """
    waits: dict[str, float] = {}
    for name, value in headers.items():
        if name.startswith(_RESET) and (wait := _reset_wait(value, now)) is not None:
            waits[name.removeprefix(_RESET)] = wait
    empty = [wait for name, wait in waits.items() if headers.get(_REMAINING + name) == "0"]
    return max(empty) if empty else min(waits.values(), default=None)


def _reset_wait(text: str, now: datetime) -> float | None:
    number = _number(text)
    if number is None or number < _EPOCH_S:
        return parse_duration(text)
    epoch_s = number / 1000 if number > _EPOCH_S * 1000 else number
    return _positive(epoch_s - now.timestamp())


def _retry_delays(value: object) -> Iterator[str]:
    """Yield every `retryDelay` of a `google.rpc.RetryInfo`, however deep."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            if key == "retryDelay" and isinstance(inner, str):
                yield inner
            else:
                yield from _retry_delays(inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _retry_delays(inner)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _positive(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _http_date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
