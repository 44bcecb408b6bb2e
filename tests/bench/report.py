"""What the benchmarks come to: rows, and the table that shows them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """How much work a run does."""

    is_quick: bool
    """Whether the numbers may be rough, for a look in CI."""
    files: int
    """How many files are searched."""

    def repeats(self, full: int, quick: int) -> int:
        """Return one of two numbers of repeats."""
        return quick if self.is_quick else full


@dataclass(frozen=True, slots=True)
class Row:
    """One measured budget of the design."""

    name: str
    ours: float
    unit: str
    limit: float
    """What the ratio may be or, without another side, our own number."""
    other: float | None = None
    """What ours is compared with, measured in the same run."""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Return ours in terms of the other side's."""
        return None if self.other is None else self.ours / self.other

    @property
    def is_within(self) -> bool:
        """Return whether the budget is kept."""
        return (self.ours if self.ratio is None else self.ratio) <= self.limit


@dataclass(frozen=True, slots=True)
class Skipped:
    """A budget that could not be measured here."""

    name: str
    reason: str


_HEAD = ("", "ours", "other", "ratio", "limit", "")


def table(rows: Sequence[Row | Skipped]) -> str:
    """Return `rows` as text in columns, a row's note on a line below it."""
    cells = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    lines = [_line(_HEAD, widths)]
    for row, texts in zip(rows, cells[1:], strict=True):
        lines.append(_line(texts, widths))
        note = row.reason if isinstance(row, Skipped) else row.note
        lines += [f"    {note}"] if note else []
    return "\n".join(lines)


def _cells(row: Row | Skipped) -> tuple[str, ...]:
    if isinstance(row, Skipped):
        return (row.name, "", "", "", "", "skipped")
    ratio, other = row.ratio, row.other
    limit = f"{row.limit:g} {row.unit}" if ratio is None else f"{row.limit:g} x"
    return (
        row.name,
        f"{row.ours:.1f} {row.unit}",
        "" if other is None else f"{other:.1f} {row.unit}",
        "" if ratio is None else f"{ratio:.2f} x",
        limit,
        "ok" if row.is_within else "over",
    )


def _line(texts: tuple[str, ...], widths: list[int]) -> str:
    first, *others = (
        text.ljust(width) if column in (0, len(widths) - 1) else text.rjust(width)
        for column, (text, width) in enumerate(zip(texts, widths, strict=True))
    )
    return "  ".join((first, *others)).rstrip()
