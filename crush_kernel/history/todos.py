"""The model's list of what is to do, as the conversation holds it.

Pure. The list has no home of its own: it is what the last call of `todos` that went well
has set, so it follows the conversation when cells move, and survives whatever the
conversation survives. What is read here may come from anybody's notebook, so it is bounded
and never raises.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal, cast

from pydantic import JsonValue

from crush_kernel.messages import Message, ToolResult, shared_length, well_formed
from crush_kernel.wording import clipped

TodoStatus = Literal["pending", "in_progress", "completed"]

STATUSES: Final[tuple[TodoStatus, ...]] = ("pending", "in_progress", "completed")

KEY: Final = "todos"
"""Where the list stands in the metadata of a result and in the header of a session."""

MAX_TODOS: Final = 50
"""Entries of one list: more is no list that anybody reads."""

MAX_TODO_CHARS: Final = 300
"""Characters of an entry, or of its active form."""

REMIND_AFTER_STEPS: Final = 12
"""Replies without a word of the list after which it is brought to mind, while it is open."""

_MARKS: Final[dict[TodoStatus, str]] = {"pending": " ", "in_progress": "~", "completed": "x"}


@dataclass(frozen=True, slots=True)
class Todo:
    """One thing to do."""

    content: str
    """What is to be done: `Run the tests`."""
    status: TodoStatus
    active_form: str = ""
    """The same while it is being done: `Running the tests`."""


@dataclass(frozen=True, slots=True)
class TodoState:
    """The list at some point of a conversation."""

    todos: tuple[Todo, ...] | None = None
    """`None` if the list was never set; an empty one was emptied on purpose."""
    idle_steps: int = 0
    """How many replies have come since the list was set."""


@dataclass(slots=True)
class TodoReader:
    """Reads the list of a growing conversation, at the cost of what is new in it. Any thread."""

    _known: tuple[tuple[Message, ...], TodoState] = ((), TodoState())

    def read(self, messages: tuple[Message, ...]) -> TodoState:
        """Return the list after `messages`, oldest first."""
        seen, state = self._known
        if shared_length(seen, messages) < len(seen):
            seen, state = (), TodoState()
        for message in messages[len(seen) :]:
            state = _after(message, state)
        self._known = messages, state
        return state


def parse_todos(value: object) -> tuple[Todo, ...]:
    """Return the list that the JSON `value` is; what is no entry is left out."""
    if not isinstance(value, list | tuple):
        return ()
    entries = cast("Sequence[object]", value)[: 2 * MAX_TODOS]
    found = (_parsed(entry) for entry in entries)
    return tuple(todo for todo in found if todo is not None)[:MAX_TODOS]


def write_todos(todos: Iterable[Todo]) -> list[JsonValue]:
    """Return `todos` as JSON, in one fixed form."""
    return [asdict(todo) for todo in todos]


def todos_of(result: ToolResult) -> tuple[Todo, ...] | None:
    """Return the list that the call with this result has set, `None` if it has set none."""
    if result.is_error or KEY not in result.metadata:
        return None
    return parse_todos(result.metadata[KEY])


def count_done(todos: Iterable[Todo]) -> int:
    """Return how many of `todos` are completed."""
    return sum(todo.status == "completed" for todo in todos)


def is_open(todos: Iterable[Todo]) -> bool:
    """Return whether anything is left to do."""
    return any(todo.status != "completed" for todo in todos)


def todo_lines(todos: Iterable[Todo]) -> tuple[str, ...]:
    """Return `todos` for the model, a line each: `- [~] Run the tests`.

    `[ ]` is to do, `[~]` in progress, `[x]` done.
    """
    return tuple(f"- [{_MARKS[todo.status]}] {' '.join(todo.content.split())}" for todo in todos)


def todo_reminder(state: TodoState) -> str:
    """Return what to remind the model of with the next request; empty if nothing is worth it.

    That is the list as it stands, if something on it is open and it was not touched for
    `REMIND_AFTER_STEPS` replies, and again after as many.
    """
    todos = state.todos or ()
    is_due = state.idle_steps > 0 and state.idle_steps % REMIND_AFTER_STEPS == 0
    if not is_due or not is_open(todos):
        return ""
    lines = "\n".join(todo_lines(todos))
    return (
        f"Your todo list has not changed for {state.idle_steps} replies. It says:\n{lines}\n"
        "If that is no longer so, set it with the todos tool. Otherwise go on with the work, "
        "and do not mention this note."
    )


def _after(message: Message, state: TodoState) -> TodoState:
    if message.role == "assistant":
        return TodoState(state.todos, state.idle_steps + 1)
    todos = _set_by(message)
    return state if todos is None else TodoState(todos)


def _set_by(message: Message) -> tuple[Todo, ...] | None:
    """Return the list that the results of `message` have set last, `None` if they did not."""
    if message.role != "tool":
        return None
    for part in reversed(message.parts):
        if isinstance(part, ToolResult) and (todos := todos_of(part)) is not None:
            return todos
    return None


def _parsed(entry: object) -> Todo | None:
    if not isinstance(entry, Mapping):
        return None
    fields = cast("Mapping[object, object]", entry)
    content, status = fields.get("content"), fields.get("status")
    active = fields.get("active_form")
    if not isinstance(content, str) or not content.strip() or status not in STATUSES:
        return None
    return Todo(
        content=_bounded(content),
        status=status,
        active_form=_bounded(active) if isinstance(active, str) else "",
    )


def _bounded(text: str) -> str:
    return clipped(well_formed(text[: MAX_TODO_CHARS + 1]), MAX_TODO_CHARS)
