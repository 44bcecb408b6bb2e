"""What git said about the work tree, as values and as text for the model.

Branches, file names and commit subjects are words of strangers: each stays on its line, with
nothing in it that hides or reorders.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from crush_kernel.files.names import printable
from crush_kernel.wording import clipped

MAX_STATUS_LINES = 20
COMMITS = 3
_MAX_LINE_CHARACTERS = 200

_NO_COMMITS = ("No commits yet on ", "Initial commit on ")
_DETACHED = "HEAD (no branch)"


@dataclass(frozen=True, slots=True)
class GitAnswer:
    """What one git command came to."""

    output: bytes = b""
    failure: str = ""
    """Why there is no answer; empty if there is one."""
    is_cut: bool = False
    """Whether there is more output than was read."""


@dataclass(frozen=True, slots=True)
class GitFacts:
    """The state of a work tree at one moment."""

    status: GitAnswer
    """Of `git status --short --branch`."""
    log: GitAnswer
    """Of `git log`, one commit a line."""


def describe_git(facts: GitFacts) -> str:
    """Return `facts` in words; what failed is never told as if there were nothing."""
    if facts.status.failure:
        return f"Git status is not known: {facts.status.failure}"
    heading, *changes = _lines(facts.status) or [""]
    branch, is_unborn = _branch(heading)
    status = _status(changes, facts.status)
    return "\n".join((branch, status, *_commits(facts.log, is_unborn=is_unborn)))


def _branch(heading: str) -> tuple[str, bool]:
    """Return a line on the branch, and whether it has no commit yet."""
    name = heading.removeprefix("## ")
    for words in _NO_COMMITS:
        if name.startswith(words):
            return f"Git branch: {_short(name.removeprefix(words).partition('...')[0])}", True
    if name == _DETACHED:
        return "Git branch: none, HEAD is detached", False
    # No branch's name has two dots in a row; behind three stands what it follows.
    return f"Git branch: {_short(name.partition('...')[0])}", False


def _status(changes: Sequence[str], answer: GitAnswer) -> str:
    if not changes and not answer.is_cut:
        return "Git status: clean"
    shown = [_short(line) for line in changes[:MAX_STATUS_LINES]]
    more = len(changes) - len(shown)
    if answer.is_cut:
        shown.append(f"… and more than {max(0, more):,} more")
    elif more:
        shown.append(f"… and {more:,} more")
    return "\n".join(("Git status, short form:", *shown))


def _commits(answer: GitAnswer, *, is_unborn: bool) -> tuple[str, ...]:
    if is_unborn:
        return ("No commits yet",)
    if answer.failure:
        return (f"The last commits are not known: {answer.failure}",)
    return ("Last commits:", *map(_short, _lines(answer)[:COMMITS]))


def _lines(answer: GitAnswer) -> list[str]:
    """Return the whole lines of an output; the first columns are spaces that matter."""
    lines = answer.output.decode("utf-8", "replace").split("\n")
    # Behind the last line end is nothing, or half a line if not all was read.
    return lines[:-1]


def _short(line: str) -> str:
    return clipped(printable(line), _MAX_LINE_CHARACTERS)
