"""The messages of a conversation as they were encoded, so that only what is new is encoded.

Neighbors that go out together make a group: each reply is one, and so is all that stands
between two replies. A group is encoded once; while a conversation goes on, a request costs what
is new in it, and the joining of the bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from crush_kernel.messages import Message, shared_length

_Key: TypeAlias = tuple[str | int, ...]
"""Who says the messages of a group, and the identities of their parts."""


@dataclass(frozen=True, slots=True)
class Group:
    """Messages that go out together."""

    start: int
    """The index of the first one in the request."""
    messages: tuple[Message, ...]

    @property
    def end(self) -> int:
        """The index after the last one."""
        return self.start + len(self.messages)

    @property
    def is_reply(self) -> bool:
        """Whether it is a reply, and not what stands between two."""
        return _is_reply(self.messages[0])


@dataclass(frozen=True, slots=True)
class _Encoded:
    key: _Key
    end: int
    chunk: bytes


class EncodedHistory:
    """Keeps the bytes of each group of the last request."""

    def __init__(self, encode: Callable[[Group], bytes]) -> None:
        """Start without a request.

        Args:
            encode: returns the JSON of a group, several values with commas between them;
                nothing if nothing of the group can be sent.
        """
        self._encode = encode
        self._messages: tuple[Message, ...] = ()
        self._groups: list[_Encoded] = []
        self._chunks: list[bytes] = []

    def forget(self) -> None:
        """Encode everything anew next time."""
        self._messages, self._groups, self._chunks = (), [], []

    def chunks(self, messages: tuple[Message, ...]) -> list[bytes]:
        """Return the JSON of `messages`, group by group, in a list of the caller's own."""
        # Held until the end, so that nobody else gets the identities that the keys are made of.
        former, self._messages = self._messages, messages
        changed = self._go_back(shared_length(messages, former))
        start = self._groups[-1].end if self._groups else 0
        for group in groups_of(messages, start):
            key = _key_of(group)
            chunk = changed.get(key)
            if chunk is None:
                chunk = self._encode(group)
            self._groups.append(_Encoded(key, group.end, chunk))
            self._chunks.append(chunk)
        return list(filter(None, self._chunks))

    def _go_back(self, count: int) -> dict[_Key, bytes]:
        """Forget and return the groups that may not be over within the first `count` messages."""
        changed: dict[_Key, bytes] = {}
        while self._groups and self._groups[-1].end >= count:
            group = self._groups.pop()
            changed[group.key] = group.chunk
            self._chunks.pop()
        return changed


def groups_of(messages: Sequence[Message], start: int = 0) -> Iterator[Group]:
    """Yield the groups of `messages` from the index `start`, the beginning of one, on."""
    for is_reply, neighbors in groupby(messages[start:], _is_reply):
        together = tuple(neighbors)
        if is_reply:
            yield from (Group(start + index, (reply,)) for index, reply in enumerate(together))
        else:
            yield Group(start, together)
        start += len(together)


def _is_reply(message: Message) -> bool:
    return message.role == "assistant"


def _key_of(group: Group) -> _Key:
    """Return what the bytes of `group` depend on.

    Parts, unlike messages, keep their identity through repair.
    """
    key: list[str | int] = []
    for message in group.messages:
        key += (message.role, message.provider, message.model, *map(id, message.parts))
    return tuple(key)
