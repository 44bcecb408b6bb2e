"""Whether something was refused in a turn only because nobody could be asked.

Pure, and total over whatever stands in a record: such a cell is not done, since it would go
another way with a person, a rule or a mode that allows it.
"""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from crush_kernel.history.subagentrecord import KEY as SUBAGENT
from crush_kernel.messages import ToolResult
from crush_kernel.permissions.gate import NOBODY

DENIED_ATTACHMENT: Final = " could not be attached: Permission denied"
"""What stands in a prompt in the place of a file that may not be read."""

MAX_NOTE_CHARS: Final = 2_000
"""How much of a text can be such a note."""

_Json = Mapping[str, object]


def is_unasked(result: ToolResult) -> bool:
    """Return whether the call of `result` was refused since nobody could be asked."""
    return result.is_error and result.metadata.get("permission_by") == "nobody"


def is_unasked_attachment(text: str) -> bool:
    """Return whether `text` stands for a file that nobody could be asked about."""
    note = text[:MAX_NOTE_CHARS]
    return DENIED_ATTACHMENT in note and NOBODY in note


def has_unasked(record: Mapping[str, object]) -> bool:
    """Return whether the turn of `record` has such a refusal, its sub-agents included."""
    return any(
        _is_refusal(part) or _is_note(part) or any(map(_is_refusal, _inside(part)))
        for part in _parts(record)
    )


def _is_refusal(part: _Json) -> bool:
    is_failed = part.get("kind") == "tool_result" and part.get("is_error") is True
    return is_failed and _object(part.get("metadata")).get("permission_by") == "nobody"


def _is_note(part: _Json) -> bool:
    text = part.get("text")
    return part.get("kind") == "text" and isinstance(text, str) and is_unasked_attachment(text)


def _inside(part: _Json) -> Iterator[_Json]:
    """Yield the parts of what a sub-agent said in the call whose result `part` is."""
    yield from _parts(_object(_object(part.get("metadata")).get(SUBAGENT)))


def _parts(record: _Json) -> Iterator[_Json]:
    for message in _objects(record.get("messages")):
        parts = list(_objects(message.get("parts")))
        # Of a prompt the first part is what the user wrote, who may quote anything.
        yield from parts[1:] if message.get("role") == "user" else parts


def _objects(value: object) -> Iterator[_Json]:
    for item in cast("list[object]", value) if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield cast("_Json", item)


def _object(value: object) -> _Json:
    return cast("_Json", value) if isinstance(value, dict) else {}
