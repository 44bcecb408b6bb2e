"""What the environment says is taken as meant, and a typo does no harm."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.config.settings import PermissionMode, read_settings
from crush_kernel.permissions.decision import decide
from crush_kernel.permissions.request import PermissionRequest

HOME = {"HOME": "/home/ada"}


@pytest.mark.parametrize("mode", ["default", "accept-edits", "plan", "yolo"])
def test_a_permission_mode_is_taken_as_written(mode: PermissionMode) -> None:
    settings = read_settings({**HOME, "CRUSH_PERMISSION_MODE": mode})
    assert (settings.permission_mode, settings.warnings) == (mode, ())


@pytest.mark.parametrize(
    ("value", "mode"),
    [
        pytest.param(" plan ", "plan", id="spaces around"),
        pytest.param("PLAN", "plan", id="capitals"),
        pytest.param("accept_edits", "accept-edits", id="underscore"),
        pytest.param("", "default", id="empty"),
    ],
)
def test_a_permission_mode_may_be_spelled_freely(value: str, mode: str) -> None:
    settings = read_settings({**HOME, "CRUSH_PERMISSION_MODE": value})
    assert (settings.permission_mode, settings.warnings) == (mode, ())


@pytest.mark.parametrize("value", ["yolo!", "y", "1", "true", "all", "yolo,plan", "\udcff", "auto"])
def test_a_typo_in_the_permission_mode_is_reported_and_allows_nothing_more(value: str) -> None:
    settings = read_settings({**HOME, "CRUSH_PERMISSION_MODE": value})
    assert settings.permission_mode == "default"
    (warning,) = settings.warnings
    assert "CRUSH_PERMISSION_MODE" in warning
    assert warning.isascii()


@given(value=st.text())
def test_no_text_but_its_own_name_turns_a_loose_mode_on(value: str) -> None:
    mode = read_settings({**HOME, "CRUSH_PERMISSION_MODE": value}).permission_mode
    request = PermissionRequest(call_id="1", tool="bash", action="execute", title="run")
    is_named = value.strip().lower() == "yolo"
    assert (decide(request, mode=mode, grants=frozenset()).kind == "allow") == is_named


@pytest.mark.parametrize("name", ["CRUSH_MODEL", "CRUSH_SMALL_MODEL"])
@pytest.mark.parametrize(
    ("value", "label", "warned"),
    [
        pytest.param("openai/gpt-5", "openai/gpt-5", False, id="plain"),
        pytest.param("  openai/gpt-5\n", "openai/gpt-5", False, id="spaces around"),
        pytest.param("ollama/qwen3:8b", "ollama/qwen3:8b", False, id="with a tag"),
        pytest.param("", "", False, id="empty"),
        pytest.param("   ", "", False, id="blank"),
        pytest.param("open ai/gpt", "", True, id="a space inside"),
        pytest.param("openai/\x1b[31mgpt", "", True, id="control characters"),
        pytest.param("openai/\udcff", "", True, id="bytes that are not UTF-8"),
        pytest.param("x" * 201, "", True, id="too long"),
    ],
)
def test_a_model_is_a_label_or_is_set_aside(
    name: str, value: str, label: str, warned: Literal[True, False]
) -> None:
    settings = read_settings({**HOME, name: value})
    assert label == (settings.model if name == "CRUSH_MODEL" else settings.small_model)
    assert bool(settings.warnings) == warned
    assert all(name in warning and warning.isprintable() for warning in settings.warnings)


@pytest.mark.parametrize(
    ("value", "uses_cache", "warned"),
    [
        pytest.param("1", False, False, id="one"),
        pytest.param("TRUE", False, False, id="true"),
        pytest.param("yes", False, False, id="yes"),
        pytest.param("0", True, False, id="zero"),
        pytest.param("off", True, False, id="off"),
        pytest.param("", True, False, id="empty"),
        pytest.param("perhaps", True, True, id="neither"),
    ],
)
def test_prompt_caching_can_be_turned_off(value: str, uses_cache: bool, warned: bool) -> None:  # noqa: FBT001 - a table
    settings = read_settings({**HOME, "CRUSH_DISABLE_ANTHROPIC_CACHE": value})
    assert settings.uses_prompt_cache == uses_cache
    assert bool(settings.warnings) == warned


def test_a_variable_with_crushs_prefix_goes_before_the_plain_one() -> None:
    settings = read_settings(
        {**HOME, "OPENAI_API_KEY": "plain", "CRUSH_OPENAI_API_KEY": "own", "B": "b"}
    )
    assert settings.variable("OPENAI_API_KEY") == "own"
    assert settings.variable("A", "B") == "b"


def test_a_blank_variable_counts_as_not_set() -> None:
    settings = read_settings({**HOME, "CRUSH_KEY": " ", "KEY": " k\n"})
    assert settings.variable("KEY") == "k"
    assert settings.variable("OTHER") == ""


def test_settings_are_a_snapshot_and_never_show_the_environment() -> None:
    environ = {**HOME, "OPENAI_API_KEY": "sk-secret"}
    settings = read_settings(environ)
    environ["OPENAI_API_KEY"] = "changed"
    assert settings.variable("OPENAI_API_KEY") == "sk-secret"
    assert "sk-secret" not in repr(settings)


@given(environ=st.dictionaries(st.text(), st.text()))
def test_no_environment_keeps_the_kernel_from_starting(environ: dict[str, str]) -> None:
    settings = read_settings(environ)
    assert settings.directories.data.is_absolute()


@pytest.mark.parametrize(
    ("value", "limit", "warned"),
    [
        pytest.param("", 1_000.0, False, id="not set"),
        pytest.param("0", 0.0, False, id="none"),
        pytest.param(" 250 ", 250.0, False, id="a number"),
        pytest.param("-1", 1_000.0, True, id="less than nothing"),
        pytest.param("inf", 1_000.0, True, id="endless"),
        pytest.param("1e9", 1_000.0, True, id="with an exponent"),
        pytest.param("٣", 1_000.0, True, id="other digits"),
    ],
)
def test_a_limit_of_turns_is_a_number_or_is_set_aside(
    value: str,
    limit: float,
    warned: bool,  # noqa: FBT001 - a table
) -> None:
    settings = read_settings({"CRUSH_MAX_TURN_STEPS": value})
    assert settings.max_turn_steps == limit
    assert bool(settings.warnings) is warned


def test_summaries_are_made_unless_they_are_disabled() -> None:
    assert not read_settings({}).disables_summaries
    assert read_settings({"CRUSH_DISABLE_AUTO_SUMMARIZE": "true"}).disables_summaries
