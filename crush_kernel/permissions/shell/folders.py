"""Where a shell is while it goes through a command line: the folders that are possible."""

from collections.abc import Iterable
from itertools import takewhile
from typing import TypeAlias

from crush_kernel.permissions.shell.judgement import UNKNOWN_WORD, Word

Folders: TypeAlias = tuple[Word | None, ...]
"""Those where the shell may be, `None` for where it started; empty where nothing runs any more."""

MAX_FOLDERS = 16
"""With more that are possible, none is known."""

START: Folders = (None,)
LOST: Folders = (UNKNOWN_WORD,)


def either(one: Folders, other: Folders) -> Folders:
    """Return where the shell may be if it took one of two ways."""
    if one == other:
        return one
    both = tuple(dict.fromkeys((*one, *other)))
    return both if len(both) <= MAX_FOLDERS else LOST


def moved(folders: Folders, there: Word) -> Folders:
    """Return where `cd` leads from any of `folders`.

    It does not follow links as paths do: after `cd link`, `cd ..` leads back. So what goes up
    after going down is not known.
    """
    if not there.text or there.has_glob or there.text == "-":
        return LOST
    steps = [step for step in there.text.split("/") if step not in ("", ".")]
    count_up = len(list(takewhile("..".__eq__, steps)))
    if ".." in steps[count_up:]:
        return LOST
    if there.text.startswith("/"):
        return (there,)
    goes_up = count_up > 0
    joined: list[Word | None] = []
    for folder in folders:
        if folder is None:
            joined.append(there)
        elif folder.text is None or goes_up:
            return LOST
        else:
            joined.append(Word(f"{folder.text.rstrip('/')}/{there.text}", there.source))
    return tuple(dict.fromkeys(joined))


def the_one(folders: Folders) -> Word | None:
    """Return the folder if there is one only."""
    if len(folders) > 1:
        return UNKNOWN_WORD
    return folders[0] if folders else None


def meant(folders: Folders, words: Iterable[Word]) -> Word | None:
    """Return where a command runs that only reads what `words` name.

    After a `cd` that may have failed it is the folder meant: where nothing goes up, what it finds
    where the shell started is no less its own.
    """
    if len(folders) == 2 and None in folders:
        there = folders[0] or folders[1]
        is_below = there and there.text and not there.text.startswith(("/", ".."))
        if is_below and not any(word.text is None or ".." in word.text for word in words):
            return there
    return the_one(folders)
