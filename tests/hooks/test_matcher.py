"""Which hooks a tool concerns, and by which name they are told of it."""

import pytest

from crush_kernel.config.hooks import Hook
from crush_kernel.hooks.matcher import matched_hooks


def told(matcher: str, tool: str, *, is_nested: bool = False) -> str | None:
    """Return by which name a hook is told of a call of `tool`, `None` if it is not."""
    hook = Hook("PreToolUse", "true", matcher, is_nested=is_nested)
    return next((each.tool for each in matched_hooks((hook,), tool)), None)


@pytest.mark.parametrize(
    ("matcher", "tool", "name"),
    [
        pytest.param("", "bash", "bash", id="none for all"),
        pytest.param("bash", "bash", "bash", id="its name"),
        pytest.param("edit", "multiedit", "multiedit", id="not anchored"),
        pytest.param("^edit$", "multiedit", None, id="anchored"),
        pytest.param("view", "bash", None, id="another name"),
        pytest.param("^mcp_", "mcp_git_push", "mcp_git_push", id="the beginning"),
        pytest.param("(?i)BASH", "bash", "bash", id="flags"),
        pytest.param("Bash", "bash", "Bash", id="as Claude Code calls it"),
        pytest.param("Edit|Write", "write", "Write", id="one of several"),
        pytest.param("Edit|Write", "multiedit", None, id="names there are whole names"),
        pytest.param("Edit", "edit", "Edit", id="Edit"),
        pytest.param("MultiEdit", "multiedit", "MultiEdit", id="MultiEdit"),
        pytest.param("Read", "view", "Read", id="Read"),
        pytest.param("LS", "ls", "LS", id="LS"),
        pytest.param("Glob", "glob", "Glob", id="Glob"),
        pytest.param("Grep", "grep", "Grep", id="Grep"),
        pytest.param("WebFetch", "fetch", "WebFetch", id="WebFetch"),
        pytest.param("WebSearch", "web_search", "WebSearch", id="WebSearch"),
        pytest.param("Task", "agent", "Task", id="Task"),
        pytest.param("TodoWrite", "todos", "TodoWrite", id="TodoWrite"),
        pytest.param("Notebook.*", "notebook_edit", "NotebookEdit", id="a pattern there"),
        pytest.param("*", "bash", "Bash", id="a star is from there"),
        pytest.param("*", "job_output", "job_output", id="a star, and no name there"),
        pytest.param("mcp__git__push", "mcp_git_push", "mcp__git__push", id="MCP"),
        pytest.param(
            "mcp__my_git__push", "mcp_my_git_push", "mcp__my_git__push", id="MCP, two words"
        ),
        pytest.param("mcp__git__.*", "mcp_git_push", "mcp__git__push", id="a server's"),
        pytest.param("mcp__hub__.*", "mcp_git_push", None, id="another server's"),
    ],
)
def test_a_hook_is_told_of_the_tools_that_its_matcher_fits(
    matcher: str, tool: str, name: str | None
) -> None:
    assert told(matcher, tool) == name


def test_a_hook_written_for_claude_code_is_told_its_names_where_it_names_none() -> None:
    assert told("", "view", is_nested=True) == "Read"
    assert told("", "job_kill", is_nested=True) == "job_kill"
