"""Names: which program a word names, and which variables change nothing but the looks of output."""

import re
from dataclasses import dataclass
from typing import Final

from crush_kernel.permissions.shell.judgement import Word

SYSTEM_DIRECTORIES: Final = frozenset(
    f"{root}/{kind}" for root in ("", "/usr", "/usr/local") for kind in ("bin", "sbin")
)
"""Where programs are what they are called. What lies elsewhere is somebody's own."""

_HARMLESS_VARIABLE = re.compile(
    r"LC_[A-Z]+|LANG|LANGUAGE|TZ|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|CLICOLOR(?:_FORCE)?"
    r"|GIT_OPTIONAL_LOCKS|GIT_TERMINAL_PROMPT|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|CI|BLOCKSIZE"
)
_PAGER = re.compile(r"(?:GIT_|MAN)?PAGER")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


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


def assignment(word: Word) -> tuple[str, str] | None:
    """Return name and value if `word` sets a variable."""
    found = _ASSIGNMENT.fullmatch(word.text or "")
    return (found[1], found[2]) if found else None


def is_harmless_variable(name: str, value: str | None) -> bool:
    """Return whether a program that gets the variable does nothing else because of it.

    Args:
        name: of the variable; few are known to be harmless.
        value: `None` if only the shell can know.
    """
    if _PAGER.fullmatch(name):
        return value in ("", "cat")
    return bool(_HARMLESS_VARIABLE.fullmatch(name))
