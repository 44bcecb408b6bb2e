"""Places where a secret of any form stands: assignments, headers, passwords in URLs.

What a place holds is judged as people would: a value that could be a word, a name in code,
a call or a gap to fill in stays, at the price that a secret which looks like one stays too.
"""

import re
from collections.abc import Iterator
from typing import Final

from crush_kernel.history.secrecy.span import Span

LABEL: Final = "credential"
"""One for all places: the same secret in another place must look the same."""

MAX_VALUE_CHARS: Final = 512

_NAME = (
    r"(?:passw(?:or)?d|passphrase|pwd|secret|credential|token"
    r"|(?:api|access|secret|private|account|auth|encryption|signing|master|service"
    r"|subscription|storage|license|client|consumer)[_-]?key)"
)
_WIDE = "\u0e00-\U0010ffff"
"""Scripts written without blanks, punctuation other than ASCII's, symbols: never in a value
here, so that a stream may be cut at them."""

_ASSIGNMENT = re.compile(
    rf"""
    (?<![/\\⟨]) (?P<name>(?i:{_NAME}))s? ["'\])]{{0,3}} [ \t]{{0,8}}
    (?P<sign>=>|:=|={{1,3}}|:) (?P<gap>[ \t]{{0,8}})
    (?: [rbuRBU]{{0,2}}"(?P<double>[^"\s{_WIDE}]{{6,{MAX_VALUE_CHARS}}}+)"
      | [rbuRBU]{{0,2}}'(?P<single>[^'\s{_WIDE}]{{6,{MAX_VALUE_CHARS}}}+)'
      | (?P<bare>[^\s"'`,;&<>(){{}}\[\]|\\{_WIDE}]{{6,{MAX_VALUE_CHARS}}}+)
        (?P<after>[\s"'`,;&<>(){{}}\[\]|\\{_WIDE}]|\Z)
    )""",
    # Not for the whole: case-folding would make a `k` of the Kelvin sign, and so wide.
    re.VERBOSE,
)
_HEADER = re.compile(
    r"""
    (?: authorization["'\])]{0,3} [ \t]{0,8} [:=] [ \t]{0,8} ["']?
        (?: (?P<scheme>[a-z][a-z-]{1,20}) [ \t]{1,4} )?
      | (?<![a-z]) bearer [ \t]{1,4}
    )
    (?P<value>[a-z0-9._~+/=:-]{8,})""",
    re.IGNORECASE | re.VERBOSE,
)
_URL = re.compile(
    rf"""://[^\s/:@"'`<>{_WIDE}]{{0,200}}:(?P<value>[^\s/?#"'`<>{_WIDE}]{{3,300}})@"""
    r"(?!sha\d)(?=[A-Za-z0-9\[%{*_-])"
)

_LOOSE_NAME: Final = _NAME.replace("[_-]?", "(?:[_-]|&#95;)?")
"""Also as it may stand in Markdown of ours."""
_GAP: Final = r"""(?:[ \t"'\\\])]|&[a-z]{2,4};|&\#[0-9]{2,3};|%2[0279])*"""
_SIGN: Final = r"(?:[:=]|%3[AaDd]|&\#(?:58|61);){1,3}(?:>|&gt;|%3[Ee])?"
_OPEN = re.compile(
    rf"(?:{_LOOSE_NAME}s?{_GAP}(?:{_SIGN}{_GAP}[rbu]{{0,2}})?"
    rf"|authorization{_GAP}(?:{_SIGN}{_GAP}(?:[a-z][a-z-]{{0,20}}{_GAP})?)?|bearer{_GAP})\Z",
    re.IGNORECASE,
)
"""The end of a text after which a value may follow."""
_OPEN_CHARS: Final = 100
_NAME_ANCHORS: Final = ("passw", "passphrase", "pwd", "secret", "credential", "token", "key")
_HEADER_ANCHORS: Final = ("authorization", "bearer")
"""One of them, in small letters, is in every such place."""
OPEN_GUARD: Final = f"(?i:{'|'.join((*_NAME_ANCHORS, *_HEADER_ANCHORS))})"
"""An expression without look-around that matches wherever a value may follow."""

GUARD: Final = (
    rf"(?i:{_LOOSE_NAME})s?{_GAP}{_SIGN}{_GAP}[^\s]*?[0-9]"
    rf"|(?i:authorization){_GAP}{_SIGN}"
    r"|(?i:bearer)(?:[ \t]|%20)+[A-Za-z0-9._~+/=:-]{8}"
    r"|(?::|%3[Aa]|&\#58;)(?://|%2[Ff]%2[Ff]|\\/\\/)[^\s/]*(?:@|%40|&\#64;)"
)
"""An expression without look-around that matches wherever a place does, and more."""

_GAP_TO_FILL = re.compile(
    r"(?:your|change|replace|insert|enter|example|sample|placeholder|redacted|dummy|fake)"
    r"|\$[A-Za-z_{(]|%[A-Za-z_]+%|%\(|\{\{|[{<][A-Za-z_]|\.\.\.|(?:x{4,}|\*{3,}|•{3,}|\.{3,})\Z",
    re.IGNORECASE,
)
_TYPE = re.compile(
    r"(?:u?int|float|big|utf|base|sha|md|var|n?char|str|string|bytes|vec|array)\d", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+\Z")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z")
_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_OTHER_TOKENS = (
    *("page", "next", "cursor", "continuation", "cancellation", "cancel", "sync", "public"),
    *("pad", "eos", "bos", "unk", "mask", "sep", "cls", "stop", "special"),
)
"""What stands before `token` or `key` where it is none to keep secret."""
_NAMED = ("pass", "pwd", "secret", "token", "key", "cred")


def placed_secrets(text: str) -> Iterator[Span]:
    """Yield where `text` has a value that its place makes a secret."""
    lower = text.lower()
    if any(anchor in lower for anchor in _NAME_ANCHORS):
        for found in _ASSIGNMENT.finditer(text):
            group = next(name for name in ("double", "single", "bare") if found[name] is not None)
            if _is_assigned_secret(text, found, group):
                yield Span(*found.span(group), LABEL)
    if any(anchor in lower for anchor in _HEADER_ANCHORS):
        for found in _HEADER.finditer(text):
            if _is_sent_secret(found):
                yield Span(*found.span("value"), LABEL)
    if "://" in text:
        for found in _URL.finditer(text):
            if not _is_gap_to_fill(found["value"]):
                yield Span(*found.span("value"), LABEL)


def open_place(text: str) -> int:
    """Return where in `text` a place begins whose value may follow; its length if none does."""
    start = max(text.rfind("\n") + 1, len(text) - _OPEN_CHARS)
    found = _OPEN.search(text, start)
    return found.start() if found else len(text)


def is_secret_of(name: str, value: str) -> bool:
    """Tell whether `value` is to be kept secret, as the string that has `name` in some JSON."""
    found = re.search(rf"({_NAME})s?\Z", name, re.IGNORECASE)
    if found is None or re.search(rf"[\s{_WIDE}]", value) or len(value) > MAX_VALUE_CHARS:
        return False
    return not _is_other(name[: found.start()]) and _is_secret(found[1], value)


def _is_assigned_secret(text: str, found: re.Match[str], group: str) -> bool:
    name, value = found["name"], found[group]
    if _is_other(text[max(0, found.start() - 16) : found.start()]):
        return False
    if group != "bare":
        return _is_secret(name, value)
    if found["after"] in tuple("([{<>|") or _DOTTED.match(value) or re.match(r"\d+:", value):
        return False
    if _IDENTIFIER.match(value) and not _is_bare_word_secret(found, value):
        return False
    return _is_secret(name, value)


def _is_bare_word_secret(found: re.Match[str], value: str) -> bool:
    """Judge a value without quotes that could be a name in code."""
    if found["after"] in tuple(",)]}") and found["after"]:
        return False
    lower = value.lower()
    if any(word in lower for word in _NAMED):
        return False
    is_tight = found["sign"] == "=" and not found["gap"]
    is_password = found["name"].lower().startswith(("pass", "pwd"))
    return is_tight or is_password or len(re.findall("[0-9]+", value)) >= 3


def _is_sent_secret(found: re.Match[str]) -> bool:
    value = found["value"]
    if _is_gap_to_fill(value) or _DOTTED.match(value):
        return False
    if (found["scheme"] or "").lower() == "basic":
        return value != value.lower()
    return _is_mixed(value) and _is_random(value)


def _is_secret(name: str, value: str) -> bool:
    """Judge the value that was given to `name`, its place apart."""
    kind = name.lower()
    shortest = 6 if kind.startswith(("pass", "pwd")) else 8 if kind == "secret" else 12
    if len(value) < shortest or not _is_mixed(value) or _is_gap_to_fill(value):
        return False
    if value.startswith(("/", "./", "../", "~/")) or "://" in value:
        return False
    if _TYPE.match(value) or _CONSTANT.match(value):
        return False
    if shortest > 6 and ("[" in value or "\\" in value):
        return False  # a regular expression
    return shortest == 6 or _is_random(value)


def _is_other(before: str) -> bool:
    return before.rstrip("_-").lower().endswith(_OTHER_TOKENS)


def _is_gap_to_fill(value: str) -> bool:
    return _GAP_TO_FILL.match(value) is not None or "${" in value or "{{" in value


def _is_mixed(value: str) -> bool:
    return any("0" <= char <= "9" for char in value) and any(map(str.isalpha, value))


def _is_random(value: str) -> bool:
    """Tell whether `value` is made of more than words and a number or two."""
    runs = _RUN.findall(value)
    digits = sum(len(run) for run in runs if run.isdigit())
    is_long = len(value) >= 32 and any(map(str.isupper, value)) and any(map(str.islower, value))
    return digits >= 3 or is_long or sum(map(len, runs)) < 2.8 * len(runs)
