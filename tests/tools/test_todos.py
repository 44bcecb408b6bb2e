"""The `todos` tool: what the model may say, what it reads, and what is kept of it."""

import json
from typing import Any

import pytest
from pydantic import JsonValue

from crush_kernel.agent.calls import prepare
from crush_kernel.agent.toolsizes import spec_of
from crush_kernel.history.todos import MAX_TODO_CHARS, MAX_TODOS, Todo, todos_of
from crush_kernel.messages import ToolCall, ToolResult
from crush_kernel.tools.base import ToolOutput, erase
from crush_kernel.tools.todos import todos_tool
from tests.fakes.tool_context import tool_context

pytestmark = pytest.mark.anyio

TOOL = erase(todos_tool())


def entry(status: str = "pending", **changes: JsonValue) -> dict[str, JsonValue]:
    return {
        "content": "Run the tests",
        "status": status,
        "active_form": "Running the tests",
        **changes,
    }


async def call(*entries: JsonValue) -> tuple[ToolOutput, str]:
    """Make a call as the model does; return its output and what a person reads of it."""
    prepared = prepare(ToolCall("t1", "todos", json.dumps({"todos": [*entries]})), {"todos": TOOL})
    return await prepared.run(tool_context().context), prepared.shown


@pytest.mark.parametrize(
    ("statuses", "said", "summary"),
    [
        pytest.param(
            ("completed", "in_progress", "pending", "pending"),
            "The list is set: 1 completed, 1 in progress, 2 pending.",
            "1 of 4 done",
            id="under way",
        ),
        pytest.param(
            ("pending",),
            "The list is set: 0 completed, 0 in progress, 1 pending. "
            "Mark what you do next as in_progress.",
            "0 of 1 done",
            id="not begun",
        ),
        pytest.param(
            ("in_progress", "in_progress"),
            "The list is set: 0 completed, 2 in progress, 0 pending. Work on one entry at a time "
            "where you can, and mark only that one as in_progress.",
            "0 of 2 done",
            id="two at a time is advice, not an error",
        ),
        pytest.param(
            ("completed", "completed"),
            "The list is set: 2 completed, 0 in progress, 0 pending. Everything on it is done.",
            "2 of 2 done",
            id="done",
        ),
        pytest.param((), "The list is empty now.", "emptied", id="emptied"),
    ],
)
async def test_the_model_reads_how_far_it_has_come(
    statuses: tuple[str, ...], said: str, summary: str
) -> None:
    output, _ = await call(*map(entry, statuses))
    assert (output.text, output.summary, output.is_error) == (said, summary, False)


async def test_the_list_is_kept_with_the_result() -> None:
    output, _ = await call(entry("in_progress"), entry("completed", content=" Read \n"))
    result = ToolResult("t1", output.text, metadata=output.metadata)
    assert todos_of(result) == (
        Todo("Run the tests", "in_progress", "Running the tests"),
        Todo("Read", "completed", "Running the tests"),
    )


@pytest.mark.parametrize(
    ("entries", "shown"),
    [
        pytest.param((entry(), entry("in_progress")), "Running the tests", id="what is done now"),
        pytest.param(
            (entry("in_progress", active_form=""),), "Run the tests", id="without an active form"
        ),
        pytest.param((entry("completed"), entry()), "Run the tests", id="what comes next"),
        pytest.param((entry("completed"),), "", id="nothing is left"),
    ],
)
async def test_a_person_reads_what_is_being_done(
    entries: tuple[JsonValue, ...], shown: str
) -> None:
    assert (await call(*entries))[1] == shown


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        pytest.param(
            (entry("done"),),
            "todos.0.status: Input should be 'pending', 'in_progress' or 'completed'",
            id="status",
        ),
        pytest.param(
            (entry(content=" "),), "todos.0.content: String should have at least 1", id="blank"
        ),
        pytest.param(
            (entry(), entry(content="x" * (MAX_TODO_CHARS + 1))),
            f"todos.1.content: String should have at most {MAX_TODO_CHARS} characters",
            id="too long",
        ),
        pytest.param(("a",), "todos.0: ", id="no object"),
        pytest.param((entry(priority=1),), "todos.0.priority: Extra inputs", id="unknown name"),
        pytest.param(
            (entry(),) * (MAX_TODOS + 1), f"todos: List should have at most {MAX_TODOS}", id="many"
        ),
    ],
)
async def test_a_wrong_list_is_an_error_that_says_what_is_right(
    entries: tuple[JsonValue, ...], fault: str
) -> None:
    output, _ = await call(*entries)
    assert output.is_error
    assert fault in output.text
    assert "Nothing was run." in output.text
    assert output.metadata == {}


def test_the_schema_asks_for_all_three_and_needs_no_lookup() -> None:
    written = json.dumps(spec_of(TOOL).input_schema)
    schema: Any = json.loads(written)
    entries = schema["properties"]["todos"]["items"]
    assert entries["required"] == ["content", "status", "active_form"]
    assert "$ref" not in written


def test_the_model_is_told_how_long_the_list_may_be() -> None:
    assert f"at most {MAX_TODOS} entries" in TOOL.description
