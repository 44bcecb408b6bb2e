"""A stretch of a text that holds a secret, and where no secret goes on."""

from typing import Final, NamedTuple

GAP: Final = "[\\s\u0e00-\u27e7\u27ea-\U0010ffff]"
"""A character that is in no key and in no value of a place: blanks, scripts written without
blanks, punctuation and symbols beyond ASCII. Brackets of placeholders are left out."""


class Span(NamedTuple):
    """Characters `start` to `end` of a text, and what is to stand in their place."""

    start: int
    end: int
    label: str
    """What the secret is, in a few words; the same for the same secret, wherever it stands."""
