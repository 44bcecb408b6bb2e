"""Ids of tool calls in the form that a server wants, where it wants a certain one. Pure."""

import base64
import hashlib
import re
from collections.abc import Iterator
from itertools import count


class CallIds:
    """Ids of so many letters and digits in place of other ones, never one for two."""

    def __init__(self) -> None:
        self._fitted: dict[tuple[str, int], str] = {}
        self._owners: dict[str, str] = {}

    def fitted(self, call_id: str, length: int) -> str:
        """Return `call_id` in `length` letters and digits; itself if zero, for any will do."""
        if not length:
            return call_id
        key = (call_id, length)
        if key not in self._fitted:
            free = (
                name
                for name in _candidates(call_id, length)
                if self._owners.setdefault(name, call_id) == call_id
            )
            self._fitted[key] = next(free)
        return self._fitted[key]


def _candidates(call_id: str, length: int) -> Iterator[str]:
    if re.fullmatch(rf"[a-zA-Z0-9]{{{length}}}", call_id):
        yield call_id
    for attempt in count():
        yield _hashed(f"{call_id}\n{attempt}", length)


def _hashed(text: str, length: int) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest).decode()[:length]
