"""What is to be shown, without secrets, before it is cut to the length in which it is shown.

Of a token that a limit has cut in two nobody can tell any more that it was one. So what
happens in a turn is cleaned as a whole, and only then shown in short.
"""

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from crush_kernel.agent.events import (
    Event,
    HookTold,
    Notice,
    PermissionSettled,
    Retrying,
    Steered,
    SummaryFinished,
    TodosChanged,
    ToolCallWritten,
    ToolFinished,
    ToolProgressed,
    ToolRewritten,
    ToolStarted,
)
from crush_kernel.history.redaction import Redactor
from crush_kernel.history.todos import Todo
from crush_kernel.messages import Message, ToolResult
from crush_kernel.permissions.request import CommandPart, PermissionRequest
from crush_kernel.tools.question import QuestionForm

WITHHELD = "[holds a secret]"
"""Stands for a part of a command that cannot be shown by itself."""

_Shown = (
    ToolStarted
    | ToolRewritten
    | HookTold
    | ToolProgressed
    | ToolCallWritten
    | Notice
    | Retrying
    | SummaryFinished
    | Steered
    | Todo
    | PermissionRequest
)

E = TypeVar("E", bound=_Shown)


def redacted_event(event: Event, redactor: Redactor) -> Event:
    """Return `event` without the secrets in it; text that streams is not its business."""
    match event:
        case ToolStarted():
            return _cleaned(event, redactor, "name", "summary")
        case ToolRewritten():
            return _cleaned(event, redactor, "summary")
        case ToolProgressed():
            return _cleaned(event, redactor, "tail")
        case ToolCallWritten():
            return _cleaned(event, redactor, "name")
        case Notice() | HookTold() | SummaryFinished() | Steered():
            return _cleaned(event, redactor, "text")
        case Retrying():
            return _cleaned(event, redactor, "reason")
        case TodosChanged(todos=todos):
            cleaned = [_cleaned(todo, redactor, "content", "active_form") for todo in todos]
            return TodosChanged(tuple(cleaned))
        case PermissionSettled(request=request):
            return replace(
                event,
                request=redacted_request(request, redactor),
                reason=redactor.redact(event.reason),
            )
        case ToolFinished(result=result):
            return replace(event, result=_result(result, redactor))
        case _:
            return event


def redacted_request(request: PermissionRequest, redactor: Redactor) -> PermissionRequest:
    """Return `request` as a person is to see it; what it grants depends on the original."""
    cleaned = _cleaned(request, redactor, "tool", "title", "command", "diff", "server", "on_behalf")
    return replace(
        cleaned,
        paths=_paths(request.paths, redactor),
        reads=_paths(request.reads, redactor),
        writes=_paths(request.writes, redactor),
        cwd=None if request.cwd is None else _path(request.cwd, redactor),
        parts=tuple(
            _part(part, request.command, cleaned.command, redactor) for part in request.parts
        ),
        dangers=tuple(map(redactor.redact, request.dangers)),
        notes=tuple(map(redactor.redact, request.notes)),
    )


def redacted_form(form: QuestionForm, redactor: Redactor) -> QuestionForm:
    """Return `form` as a person is to see it; ids are not shown, and stay."""
    clean = redactor.redact
    questions = tuple(
        replace(
            each,
            text=clean(each.text),
            description=clean(each.description),
            label=clean(each.label),
            choices=tuple(
                replace(one, label=clean(one.label), description=clean(one.description))
                for one in each.choices
            ),
        )
        for each in form.questions
    )
    return replace(
        form, questions=questions, title=clean(form.title), description=clean(form.description)
    )


def _part(part: CommandPart, command: str, cleaned: str, redactor: Redactor) -> CommandPart:
    """Return `part` without secrets, also those that only the whole `command` gives away."""
    clean = redactor.redact
    text = clean(part.text)
    if command != cleaned and part.text in command and text not in cleaned:
        return CommandPart(WITHHELD, (), clean(part.does), is_read_only=part.is_read_only)
    return replace(
        part,
        text=text,
        argv=tuple(None if word is None else clean(word) for word in part.argv),
        does=clean(part.does),
        reads=tuple(map(clean, part.reads)),
        writes=tuple(map(clean, part.writes)),
    )


def _paths(paths: tuple[Path, ...], redactor: Redactor) -> tuple[Path, ...]:
    return tuple(_path(path, redactor) for path in paths)


def _path(path: Path, redactor: Redactor) -> Path:
    text = str(path)
    return path if (cleaned := redactor.redact(text)) == text else Path(cleaned)


def _result(result: ToolResult, redactor: Redactor) -> ToolResult:
    (message,) = redactor.redact_messages((Message("tool", (result,)),))
    (part,) = message.parts
    return part if isinstance(part, ToolResult) else result


def _cleaned(event: E, redactor: Redactor, *fields: str) -> E:
    texts = {name: str(getattr(event, name)) for name in fields}
    cleaned = {name: redactor.redact(text) for name, text in texts.items()}
    return event if cleaned == texts else replace(event, **cleaned)
