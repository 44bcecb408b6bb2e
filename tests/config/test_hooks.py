"""Which hooks configuration files list, and what is said of entries that make no sense."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.config.configfiles import ConfigFile
from crush_kernel.config.hooks import Hook, ReadHooks, read_hooks

PATH = Path("/home/me/.config/crush/crush.json")


def read(*listed: JsonValue) -> ReadHooks:
    return read_hooks(ConfigFile(PATH, "user", {"hooks": each}, "") for each in listed)


def in_event(entry: JsonValue, event: str = "PreToolUse") -> ReadHooks:
    return read({event: [entry]})


@pytest.mark.parametrize(
    ("entry", "hook"),
    [
        pytest.param({"command": "a"}, Hook("PreToolUse", "a"), id="a command"),
        pytest.param(
            {"command": "a", "matcher": "^bash$", "name": "n", "timeout": 3, "fail": "closed"},
            Hook("PreToolUse", "a", "^bash$", name="n", timeout_s=3, fail="closed"),
            id="everything",
        ),
        pytest.param({"command": "a", "timeout": 0}, Hook("PreToolUse", "a"), id="no time"),
        pytest.param(
            {"command": "a", "timeout": 1.5}, Hook("PreToolUse", "a", timeout_s=1.5), id="fraction"
        ),
        pytest.param(
            {"command": "a", "matcher": "*"}, Hook("PreToolUse", "a", "*"), id="star for all"
        ),
        pytest.param(
            {"hooks": [{"type": "command", "command": "a", "timeout": 5}], "matcher": "Edit|Write"},
            Hook("PreToolUse", "a", "Edit|Write", timeout_s=5, is_nested=True),
            id="nested",
        ),
        pytest.param(
            {"hooks": [{"type": "command", "command": "a"}]},
            Hook("PreToolUse", "a", is_nested=True),
            id="nested without a matcher",
        ),
    ],
)
def test_an_entry_is_a_hook(entry: JsonValue, hook: Hook) -> None:
    found = in_event(entry)
    assert found.hooks == (hook,)


@pytest.mark.parametrize(
    "word", ["PreToolUse", "pretooluse", "pre_tool_use", "PRE_TOOL_USE", "Pre_ToolUse"]
)
def test_an_event_is_known_however_it_is_spelled(word: str) -> None:
    assert [hook.event for hook in in_event({"command": "a"}, word).hooks] == ["PreToolUse"]


def test_spellings_of_one_event_and_all_files_count_together_in_their_order() -> None:
    one: JsonValue = {"Stop": [{"command": "a"}], "stop": [{"command": "b"}]}
    two: JsonValue = {"STOP": [{"command": "c"}]}
    assert [hook.command for hook in read(one, two).hooks] == ["a", "b", "c"]


def test_the_same_entry_counts_once_and_the_same_command_with_another_matcher_twice() -> None:
    entries: list[JsonValue] = [
        {"command": "a", "matcher": "bash"},
        {"command": "a", "matcher": "bash"},
        {"command": "a", "matcher": "edit"},
    ]
    matchers = [hook.matcher for hook in read({"PreToolUse": entries}).hooks]
    assert matchers == ["bash", "edit"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        pytest.param("a", "is not an object", id="text"),
        pytest.param({}, "no `command`", id="nothing"),
        pytest.param({"command": " "}, "no `command`", id="a blank command"),
        pytest.param({"command": ["a"]}, "no `command`", id="a list as command"),
        pytest.param({"command": "a", "matcher": "("}, "no regular expression", id="a bad regex"),
        pytest.param({"command": "a", "matcher": 3}, "not text", id="a number as matcher"),
        pytest.param({"hooks": "a"}, "not a list", id="nested text"),
        pytest.param({"hooks": ["a"]}, "hook 1 is not an object", id="nested list of texts"),
        pytest.param({"hooks": [{"type": "prompt", "prompt": "p"}]}, "type", id="a prompt"),
    ],
)
def test_an_entry_that_makes_no_sense_is_told_with_its_file_and_not_used(
    entry: JsonValue, words: str
) -> None:
    found = in_event(entry)
    assert found.hooks == ()
    (warning,) = found.warnings
    assert str(PATH) in warning
    assert "PreToolUse, entry 1" in warning
    assert words in warning


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param({"timeout": "10s"}, "`timeout`", id="a time with a unit"),
        pytest.param({"timeout": True}, "`timeout`", id="true for a time"),
        pytest.param({"timeout": -3}, "`timeout`", id="a negative time"),
        pytest.param({"timeout": 10**400}, "`timeout`", id="a time without end"),
        pytest.param({"timeout": 1e9}, "`timeout`", id="a time of years"),
        pytest.param({"fail": "close"}, "`fail`", id="an unknown policy"),
        pytest.param({"env": {}}, "`env`", id="an unknown key"),
        pytest.param({"name": 3}, "`name`", id="a number as name"),
    ],
)
def test_what_is_odd_about_a_hook_is_told_and_it_runs_all_the_same(
    more: dict[str, JsonValue], words: str
) -> None:
    found = in_event({"command": "a", **more})
    assert [hook.command for hook in found.hooks] == ["a"]
    assert 0 < found.hooks[0].timeout_s <= 600
    assert words in " ".join(found.warnings)


def test_a_typo_in_what_failing_means_does_not_loosen_a_hook() -> None:
    assert in_event({"command": "a", "fail": "Closed"}).hooks[0].fail == "closed"


@pytest.mark.parametrize("word", ["Notification", "PreCompact", "", "PreToolUse2"])
def test_an_unknown_event_is_told_and_never_fires(word: str) -> None:
    found = in_event({"command": "a"}, word)
    assert found.hooks == ()
    assert "no event" in found.warnings[0]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["command", "matcher", "timeout", "fail", "name", "hooks", "type", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["PreToolUse", "stop", "x"]), VALUES) | VALUES)
def test_nothing_in_a_file_makes_reading_fail(listed: JsonValue) -> None:
    for hook in read(listed).hooks:
        assert hook.command.strip()
        assert 0 < hook.timeout_s <= 600
        assert len(hook.label) <= 60
