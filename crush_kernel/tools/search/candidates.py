"""The files that a search has found, put in order, and no more of them than are needed.

The newest come first, since they are what the user works on. When there are too many to ask
the file system about each, the order is by name: still the same on every run, and said.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from crush_kernel.tools.search.globs import Glob

MAX_DATED = 4_000
"""Files whose times are looked up, at some 3 µs each."""
KEPT_BY_NAME = 1_000
"""Files that are kept when there are more: enough for some of them to turn out hidden."""


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
        self._paths: list[bytes] = []
        self._last = b""
        """Once files have been given up: the greatest name that is still kept."""

    def add(self, paths: list[bytes]) -> None:
        """Take in `paths` as ripgrep writes them, none of them twice."""
        self.total += len(paths)
        if self._last:
            paths = [path for path in paths if path < self._last]
        self._paths += paths
        if len(self._paths) > MAX_DATED:
            self._paths.sort()
            del self._paths[KEPT_BY_NAME:]
            self._last = self._paths[-1]

    def select(self, base: Path, limit: int, keep: Callable[[list[str]], list[str]]) -> Selection:
        """Return the first `limit` files that `keep` lets pass. Blocks on the file system."""
        is_by_time = self.total <= MAX_DATED
        names = [os.fsdecode(path.removeprefix(b"./")) for path in sorted(self._paths)]
        ordered = _newest_first(base, names) if is_by_time else names
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


class PathStream:
    """Takes in a stream of paths that end with NUL, cut anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return the paths that are complete now, with NUL between them; empty if none are."""
        complete, nul, self._rest = (self._rest + chunk).rpartition(b"\0")
        return complete if nul else b""


def matching(paths: bytes, glob: Glob) -> list[bytes]:
    """Return those of `paths`, with NUL between them, that `glob` matches, unchanged.

    ripgrep has already applied the glob's name.
    """
    found = paths.split(b"\0")
    if glob.is_by_name:
        return found
    # Decoded all at once, which is much faster than one by one.
    names = os.fsdecode(paths).removeprefix("./").replace("\0./", "\0").split("\0")
    is_match = glob.regex.fullmatch
    return [path for path, name in zip(found, names, strict=True) if is_match(name)]


def _newest_first(base: Path, paths: list[str]) -> list[str]:
    """Return `paths` by time, equals as they come, without those that are gone."""
    dated = [(time, path) for path in paths if (time := _time(f"{base}/{path}")) is not None]
    return [path for _, path in sorted(dated, key=lambda each: -each[0])]


def _time(path: str) -> int | None:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return None


def _batches(paths: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(paths), size):
        yield paths[start : start + size]
