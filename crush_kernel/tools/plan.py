"""A plan that the model presents, and what a person says to it."""

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Plan:
    """What the model means to do."""

    call_id: str
    text: str
    """Markdown, as the model wrote it: make it safe before it is shown."""


@dataclass(frozen=True, slots=True)
class Approved:
    """The work may begin."""

    accepts_edits: bool
    """Whether edits inside the project need no question from now on."""
    words: str = ""
    """What the user has to add."""
    kind: Literal["approved"] = "approved"


@dataclass(frozen=True, slots=True)
class KeepPlanning:
    """The work may not begin yet."""

    words: str = ""
    """What is to be different."""
    kind: Literal["keep_planning"] = "keep_planning"


@dataclass(frozen=True, slots=True)
class Unreviewed:
    """Nobody is there to say anything."""

    kind: Literal["unreviewed"] = "unreviewed"


Verdict = Approved | KeepPlanning | Unreviewed


class PlanReviewer(Protocol):
    """Someone who shows a plan and returns what is said to it."""

    async def review_plan(self, plan: Plan) -> Verdict:
        """Return what comes of `plan`; cancelling withdraws it."""
        ...
