"""What the files and folders of a project are like from outside, without a look into them.

If that is as it was at the last look, nothing has changed since, and git need not be asked.
"""

import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final, TypeAlias

from crush_kernel.tools.undo.lastlook import folders_above

Facts: TypeAlias = tuple[int, int, int, int]
"""Mode, inode, size, and when anything of it was changed, in nanoseconds."""

_facts_of: Final = attrgetter("st_mode", "st_ino", "st_size", "st_ctime_ns")

_TICK_NS: Final = 100_000_000
"""How long two changes may be told by the same time, at most, where times are fine."""

_COARSE_TICK_NS: Final = 2_500_000_000
"""The same where they are in whole seconds."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """What was there at one moment."""

    facts: Mapping[str, Facts]
    is_settled: bool
    """Whether what changes from now on has other facts: nothing was changed just before."""

    def is_like(self, other: "Sweep") -> bool:
        """Return whether nothing has changed since the `other`, an earlier one."""
        return other.is_settled and self.facts == other.facts

    def rights(self) -> dict[str, int]:
        """Return the permission bits of each file."""
        return {
            path: facts[0] & 0o777 for path, facts in self.facts.items() if stat.S_ISREG(facts[0])
        }


def telling(files: Iterable[str], folders: Iterable[str]) -> frozenset[str]:
    """Return what changes when a file or folder comes, goes or changes: also those above.

    A file that is new changes the folder that it is in.
    """
    names = {*files, *folders, "."}
    for above in {name.rpartition("/")[0] for name in names}:
        if above:
            names.update((above, *folders_above(above)))
    return frozenset(names)


def sweep(root: Path, names: Iterable[str]) -> Sweep:
    """Look at the files and folders `names` of `root`; blocks.

    Raises:
        OSError: the root cannot be opened.
    """
    began_ns = time.time_ns()
    facts: dict[str, Facts] = {}
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names:
            try:
                facts[name] = _facts_of(os.stat(name, dir_fd=top, follow_symlinks=False))
            except (OSError, ValueError):
                continue
    finally:
        os.close(top)
    newest_ns = max((changed_ns for *_, changed_ns in facts.values()), default=0)
    tick_ns = _TICK_NS if newest_ns % 1_000_000_000 else _COARSE_TICK_NS
    return Sweep(facts, is_settled=newest_ns + tick_ns < began_ns)
