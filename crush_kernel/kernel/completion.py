"""What Tab offers: commands after `/`, files after `@` (pure but for listing one folder).

Source: Jupyter messaging, "Completion"; JupyterLab shows the types that
`_jupyter_types_experimental` gives.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crush_kernel.kernel.plaintext import visible
from crush_kernel.tools.attachments import Mention, mentions

MAX_MATCHES = 200
"""More than this nobody reads, and a huge folder must not stall the front end."""

_COMMAND = re.compile(r"^\s*/(?P<word>[\w-]*)$")
_ARGUMENT = re.compile(r"^\s*/(?P<name>[\w-]+)\s+(?P<word>\S*)$")
_FILE = re.compile(r'(?<![\w@/\\.])@(?P<word>"[^"\n]*|[^\s"]*)$')


@dataclass(frozen=True, slots=True)
class Match:
    """One offer, and what to show beside it."""

    text: str
    type: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What stands before the cursor: a kind of word, and where it starts."""

    kind: str
    """`command`, `argument` or `file`."""
    word: str
    start: int
    command: str = ""
    """The command whose argument is wanted."""


def wanted_at(code: str, cursor: int) -> Wanted | None:
    """Return what can be completed at `cursor`, a position in code points."""
    before = code[:cursor]
    if match := _COMMAND.match(before):
        return Wanted("command", match["word"], match.start("word") - 1)
    if match := _ARGUMENT.match(before):
        return Wanted("argument", match["word"], match.start("word"), match["name"])
    line_start = before.rfind("\n") + 1
    if match := _FILE.search(before, line_start):
        return Wanted("file", match["word"].lstrip('"'), match.start("word") - 1)
    return None


def reply(
    code: str, cursor: int, wanted: Wanted | None, matches: Iterable[Match]
) -> dict[str, Any]:
    """Return the content of a `complete_reply`."""
    found = list(matches)[:MAX_MATCHES]
    start = wanted.start if wanted else cursor
    end = min(cursor, len(code))
    return {
        "status": "ok",
        "matches": [match.text for match in found],
        "cursor_start": start,
        "cursor_end": end,
        "metadata": {
            "_jupyter_types_experimental": [
                {"start": start, "end": end, "text": match.text, "type": match.type}
                for match in found
            ]
        },
    }


def file_matches(word: str, cwd: Path) -> list[Match]:
    """Return the files and folders that begin with `word`, folders first, as `@path`.

    Names that a prompt cannot mention, or that would hide something in the menu, are left out.
    """
    folder_part, _, name = word.rpartition("/")
    prefix = f"{folder_part}/" if folder_part or word.startswith("/") else ""
    try:
        folder = cwd / Path(prefix).expanduser() if prefix else cwd
        with os.scandir(folder) as entries:
            found = [
                (not entry.is_dir(), entry.name)
                for entry in entries
                if entry.name.lower().startswith(name.lower())
                and (name.startswith(".") or not entry.name.startswith("."))
            ]
    except (OSError, ValueError, RuntimeError):
        # `RuntimeError` is what an unknown home folder raises.
        return []
    offers = (_file_match(f"{prefix}{name}", is_file=is_file) for is_file, name in sorted(found))
    return [offer for offer in offers if offer is not None]


def _file_match(path: str, *, is_file: bool) -> Match | None:
    shown = path if is_file else f"{path}/"
    for text in (f"@{shown}", f'@"{shown}"'):
        if mentions(text) == (Mention(shown),) and visible(shown) == shown:
            return Match(text, "file" if is_file else "folder")
    return None
