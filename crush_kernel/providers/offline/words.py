"""The words of a plain request: what is quoted is set aside, the rest is made plain.

Pure. A quoted span becomes one private-use character, so that rules can be written over the
words around it and never see what is quoted; `Found` gives the spans back by name.
"""

import re
from dataclasses import dataclass

MAX_PROMPT_CHARS = 10_000
"""A longer prompt is no plain request; the bound also keeps the search for quotes cheap."""

_MAX_SPANS = 64
_FIRST_MARK = 0xE000

MARK = f"[{chr(_FIRST_MARK)}-{chr(_FIRST_MARK + _MAX_SPANS - 1)}]"
"""Matches the character that stands for a quoted span."""

_QUOTES = re.compile(
    r"""
      ^[ ]{0,3}(?P<fence>`{3,}|~{3,})[ ]*(?P<language>[\w+#.-]*)[ ]*\n(?P<block>.*?)\n?
        ^[ ]{0,3}(?P=fence)[ ]*$
    | (?P<ticks>`+)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)
    | (?<!\w)"(?P<double>(?:\\"|[^"])*)"
    | (?<![\w'])'(?P<single>|.{0,999}?[^\\])'(?!\w)
    | “(?P<curly>[^”]*)” | „(?P<low>[^“”]*)[“”] | «(?P<angle>[^»]*)»
    | (?<!\w)‘(?P<inner>[^\n]*?)’(?!\w)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)

_POLITE_START = re.compile(
    r"^(?:(?:please|kindly|hey|hi|hello|okay|ok|now|then|so|just|crush"
    r"|(?:can|could|would|will) you|i(?:['’]d| would) like you to|i want you to|let['’]?s"
    r"|go ahead and)[ ,:!]+)+(?=\S)",
    re.IGNORECASE,
)
_POLITE_END = re.compile(
    r"(?:,? (?:please|pls|for me|thanks|thank you(?: very much)?))+$", re.IGNORECASE
)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NEGATIONS = _set(
    "not never without unless except instead avoid stop cannot don't dont doesn't can't won't "
    "shouldn't mustn't neither nor no"
)

_PROSE = _set(
    "a all an and any anything are as at be but by code do each every everything for from he "
    "her here him his how i if in is it its me more my of on one or our out please she so some "
    "something that the their them then there these they thing things this those to "
    "up us we what when where which who why with you your"
)
"""Words that stand for something else, or begin a longer wish: never a name by themselves."""

_CONNECTIVES = _set(
    "again afterwards and because for if it me my please that the then this to twice until "
    "when with"
)
"""Words after which an unquoted command is more likely a sentence."""

_BARE_NAMES = _set(
    "changelog contributing dockerfile gemfile justfile license makefile notice procfile readme"
)
"""Files that are known without a dot or a slash in their names."""

_PROGRAMS = _set(
    "awk bash black bun bundle cargo cat cmake conda coverage curl cut date deno df diff dig "
    "docker dotnet du echo env file find gcc git go gradle grep head hostname id java javac jq "
    "julia jupyter just ls make mkdir mv mvn mypy node nox npm npx perl php pip pip3 pnpm poetry "
    "pre-commit printenv printf ps pwd pyright pytest python python3 rg ruby ruff rustc sed seq "
    "sh sleep sort stat tail tar touch tox tr tree true false uname uniq uptime uv uvx wc wget "
    "which whoami xargs yarn"
)
"""What a command may begin with without being quoted."""

_SHELLS = _set("bash sh shell console zsh") | {""}
"""The languages of a fenced block that can be run as a command."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something quoted."""

    text: str
    raw: str
    """The same with its quotes."""
    language: str | None = None
    """The word after the fence, maybe empty; `None` if it is no fenced block."""


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """A prompt on one line, without courtesies and marks, every quoted span as one character."""

    words: str
    """Empty if the prompt is too long, has several lines, or nothing to say."""
    spans: tuple[Span, ...] = ()

    @property
    def is_negated(self) -> bool:
        """Return whether a word says that something is not to be done."""
        bare = (word.strip(".,;:!?()").replace("’", "'") for word in self.words.lower().split())
        return not _NEGATIONS.isdisjoint(bare)


def plain_request(prompt: str) -> PlainRequest:
    """Return what the rules for plain requests look at."""
    if len(prompt) > MAX_PROMPT_CHARS or re.search("[\ue000-\uf8ff\x00]", prompt):
        return PlainRequest("")
    spans: list[Span] = []

    def set_aside(match: re.Match[str]) -> str:
        spans.append(_span(match))
        return chr(_FIRST_MARK + min(len(spans), _MAX_SPANS) - 1)

    words = _QUOTES.sub(set_aside, prompt.strip())
    return PlainRequest(_plain(words), tuple(spans)) if len(spans) <= _MAX_SPANS else _NOTHING


_NOTHING = PlainRequest("")


def _span(match: re.Match[str]) -> Span:
    groups = match.groupdict()
    if groups["fence"]:
        return Span(groups["block"], match[0], groups["language"].lower())
    names = ("code", "double", "single", "curly", "low", "angle", "inner")
    text = next(groups[name] for name in names if groups[name] is not None)
    return Span(text.replace('\\"', '"') if groups["double"] else text, match[0])


def _plain(words: str) -> str:
    words = re.sub(rf"\s*\n\s*(?={MARK}$)", " ", words)
    if "\n" in words or "\r" in words:
        return ""
    words = re.sub(r"^(?:#{1,6}|[-*+>]|\d+[.)])\s+", "", " ".join(words.split()))
    words = re.sub(r"^(\*\*|__|\*|_)(.+)\1$", r"\2", words)
    words = _POLITE_START.sub("", words, count=1)
    words = re.sub(rf"(?<=[\w)/*{MARK[1:-1]}])(?:[.?!…]+|\s[?!]+)$", "", words)
    return _POLITE_END.sub("", words)


@dataclass(frozen=True, slots=True)
class Found:
    """A rule that fits; looks up what its groups have caught.

    A group may be spelled twice in one rule, the second time with `_` at its end.
    """

    match: re.Match[str]
    spans: tuple[Span, ...]

    def raw(self, name: str) -> str:
        """Return the words that `name` has caught, empty if none."""
        groups = self.match.groupdict()
        return groups.get(name) or groups.get(f"{name}_") or ""

    def number(self, name: str) -> int:
        """Return the number that `name` has caught, zero if none."""
        return int(self.raw(name) or 0)

    def span(self, name: str) -> Span | None:
        """Return the quoted span that `name` is, and nothing but."""
        word = self.raw(name)
        return self.spans[ord(word) - _FIRST_MARK] if re.fullmatch(MARK, word) else None

    def text(self, name: str) -> str | None:
        """Return what `name` says, in quotes or as a single word that means itself."""
        span = self.span(name)
        if span is not None:
            return span.text
        word = self.raw(name).rstrip(",:")
        is_word = word and " " not in word and not re.search(MARK, word)
        return word if is_word and word.lower() not in _PROSE else None

    def path(self, name: str) -> str | None:
        """Return the path that `name` is, in quotes or as a single word."""
        span = self.span(name)
        if span is not None and span.language is not None:
            return None
        path = (self.text(name) or "").removeprefix("@").strip()
        return path if path and "\n" not in path else None

    def file(self, name: str) -> str | None:
        """Return the path that `name` is, in quotes or if it looks like that of a file."""
        path = self.path(name)
        if path is None or self.span(name) or self.raw(name).startswith("@"):
            return path
        has_sign = ("." in path or "/" in path) and path.strip("./") != ""
        return path if has_sign or is_file_name(path) else None

    def folder(self, name: str) -> str | None:
        """Return the folder that `name` is, the current one if nothing is caught."""
        return self.path(name) if self.raw(name) else "."

    def command(self, name: str) -> str | None:
        """Return the shell command that `name` is, quoted or beginning with a known program."""
        span = self.span(name)
        if span is not None:
            is_shell = span.language is None or span.language in _SHELLS
            return (span.text.strip() or None) if is_shell else None
        words = self.raw(name).split()
        if not words or not _is_program(words[0]) or not _CONNECTIVES.isdisjoint(words[1:]):
            return None
        return re.sub(MARK, lambda m: self.spans[ord(m[0]) - _FIRST_MARK].raw, self.raw(name))


def is_file_name(path: str) -> bool:
    """Return whether the last part of `path` reads as a file's name and not as a folder's."""
    name = path.rpartition("/")[2]
    return "." in name.lstrip(".") or name.lower() in _BARE_NAMES


def is_identifier(word: str) -> bool:
    """Return whether `word` cannot be plain English: `TODO`, `parse_args`, `FooBar`."""
    return re.fullmatch(r"[A-Z]{3,}|\w*_\w+|\w*[a-z][A-Z]\w*", word) is not None


def _is_program(word: str) -> bool:
    return word in _PROGRAMS or re.fullmatch(r"\.{0,2}/[\w./-]+", word) is not None
