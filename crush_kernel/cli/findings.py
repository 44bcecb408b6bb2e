"""What a check of `doctor` found."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    grade: Literal["ok", "warning", "broken"]
    text: str
    """What is the case: one sentence without its full stop."""
    advice: str = ""
    """What to do: one sentence; empty where there is nothing to do."""
