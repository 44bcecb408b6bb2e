"""What a program gets for a word as it is written, quotes taken off.

A word is known as far as its text alone tells: quotes, escapes, and the few variables whose values
are given. All else that the shell puts in its place makes the whole word unknown, since anything
may come of it.

Source: Bash Reference Manual, Quoting and Shell Expansions.
"""

import re
from collections.abc import Callable, Mapping

from crush_kernel.permissions.shell.judgement import Word

_PLAIN = re.compile(r"""[\w./:=,+@%^-]+|'([^'\\]*)'|"([^"\\$`]*)\"""")
"""A word that means itself, or what stands in its quotes."""

_PIECE = re.compile(
    r"""(?P<plain>[^\\'"$`~{}*?\[<>]+)
    | (?P<joined>\\\n)
    | \\(?P<escaped>[\s\S])
    | '(?P<raw>[^']*)'
    | \$'(?P<ansi>(?:[^'\\]++|\\[\s\S])*+)'
    | "(?P<quoted>(?:[^"\\]++|\\[\s\S])*+)"
    | \$(?:(?P<name>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)\})
    | (?P<sigil>\$)(?=[^\w({\['"`!@*\#?$-]|$)
    | (?P<tilde>~)
    | (?P<glob>[*?\[])
    | (?P<brace>[{}])
    """,
    re.VERBOSE,
)

_QUOTED = re.compile(
    r"""(?P<plain>[^\\$`]+)
    | (?P<joined>\\\n)
    | \\(?P<escaped>[$`"\\])
    | (?P<backslash>\\)
    | \$(?:(?P<name>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)\})
    | (?P<sigil>\$)(?=[^\w({\[`!@*\#?$-]|$)
    """,
    re.VERBOSE,
)
"""What stands in double quotes."""

_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\])')

_ANSI = re.compile(
    rb"""\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9A-Fa-f]{1,2})
    |u(?P<short>[0-9A-Fa-f]{1,4})|U(?P<long>[0-9A-Fa-f]{1,8})|(?P<letter>[\s\S]))""",
    re.VERBOSE,
)
_LETTERS = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n",
    b"r": b"\r", b"t": b"\t", b"v": b"\v", b"\\": b"\\", b"'": b"'", b'"': b'"', b"?": b"?",
}  # fmt: skip

_ASSIGNED_HOME = re.compile(r"[A-Za-z_]\w*\+?=(?:~|.*:~)", re.DOTALL)
"""What begins like an assignment, where a `~` counts also after `=` and `:`."""

_GLOB = re.compile(r"[*?\[\]\\]")
_SPLITS = re.compile(r"[\s*?\[\\]")


class _OnlyTheShellKnowsError(Exception):
    """The word cannot be known from its text."""


def decode(source: str, known: Mapping[str, str]) -> Word:
    """Return the word that is written as `source`.

    Args:
        source: one word, as the shell divides them.
        known: the values of the variables that are known, `HOME` and `PWD` at most.
    """
    if plain := _PLAIN.fullmatch(source):
        return Word(plain[plain.lastindex or 0], source)
    try:
        text, has_glob = _decoded(source, known)
    except (_OnlyTheShellKnowsError, ValueError):
        return Word(None, source, has_glob=any(sign in source for sign in "*?["))
    return Word(text, source, has_glob)


def without_quotes(source: str) -> str:
    """Return `source`, one word or more, without its outer quotes; what is not known stays."""
    texts: list[str] = []
    position = 0
    while position < len(source):
        found = _PIECE.match(source, position)
        match found.lastgroup if found else None:
            case None:
                texts.append(source[position])
            case "quoted":
                texts.append(_ESCAPED_IN_QUOTES.sub(r"\1", found["quoted"] if found else ""))
            case "raw" | "escaped" as kind:
                texts.append(found[kind] if found else "")
            case _:
                texts.append(found.group() if found else "")
        position = found.end() if found else position + 1
    return "".join(texts)


def unescaped_ansi(text: str) -> str:
    r"""Return what `$'…'` around `text` gives.

    Raises:
        ValueError: if that depends on the locale, is cut off by a NUL, or is no text.
    """
    replaced = _ANSI.sub(_ansi_escape, text.encode())
    if b"\0" in replaced:
        raise ValueError("a NUL ends it")
    return replaced.decode()


def _decoded(source: str, known: Mapping[str, str]) -> tuple[str, bool]:
    if "~" in source and _ASSIGNED_HOME.match(source):
        raise _OnlyTheShellKnowsError
    if "\\\n" in source and ("$" in source or "~" in source):
        raise _OnlyTheShellKnowsError  # the shell joins lines first, and then looks for names
    pieces: list[tuple[str, bool]] = []
    position = 0
    while position < len(source):
        found = _PIECE.match(source, position)
        if found is None:
            raise _OnlyTheShellKnowsError
        piece = _PIECES[found.lastgroup or "plain"](found, known)
        if piece is not None:
            pieces.append(piece)
        position = found.end()
    if "{" in source and _may_be_many(_unquoted(pieces, "_")):
        raise _OnlyTheShellKnowsError
    return _joined(pieces)


def _may_be_many(text: str) -> bool:
    """Return whether `text` may be a brace expansion; some that are none look like one."""
    inside = text[text.find("{") : text.rfind("}")]
    return "," in inside or ".." in inside


def _unquoted(pieces: list[tuple[str, bool]], instead: str = "") -> str:
    return "".join(instead if is_quoted else text for text, is_quoted in pieces)


def _joined(pieces: list[tuple[str, bool]]) -> tuple[str, bool]:
    """Return the text of `pieces`, and whether it is a pattern; quoted signs are escaped then."""
    opened = _unquoted(pieces)
    if not ("*" in opened or "?" in opened or ("[" in opened and "]" in opened)):
        return "".join(text for text, _ in pieces), False
    return (
        "".join(_GLOB.sub(r"\\\g<0>", text) if is_quoted else text for text, is_quoted in pieces),
        True,
    )


_Found = re.Match[str]
_Piece = tuple[str, bool]
"""A text, and whether it is quoted."""


def _plain(found: _Found, _: Mapping[str, str]) -> _Piece:
    return found.group(), False


def _escaped(found: _Found, _: Mapping[str, str]) -> _Piece:
    return found["escaped"], True


def _nothing(_: _Found, __: Mapping[str, str]) -> None:
    return None


def _raw(found: _Found, _: Mapping[str, str]) -> _Piece:
    return found["raw"], True


def _ansi(found: _Found, _: Mapping[str, str]) -> _Piece:
    return unescaped_ansi(found["ansi"]), True


def _quoted(found: _Found, known: Mapping[str, str]) -> _Piece:
    inside = found["quoted"]
    texts: list[str] = []
    position = 0
    while position < len(inside):
        piece = _QUOTED.match(inside, position)
        if piece is None:
            raise _OnlyTheShellKnowsError
        match piece.lastgroup:
            case "name" | "braced":
                texts.append(_value(piece, known))
            case "escaped":
                texts.append(piece["escaped"])
            case "joined":
                pass
            case _:
                texts.append(piece.group())
        position = piece.end()
    return "".join(texts), True


def _variable(found: _Found, known: Mapping[str, str]) -> _Piece:
    value = _value(found, known)
    if not value or _SPLITS.search(value):
        raise _OnlyTheShellKnowsError
    return value, True


def _value(found: _Found, known: Mapping[str, str]) -> str:
    value = known.get(found["name"] or found["braced"])
    if value is None:
        raise _OnlyTheShellKnowsError
    return value


def _tilde(found: _Found, known: Mapping[str, str]) -> _Piece:
    if found.start():
        return "~", False
    prefix = found.string[1:].partition("/")[0]
    if prefix[:1] in ("\\", "'", '"'):
        return "~", False
    if prefix or not (value := known.get("HOME")):
        raise _OnlyTheShellKnowsError
    return value, True


_PIECES: dict[str, Callable[[_Found, Mapping[str, str]], _Piece | None]] = {
    "plain": _plain,
    "joined": _nothing,
    "escaped": _escaped,
    "raw": _raw,
    "ansi": _ansi,
    "quoted": _quoted,
    "name": _variable,
    "braced": _variable,
    "sigil": _plain,
    "tilde": _tilde,
    "glob": _plain,
    "brace": _plain,
}


def _ansi_escape(found: re.Match[bytes]) -> bytes:
    match found.lastgroup:
        case "octal":
            return bytes([int(found["octal"], 8) & 0xFF])
        case "hex":
            return bytes([int(found["hex"], 16)])
        case "short" | "long":
            # In a locale without this character bash leaves the escape as it is.
            if (point := int(found[found.lastgroup], 16)) > 0x7F:
                raise ValueError("what it gives depends on the locale")
            return bytes([point])
        case _:
            letter = found["letter"]
            if letter in b"cxuU":
                raise ValueError("nobody writes this for a good reason")
            return _LETTERS.get(letter, b"\\" + letter)
