"""Redacts a text that comes in pieces, such as a reply: no secret slips through a gap.

What has come is given out as soon as nothing that may follow can make it part of a secret:
as a rule up to the last blank. So every prefix of what is given out is free of secrets, and
all of it together is what would have come of the whole text at once.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from crush_kernel.history.redaction import Redactor
from crush_kernel.history.secrecy import pem, places
from crush_kernel.history.secrecy.search import encodable, matcher
from crush_kernel.history.secrecy.span import GAP

MAX_HELD_CHARS: Final = 20_000
"""More is not kept back: what is longer without a blank is no secret of a known kind."""
MAX_LOOSE_CHARS: Final = 4
"""Letters and digits that are no loss: secrets have eight, and mostly many more."""
MAX_STEPS: Final = 50
"""How many beginnings of something, one right before the other, are waited for together."""

_TO_LAST_GAP = re.compile(f"(?s:.*){GAP}")


def redactable_end(text: str, redactor: Redactor) -> int:
    """Return up to where `text` can be redacted and shown before the rest is known.

    Whatever follows, redacting both parts each by itself gives what redacting the whole
    gives, up to `MAX_HELD_CHARS`.
    """
    end = len(text)
    for _ in range(MAX_STEPS):
        if redactor.has_patterns:
            # A pattern may reach over any number of words, but not over lines.
            end = text.rfind("\n", 0, end) + 1
        else:
            gap = _TO_LAST_GAP.match(text, 0, end)
            end = gap.end() if gap else 0
        open_at = _open_at(text[:end], redactor)
        if open_at >= end:
            break
        end = open_at
    is_too_much = len(text) - end > MAX_HELD_CHARS
    return len(text) - MAX_HELD_CHARS // 2 if is_too_much else end


def redacted_so_far(text: str, redactor: Redactor) -> str:
    """Return what can be shown by now of `text`, to which more will be added.

    What is kept back is shown all the same if it is too little to be worth anything to a
    thief, such as the `45%` of a progress bar.
    """
    end = redactable_end(text, redactor)
    if sum(map(str.isalnum, text[end:])) <= MAX_LOOSE_CHARS:
        end = len(text)
    return redactor.redact(text[:end])


def _open_at(text: str, redactor: Redactor) -> int:
    """Return where in `text` something begins that may go on after it; its length if none."""
    position = redactor.open_value(text)
    if _may_be_open()(encodable(text)):
        position = min(position, places.open_place(text), pem.open_block(text))
    return position


@cache
def _may_be_open() -> Callable[[str], bool]:
    # Asked for each delta of a reply: one look for all that could be in the making.
    return matcher(f"{places.OPEN_GUARD}|{pem.OPEN_GUARD}")


class RedactedStream:
    """One text that is being written; exactly one task writes to it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held: list[str] = []

    def add(self, text: str) -> None:
        """Take in more of the text; costs next to nothing."""
        self._held.append(text)

    def take(self) -> str:
        """Return what has come since the last time, as far as it can be shown by now."""
        if not self._held:
            return ""
        held = "".join(self._held)
        end = redactable_end(held, self._redactor)
        self._held = [held[end:]] if end < len(held) else []
        return self._redactor.redact(held[:end])

    def flush(self) -> str:
        """Return all that was kept back: nothing follows, or nothing that belongs to it."""
        if not self._held:
            return ""
        held = "".join(self._held)
        self._held = []
        return self._redactor.redact(held)
