"""Takes out of text for the model what people who read it do not see. Pure.

A file that people write down for agents says to these what it says to people, and no more.
"""

import re

_HIDDEN = re.compile(
    # A flag of a region is written with tags, and keeps them.
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)"
    "|[\u200b\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
"""Tags, selectors that nothing shows, what takes no room, and what turns the order of letters."""


def without_hidden(text: str) -> tuple[str, int]:
    """Return `text` without hidden characters, and how many these were."""
    kept = _HIDDEN.sub(r"\1", text)
    return kept, len(text) - len(kept)
