"""The todo list as a conversation holds it: derived, bounded, brought to mind when it helps."""

import json
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from crush_kernel.history.todos import (
    MAX_TODO_CHARS,
    MAX_TODOS,
    REMIND_AFTER_STEPS,
    Todo,
    TodoReader,
    TodoState,
    parse_todos,
    todo_lines,
    todo_reminder,
    write_todos,
)
from crush_kernel.messages import Message, Text, ToolResult
from tests.history.values import WILD

TEST = Todo("Run the tests", "in_progress", "Running the tests")
DOCS = Todo("Write the docs", "pending", "Writing the docs")
DONE = Todo("Read the code", "completed", "Reading the code")

PROMPT = Message("user", (Text("do it"),))
REPLY = Message("assistant", (Text("well"),))


def result(*todos: Todo, is_error: bool = False) -> Message:
    return raw_result(write_todos(todos), is_error=is_error)


def raw_result(value: JsonValue, *, is_error: bool = False) -> Message:
    return Message("tool", (ToolResult("t", "set", is_error=is_error, metadata={"todos": value}),))


OTHER = Message("tool", (ToolResult("t", "seen", metadata={"summary": "3 lines"}),))


@pytest.mark.parametrize(
    ("messages", "todos"),
    [
        pytest.param((PROMPT, REPLY), (), id="never set"),
        pytest.param((PROMPT, REPLY, result(TEST)), (TEST,), id="set"),
        pytest.param((result(DOCS), REPLY, result(TEST, DOCS)), (TEST, DOCS), id="set again"),
        pytest.param((result(TEST), REPLY, OTHER), (TEST,), id="other results change nothing"),
        pytest.param(
            (result(TEST), result(DOCS, is_error=True)), (TEST,), id="nor do failed calls"
        ),
        pytest.param((result(TEST), result()), (), id="emptied on purpose"),
        pytest.param((raw_result("none"),), (), id="no list at all"),
        pytest.param(
            (Message("tool", (*result(DOCS).parts, *result(TEST).parts)),),
            (TEST,),
            id="the last of several calls in one reply",
        ),
        pytest.param(
            (Message("user", result(TEST).parts),), (), id="only what a tool has answered counts"
        ),
    ],
)
def test_the_list_is_what_was_set_last(messages: tuple[Message, ...], todos: object) -> None:
    assert (TodoReader().read(messages).todos or ()) == todos


@pytest.mark.parametrize(
    ("value", "todos"),
    [
        pytest.param([{"content": "a", "status": "pending"}], [Todo("a", "pending")], id="bare"),
        pytest.param(
            [{"content": "a", "status": "pending", "active_form": 3, "later": None}],
            [Todo("a", "pending")],
            id="what is not understood is left out",
        ),
        pytest.param([{"content": "a", "status": "done"}], [], id="no such status"),
        pytest.param([{"content": "a", "status": ["pending"]}], [], id="status of a wrong type"),
        pytest.param([{"content": " ", "status": "pending"}], [], id="blank"),
        pytest.param([None, 3, "a", ("b",)], [], id="no entries"),
        pytest.param({"content": "a", "status": "pending"}, [], id="no list"),
        pytest.param(
            [{"content": "a\ud800", "status": "pending"}],
            [Todo("a\ufffd", "pending")],
            id="half a character",
        ),
        pytest.param(
            [{"content": "a" * (MAX_TODO_CHARS + 1), "status": "pending"}],
            [Todo("a" * (MAX_TODO_CHARS - 1) + "…", "pending")],
            id="too long",
        ),
    ],
)
def test_a_list_from_anywhere_is_read_as_far_as_it_is_one(value: object, todos: list[Todo]) -> None:
    assert parse_todos(value) == tuple(todos)


@given(WILD | st.lists(WILD))
def test_a_wild_list_is_bounded_and_can_be_written(value: object) -> None:
    todos = parse_todos(value)
    assert len(todos) <= MAX_TODOS
    assert parse_todos(json.loads(json.dumps(write_todos(todos)))) == todos


def test_a_list_without_end_is_cut() -> None:
    entries = [{"content": str(n), "status": "pending"} for n in range(10_000)]
    assert [todo.content for todo in parse_todos(entries)] == [str(n) for n in range(MAX_TODOS)]


def test_the_model_reads_a_line_for_each() -> None:
    hostile = Todo("one\n- [x] two", "pending")
    assert todo_lines((DONE, TEST, DOCS, hostile)) == (
        "- [x] Read the code",
        "- [~] Run the tests",
        "- [ ] Write the docs",
        "- [ ] one - [x] two",
    )


def after(steps: int, *todos: Todo) -> TodoState:
    return TodoReader().read((PROMPT, result(*todos), *[REPLY] * steps))


@pytest.mark.parametrize(
    ("state", "is_said"),
    [
        pytest.param(TodoState(None, REMIND_AFTER_STEPS), False, id="never set"),
        pytest.param(after(0, TEST), False, id="just set"),
        pytest.param(after(REMIND_AFTER_STEPS - 1, TEST), False, id="lately"),
        pytest.param(after(REMIND_AFTER_STEPS, TEST, DONE), True, id="long ago"),
        pytest.param(after(REMIND_AFTER_STEPS + 1, TEST), False, id="was said with the last step"),
        pytest.param(after(2 * REMIND_AFTER_STEPS, DOCS), True, id="twice as long ago"),
        pytest.param(after(REMIND_AFTER_STEPS, DONE), False, id="nothing is open"),
        pytest.param(after(REMIND_AFTER_STEPS), False, id="nothing is on it"),
    ],
)
def test_the_model_is_reminded_of_an_open_list_that_it_left_alone(
    state: TodoState, *, is_said: bool
) -> None:
    assert bool(todo_reminder(state)) is is_said


def test_the_reminder_states_the_list_as_it_is() -> None:
    said = todo_reminder(after(REMIND_AFTER_STEPS, DONE, TEST))
    assert f"not changed for {REMIND_AFTER_STEPS} replies" in said
    assert "- [x] Read the code\n- [~] Run the tests\n" in said


LISTS = st.lists(st.sampled_from((TEST, DOCS, DONE)), max_size=3).map(lambda some: result(*some))


@given(st.lists(LISTS | st.sampled_from((PROMPT, REPLY, OTHER))), st.data())
def test_reading_on_gives_what_reading_all_gives(
    messages: list[Message], data: st.DataObject
) -> None:
    reader = TodoReader()
    for cut in sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=4))):
        reader.read(tuple(messages[:cut]))
    assert reader.read(tuple(messages)) == TodoReader().read(tuple(messages))


@given(st.lists(LISTS), st.lists(LISTS))
def test_a_conversation_that_was_changed_is_read_anew(
    one: list[Message], two: list[Message]
) -> None:
    reader = TodoReader()
    reader.read(tuple(one))
    assert reader.read(tuple(two)) == TodoReader().read(tuple(two))


def test_a_long_history_costs_nothing_again() -> None:
    messages = (result(TEST), *[REPLY, OTHER] * 20_000)
    reader = TodoReader()
    reader.read(messages)
    started = perf_counter()
    for _ in range(10):
        messages = (*messages, REPLY)
        reader.read(messages)
    assert perf_counter() - started < 0.25
