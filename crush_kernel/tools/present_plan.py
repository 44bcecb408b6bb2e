"""`present_plan`: leave plan mode by showing a person the plan and having it approved.

What is approved is that the work begins; each step of it is still permitted like any other.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, Protocol

from pydantic import Field, StringConstraints

from crush_kernel.config.settings import PermissionMode
from crush_kernel.errors import ToolError
from crush_kernel.permissions.decision import Allow, Deny
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.base import Arguments, Tool, ToolContext, ToolOutput, description_of
from crush_kernel.wording import clipped

MAX_PLAN_CHARS: Final = 20_000
MAX_WORDS_CHARS: Final = 10_000
"""Of what the user adds, that the model reads."""

NOT_PLANNING: Final = (
    "The session is not in plan mode, so no plan has to be approved: do the work, or tell the user "
    "in your reply what you would do."
)
NOBODY_TO_APPROVE: Final = "nobody is here who could approve the plan"

NOBODY: Final = (
    "Nobody is here who could approve the plan: the notebook runs without a person. The plan "
    "stands in the notebook. Change nothing and end your turn now; say that the plan waits for "
    "approval, and that the cell can be run again where someone can answer, or in another mode."
)


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


PlanAnswer = Approved | KeepPlanning | Unreviewed
"""What a person says to a plan."""


class PlanReviewer(Protocol):
    """Someone who shows a plan and returns what is said to it."""

    async def review_plan(self, plan: Plan) -> PlanAnswer:
        """Return what comes of `plan`; cancelling withdraws it."""
        ...


class Modes(Protocol):
    """Has the permission mode of the session."""

    @property
    def mode(self) -> PermissionMode:
        """The mode that holds."""
        ...

    @mode.setter
    def mode(self, mode: PermissionMode) -> None: ...


class PresentPlanArguments(Arguments):
    """The plan."""

    plan: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_PLAN_CHARS)
    ] = Field(description="What you mean to do, as Markdown: the steps, and the files they touch")


def present_plan_tool(reviewer: PlanReviewer, modes: Modes) -> Tool[PresentPlanArguments]:
    """Return the tool.

    Args:
        reviewer: shows the plan.
        modes: whose mode an approval changes.
    """

    async def run(arguments: PresentPlanArguments, context: ToolContext) -> ToolOutput:
        if modes.mode != "plan":
            raise ToolError(NOT_PLANNING)
        match await reviewer.review_plan(Plan(context.call_id, arguments.plan)):
            case Unreviewed():
                context.decided(_request(context), Deny(NOBODY_TO_APPROVE, "denied", "nobody"))
                return _output(arguments, NOBODY, "nobody there to approve it")
            case KeepPlanning(words=words):
                context.decided(_request(context), Deny(words, "plan not approved", "person"))
                return _output(
                    arguments, _keep_planning(words), _with_words("keep planning", words)
                )
            case Approved() as approved:
                context.decided(_request(context), Allow("plan approved", "person"))
                # Whoever has changed the mode meanwhile has said more than the card could.
                if modes.mode == "plan":
                    modes.mode = "accept-edits" if approved.accepts_edits else "default"
                summary = _with_words("approved", approved.words)
                return _output(arguments, _approved(modes.mode, approved.words), summary)

    return Tool(
        name="present_plan",
        description=description_of("present_plan"),
        arguments=PresentPlanArguments,
        run=run,
        describe=lambda arguments: _title(arguments.plan),
        is_harmless=True,
    )


def _request(context: ToolContext) -> PermissionRequest:
    return PermissionRequest(context.call_id, "present_plan", "use", "begin with a plan")


def _output(arguments: PresentPlanArguments, text: str, summary: str) -> ToolOutput:
    return ToolOutput(text, summary=summary, metadata={"plan": arguments.plan})


def _approved(mode: PermissionMode, words: str) -> str:
    edits = (
        " Edits inside the project are made without a question."
        if mode == "accept-edits"
        else " You will be asked for permission step by step."
    )
    return (
        f"The user approved the plan. Plan mode is over: begin now, in this turn.{edits}"
        f"{_in_words(words)}"
    )


def _keep_planning(words: str) -> str:
    return "The user did not approve the plan. Plan mode goes on: change nothing. " + (
        f"Present a new plan that follows what the user says.{_in_words(words)}"
        if words.strip()
        else "Ask what is to be different, or end your turn."
    )


def _in_words(words: str) -> str:
    said = words.strip()
    return f"\nIn the user's words: {clipped(said, MAX_WORDS_CHARS)}" if said else ""


def _with_words(summary: str, words: str) -> str:
    said = " ".join(words.split())
    return f'{summary}: "{clipped(said, 80)}"' if said else summary


def _title(plan: str) -> str:
    """Return the first line that says something, without the marks of a heading."""
    lines = (line.strip().lstrip("#").strip() for line in plan.splitlines())
    return clipped(next(filter(None, lines), ""), 80)
