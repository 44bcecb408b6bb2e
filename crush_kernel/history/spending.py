"""What was spent on a notebook, by `provider/model`: read from wherever it is told. Pure.

What two sources tell is mostly the same spending, so that it is not added up: of each count
the larger one is right, since what was spent stays spent.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from crush_kernel.history.notebook import NotebookContents
from crush_kernel.history.subagentmessages import summed
from crush_kernel.history.turn import Turn
from crush_kernel.messages import Usage

Spending: TypeAlias = Mapping[str, Usage]


def spent_on(contents: NotebookContents) -> Spending:
    """Return what a notebook says was spent; what its turns say, if it says nothing itself."""
    if contents.header is not None:
        return contents.header.usage
    return spent_in(cell.turn for cell in contents.cells if cell.turn is not None)


def spent_in(turns: Iterable[Turn]) -> Spending:
    """Return what the requests of `turns` have used, those of sub-agents included."""
    return summed(pair for turn in turns for pair in turn.spent.items())


def beyond(spent: Spending, known: Spending) -> dict[str, Usage]:
    """Return by how much `spent` is more than what is known."""
    more = {label: _difference(usage, known.get(label, Usage())) for label, usage in spent.items()}
    return {label: usage for label, usage in more.items() if usage.context_tokens}


def _difference(usage: Usage, known: Usage) -> Usage:
    return Usage(
        input_tokens=max(0, usage.input_tokens - known.input_tokens),
        cache_read_tokens=max(0, usage.cache_read_tokens - known.cache_read_tokens),
        cache_write_tokens=max(0, usage.cache_write_tokens - known.cache_write_tokens),
        output_tokens=max(0, usage.output_tokens - known.output_tokens),
        is_estimated=usage.is_estimated,
    )
