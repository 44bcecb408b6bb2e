"""JSON that every program can read, and not more of it than is read in a moment.

A file may come from anybody. What is read of it is measured before it is looked at: how
many values it has and how deep they nest. What is written anywhere is plain: no halves of
characters, no `NaN`, nothing nested so deep that a reader would give up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final

from pydantic import JsonValue

from crush_kernel.messages import JsonObject, well_formed

MAX_DEPTH: Final = 64
"""Levels of nesting: several times those of a record, a fraction of what parsers take."""

MAX_VALUES: Final = 500_000
"""Values in all records of a notebook: some 20,000 messages, a second of work at most."""

MAX_FAULTS: Final = 20_000
"""Messages and parts that are looked at one by one, since not all of them can be read."""


class Unreasonable(ValueError):
    """A value is too large or nests too deep; the text says which, and fits "it …"."""


@dataclass(slots=True)
class Budget:
    """What may still be read of one notebook."""

    values: int = MAX_VALUES
    faults: int = MAX_FAULTS

    def take_values(self, count: int) -> None:
        """Count values that are read.

        Raises:
            Unreasonable: there were too many.
        """
        self.values -= count
        if self.values < 0:
            raise Unreasonable("is too large")

    def take_faults(self, count: int) -> None:
        """Count what has to be looked at one by one.

        Raises:
            Unreasonable: there was too much of it.
        """
        self.faults -= count
        if self.faults < 0:
            raise Unreasonable("holds too much that cannot be read")


def is_plain(value: JsonValue, budget: Budget) -> bool:
    """Return whether `value` can be stored as it is; count its values in `budget`.

    Raises:
        Unreasonable: it has too many values, or they nest too deep.
    """
    level: list[JsonValue] = [value]
    suspects: list[str | float] = []
    keys: set[str] = set()
    for _ in range(MAX_DEPTH):
        budget.take_values(len(level))
        level = _next_level(level, keys, suspects)
        if not level:
            return all(map(_is_plain_scalar, (*suspects, *keys)))
    raise Unreasonable(f"nests deeper than {MAX_DEPTH} levels")


def _next_level(
    level: list[JsonValue], keys: set[str], suspects: list[str | float]
) -> list[JsonValue]:
    """Return what is inside the values of `level`; collect what has to be looked at."""
    deeper: list[JsonValue] = []
    for value in level:
        if isinstance(value, str):
            if not value.isascii():
                suspects.append(value)
        elif isinstance(value, dict):
            keys.update(value)
            deeper.extend(value.values())
        elif isinstance(value, list):
            deeper.extend(value)
        elif isinstance(value, float):
            suspects.append(value)
    return deeper


def _is_plain_scalar(value: str | float) -> bool:
    return well_formed(value) is value if isinstance(value, str) else isfinite(value)


def plain(value: JsonValue | JsonObject, *, depth: int = MAX_DEPTH) -> JsonValue:
    """Return a copy of `value` that can be stored; idempotent, equal where nothing is amiss.

    Lone surrogates become U+FFFD; numbers that JSON has not, and what is nested deeper than
    `depth` levels, become null.
    """
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping | list) and depth <= 1 and value:
        return None
    if isinstance(value, Mapping):
        return {well_formed(key): plain(item, depth=depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item, depth=depth - 1) for item in value]
    return value
