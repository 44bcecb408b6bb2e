"""What a `/command` gets and gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crush_kernel.history.session import CellUpdate
from crush_kernel.runtime import Runtime


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command as it was written, and where."""

    arguments: str
    runtime: Runtime
    cell_id: str = ""
    """The cell that it stands in, empty if the front end does not say."""


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What a command came to."""

    markdown: str
    outputs: Sequence[Mapping[str, object]] = ()
    """Outputs to show after it, as nbformat has them."""
    updates: Sequence[CellUpdate] = ()
    """What it has changed in other cells."""
