"""A turn as it is kept: what was said in one cell, and what is known about it.

Values only. A turn that was read from somewhere carries the JSON it came as, and is
written back as that very JSON, so that fields of a later version survive a round trip.

Source: design §§4, 5.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Literal

from pydantic import JsonValue

from crush_kernel.messages import (
    JsonObject,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    ShellCommand,
    SummaryMark,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)

VERSION: Final = 1

TurnState = Literal["running", "end_turn", "interrupted", "error"]


@dataclass(frozen=True, slots=True)
class Turn:
    """What was said in one cell when it last ran: its prompt, then replies and results."""

    cell_id: str
    """The cell that it ran in: the front end's id, or `#3` for the third cell without one."""
    run: int = 1
    """How often the cell had run by then, this run included."""
    messages: tuple[Message, ...] = ()
    """Oldest first, as the model reads them."""
    revision: int = 0
    """Counts the changes of this turn: one for each message, one for its end."""
    end: TurnState = "running"
    fingerprint: str = ""
    """Of the context that it ran in; see `history.context`."""
    source: str = ""
    """The `source_digest` of the cell's text, to tell whether it was edited since."""
    is_start: bool = False
    """Whether the context of later cells begins after it."""
    volatile: JsonObject = field(default_factory=dict[str, JsonValue])
    """Times and durations: what makes two runs differ that are the same."""
    record: JsonObject | None = None
    """The turn as it is stored; `None` until it was, or was read."""
    digest: str = ""
    """Of what it adds to the context of later cells; empty while it runs."""

    @property
    def id(self) -> str:
        """The turn's id: the same in every copy of the notebook, another one in each run."""
        return f"{self.cell_id}.{self.run}"

    @property
    def age(self) -> tuple[int, int, str]:
        """A key that grows with newness; equal for the same state of the same turn only."""
        return self.run, self.revision, self.digest

    @property
    def usage(self) -> Usage:
        """What all requests of the turn used."""
        return sum((m.usage for m in self.messages if m.usage), Usage())


def newest(turns: Iterable[Turn]) -> dict[str, Turn]:
    """Return the newest of `turns` by turn id.

    The order of `turns` does not matter, nor how they are grouped into several calls.
    """
    found: dict[str, Turn] = {}
    for turn in turns:
        known = found.get(turn.id)
        if known is None or turn.age > known.age:
            found[turn.id] = turn
    return found


def digest_of(messages: Iterable[Message]) -> str:
    """Return a hash of what `messages` say to a model: 32 hex digits.

    Usage and what is only for people do not count.
    """
    hashed = blake2b(digest_size=16)
    for message in messages:
        hashed.update(_framed(message.role, message.provider, message.model))
        for part in message.parts:
            hashed.update(_framed(part.kind, *_said(part)))
    return hashed.hexdigest()


def source_digest(text: str) -> str:
    """Return a hash of a cell's `text`, white space at its ends aside: 16 hex digits.

    A turn keeps that of the text it ran with; another one says that the cell was edited.
    """
    return blake2b(text.strip().encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _said(part: Part) -> Iterable[str]:
    match part:
        case Text(text=text):
            return (text,)
        case Reasoning(text=text, provider_data=data):
            return text, _canonical(data)
        case ToolCall(id=call_id, name=name, input=arguments):
            return call_id, name, arguments
        case ToolResult(call_id=call_id, content=content, is_error=is_error, media=media):
            files = (f"{m.media_type}\0{m.data}\0{m.blob}" for m in media)
            return call_id, content, str(is_error), *files
        case Media(media_type=media_type, data=data, name=name, blob=blob):
            return media_type, data, name, blob
        case ShellCommand(command=command, output=output, exit_code=code):
            return command, output, str(code)
        case SummaryMark(covers=covers):
            return (covers,)
        case Opaque(data=data):
            return (_canonical(data),)


def _canonical(data: JsonObject) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _framed(*texts: str) -> bytes:
    """Return `texts` so that other texts, or the same ones cut elsewhere, never look the same."""
    return b"".join(
        b"%d:%b," % (len(data), data)
        for data in (text.encode("utf-8", "surrogatepass") for text in texts)
    )
