"""Which program the first word of a command names."""

from dataclasses import dataclass
from typing import Final

from crush_kernel.permissions.shell.judgement import Word

SYSTEM_DIRECTORIES: Final = frozenset(
    f"{root}/{kind}" for root in ("", "/usr", "/usr/local") for kind in ("bin", "sbin")
)
"""Where programs are what they are called. What lies elsewhere is somebody's own."""


def names_in(text: str, separator: str = " ") -> frozenset[str]:
    """Return the names in `text`, which `separator` separates."""
    return frozenset(text.split(separator))


@dataclass(frozen=True, slots=True)
class Program:
    """What the first word of a command names."""

    name: str
    """Without its folder; as written, capitals count."""
    is_system: bool
    """Whether it is found by its name alone, or in a folder of the system."""


def program_of(word: Word) -> Program | None:
    """Return which program `word` names, `None` if only the shell can know."""
    if not word.text or word.has_glob:
        return None
    folder, slash, name = word.text.rpartition("/")
    return Program(name, not slash or folder in SYSTEM_DIRECTORIES) if name else None
