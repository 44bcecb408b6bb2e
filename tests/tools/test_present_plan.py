"""`present_plan`: the only way out of plan mode is a person's yes."""

from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import pytest

from crush_kernel.config.settings import PermissionMode
from crush_kernel.errors import ToolError
from crush_kernel.permissions.decision import Allow, Deny
from crush_kernel.permissions.gate import Gate
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.present_plan import (
    MAX_PLAN_CHARS,
    NOBODY_TO_APPROVE,
    Approved,
    KeepPlanning,
    Plan,
    PlanAnswer,
    PresentPlanArguments,
    Unreviewed,
    present_plan_tool,
)
from crush_kernel.tools.question import Nobody, QuestionDesk
from tests.fakes.tool_context import tool_context

pytestmark = pytest.mark.anyio

PLAN = "\n## Round once\n\n1. edit price.py"


@dataclass
class Reviewer:
    """A person who says what was written before."""

    verdict: PlanAnswer
    gate: Gate
    becomes: PermissionMode | None = None
    """What the mode is changed to meanwhile."""
    seen: list[Plan] = field(default_factory=list[Plan])

    async def review_plan(self, plan: Plan) -> PlanAnswer:
        await anyio.lowlevel.checkpoint()
        self.seen.append(plan)
        if self.becomes is not None:
            self.gate.mode = self.becomes
        return self.verdict


async def present(
    verdict: PlanAnswer,
    mode: PermissionMode = "plan",
    *,
    becomes: PermissionMode | None = None,
) -> tuple[ToolOutput, Reviewer]:
    gate = Gate(mode)
    reviewer = Reviewer(verdict, gate, becomes)
    tool = present_plan_tool(reviewer, gate)
    arguments = PresentPlanArguments(plan=PLAN)
    return await tool.run(arguments, tool_context(call_id="c9").context), reviewer


@pytest.mark.parametrize(
    ("verdict", "word"),
    [
        pytest.param(
            Approved(accepts_edits=False), Allow("plan approved", "person"), id="approved"
        ),
        pytest.param(
            KeepPlanning("smaller"),
            Deny("smaller", "plan not approved", "person"),
            id="not approved",
        ),
        pytest.param(Unreviewed(), Deny(NOBODY_TO_APPROVE, "denied", "nobody"), id="nobody"),
    ],
)
async def test_who_has_decided_about_a_plan_is_kept(
    verdict: PlanAnswer, word: Allow | Deny
) -> None:
    kept: list[tuple[PermissionRequest, Allow | Deny]] = []
    gate = Gate("plan")
    tool = present_plan_tool(Reviewer(verdict, gate), gate)

    def keep(request: PermissionRequest, word: Allow | Deny) -> None:
        kept.append((request, word))

    context = replace(tool_context(call_id="c9").context, decided=keep)
    await tool.run(PresentPlanArguments(plan=PLAN), context)

    ((request, said),) = kept
    assert (request.call_id, request.tool, said) == ("c9", "present_plan", word)


@pytest.mark.parametrize(
    ("verdict", "mode", "text", "summary"),
    [
        pytest.param(
            Approved(accepts_edits=False),
            "default",
            "begin now, in this turn. You will be asked",
            "approved",
            id="approved",
        ),
        pytest.param(
            Approved(accepts_edits=True),
            "accept-edits",
            "Edits inside the project are made without a question.",
            "approved",
            id="approved with edits",
        ),
        pytest.param(
            Approved(accepts_edits=False, words="mind the tests"),
            "default",
            "In the user's words: mind the tests",
            'approved: "mind the tests"',
            id="approved with words",
        ),
        pytest.param(
            KeepPlanning("no new files"),
            "plan",
            "did not approve the plan. Plan mode goes on: change nothing. Present a new plan that "
            "follows what the user says.\nIn the user's words: no new files",
            'keep planning: "no new files"',
            id="kept with words",
        ),
        pytest.param(
            KeepPlanning(),
            "plan",
            "Ask what is to be different, or end your turn.",
            "keep planning",
            id="kept",
        ),
        pytest.param(
            Unreviewed(), "plan", "end your turn now", "nobody there to approve it", id="nobody"
        ),
    ],
)
async def test_what_is_said_to_a_plan_counts(
    verdict: PlanAnswer, mode: PermissionMode, text: str, summary: str
) -> None:
    output, reviewer = await present(verdict)
    assert reviewer.gate.mode == mode
    assert text in output.text
    assert output.summary == summary
    assert not output.is_error
    assert output.metadata == {"plan": PLAN.strip()}
    assert reviewer.seen == [Plan("c9", PLAN.strip())]


@pytest.mark.parametrize("mode", ["default", "accept-edits", "yolo"])
async def test_outside_of_plan_mode_nobody_is_shown_a_plan(mode: PermissionMode) -> None:
    with pytest.raises(ToolError, match="not in plan mode"):
        await present(Approved(accepts_edits=False), mode)


async def test_a_mode_that_a_person_has_chosen_meanwhile_stays() -> None:
    output, reviewer = await present(Approved(accepts_edits=True), becomes="yolo")
    assert reviewer.gate.mode == "yolo"
    assert "begin now" in output.text


async def test_stopping_while_the_plan_is_shown_leaves_plan_mode_on() -> None:
    gate = Gate("plan")
    is_shown = anyio.Event()

    class Slow:
        async def review_plan(self, plan: Plan) -> PlanAnswer:
            is_shown.set()
            await anyio.sleep_forever()
            raise AssertionError(plan)

    tool = present_plan_tool(Slow(), gate)

    async def run() -> None:
        await tool.run(PresentPlanArguments(plan=PLAN), tool_context().context)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await is_shown.wait()
            group.cancel_scope.cancel()
    assert gate.mode == "plan"


async def test_the_desk_has_a_plan_reviewed_by_who_is_there() -> None:
    desk = QuestionDesk()
    plan = Plan("c", "x")
    assert await desk.review_plan(plan) == Unreviewed()

    class Person(Nobody):
        async def review_plan(self, plan: Plan) -> PlanAnswer:  # noqa: ARG002 - a `Person`
            return KeepPlanning("why?")

    with desk.manned(Person()):
        assert await desk.review_plan(plan) == KeepPlanning("why?")
    assert await desk.review_plan(plan) == Unreviewed()


@pytest.mark.parametrize(
    ("plan", "line"),
    [
        pytest.param("# Round once\nmore", "Round once", id="a heading"),
        pytest.param("\n\nJust do it", "Just do it", id="words"),
        pytest.param("###", "", id="nothing in it"),
    ],
)
def test_a_plan_is_called_by_its_first_line(plan: str, line: str) -> None:
    tool = present_plan_tool(Nobody(), Gate("plan"))
    assert tool.describe(PresentPlanArguments(plan=plan)) == line


@pytest.mark.parametrize(
    "arguments", [{"plan": " \n"}, {"plan": "x" * (MAX_PLAN_CHARS + 1)}, {}, {"plan": "x", "b": 1}]
)
def test_no_plan_and_one_without_end_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"plan|b"):
        PresentPlanArguments.model_validate(arguments)
