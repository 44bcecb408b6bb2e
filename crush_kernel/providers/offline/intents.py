"""What a plain request can ask for.

Values only; `requests` finds them in a prompt, `answers` carries them out.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class About:
    """Say what the provider is and can do."""


@dataclass(frozen=True, slots=True)
class Recap:
    """Say what the conversation has brought."""


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep in mind what the prompt says: the notebook does."""


@dataclass(frozen=True, slots=True)
class ListFolder:
    """List what is in the folder `path`."""

    path: str


@dataclass(frozen=True, slots=True)
class ShowFile:
    """Show a file, or `limit` of its lines after the first `offset`; zero shows the start."""

    path: str
    offset: int = 0
    limit: int = 0


@dataclass(frozen=True, slots=True)
class FindFiles:
    """Find the files whose names fit the glob `pattern`."""

    pattern: str
    path: str = "."


@dataclass(frozen=True, slots=True)
class FindText:
    """Find the lines that hold `text`, in the files that fit `include` if it is given."""

    text: str
    path: str = "."
    include: str = ""


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run `command` in the shell."""

    command: str


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Write `content` to a new file."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """Put `new` in the place of `old`."""

    path: str
    old: str
    new: str
    is_everywhere: bool = False


@dataclass(frozen=True, slots=True)
class ExplainProject:
    """Say what the project at hand is, from its README and its files."""


@dataclass(frozen=True, slots=True)
class ExplainFile:
    """Say what a file is, from its first words and its definitions."""

    path: str


Intent = (
    About
    | Recap
    | Remember
    | ListFolder
    | ShowFile
    | FindFiles
    | FindText
    | RunCommand
    | WriteFile
    | ReplaceText
    | ExplainProject
    | ExplainFile
)
