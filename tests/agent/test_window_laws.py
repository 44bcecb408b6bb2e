"""Whatever is said in whatever window: a turn comes to its end, or to an error that explains.

The provider has a window that the kernel may not know, counts tokens in its own way, and
refuses what does not fit.
"""

from dataclasses import dataclass

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from crush_kernel.agent.events import Notice, SummaryFinished, TurnFinished
from crush_kernel.errors import ContextTooLong
from crush_kernel.history.estimate import tokens_of, tokens_of_text
from crush_kernel.messages import Text, Usage, text_of
from crush_kernel.providers.base import ModelInfo, ModelRequest, Stop, TextDelta, UsageReport
from tests.agent.test_window import Bench, bench, big_call, is_for_summary
from tests.fakes.model import Item


@dataclass
class Provider:
    """Answers as a model would whose task takes as many calls as there are sizes."""

    window: int
    ratio: float
    """Its tokens to our estimate's."""
    sizes: list[int]
    """What each call writes and prints, in characters."""
    reports: bool
    names_numbers: bool
    accepted: int = 0
    refused: int = 0
    done: int = 0

    def answer(self, request: ModelRequest) -> list[Item]:
        tokens = round(self.ratio * self.count(request))
        if tokens > self.window:
            self.refused += 1
            error = ContextTooLong("too long")
            if self.names_numbers:
                error.asked_tokens, error.limit_tokens = tokens, self.window
            return [error]
        self.accepted += 1
        items = self.reply(request)
        if self.reports:
            said = sum(len(getattr(item, "text", "")) for item in items) // 4
            output = round(self.ratio * said)
            items.insert(-1, UsageReport(Usage(input_tokens=tokens, output_tokens=output)))
        return items

    def reply(self, request: ModelRequest) -> list[Item]:
        if is_for_summary(request) or not request.tools:
            return [TextDelta(0, "in short " * 20), Stop("end_turn")]
        if self.done == len(self.sizes):
            return [TextDelta(0, "finished"), Stop("end_turn")]
        self.done += 1
        return big_call(self.done, self.sizes[self.done - 1])

    @staticmethod
    def count(request: ModelRequest) -> int:
        tools = sum(
            tokens_of_text(f"{t.name}{t.description}{t.input_schema}") for t in request.tools
        )
        return tokens_of_text(request.system) + tools + sum(map(tokens_of, request.messages))


def bench_for(provider: Provider, known: int, system: int) -> Bench:
    info = ModelInfo("fake", "fake-1", context_window=known)
    return bench(provider.answer, info=info, system="r" * system)


@settings(max_examples=60, deadline=None)
@given(
    window=st.integers(2_000, 40_000),
    is_known=st.booleans(),
    ratio=st.floats(0.5, 2.0),
    sizes=st.lists(st.integers(0, 30_000), max_size=25),
    prompt=st.integers(1, 60_000),
    system=st.integers(1, 60_000),
    reports=st.booleans(),
    names_numbers=st.booleans(),
)
def test_a_turn_fits_or_explains(
    *,
    window: int,
    is_known: bool,
    ratio: float,
    sizes: list[int],
    prompt: int,
    system: int,
    reports: bool,
    names_numbers: bool,
) -> None:
    provider = Provider(window, ratio, sizes, reports, names_numbers)
    turn = bench_for(provider, window if is_known else 0, system)
    error: ContextTooLong | None = None
    try:
        anyio.run(turn.run, Text("p" * prompt))
    except ContextTooLong as caught:
        error = caught
    assert isinstance(turn.events[-1], TurnFinished)
    if error is None:
        assert text_of(turn.agent.conversation.running[-1]) == "finished" or turn.told(
            SummaryFinished
        )
    else:
        assert error.hint
        assert "Most of it:" in error.detail
    summaries = len(turn.told(SummaryFinished))
    assert summaries <= len(sizes) + 2
    assert provider.refused <= 4 * (summaries + 1)
    # A step is a request, and a summary of it at most; one in stages has twelve pieces at most.
    assert provider.accepted <= len(sizes) + 2 + 12 * (summaries + 1)
    explained = [e for e in turn.told(Notice) if isinstance(e, Notice) and "hardly help" in e.text]
    assert len(explained) <= 1
