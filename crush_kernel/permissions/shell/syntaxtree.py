"""The syntax tree of a command line: commands, and how the shell holds them together.

Words are as they are written; what a program gets for them is another matter, see `words`.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

UNSURE = "cannot be read for certain"
DEEP = "is nested too deep to be read"
BACKGROUND = "goes on in the background"
FUNCTION = "defines a function"
VARIABLES = "sets variables"

Span: TypeAlias = tuple[int, int]
"""Where something begins and ends, in characters."""


@dataclass(slots=True)
class Redirect:
    """Where a command reads or writes instead."""

    operator: str
    target: str
    """As it is written; the delimiter of a here-document."""
    span: Span
    """Of the target."""
    body: str | None = None
    """Of a here-document, if nothing in it is expanded."""

    @property
    def is_document(self) -> bool:
        """Return whether it is a here-document, which names no file."""
        return self.operator in ("<<", "<<-")


@dataclass(slots=True)
class Simple:
    """A simple command, a condition in `[[ … ]]` also."""

    text: str = ""
    words: list[str] = field(default_factory=list[str])
    spans: list[Span] = field(default_factory=list[Span])
    """Where the words are."""
    assignments: list[str] = field(default_factory=list[str])
    redirects: list[Redirect] = field(default_factory=list[Redirect])
    inner: "list[Sequence]" = field(default_factory=list["Sequence"])
    """What its words and redirections run first."""


Kind = Literal["group", "subshell", "branch", "loop", "function", "arithmetic"]


@dataclass(slots=True)
class Compound:
    """Commands between words of the shell."""

    kind: Kind
    lists: "list[Sequence]" = field(default_factory=list["Sequence"])
    text: str = ""
    """Of its redirections."""
    redirects: list[Redirect] = field(default_factory=list[Redirect])
    inner: "list[Sequence]" = field(default_factory=list["Sequence"])
    """What the words of its head and its redirections run."""


Command: TypeAlias = Simple | Compound


@dataclass(slots=True)
class Pipeline:
    """Commands whose outputs flow into each other; a single one is the usual case."""

    after: str = ";"
    """What stands before it: `&&`, `||`, or `;` and what is like it."""
    commands: list[Command] = field(default_factory=list[Command])
    is_open: bool = False
    """Whether it ends with a `|`, and goes on in the next line."""
    is_negated: bool = False
    is_background: bool = False


@dataclass(slots=True)
class Sequence:
    """Pipelines one after the other."""

    pipelines: list[Pipeline] = field(default_factory=list[Pipeline])


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A whole command line."""

    sequence: Sequence
    doubts: tuple[str, ...]
    """Why it may mean something else, or does more than its commands; clauses."""
    line_ends: tuple[int, ...]
    """Where lines end that are also the end of a command."""
