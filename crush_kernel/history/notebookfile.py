"""A notebook's file, read where no page tells what is in it. Never written here."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from crush_kernel.history.notebook import (
    MAX_NOTEBOOK_BYTES,
    NotebookCell,
    NotebookContents,
    read_ipynb,
)
from crush_kernel.history.turn import Turn

_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What files call cells. Source: nbformat 4.5."""

_VSCODE: Final = "vscode-notebook-cell:"

_GRAIN: Final = timedelta(seconds=2)
"""How exact times are: turns tell whole seconds, and some file systems every other one."""


def read_notebook_file(path: Path) -> NotebookContents:
    """Read the notebook at `path`; one that does not exist holds nothing. Never raises."""
    try:
        # Opening a pipe would wait for somebody to write into it.
        if path.exists() and not path.is_file():
            return NotebookContents(problems=("The notebook cannot be read: it is no file.",))
        with path.open("rb") as file:
            # One byte more tells that there is more.
            return read_ipynb(file.read(MAX_NOTEBOOK_BYTES + 1))
    except FileNotFoundError:
        return NotebookContents()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name is no path"
        return NotebookContents(problems=(f"The notebook cannot be read: {reason}.",))


def named_cells(cells: Iterable[NotebookCell]) -> Iterator[NotebookCell]:
    """Yield the cells of a file under the names that a front end without a page has for them.

    Some have no names, or others than the file: then the turn tells how they called the cell.
    No two have the same name; cells without a name and without a turn are left out.
    """
    listed = list(cells)
    taken = {cell.id for cell in listed}
    for cell in listed:
        name = _own_name(cell.turn) or cell.id
        if name != cell.id and name in taken:
            name = cell.id or next(f"#{n}" for n in count(1) if f"#{n}" not in taken)
        taken.add(name)
        if name:
            yield replace(cell, id=name)


def _own_name(turn: Turn | None) -> str:
    """Return what a front end called a cell, if that is nothing that a file would."""
    name = turn.cell_id if turn else ""
    return "" if _ID.fullmatch(name) else name


def path_in(cell_id: str) -> Path | None:
    """Return the notebook that `cell_id` names, as those of VS Code do; else `None`.

    Source: VS Code, `CellUri`: `vscode-notebook-cell:/home/ada/plan.ipynb#W0sZmlsZQ%3D%3D`.
    """
    if not cell_id.startswith(_VSCODE):
        return None
    with suppress(ValueError):
        return _notebook_called(unquote(urlsplit(cell_id).path))
    return None


def path_told(environ: Mapping[str, str]) -> Path | None:
    """Return the notebook that the server started the kernel for, if it says so.

    Source: jupyter_server sets `JPY_SESSION_NAME`; it goes stale when the file is renamed.
    """
    return _notebook_called(environ.get("JPY_SESSION_NAME", ""))


def _notebook_called(name: str) -> Path | None:
    is_path = name.endswith(".ipynb") and "\0" not in name and Path(name).is_absolute()
    return Path(name) if is_path else None


def written_at(path: Path) -> datetime | None:
    """Return when the file was written last; `None` if there is none, or nobody can tell.

    A time that is yet to come is of a clock that was set back since, so that what ended after
    it may look as if it had ended before.
    """
    with suppress(OSError, ValueError, OverflowError):
        written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return written if written <= datetime.now(UTC) + _GRAIN else None
    return None


def had_ended(turn: Turn | None, written: datetime) -> bool:
    """Return whether `turn` had ended for sure when a file was `written`."""
    ended = turn.volatile.get("ended") if turn else None
    with suppress(ValueError, TypeError, OverflowError):
        return datetime.fromisoformat(str(ended)) + _GRAIN < written
    return False
