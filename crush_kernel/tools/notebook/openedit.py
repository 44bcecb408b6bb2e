"""Change a cell of the notebook whose cells run, through the page that shows it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anyio.to_thread import run_sync

from crush_kernel.errors import ToolError
from crush_kernel.files.textfile import decode, detect, shown
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.base import ToolContext, ToolOutput, limit_output
from crush_kernel.tools.filechange import NOTEBOOK_TOOL
from crush_kernel.tools.notebook.change import NotebookEditArguments, apply, find, type_of
from crush_kernel.tools.notebook.openpage import (
    Absence,
    CellChange,
    CellDeleted,
    CellInserted,
    CellMoved,
    CellReplaced,
    NoPage,
    NotebookDesk,
    OpenNotebookPage,
    PageCell,
    Refusal,
    text_of,
)
from crush_kernel.tools.notebook.splice import NewId, Splice
from crush_kernel.tools.notebook.text import Cell, NoNotebook, NotebookText, listing, read_notebook
from crush_kernel.tools.paths import Target
from crush_kernel.tools.text.diff import unified_diff
from crush_kernel.tools.tracker import ReadTracker

MAX_SHOWN_BYTES: Final = 6_000
"""Of the source of a cell that has changed, in an error."""

_ABSENT: Final[dict[Absence, str]] = {
    "nobody": (
        "no page is there that could change it: only JupyterLab and Notebook 7 with the Crush "
        "extension can"
    ),
    "silent": "the page that shows it does not answer",
}

_REFUSED: Final[dict[Refusal, str]] = {
    "unknown": "A cell that the call names is not there any more, so nothing was changed. View "
    "the notebook again.",
    "taken": "Another cell has got the new id meanwhile, so nothing was changed. Repeat the call.",
    "changed": "The cell was changed in the page meanwhile, so nothing was changed. View the "
    "notebook again and repeat the call.",
    "busy": "The cell runs now or waits to be run, so it was left as it is.",
    "locked": "The user has locked the cell against that (its metadata say so), so it was left "
    "as it is.",
    "read-only": "The page shows the notebook read-only: nothing was changed, since it could not "
    "be saved.",
    "gone": "The page has gone before it answered. View the notebook to see whether the cell was "
    "changed.",
    "silent": "The page does not answer. It may still change the cell when it does: view the "
    "notebook before you go on.",
}


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done to the open notebook."""

    change: CellChange
    before: NotebookText
    after: NotebookText
    report: str
    """What was done, for the model, to go after the path."""
    notes: tuple[str, ...]
    """What the user should know before it is done."""
    place: int
    """The position of the cell that it is about, from 0, after the change or before it is gone."""


async def edit_open_notebook(
    target: Target,
    arguments: NotebookEditArguments,
    context: ToolContext,
    *,
    desk: NotebookDesk,
    tracker: ReadTracker,
    new_id: NewId,
) -> ToolOutput:
    """Have the page that shows the notebook at `target` change one cell.

    Cancelled while the page is asked, it may still be done.

    Raises:
        PermissionDenied: the answer is no; nothing was changed.
        ToolError: no page can do it, the cell is not there, was not seen, or runs.
    """
    page, cells = await _look(target, desk)
    plan = await run_sync(
        _planned, cells, arguments, target, tracker, new_id, abandon_on_cancel=True
    )
    if plan is None:
        said = f"The cell {arguments.cell_id} is like that already; there is nothing to do."
        return ToolOutput(said, summary="unchanged")
    diff = unified_diff(target.shown, shown(listing(plan.before)), shown(listing(plan.after)))
    await context.permit(
        PermissionRequest(
            call_id=context.call_id,
            tool=NOTEBOOK_TOOL,
            action="write",
            title=f"{arguments.deed} {target.shown}",
            paths=(target.path,),
            is_outside=target.is_outside,
            diff=diff.text,
            notes=plan.notes,
        )
    )
    if (refusal := await page.edit(plan.change)) is not None:
        raise ToolError(_REFUSED[refusal])
    _remember(tracker, target.path, plan)
    return ToolOutput(
        f"{target.shown}: {plan.report}.",
        summary=diff.summary,
        diff=diff.text,
        metadata={"additions": diff.additions, "removals": diff.removals},
    )


def note_seen(tracker: ReadTracker, path: Path, cells: Iterable[Cell]) -> None:
    """Note that the model knows what `cells` of the open notebook at `path` say."""
    known = {cell.name: cell for cell in _seen(tracker, path)}
    known |= {cell.name: cell for cell in cells}
    written = [PageCell(cell.name, type_of(cell), cell.source) for cell in known.values()]
    tracker.record(path, text_of(written).text.encode())


async def _look(
    target: Target, desk: NotebookDesk
) -> tuple[OpenNotebookPage, tuple[PageCell, ...]]:
    try:
        cells = await desk.cells()
    except NoPage as error:
        raise ToolError(
            f"{target.shown} is the notebook in which you run, and {_ABSENT[error.absence]}. What "
            "is written to its file would be lost or would undo what is not saved yet, so nothing "
            "was written. Say in your reply what the user should change in which cell."
        ) from error
    if desk.page is None:  # it has just told the cells
        raise ToolError(_REFUSED["gone"])
    return desk.page, cells


def _planned(
    cells: tuple[PageCell, ...],
    arguments: NotebookEditArguments,
    target: Target,
    tracker: ReadTracker,
    new_id: NewId,
) -> _Plan | None:
    """Return what is to be done; `None` if that would change nothing."""
    try:
        before = text_of(cells)
    except NoNotebook as error:
        raise ToolError(f"{target.shown} cannot be changed by cells: {error}.") from error
    _require_own_ids(before, arguments)
    place = None
    if arguments.action != "insert":
        place = find(before, arguments.cell_id, target.shown)
        _require_idle(cells[place])
    _require_seen(before, place, arguments, target, tracker)
    splice = Splice(before, new_id)
    report = apply(splice, before, arguments, target.shown)
    if not report:
        return None
    after = read_notebook(splice.text())
    if after.cells == before.cells:  # moved to where it is
        return None
    if place is None:
        place = next(n for n, cell in enumerate(after.cells) if cell not in before.cells)
    former = None if arguments.action == "insert" else cells[place]
    named = after.cells[place].name if former is None else former.id
    return _Plan(
        change=_change(arguments, named, former),
        before=before,
        after=after,
        report=f"{report}{_told(arguments, former, after.cells)}",
        notes=tuple(_notes(arguments, former, place, len(cells))),
        place=place,
    )


def _require_own_ids(notebook: NotebookText, arguments: NotebookEditArguments) -> None:
    names = {cell.name for cell in notebook.cells}
    for name in (arguments.cell_id, arguments.after):
        if name.startswith("#") and name in names:
            raise ToolError(
                f"The cell {name} has no id of its own in the page, so it cannot be told from "
                "others there. Say in your reply what the user should change in which cell."
            )


def _require_idle(cell: PageCell) -> None:
    if cell.is_busy:
        raise ToolError(
            f"The cell {cell.id} runs now or waits to be run, so it is left as it is. Say in your "
            "reply what the user should change in it."
        )


def _require_seen(
    notebook: NotebookText,
    place: int | None,
    arguments: NotebookEditArguments,
    target: Target,
    tracker: ReadTracker,
) -> None:
    """Refuse to touch a cell that the model has not seen as it is now.

    The others may have changed: people write the next cells while a turn goes on.
    """
    seen = {cell.name: cell for cell in _seen(tracker, target.path)}
    if not seen:
        raise ToolError(
            f"{target.shown} was not viewed yet, so nothing was changed. View it first."
        )
    if place is None or arguments.action == "move":
        return
    cell = notebook.cells[place]
    known = seen.get(cell.name)
    if known is None:
        raise ToolError(
            f"You have not seen the cell {cell.name} yet, so nothing was changed. View "
            f"{target.shown} again."
        )
    if (known.type, known.source) != (cell.type, cell.source):
        note_seen(tracker, target.path, (cell,))
        raise ToolError(
            f"The cell {cell.name} has changed since you viewed it, so nothing was changed. "
            f"Repeat the call with that in mind; it is a {cell.type} cell now, which says:\n"
            f"{limit_output(shown(cell.source), max_bytes=MAX_SHOWN_BYTES)}"
        )


def _seen(tracker: ReadTracker, path: Path) -> tuple[Cell, ...]:
    """Return the cells that the model knows, as it saw them."""
    seen = tracker.seen(path)
    text_format = None if seen is None else detect(seen)
    if seen is None or text_format is None:
        return ()
    try:
        return read_notebook(decode(seen, text_format)).cells
    except NoNotebook:
        return ()


def _change(arguments: NotebookEditArguments, name: str, former: PageCell | None) -> CellChange:
    if former is None:
        return CellInserted(
            name, arguments.cell_type or "code", arguments.source, after=arguments.after
        )
    match arguments.action:
        case "delete":
            return CellDeleted(name, former=former.source)
        case "move":
            return CellMoved(name, after=arguments.after)
        case _:
            kind = arguments.cell_type or former.type
            return CellReplaced(name, kind, arguments.source, former=former.source)


def _notes(
    arguments: NotebookEditArguments, former: PageCell | None, place: int, total: int
) -> Iterator[str]:
    """Yield what a person should know of the change beside the diff."""
    if former is None:
        prompt = ", a prompt" if arguments.cell_type in ("", "code") else ""
        yield f"it becomes cell {place + 1} of {total + 1}{prompt}; it is not run"
        return
    yield f"cell {place + 1} of {total}"
    match arguments.action:
        case "replace" if arguments.cell_type not in ("", former.type):
            yield f"it becomes a {arguments.cell_type} cell; what it shows goes"
        case "replace" if former.has_turn:
            yield "what it shows and what was said in it stay until it is run again"
        case "delete" if former.has_turn:
            yield "what was said in it goes with it"
        case _:
            pass


def _told(
    arguments: NotebookEditArguments, former: PageCell | None, cells: tuple[Cell, ...]
) -> str:
    """Return what the model should know of it, to follow what was done."""
    has_turn = former is not None and former.has_turn
    match arguments.action:
        case "insert":
            is_prompt = arguments.cell_type in ("", "code")
            return ". It is a prompt to you; it was not run, that is for the user" * is_prompt
        case "replace":
            return ". What it shows is of its former source until the user runs it" * has_turn
        case "delete":
            return ". What was said in it is not part of the conversation any more" * has_turn
        case "move":
            return f", of {len(cells)}"


def _remember(tracker: ReadTracker, path: Path, plan: _Plan) -> None:
    """Note that the model knows the cell that it has changed."""
    if plan.change.action in ("insert", "replace"):
        note_seen(tracker, path, (plan.after.cells[plan.place],))
