"""Token counts as servers report them, made to not overlap and never negative.

A prompt is never without tokens: a report that says so reports nothing, and neither does one
that says only what the reply has, since the prompt is what fills the window.

Pure. Source: Anthropic, "Prompt caching"; OpenAI, "Prompt caching"; DeepSeek, "Context
caching"; xAI, "Reasoning"; Crush, token accounting.
"""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from crush_kernel.messages import JsonObject, Usage

_MOST: Final = 1e12
"""No request has more tokens; what says so is no count."""


def merged(former: JsonObject, report: JsonObject) -> dict[str, JsonValue]:
    """Return `former` with the counts of a later report of the same reply in their place.

    Counts only grow: a zero, as some servers send with their last word, replaces nothing.
    """
    counts = dict(former)
    for name, value in report.items():
        if isinstance(value, Mapping):
            known = counts.get(name)
            counts[name] = merged(known if isinstance(known, Mapping) else {}, value)
        elif _count(value) or name not in counts:
            counts[name] = value
    return counts


def anthropic_usage(counts: JsonObject) -> Usage | None:
    """Return what Anthropic's `usage` says: its counts exclude each other."""
    usage = Usage(
        input_tokens=_count(counts.get("input_tokens")),
        cache_read_tokens=_count(counts.get("cache_read_input_tokens")),
        cache_write_tokens=_count(counts.get("cache_creation_input_tokens")),
        output_tokens=_count(counts.get("output_tokens")),
    )
    return usage if usage.context_tokens > usage.output_tokens else None


def openai_usage(counts: JsonObject) -> Usage | None:
    """Return what OpenAI's `usage`, or that of a server like it, says.

    The prompt's count includes what was read from and written to the cache, and the reply's
    its thinking; servers that count either on top give themselves away by the sums.
    """
    prompt = _count(counts.get("prompt_tokens"))
    details = _object(counts, "prompt_tokens_details")
    read = _first(
        details.get("cached_tokens"),
        counts.get("prompt_cache_hit_tokens"),
        counts.get("cached_tokens"),
    )
    written = _first(details.get("cache_write_tokens"), details.get("cache_creation_tokens"))
    output = _count(counts.get("completion_tokens"))
    if read > prompt:
        prompt += read + written
    else:
        output += _thinking_on_top(counts, prompt, output)
    written = min(written, prompt - read)
    usage = Usage(
        input_tokens=prompt - read - written,
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=output,
    )
    return usage if prompt else None


def _thinking_on_top(counts: JsonObject, prompt: int, output: int) -> int:
    """Return the tokens of thinking that `output` does not include."""
    extra = _count(counts.get("total_tokens")) - prompt - output
    details = _object(counts, "completion_tokens_details")
    thinking = _count(details.get("reasoning_tokens"))
    return max(0, extra) if thinking in (0, extra) else 0


def _first(*values: JsonValue) -> int:
    return next((count for count in map(_count, values) if count), 0)


def _count(value: JsonValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 < value < _MOST else 0


def _object(counts: JsonObject, name: str) -> JsonObject:
    value = counts.get(name)
    return value if isinstance(value, Mapping) else {}
