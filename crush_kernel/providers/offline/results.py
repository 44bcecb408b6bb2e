"""What the rules can read from a tool's result: names, lines, first words.

Pure. Reads the texts that the tools write for a model, and takes what it does not know for
nothing found rather than fail: a result may come from another version, or be cut in the middle.
"""

import re
from pathlib import PurePosixPath

_NUMBERED = re.compile(r"\s*\d+[|│\t→](.*)")
_ENTRY = re.compile(r"  (?P<name>\S.*?)(?: -> .*|(?<=/) (?:…|\[).*)?")
"""A line of the first level in the tree that `ls` draws, without where a link leads."""

_DEFINITION = re.compile(
    r"(?:export\s+)?(?:async\s+)?(?:def|class|function|func|fn|interface|struct)\s+(\w+)"
)
_MARKS = re.compile(r"^[\s#/*;%\"'`=<>!\[\]-]+|[\s#*/\"'`=-]+$")
"""What stands around the words of a heading, a comment or a docstring."""

_README = re.compile(r"readme(?:\.(?:md|rst|txt|markdown))?", re.IGNORECASE)
_MAX_DESCRIPTION_CHARS = 160


def entries(tree: str) -> list[str]:
    """Return the names in the folder that `ls` has listed; folders end in `/`."""
    rows = (_ENTRY.fullmatch(line) for line in tree.splitlines()[1:])
    return [row["name"] for row in rows if row and not row["name"].startswith("…")]


def found_paths(listing: str) -> list[str]:
    """Return the paths that `glob` has found."""
    paths = listing.partition("\n\n")[0]
    return [] if paths.startswith("No files match ") else paths.splitlines()


def matching_lines(found: str) -> list[str]:
    """Return what `grep` has found: the names of files, each with its matching lines below."""
    return [] if found.startswith("No matches ") else found.partition("\n\n[")[0].splitlines()


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
