"""The files that a search has found, put in order, and no more of them than are needed.

The newest come first, since they are what the user works on. When there are too many to ask
the file system about each, the order is by name: still the same on every run, and said.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_DATED = 4_000
"""Files whose times are looked up, at some 3 µs each."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The first files of a search, in order."""

    paths: tuple[str, ...]
    """Relative to the folder that was searched."""
    has_more: bool
    is_by_time: bool
    """Whether the newest come first; else the order is by name."""
    found: int | None
    """How many were found in all; `None` if some of them turned out to be hidden."""


class Candidates:
    """Takes in paths in any order, and keeps those that may come first."""

    def __init__(self) -> None:
        self.total = 0
        """How many were taken in."""
        self._paths: list[str] = []
        self._last = ""
        """Once files have been given up: the greatest name that is still kept."""

    def add(self, paths: list[str]) -> None:
        """Take in `paths`, none of them twice."""
        self.total += len(paths)
        if self._last:
            paths = [path for path in paths if path < self._last]
        self._paths += paths
        if len(self._paths) > 2 * MAX_DATED:
            self._paths.sort()
            del self._paths[MAX_DATED:]
            self._last = self._paths[-1]

    def select(self, base: Path, limit: int, keep: Callable[[list[str]], list[str]]) -> Selection:
        """Return the first `limit` files that `keep` lets pass. Blocks on the file system."""
        is_by_time = self.total <= MAX_DATED
        ordered = _newest_first(base, self._paths) if is_by_time else sorted(self._paths)
        kept: list[str] = []
        seen = 0
        for batch in _batches(ordered, limit + 1):
            seen += len(batch)
            kept += keep(batch)
            if len(kept) > limit:
                break
        return Selection(
            tuple(kept[:limit]),
            has_more=len(kept) > limit or bool(self._last),
            is_by_time=is_by_time,
            found=self.total if len(kept) == seen else None,
        )


class PathSplitter:
    """Makes paths of a stream of bytes in which each ends with NUL."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[str]:
        """Return the paths that are complete now, without a leading `./`."""
        complete, nul, self._rest = (self._rest + chunk).rpartition(b"\0")
        if not nul:
            return []
        text = os.fsdecode(complete)
        return text.removeprefix("./").replace("\0./", "\0").split("\0")


def _newest_first(base: Path, paths: list[str]) -> list[str]:
    """Return `paths` by time, then name, without those that are gone."""
    dated = ((time, path) for path in paths if (time := _time(f"{base}/{path}")) is not None)
    return [path for _, path in sorted(dated, key=lambda each: (-each[0], each[1]))]


def _time(path: str) -> int | None:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return None


def _batches(paths: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(paths), size):
        yield paths[start : start + size]
