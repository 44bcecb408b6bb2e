"""Finds every secret in a text that can be told by itself, fast where there is none.

One expression that matches wherever a rule may and has no look-around goes over the whole
text first; pydantic brings the engine for it, Rust's, which takes linear time and a
millisecond or two for a megabyte. Only stretches in which it finds something are looked at
closely, as they are and with their escapes undone.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Final

from pydantic import StringConstraints, TypeAdapter

from crush_kernel.history.secrecy.escapes import unescaped
from crush_kernel.history.secrecy.formats import FORMATS
from crush_kernel.history.secrecy.pem import GUARD as PEM_GUARD
from crush_kernel.history.secrecy.pem import key_blocks
from crush_kernel.history.secrecy.places import GUARD as PLACES_GUARD
from crush_kernel.history.secrecy.places import placed_secrets
from crush_kernel.history.secrecy.span import Span

STEP_CHARS: Final = 2000
"""How long the stretches are in which rules are tried."""
REACH_CHARS: Final = 1000
"""How far a place reaches at most beyond its first character."""
CONTEXT_CHARS: Final = 64
"""How much before a stretch is read with it, so that its beginning is seen for what it is."""

_WORD_END = re.compile(r"[A-Za-z0-9_.%/+=-]*")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def matcher(expression: str) -> Callable[[str], bool]:
    """Return whether a text has a match of `expression`, in linear time.

    Raises:
        pydantic_core.SchemaError: it is not in the syntax of Rust's `regex`.
    """
    adapter = TypeAdapter(Annotated[str, StringConstraints(pattern=expression)])
    return adapter.validator.isinstance_python


def encodable(text: str) -> str:
    """Return `text`, or the same with `?` for half characters, which no engine but ours reads."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return _SURROGATE.sub("?", text)
    return text


def may_have_secrets(text: str) -> bool:
    """Tell whether it is worth looking; a millisecond or two for a megabyte."""
    return PEM_GUARD in text or _guard()(text)


def find_secrets(text: str) -> list[Span]:
    """Return where `text` has secrets, in no order; spans may overlap.

    Args:
        text: encodable text.
    """
    blocks = list(key_blocks(text))
    return [*blocks, *_in_stretches(text)] if _guard()(text) else blocks


@cache
def _guard() -> Callable[[str], bool]:
    # Made when it is first needed: a tenth of a second that no start of a kernel has.
    return matcher("|".join([*(form.guard for form in FORMATS), PLACES_GUARD]))


def _in_stretches(text: str) -> Iterator[Span]:
    position = 0
    while position < len(text):
        start = max(0, position - CONTEXT_CHARS)
        end = position + STEP_CHARS + REACH_CHARS
        if _guard()(text[start:end]):
            # A key that reaches further is read to its end, and one character more.
            found = _WORD_END.match(text, min(end, len(text)))
            end = (found.end() if found else end) + 1
            yield from _in_lines(text, start, min(end, len(text)))
        position = max(position + STEP_CHARS, end - REACH_CHARS - 1)


def _in_lines(text: str, start: int, end: int) -> Iterator[Span]:
    """Try all rules in a stretch of `text`, line by line: none of them goes over a line."""
    position = start
    while position < end:
        newline = text.find("\n", position, end)
        stop = end if newline < 0 else newline
        line = text[position:stop]
        if _guard()(line):
            for span in _exactly(line):
                first, last = position + span.start, position + span.end
                # What touches an edge of the stretch is seen whole from another one.
                is_cut = (first == start > 0) or (last == end < len(text))
                if not is_cut:
                    yield Span(first, last, span.label)
        position = stop + 1


def _exactly(line: str) -> Iterator[Span]:
    yield from _by_rules(line)
    plain = unescaped(line)
    if plain is not None:
        for span in _by_rules(plain.text):
            yield Span(plain.place(span.start), plain.place(span.end), span.label)


def _by_rules(text: str) -> Iterator[Span]:
    for form in FORMATS:
        yield from form.spans(text)
    yield from placed_secrets(text)
