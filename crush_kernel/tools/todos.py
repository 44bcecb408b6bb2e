"""The `todos` tool: the model writes down what is to do, and how far it has come.

The tool keeps nothing. The list is in the result's metadata, so it is where the
conversation is, see `history.todos`.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

from crush_kernel.history.todos import (
    KEY,
    MAX_TODO_CHARS,
    MAX_TODOS,
    Todo,
    TodoStatus,
    count_done,
    write_todos,
)
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)

_Content = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TODO_CHARS)
]
_ActiveForm = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TODO_CHARS)]


class TodoArguments(BaseModel):
    """What the model says about one entry."""

    # The active form is asked for, since people read it; not insisted on.
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"required": ["content", "status", "active_form"]},
    )

    content: _Content = Field(description="What is to be done: `Run the tests`")
    status: TodoStatus = Field(description="How far it has come")
    active_form: _ActiveForm = Field(
        default="", description="The same while it is being done: `Running the tests`"
    )


_Entry = Annotated[TodoArguments, WithJsonSchema(TodoArguments.model_json_schema())]
"""With its schema in place: not every server of models follows a reference."""


class TodosArguments(Arguments):
    """The list as it is now to be."""

    todos: tuple[_Entry, ...] = Field(
        max_length=MAX_TODOS,
        description="The whole list, in the order of the work; what is not in it is off the list",
    )


def todos_tool() -> Tool[TodosArguments]:
    """Return the tool, which only says back what it was given."""

    async def run(arguments: TodosArguments, context: ToolContext) -> ToolOutput:  # noqa: ARG001 - one signature
        todos = _list_of(arguments)
        return ToolOutput(
            " ".join(_text(todos)),
            summary=f"{count_done(todos)} of {len(todos)} done" if todos else "emptied",
            metadata={KEY: write_todos(todos)},
        )

    return Tool(
        name="todos",
        description=description_of("todos", {"todos": MAX_TODOS}),
        arguments=TodosArguments,
        run=run,
        describe=_describe,
        timeout_s=QUICK_S,
        is_read_only=True,
        is_harmless=True,
    )


def _list_of(arguments: TodosArguments) -> tuple[Todo, ...]:
    return tuple(Todo(each.content, each.status, each.active_form) for each in arguments.todos)


def _text(todos: tuple[Todo, ...]) -> Iterator[str]:
    """Yield what the model reads of it, a sentence each."""
    if not todos:
        yield "The list is empty now."
        return
    done = count_done(todos)
    started = sum(todo.status == "in_progress" for todo in todos)
    waiting = len(todos) - done - started
    yield f"The list is set: {done} completed, {started} in progress, {waiting} pending."
    if done == len(todos):
        yield "Everything on it is done."
    elif started == 0:
        yield "Mark what you do next as in_progress."
    elif started > 1:
        yield "Work on one entry at a time where you can, and mark only that one as in_progress."


def _describe(arguments: TodosArguments) -> str:
    """Return what is being done now, or what comes next."""
    todos = _list_of(arguments)
    for todo in todos:
        if todo.status == "in_progress":
            return todo.active_form or todo.content
    return next((todo.content for todo in todos if todo.status == "pending"), "")
