"""What a cell is, from its text alone (design §3)."""

from dataclasses import dataclass
from typing import Final, Literal

_ESCAPED: Final = ("/", "!", "%", "\\")
"""What a backslash at the beginning of a cell takes the meaning from."""


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing to do."""

    kind: Literal["empty"] = "empty"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A user's turn, in Markdown."""

    text: str
    kind: Literal["prompt"] = "prompt"


@dataclass(frozen=True, slots=True)
class Command:
    """`/name arguments`; the name may be empty or unknown."""

    name: str
    arguments: str
    kind: Literal["command"] = "command"


@dataclass(frozen=True, slots=True)
class Shell:
    """A command line that the user runs at once."""

    command: str
    kind: Literal["shell"] = "shell"


Cell = Empty | Prompt | Command | Shell


def parse_cell(code: str) -> Cell:
    r"""Return what `code` asks for; only its first non-blank character decides.

    A leading backslash makes a prompt of what would be something else: `\/tmp is full`.
    """
    text = code.strip()
    match text[:1]:
        case "":
            return Empty()
        case "/":
            name = text[1:].split(maxsplit=1)[0] if text[1:2].strip() else ""
            return Command(name, text[1 + len(name) :].strip())
        case "!":
            command = text[1:].strip()
            return Shell(command) if command else Empty()
        case "\\":
            return Prompt(text[1:] if text[1:2] in _ESCAPED else text)
        case _:
            return Prompt(text)


def cell_text(cell: Prompt | Shell) -> str:
    """Return a text that `parse_cell` reads as `cell`."""
    if isinstance(cell, Shell):
        return f"!{cell.command}"
    is_escaped = cell.text.startswith(("/", "!", "\\"))
    return f"\\{cell.text}" if is_escaped else cell.text
