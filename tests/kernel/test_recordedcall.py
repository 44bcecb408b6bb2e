"""A call of a record says by what right it ran, as it did while it ran."""

import pytest

from crush_kernel.kernel.recordedcall import recorded_call
from crush_kernel.messages import ToolCall, ToolResult

CALL = ToolCall("c", "bash", '{"command": "rm x"}')


@pytest.mark.parametrize(
    ("facts", "is_error", "permission", "is_denied"),
    [
        pytest.param({"permission": "allowed once"}, False, "allowed once", False, id="once"),
        pytest.param({"permission": "denied"}, True, "denied", True, id="denied"),
        pytest.param(
            {"permission": "bash(rm:*)", "permission_by": "rule", "summary": "exit 1"},
            True,
            "allowed by a rule: bash(rm:*)",
            False,
            id="allowed by a rule, and failed",
        ),
        pytest.param(
            {"permission": "bash(rm:*)", "permission_by": "rule", "summary": "denied"},
            True,
            "denied by a rule: bash(rm:*)",
            True,
            id="denied by a rule",
        ),
        pytest.param(
            {"permission": "reading inside the project", "permission_by": "built-in"},
            False,
            "",
            False,
            id="what needs no word",
        ),
        pytest.param({}, False, "", False, id="nothing was asked"),
    ],
)
def test_the_right_of_a_call_is_told_in_words(
    facts: dict[str, str], permission: str, *, is_error: bool, is_denied: bool
) -> None:
    shown = recorded_call(CALL, ToolResult("c", "x", is_error=is_error, metadata={**facts}))
    assert (shown.permission, shown.is_denied) == (permission, is_denied)
