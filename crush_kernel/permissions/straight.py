"""Regular expressions for globs that are matched in a straight line, whatever they look like. Pure.

A glob becomes a regular expression that tries every way in which its stars can share a text: for
a handful of stars that takes minutes, and the glob may be a stranger's. It is never needed: what
stands between two stars can be taken where it is found first, and be left there. So each such
stretch is made atomic.

Source: re, `(?>…)`; pathspec, the expressions that it makes of lines of `.gitignore`.
"""

import re
from collections.abc import Iterable
from typing import Final

_ANYTHING: Final = "[^/]*"
_PIECE: Final = re.compile(r"\[\^/\][*+]?|\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|.", re.DOTALL)
_ANYWHERE: Final = "(?:.+/)?"
_FOLDERS: Final = "(?:/.+)?/"
_GAP: Final = "(?:.+?/)??"
_END: Final = re.compile(r"(/|\(\?P<ps_d>/\)|\(\?:\(\?P<ps_d>/\)\|(\$|\\Z)\))\Z")


def straight_name(pieces: Iterable[str]) -> str:
    """Return the expression for `pieces` of one, with anything between each two.

    It is to match a text as a whole.
    """
    return _in_line(list(pieces), ".")


def straight_path(source: str) -> str:
    """Return an expression that matches the same paths as `source`, of pathspec's."""
    end = _END.search(source)
    if end is None or not source.startswith("^"):
        return source
    body = source[1 : end.start()]
    gap = _GAP if body.startswith(_ANYWHERE) else ""
    *above, last = map(_names, body.removeprefix(_ANYWHERE).split(_FOLDERS))
    found = ["^"]
    for names in above:
        found.append(f"(?>{gap}{names}/)")
        gap = _GAP
    return "".join((*found, gap, last, end[0]))


def _names(source: str) -> str:
    """Return the expression for some folders, one in the other."""
    names: list[list[str]] = [[""]]
    for piece in _PIECE.findall(source):
        if piece == "/":
            names.append([""])
        elif piece == _ANYTHING:
            names[-1].append("")
        else:
            # No set of characters reaches over the end of a name.
            is_set = piece.startswith("[") and not piece.startswith("[^/]")
            names[-1][-1] += f"(?!/){piece}" if is_set else piece
    return "/".join(_in_line(pieces, "[^/]") for pieces in names)


def _in_line(pieces: list[str], any_character: str) -> str:
    first, *others = pieces
    if not others:
        return first
    *middle, last = others
    between = "".join(f"(?>{any_character}*?{piece})" for piece in middle)
    return f"{first}{between}{any_character}*{last}"
