"""When a prompt cache was missed, and why, as far as it can be told.

No API says why: two requests say it, by what the later one changed of the earlier one. Caches
are kept by model, for some minutes after they were last used, and hold what a request begins
with: the tools, the system prompt, the messages one after the other.

Pure. Source: Anthropic, "Prompt caching", "What invalidates the cache".
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import eq
from typing import Final

from crush_kernel.messages import SummaryMark, Usage
from crush_kernel.providers.base import ModelRequest, ToolSpec

KEPT_S: Final = 300.0
"""How long the caches of most providers are kept without being used."""

MIN_TOKENS: Final = 4_096
"""Some models cache no shorter prompts, and below that a miss costs next to nothing."""

_WHOLE: Final = 0.8
"""What part of the last prompt must be read for the cache to count as found: the end of the
prompt may be new, and some providers count in steps."""

MAX_KEPT: Final = 20
"""Misses that are remembered, the last ones."""


@dataclass(frozen=True, slots=True)
class Miss:
    """A prompt that was read anew although an earlier one had begun like it."""

    model: str
    """The label, `provider/model`."""
    tokens: int
    """How many could have been read from the cache, and were not."""
    reason: str
    """What is likely to have led to it: a clause without a period."""


@dataclass(frozen=True, slots=True)
class _Asked:
    model: str
    request: ModelRequest
    prompt_tokens: int
    at_s: float


class CacheLedger:
    """Remembers the last request to each model, and the misses."""

    def __init__(self) -> None:
        self._last: dict[str, _Asked] = {}
        self._latest: _Asked | None = None
        self._caching: set[str] = set()
        self._misses: deque[Miss] = deque(maxlen=MAX_KEPT)

    @property
    def misses(self) -> tuple[Miss, ...]:
        """The last misses, oldest first."""
        return tuple(self._misses)

    def note(self, model: str, request: ModelRequest, usage: Usage, *, now_s: float) -> None:
        """Take in what a request has read from the cache.

        Args:
            model: the label of the model that was asked.
            request: what was asked; kept until the next one.
            usage: what the provider has reported.
            now_s: when it was asked, on a clock that goes on while the machine sleeps.
        """
        asked = _Asked(model, request, usage.context_tokens - usage.output_tokens, now_s)
        former, self._latest = self._last.get(model) or self._latest, asked
        self._last[model] = asked
        if usage.cache_read_tokens or usage.cache_write_tokens:
            self._caching.add(model)
        # A model of which no cache was ever heard of has none, or does not tell.
        if former is not None and model in self._caching:
            self._compare(former, asked, usage.cache_read_tokens)

    def _compare(self, former: _Asked, asked: _Asked, read: int) -> None:
        expected = min(former.prompt_tokens, asked.prompt_tokens)
        if expected < MIN_TOKENS or read >= expected * _WHOLE:
            return
        change = change_between(former.request, asked.request)
        if former.model != asked.model:
            if change:
                return  # another task of another model, which had nothing to read
            change = "another model was asked, and each has its own cache"
        reason = change or _by_time(asked.at_s - former.at_s)
        self._misses.append(Miss(asked.model, expected - read, reason))


def change_between(former: ModelRequest, request: ModelRequest) -> str:
    """Return what `request` changes of what it shares with `former`, empty if nothing."""
    if former.tools != request.tools:
        return _tools_changed(former.tools, request.tools)
    if former.system != request.system:
        line = _shared(former.system.splitlines(), request.system.splitlines()) + 1
        return f"the system prompt changed from line {line} on"
    index = _shared(former.messages, request.messages)
    if index in (len(former.messages), len(request.messages)):
        return ""
    if any(isinstance(part, SummaryMark) for part in request.messages[index].parts):
        return "the conversation was summarized"
    return f"the conversation changed from message {index + 1} of {len(former.messages)} on"


def _tools_changed(former: Iterable[ToolSpec], tools: Iterable[ToolSpec]) -> str:
    before, now = ({tool.name: tool for tool in each} for each in (former, tools))
    names = [name for name in (*before, *now) if before.get(name) != now.get(name)]
    changed = list(dict.fromkeys(names))
    if not changed:
        return ""  # only the order is another one, which requests do not keep
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"the tools changed: {changed[0]}{more}"


def _by_time(pause_s: float) -> str:
    if pause_s > KEPT_S:
        minutes = round(pause_s / 60)
        return f"nothing was asked for {minutes} minutes, and caches are kept for about five"
    return "nothing had changed; the provider has dropped it, or asked another server"


def _shared(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many items both begin with."""
    same = list(map(eq, one, other))
    return same.index(False) if False in same else len(same)
