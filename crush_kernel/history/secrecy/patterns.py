"""The user's own patterns: regular expressions for what else is to be kept secret.

They run in Rust's engine, which never backtracks: whatever is written, a search takes
linear time, and look-around and back references are refused. The engine only tells whether
there is a match, so its place is narrowed down by asking again, a bounded number of times.
The longest match at the leftmost place is taken: never less than another engine would take.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pydantic_core import SchemaError

from crush_kernel.history.secrecy.search import encodable, matcher
from crush_kernel.history.secrecy.span import Span

MAX_PATTERNS: Final = 50
MAX_PATTERN_CHARS: Final = 500
MAX_MATCH_CHARS: Final = 400
"""How long a match may be; a line with nothing but longer ones is withheld whole."""
MAX_ASKS: Final = 50_000
"""After so many questions to the engine about one text the rest of it is withheld."""


@dataclass(frozen=True)
class UserPattern:
    """One pattern that was found good."""

    label: str
    source: str
    is_in: Callable[[str], bool]
    """Whether a text has a match."""

    @cached_property
    def begins(self) -> Callable[[str], bool]:
        """Whether a match begins at the second character of a text."""
        return matcher(rf"(?m)\A(?s:.)(?:{self.source})")

    @cached_property
    def covers(self) -> Callable[[str], bool]:
        """Whether all of a text but its first and its last character can be one match."""
        return matcher(rf"(?m)\A(?s:.)(?:{self.source})(?s:.)\z")

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the matches in `text`; none reaches over the end of a line."""
        if not self.is_in(text):
            return
        asks = _Asks()
        position = 0
        for line in text.split("\n"):
            for start, end in self._in_line(line, asks):
                yield Span(position + start, position + end, self.label)
            position += len(line) + 1
            if asks.count > MAX_ASKS and position < len(text):
                yield Span(position, len(text), self.label)
                return

    def _in_line(self, line: str, asks: "_Asks") -> Iterator[tuple[int, int]]:
        if not self.is_in(line):
            return
        # The ends of the line are there to be seen by `^`, `$` and `\b`.
        framed = f"\n{line}\n"
        position, is_found = 1, False
        while position <= len(line):
            part = framed[position - 1 : position + 2 * MAX_MATCH_CHARS]
            if asks.count > MAX_ASKS:
                yield position - 1, len(line)
                return
            if not self.is_in(part):
                position += MAX_MATCH_CHARS
            elif length := self._length(part, asks):
                yield position - 1, position - 1 + length
                position, is_found = position + length, True
            else:
                position += 1
        if not is_found and line:
            yield 0, len(line)

    def _length(self, part: str, asks: "_Asks") -> int:
        """Return how long the longest match is that begins at the second character."""
        asks.count += 1
        if not self.begins(part):
            return 0
        longest = min(len(part) - 2, MAX_MATCH_CHARS)
        for length in range(longest, 0, -1):
            asks.count += 1
            if self.covers(part[: length + 2]):
                return length
        return 0


@dataclass(slots=True)
class _Asks:
    """How often the engine was asked about one text."""

    count: int = 0


def read_patterns(sources: Sequence[str]) -> tuple[tuple[UserPattern, ...], tuple[str, ...]]:
    """Return the patterns that can be used, and a sentence for each that cannot."""
    patterns: list[UserPattern] = []
    problems: list[str] = []
    for number, source in enumerate(sources[:MAX_PATTERNS], 1):
        label = f"pattern {number}"
        try:
            patterns.append(_read(label, source))
        except (SchemaError, ValueError) as error:
            problems.append(f"Secret {label} is ignored: {_reason(error)}.")
    if len(sources) > MAX_PATTERNS:
        problems.append(f"Only the first {MAX_PATTERNS} secret patterns are used.")
    return tuple(patterns), tuple(problems)


def _read(label: str, source: str) -> UserPattern:
    if len(source) > MAX_PATTERN_CHARS:
        raise ValueError(f"it is longer than {MAX_PATTERN_CHARS} characters")
    if source != encodable(source):
        raise ValueError("it holds half a character")
    pattern = UserPattern(label, source, matcher(f"(?m){source}"))
    if pattern.is_in(""):
        raise ValueError("it matches the empty text")
    # Made now, so that what does not fit into them is told at once.
    _ = pattern.begins, pattern.covers
    return pattern


def _reason(error: Exception) -> str:
    """Return the last line of what an engine says, which is the one for people."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return lines[-1].removeprefix("error: ").rstrip(".")[:200] if lines else "it cannot be read"
