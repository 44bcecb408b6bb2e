"""What the model is told at each prompt of the mode that holds."""

import pytest

from crush_kernel.config.settings import PermissionMode
from crush_kernel.prompt.reminder import describe_mode


@pytest.mark.parametrize("mode", ["default", "accept-edits", "yolo"])
def test_of_most_modes_the_model_is_told_nothing(mode: PermissionMode) -> None:
    assert describe_mode(mode) == ""


def test_in_plan_mode_the_model_is_told_what_to_do() -> None:
    told = describe_mode("plan")
    assert told.startswith("<plan_mode ")
    assert "change nothing" in told
    assert "present_plan" in told
    assert len(told) < 400
