"""Glob patterns: what they match, where they start, what ripgrep may sift beforehand.

Pure. `*` and `?` stop at a slash, `**` as a whole part spans folders, `[…]` is a class,
`{a,b}` a choice, a backslash takes the next character as it is. Hidden names are matched
like others.

The regular expressions take time in proportion to the path, however many wildcards there
are: a star gives up nothing that it has passed, since the first place where the next fixed
piece fits is as good as any later one. Choices are written out for the same reason.
"""

import re
from dataclasses import dataclass
from itertools import islice

MAX_CHOICES = 256
"""How many patterns one pattern with choices may stand for."""

MAX_DEPTH = 20
"""How deep choices may be nested."""

_WILD = re.compile(r"[*?\[{\\]")
_ATOM = re.compile(r"\\.|\[[!^]?.[^]]*\]|\*+|\[|.", re.DOTALL)
_SIMPLE_NAME = re.compile(r"(?:[\w.+*@#~ -]|\{[\w.+*@#~, -]*\})+")
"""Names that ripgrep's globs are sure to understand as we do."""


class BadGlob(ValueError):
    """A pattern that is no glob; the message says why."""


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern for paths relative to the folder that a search starts in."""

    regex: re.Pattern[str]
    max_depth: int | None
    """How many parts a matching path has at most; `None` if there is no bound."""
    name_glob: str | None
    """A glob that the last part of every match fits, if ripgrep can apply one."""
    is_by_name: bool
    """Whether `name_glob` alone decides."""

    def matches(self, path: str) -> bool:
        """Return whether `path` matches."""
        return self.regex.fullmatch(path) is not None


def parse_glob(pattern: str) -> Glob:
    """Return what `pattern` means for paths below the folder that it is relative to.

    Raises:
        BadGlob: it cannot be understood.
    """
    patterns = expand_choices(pattern)
    if any(".." in each.split("/") for each in patterns):
        raise BadGlob("'..' cannot follow a wildcard")
    folders, _, name = pattern.rpartition("/")
    is_simple = "**" not in name and _SIMPLE_NAME.fullmatch(name) is not None
    if pattern == "**":
        folders, name, is_simple = "**", "*", True
    has_bound = not any("**" in each.split("/") for each in patterns)
    return Glob(
        regex=re.compile("|".join(map(translate, patterns))),
        max_depth=max(each.count("/") for each in patterns) + 1 if has_bound else None,
        name_glob=name if is_simple else None,
        is_by_name=is_simple and folders == "**",
    )


def anywhere(pattern: str) -> str:
    """Return `pattern` so that a mere name matches at any depth, as in ripgrep and git."""
    return pattern.removeprefix("/") if "/" in pattern else f"**/{pattern}"


def split_base(pattern: str) -> tuple[str, str]:
    """Return the folder that `pattern` starts in, as it is written, and the rest.

    The folder is empty if the first part is wild already. The rest is never empty.
    """
    parts = pattern.split("/")
    plain = 0
    while plain < len(parts) - 1 and not _WILD.search(parts[plain]):
        plain += 1
    base = "/".join(parts[:plain])
    rest = "/".join(part for part in parts[plain:] if part not in ("", "."))
    return base or ("/" if plain else ""), rest or "**"


def expand_choices(pattern: str) -> list[str]:
    """Return the patterns without choices that `pattern` stands for, in order.

    Raises:
        BadGlob: a choice is not closed, or there are more than `MAX_CHOICES` patterns.
    """
    return _expand(_ATOM.findall(pattern), 0, depth=0)[0]


def translate(pattern: str) -> str:
    """Return the regular expression, to be matched in full, of a pattern without choices.

    Raises:
        BadGlob: a class is not closed or no class.
    """
    groups: list[list[str]] = [[]]
    for part in pattern.split("/"):
        if part != "**":
            groups[-1].append(_translate_part(part))
        elif groups[-1] or len(groups) == 1:
            groups.append([])
    first, *others = ["/".join(group) for group in groups]
    if not others:
        return f"(?s:{first})"
    *middle, last = others
    text = f"{first}/" if first else ""
    text += "".join(rf"(?>(?:[^/]+/)*?{group}/)" for group in middle)
    return f"(?s:{text}(?:[^/]+/)*{last or '[^/]+'})"


def _translate_part(part: str) -> str:
    """Return the regular expression of what stands between two slashes."""
    pieces = [""]
    for atom in _ATOM.findall(part):
        if atom.startswith("*"):
            pieces.append("")
        else:
            pieces[-1] += _translate_atom(atom)
    first, *others = pieces
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle) + f"[^/]*{last}"


def _translate_atom(atom: str) -> str:
    if atom == "?":
        return "[^/]"
    if atom == "[":
        raise BadGlob("a '[' is not closed")
    if not atom.startswith("["):
        return re.escape(atom[1:] if len(atom) == 2 else atom)
    is_negated = atom[1] in "!^"
    members = re.sub(r"([\\\[\]^&~|])", r"\\\1", atom[1 + is_negated : -1])
    regex = f"[{'^' if is_negated else ''}{members}]"
    try:
        re.compile(regex)
    except re.error:
        raise BadGlob(f"{atom!r} is no class") from None
    return f"(?!/){regex}"


def _expand(atoms: list[str], at: int, *, depth: int) -> tuple[list[str], int]:
    """Return the choices from `at` to the closing brace, or to the end, and where that is."""
    if depth > MAX_DEPTH:
        raise BadGlob(f"choices are nested more than {MAX_DEPTH} deep")
    done: list[str] = []
    heads = [""]
    while at < len(atoms) and not (depth and atoms[at] == "}"):
        atom = atoms[at]
        at += 1
        if atom == "{":
            tails, at = _expand(atoms, at, depth=depth + 1)
            heads = list(islice((a + b for a in heads for b in tails), MAX_CHOICES + 1))
            at += 1
        elif atom == "," and depth:
            done += heads
            heads = [""]
        else:
            heads = [head + atom for head in heads]
        if len(done) + len(heads) > MAX_CHOICES:
            raise BadGlob(f"it stands for more than {MAX_CHOICES} patterns")
    if depth and at == len(atoms):
        raise BadGlob("a '{' is not closed")
    return done + heads, at
