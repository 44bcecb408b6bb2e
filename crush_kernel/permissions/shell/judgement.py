"""What passes between reading a command line and knowing the programs that it names."""

from dataclasses import dataclass
from typing import Final, NamedTuple

RUNS_INPUT: Final = "runs what comes in"
"""What a program does whose code stands in none of its words."""


# Those that are made for every word and every command are tuples: frozen data classes take three
# times as long to make, and people wait for the reading before each command.


class Word(NamedTuple):
    """One word of a simple command."""

    text: str | None
    """What the program gets, quotes taken off; `None` if only the shell can know."""
    source: str
    """As it is written."""
    has_glob: bool = False
    """Whether the shell puts names of files in its place; `text` is then the pattern."""


UNKNOWN_WORD: Final = Word(None, "")
"""One that only the shell can know, such as where a command runs."""


class Judgement(NamedTuple):
    """What one simple command does, as far as its words tell."""

    does: str
    """In two or three words, for a person: `deletes files`, `runs the project's code`."""
    is_read_only: bool = False
    """Whether it changes nothing, talks to nobody and runs nothing but `runs` and `scripts`."""
    reads: tuple[Word, ...] = ()
    """Paths that it reads, of a read-only command all of them."""
    writes: tuple[Word, ...] = ()
    """Paths that it makes, changes or removes, as far as they are known."""
    removes_trees: bool = False
    """Whether `writes` are removed with all that is in them, or beyond repair."""
    runs: tuple[tuple[Word, ...], ...] = ()
    """Commands that it runs, by their words: `nice`, `env`, `xargs`. What a wrapper adds itself
    stands in the other fields."""
    scripts: tuple[Word, ...] = ()
    """Shell code that it runs: `sh -c`, `eval`."""
    directory: Word | None = None
    """Where those, and what follows `cd`, run."""
    dangers: tuple[str, ...] = ()
    """Why a person has to say in any mode, one sentence each: that it formats a disk, or is on
    the list of commands that Crush bans."""
    rule_words: int = 0
    """How many of the first words a rule has to name so that it means something, such as 2 for
    `git log`; 0 if only the whole command may be granted for good (`rm`, `python -c`)."""


@dataclass(frozen=True, slots=True)
class CommandReading:
    """What a whole command line does."""

    parts: "tuple[ReadPart, ...]"
    """Every simple command, those inside of wrappers and substitutions included, in order."""
    is_read_only: bool
    """Whether every part is, and nothing around them writes, runs unseen or cannot be read."""
    reasons: tuple[str, ...] = ()
    """Why it does not count as read-only though its parts do: `writes to a file`, `goes on in the
    background`, `cannot be read for certain`; clauses."""


class ReadPart(NamedTuple):
    """One simple command, before anybody has looked where its paths lead."""

    text: str
    """As it is written, its redirections included."""
    words: tuple[Word, ...]
    judgement: Judgement
    reads: tuple[Word, ...] = ()
    """Files that it reads by redirection, beside those of the judgement."""
    writes: tuple[Word, ...] = ()
    """Files that it writes by redirection, beside those of the judgement."""
    directory: Word | None = None
    """Where it runs, from where the command line starts; `None` for there. One without a text is
    not known, and then no path is."""
    folders: tuple[Word | None, ...] = ()
    """If that is not known, since a `cd` before may have failed: where it may run."""
