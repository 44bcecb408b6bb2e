"""What to say of a command that has written to a notebook as if it were plain text.

Only what is sure: the command names the notebook, and the content of the file is another than
before. Programs that know notebooks, and Git, are let be. The notebook whose cells run is
saved by its page at any time, so there the command has to look like one that writes, too.
"""

import os
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.textfile import decode, detect
from crush_kernel.tools.diskfile import read_file
from crush_kernel.tools.filechange import MAX_NOTEBOOK_BYTES, NOTEBOOK_TOOL
from crush_kernel.tools.notebook.text import NoNotebook, read_notebook

MAX_NAMED: Final = 8
"""Notebooks of one command that are looked at."""

_NAME: Final = re.compile(
    r"""
      ' (?P<single> [^'\n]* \.ipynb ) '
    | " (?P<double> [^"\n]* \.ipynb ) "
    | (?<! [\w./~*?${}\])-] ) (?P<plain> [\w./~+@%,:-]+ \.ipynb ) (?! [\w./-] )
    """,
    re.VERBOSE,
)

_EXPANDED: Final = re.compile(r"[*?\[\]{}$`\\]")
"""What the shell makes something else of."""

_KNOWING: Final = re.compile(
    r"(?<![\w./-])(?:git|jupyter|jupytext|nbdime|nbqa|nbstripout|papermill|quarto|rm)(?![\w/-])"
)
"""Programs that know what they do to notebooks."""

_WRITING: Final = re.compile(
    r"""
      > \s* ['"]? [^\s'"|;&]* \.ipynb
    | \b (?: sed | perl ) \b [^|;&\n]* \s -\w* i
    | (?<! [\w./-] ) (?: cp | dd | install | mv | patch | python[\d.]* | node | ruby | rsync | tee
        | truncate ) (?! [\w/-] )
    """,
    re.VERBOSE,
)

States = Mapping[str, bytes | None]
"""Notebooks by the names that a command gives them, and a digest of each that is there."""


def named_notebooks(command: str) -> tuple[str, ...]:
    """Return the notebooks that `command` names literally."""
    found = (match[match.lastgroup or 0] for match in _NAME.finditer(command))
    names = dict.fromkeys(name for name in found if not _EXPANDED.search(name))
    return tuple(names)[:MAX_NAMED]


def states_of(names: tuple[str, ...], folder: Path) -> States:
    """Return how the notebooks are now that are called `names` from `folder`. Blocks."""
    return {name: _digest(folder / name) for name in names}


def steering_notes(
    command: str, before: States, folder: Path, running: Path | None
) -> Iterator[str]:
    """Yield a line about each notebook that `command` has changed by hand. Blocks.

    Args:
        command: which has ended.
        before: the notebooks that it names, as they were.
        folder: in which it ran.
        running: the notebook whose cells run, if it is known.
    """
    for name, digest in before.items():
        path = folder / name
        if (now := _digest(path)) is None or now == digest:
            continue
        shown = printable(name)
        if running is not None and os.path.realpath(path) == os.path.realpath(running):
            if _WRITING.search(command):
                yield (
                    f"[{shown} is the notebook in which you run. Its page overwrites the file "
                    f"when it saves, so this change will be lost: use {NOTEBOOK_TOOL}, which "
                    "changes the cells in the page]"
                )
        elif trouble := _trouble(path):
            yield f"[{shown} cannot be opened as a notebook now: {trouble}]"
        elif not _KNOWING.search(command):
            yield (
                f"[{shown} is a notebook: next time change its cells with {NOTEBOOK_TOOL}, which "
                "keeps it valid and shows what changes]"
            )


def _digest(path: Path) -> bytes | None:
    data = _read(path)
    return None if data is None else sha256(data).digest()


def _read(path: Path) -> bytes | None:
    """Return the content of the notebook `path`; `None` if it is none that is looked at."""
    try:
        file = read_file(Path(os.path.realpath(path.expanduser())), max_bytes=MAX_NOTEBOOK_BYTES)
    except (ToolError, RuntimeError):
        return None
    return None if file is None else file.data


def _trouble(path: Path) -> str:
    """Return why the notebook cannot be opened, or nothing."""
    data = _read(path) or b""
    text_format = detect(data)
    if text_format is None:
        return "it is no text"
    try:
        read_notebook(decode(data, text_format))
    except NoNotebook as error:
        return str(error)
    return ""
