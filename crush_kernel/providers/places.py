"""Where in a request a refusal points, as far as it says so.

Pure. Anthropic writes `messages.12.content.3`, OpenAI `messages[12].content[3]` or
`messages[12].tool_calls[0]`, servers on pydantic `messages -> 12 -> content -> 3`. All count
what was sent, which is not what the conversation holds: an adapter translates.
"""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from crush_kernel.errors import RequestRejected

Place: TypeAlias = tuple[int, int]
"""The index of a message in a request, and of a part in the message."""

_PATH: Final = re.compile(
    r"\bmessages\W{1,6}(\d{1,6})\b(?:\W{1,6}(content|tool_calls)\W{1,6}(\d{1,6})\b)?"
)


@dataclass(frozen=True, slots=True)
class WirePath:
    """A place in the messages as they were sent."""

    message: int
    field: Literal["content", "tool_calls", ""] = ""
    """The list in which `item` counts; empty if only the message is named."""
    item: int = 0


def path_in(text: str) -> WirePath | None:
    """Return the first path in `text`, the words or the body of a refusal."""
    found = _PATH.search(text)
    if found is None:
        return None
    field = cast("Literal['content', 'tool_calls'] | None", found[2])
    return WirePath(int(found[1]), field or "", int(found[3] or 0))


@contextmanager
def located(places: Callable[[WirePath], tuple[Place, ...]]) -> Generator[None]:
    """Add to a refusal that is raised inside which parts of the request it names.

    Args:
        places: returns the parts that were sent at a path, none if there are none.
    """
    try:
        yield
    except RequestRejected as refusal:
        path = path_in(refusal.detail)
        if path is not None:
            refusal.places = places(path)
        raise
