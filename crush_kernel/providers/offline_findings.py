"""What the rules can read from a tool's result: names, lines, first words.

Pure. Reads the texts that the tools write for a model, and takes what it does not know for
nothing found rather than fail: a result may come from another version, or be cut in the middle.
"""

import re
from pathlib import PurePosixPath

_NUMBERED = re.compile(r"\s*\d+[|│\t→](.*)")
_ENTRY = re.compile(r"(?P<indent>\s*)(?:[-*•]\s+)?(?P<name>\S.*?)\s*")
_NOTE = re.compile(r"[\[(<…].*|.*[:.]|No .*")
"""Lines that say something about a listing instead of naming an entry."""

_DEFINITION = re.compile(
    r"(?:export\s+)?(?:async\s+)?(?:def|class|function|func|fn|interface|struct)\s+(\w+)"
)
_MARKS = re.compile(r"^[\s#/*;%\"'`=<>!\[\]-]+|[\s#*/\"'`=-]+$")
"""What stands around the words of a heading, a comment or a docstring."""

_README = re.compile(r"readme(?:\.(?:md|rst|txt|markdown))?", re.IGNORECASE)
_MAX_DESCRIPTION_CHARS = 160


def entries(listing: str) -> list[str]:
    """Return the names at the top level of a listing by `ls` or `glob`; folders end in `/`."""
    rows = [match for line in listing.splitlines() if (match := _ENTRY.fullmatch(line))]
    named = [row for row in rows if not _NOTE.fullmatch(row["name"])]
    depths = sorted(len(row["indent"]) for row in named)
    if not depths:
        return []
    # A tree begins with the folder itself, alone at its depth.
    top = depths[1] if len(depths) > 1 and depths[0] < depths[1] else depths[0]
    return [row["name"] for row in named if len(row["indent"]) == top]


def file_lines(viewed: str) -> list[str]:
    """Return the lines of a file from the numbered ones that `view` gives."""
    return [match[1] for line in viewed.splitlines() if (match := _NUMBERED.fullmatch(line))]


def description(lines: list[str]) -> str:
    """Return the first line that says something, without the marks around it."""
    said = (_MARKS.sub("", line) for line in lines[:40] if not line.startswith("#!"))
    first = next((words for words in said if re.search(r"\w{2}", words)), "")
    return first[:_MAX_DESCRIPTION_CHARS]


def outline(lines: list[str]) -> list[str]:
    """Return the names that are defined at the left margin."""
    return [match[1] for line in lines if (match := _DEFINITION.match(line))]


def readme_in(names: list[str]) -> str:
    """Return the README among `names`, empty if there is none."""
    return next((name for name in names if _README.fullmatch(name)), "")


def block(lines: list[str], path: str = "") -> str:
    """Return `lines` as a fenced block of Markdown that nothing in them can close."""
    text = "\n".join(lines)
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    language = re.sub(r"\W", "", PurePosixPath(path).suffix)
    return f"{fence}{language}\n{text}\n{fence}"
