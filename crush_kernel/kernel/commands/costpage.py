"""The page of `/cost`: tokens and money by model, and what became of the prompt cache. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from crush_kernel.kernel.plaintext import code_span, escape
from crush_kernel.kernel.render import money, thousands
from crush_kernel.messages import Usage
from crush_kernel.providers.base import ModelInfo
from crush_kernel.providers.cachemisses import Miss

MAX_MISSES: Final = 5
"""Misses that are listed, the last ones."""

_HEAD: Final = (
    "| model | in | from cache | to cache | out | cost | saved by cache |\n"
    "|---|---:|---:|---:|---:|---:|---:|\n"
)


def cost_page(used: Iterable[tuple[ModelInfo, Usage]], misses: Sequence[Miss]) -> str:
    """Return in Markdown what was used of which model, and why the cache was missed."""
    rows = [_row(info, usage) for info, usage in used]
    if not rows:
        return "Nothing was spent yet."
    return _HEAD + "\n".join(rows) + _missed(misses)


def _row(info: ModelInfo, usage: Usage) -> str:
    guess = "~" if usage.is_estimated else ""
    cost = info.cost(usage)
    has_cached = usage.cache_read_tokens or usage.cache_write_tokens
    saved = info.saved(usage) if has_cached else None
    counts = (
        usage.input_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.output_tokens,
    )
    cells = (
        code_span(info.label),
        *(f"{guess}{thousands(count)}" for count in counts),
        "" if cost is None else escape(money(cost, is_estimated=usage.is_estimated)),
        "" if saved is None else escape(_signed(saved, is_estimated=usage.is_estimated)),
    )
    return f"| {' | '.join(cells)} |"


def _signed(usd: float, *, is_estimated: bool) -> str:
    sign = "−" if usd < 0 else ""
    return f"{sign}{money(abs(usd), is_estimated=is_estimated)}"


def _missed(misses: Sequence[Miss]) -> str:
    if not misses:
        return ""
    lines = [
        f"- {thousands(miss.tokens)} tokens for {code_span(miss.model)}: {escape(miss.reason)}."
        for miss in misses[-MAX_MISSES:]
    ]
    return "\n\nRead anew instead of from the cache, latest last:\n\n" + "\n".join(lines)
