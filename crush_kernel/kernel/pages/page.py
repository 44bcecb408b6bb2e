"""What the kernel knows of one page, or of one runner, that shows its notebook."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from crush_kernel.kernel.mirror import CellOutputs
from crush_kernel.kernel.pages.messages import Message


class Comm(Protocol):
    """What is needed of `comm.base_comm.BaseComm`."""

    def send(self, data: Message) -> None:
        """Send a message to the page."""

    def on_msg(self, callback: Callable[[dict[str, Any]], None]) -> None:
        """Have `callback` called with each message."""

    def on_close(self, callback: Callable[[dict[str, Any]], None]) -> None:
        """Have `callback` called when the page closes the comm."""


@dataclass(eq=False, slots=True)
class Page:
    """One page, or one runner."""

    comm: Comm
    client: str = ""
    """Whose requests come from it: it gets the outputs of these."""
    is_headless: bool = False
    follows: CellOutputs | None = None
    """The running cell that it is sent pictures of."""
    asked: float | None = None
    """Since when an acknowledgment is awaited, by the clock of the loop."""
    is_closed: bool = False
    header: Message | None = None
    """What it was told last of the whole notebook."""
    edits: bool = False
    """Whether it tells what its cells say, and changes them, when it is asked."""
    notebook: Path | None = None
    """Where the notebook is that it shows; `None` if it has not said."""
    cells: frozenset[str] = frozenset()
    """The ids of its cells."""
