"""Variables that a command may be given and still only read: those that change how things look.

Their values count too: some variables name files that programs read, or programs that they run.
"""

import re
from typing import Final

_HARMLESS: Final = re.compile(
    r"(?:LC_[A-Z]+|LANG|LANGUAGE)=[\w.@:-]*"
    r"|TZ=[A-Za-z][\w/+-]*"
    r"|(?:NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|CI|COLUMNS|LINES|BLOCKSIZE)=\w*"
    r"|(?:GIT_OPTIONAL_LOCKS|GIT_TERMINAL_PROMPT|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE)=\w*"
    r"|(?:PAGER|GIT_PAGER|MANPAGER)=(?:cat)?",
    re.ASCII,
)


def is_harmless(assignment: str) -> bool:
    """Return whether a program that gets `NAME=value` does nothing else because of it."""
    return _HARMLESS.fullmatch(assignment) is not None
