"""A turn as it is kept: what was said in one cell, and what is known about it.

Values only. A turn that was read from somewhere carries the JSON it came as, and is
written back as that very JSON, so that fields of a later version survive a round trip.

Source: design §§4, 5.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from math import isfinite
from typing import Final, Literal

from pydantic import JsonValue

from crush_kernel.history.subagentmessages import spent_by, summed
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
    well_formed,
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
    summary: int | None = None
    """Which of its messages is the last summary that stands for all before it in the turn;
    whether it does for the turns above, tells the fingerprint. `None` while it runs."""

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
        """What all requests of the turn used, those of its sub-agents included."""
        return sum(self.spent.values(), Usage())

    @property
    def spent(self) -> dict[str, Usage]:
        """The same by `provider/model`."""
        return summed(pair for message in self.messages for pair in spent_by(message))


def digest_of(messages: Iterable[Message]) -> str:
    """Return a hash of what `messages` say to a model: 32 hex digits.

    Usage and what is only for people do not count. A message has the digest that it will
    have when it was stored and read again: after a browser wrote `1.0` as `1`, and after
    lone surrogates, which no file takes, became U+FFFD.
    """
    # Chosen over BLAKE2, as the processors of the last years do it in hardware.
    hashed = sha256()
    texts: list[str] = []
    waiting = 0
    for message in messages:
        texts += message.role, message.provider, message.model
        for part in message.parts:
            said = _said(part)
            texts += said
            waiting += sum(map(len, said))
        if waiting > _HASHED_AT_ONCE:
            hashed.update(_ended(texts))
            texts.clear()
            waiting = 0
    hashed.update(_ended(texts))
    return hashed.hexdigest()[:32]


def source_digest(text: str) -> str:
    """Return a hash of a cell's `text`, white space at its ends aside: 16 hex digits.

    A turn keeps that of the text it ran with; another one says that the cell was edited.
    """
    return blake2b(text.strip().encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


_HASHED_AT_ONCE: Final = 1 << 16
"""In characters: enough for few calls, and not so much that each needs fresh memory."""


def _said(part: Part) -> Sequence[str]:
    """Return the kind of `part`, then what it says; how many texts, the former ones tell."""
    match part:
        case Text():
            return part.kind, part.text
        case ToolCall():
            return part.kind, part.id, part.name, part.input
        case ToolResult():
            said = part.kind, part.call_id, part.content, str(part.is_error), str(len(part.media))
            files = (text for m in part.media for text in (m.media_type, m.data, m.blob))
            return (*said, *files) if part.media else said
        case Reasoning():
            return (part.kind, part.text, *_flat(part.provider_data))
        case Media():
            return part.kind, part.media_type, part.data, part.name, part.blob
        case ShellCommand():
            return part.kind, part.command, part.output, str(part.exit_code)
        case SummaryMark():
            return part.kind, part.covers
        case Opaque():
            return (part.kind, *_flat(part.data))


def _flat(value: JsonObject) -> list[str]:
    """Return texts that only JSON equal to `value` has, however deep it nests."""
    texts: list[str] = []
    waiting: list[JsonValue | JsonObject] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            texts += "text", item
        elif isinstance(item, Mapping):
            if not all(map(str.isascii, item)):
                item = {well_formed(key): value for key, value in item.items()}
            keys = sorted(item)
            texts += (f"object of {len(keys)}", *keys)
            waiting += [item[key] for key in keys]
        elif isinstance(item, list):
            texts.append(f"list of {len(item)}")
            waiting += item
        else:
            texts.append(_number(item) if isinstance(item, float) else str(item))
    return texts


def _number(number: float) -> str:
    if number.is_integer():
        return str(int(number))
    return str(number if isfinite(number) else None)


def _ended(texts: Iterable[str]) -> bytes:
    """Return `texts`, each ended by a byte that is in no text: no others look the same."""
    try:
        encoded = list(map(str.encode, texts))
    except UnicodeEncodeError:
        encoded = [well_formed(text).encode() for text in texts]
    return b"\xff".join((*encoded, b""))
