"""What hooks are told."""

import json

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.hooks.payload import (
    MAX_VARIABLE_BYTES,
    Situation,
    ToolAnswer,
    ToolUse,
    answer_facts,
    payload,
    use_facts,
    variables,
)

HERE = Situation("s1", "/w/sub", "/w", "/w/nb.ipynb", "accept-edits")
USE = ToolUse("c1", "bash", {"command": "ls"})


def test_a_call_is_told_in_both_contracts() -> None:
    told = json.loads(payload("PreToolUse", HERE, use_facts(USE, "Bash")))
    assert told == {
        "event": "PreToolUse",
        "hook_event_name": "PreToolUse",
        "session_id": "s1",
        "transcript_path": "/w/nb.ipynb",
        "cwd": "/w/sub",
        "permission_mode": "acceptEdits",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": "c1",
    }


def test_a_sub_agents_call_says_whose_it_is() -> None:
    use = ToolUse("c1", "bash", {}, agent="task")
    assert use_facts(use, "bash")["agent_type"] == "task"


def test_a_result_is_told_by_the_names_that_scripts_look_for() -> None:
    use = ToolUse("c1", "edit", {"file_path": "a.py"})
    facts = answer_facts(use, ToolAnswer("done", {"diff": "-"}))
    assert facts["tool_response"] == {
        "content": "done",
        "success": True,
        "filePath": "a.py",
        "metadata": {"diff": "-"},
    }


def test_variables_name_the_call_the_folder_and_the_project() -> None:
    use = ToolUse("c1", "x", {"command": "ls", "file_path": "a b", "other": "no"})
    assert variables("PreToolUse", HERE, use_facts(use, "x")) == {
        "CRUSH": "1",
        "CRUSH_EVENT": "PreToolUse",
        "CRUSH_TOOL_NAME": "x",
        "CRUSH_SESSION_ID": "s1",
        "CRUSH_CWD": "/w/sub",
        "CRUSH_PROJECT_DIR": "/w",
        "CLAUDE_PROJECT_DIR": "/w",
        "CRUSH_TOOL_INPUT_COMMAND": "ls",
        "CRUSH_TOOL_INPUT_FILE_PATH": "a b",
    }


def test_what_no_variable_can_hold_is_in_the_object_all_the_same() -> None:
    long = "x" * (MAX_VARIABLE_BYTES + 1)
    facts = use_facts(ToolUse("c1", "bash", {"command": long, "file_path": 3}), "bash")
    names = variables("PreToolUse", HERE, facts).keys()
    assert not {"CRUSH_TOOL_INPUT_COMMAND", "CRUSH_TOOL_INPUT_FILE_PATH"} & names
    assert json.loads(payload("PreToolUse", HERE, facts))["tool_input"]["command"] == long


@given(
    st.dictionaries(
        st.text(st.characters(codec=None)) | st.sampled_from(["command", "file_path"]),
        st.text(st.characters(codec=None)) | st.integers() | st.none(),
    )
)
def test_any_input_makes_valid_json_and_variables_that_a_program_can_have(
    given_input: dict[str, JsonValue],
) -> None:
    facts = use_facts(ToolUse("c1", "bash", given_input), "bash")
    told = json.loads(payload("PreToolUse", HERE, facts).decode("utf-8"))
    assert told["tool_input"].keys() >= {key for key in given_input if key.isascii()}
    for value in variables("PreToolUse", HERE, facts).values():
        assert "\0" not in value
        value.encode("utf-8")
