"""A plan in words: for cards, for consoles, and for a file that is saved meanwhile. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from crush_kernel.kernel.markdown import neutralize, visible
from crush_kernel.kernel.render import Rendered
from crush_kernel.tools.present_plan import Approved, KeepPlanning, Plan, PlanAnswer

TITLE: Final = "Approve this plan?"
PROMPT: Final = (
    "Approve? [y] yes  [e] yes, edits without asking  [n] keep planning, or say what to change: "
)
SETTLED: Final[Mapping[Literal["approve", "accept_edits", "keep"], str]] = {
    "approve": "plan approved",
    "accept_edits": "plan approved · edits inside the project without asking",
    "keep": "plan not approved: planning goes on",
}


def plan(plan: Plan) -> Rendered:
    """Show a plan as it was written, and safe."""
    return Rendered(neutralize(plan.text), visible(plan.text))


def waiting(given: Plan) -> Rendered:
    """Show a plan that is not answered yet, for a file saved meanwhile."""
    shown = plan(given)
    return Rendered(
        f"<sub><b>{TITLE}</b> · waiting for an answer</sub>\n\n{shown.markdown}",
        f"{TITLE} waiting for an answer\n{shown.plain}",
    )


def lines(given: Plan) -> Iterator[str]:
    """Yield a plan for a console."""
    yield TITLE
    yield from (f"  {line}" for line in visible(given.text).split("\n"))


def verdict_in(line: str) -> PlanAnswer:
    """Return what `line` says to a plan; whatever is no clear yes keeps planning."""
    line = line.strip()
    word, _, rest = line.partition(" ")
    match word.lower().strip(",.:;"):
        case "y" | "yes" if not rest:
            return Approved(accepts_edits=False)
        case "e" | "edits" if not rest:
            return Approved(accepts_edits=True)
        case "n" | "no":
            return KeepPlanning(rest.strip())
        case _:
            return KeepPlanning(line)
