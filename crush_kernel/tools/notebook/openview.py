"""Look at the notebook whose cells run as its page has it, not as it was saved last."""

from dataclasses import replace
from functools import partial
from typing import Final

from anyio.to_thread import run_sync

from crush_kernel.errors import ToolError
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.media.view import Sight
from crush_kernel.tools.notebook.openedit import note_seen
from crush_kernel.tools.notebook.openpage import NoPage, outputs_of, text_of
from crush_kernel.tools.notebook.savedview import Looked, cells_shown, page_of
from crush_kernel.tools.notebook.text import NoNotebook

_ABOUT: Final = "the notebook in which you run, as it is in the page now"

_SAVED: Final = (
    "[this is the notebook in which you run, as it was saved last: no page tells what it holds "
    "now, so newer cells and edits may be missing]"
)


async def look_into_open_notebook(sight: Sight, files: Files) -> Looked:
    """Return the cells of the open notebook that are asked for, as its page has them.

    Raises:
        NoPage: nobody tells.
        ToolError: it has no such cells, or too much in them.
    """
    cells = await files.desk.cells()
    if files.desk.page is None:  # it has just told the cells
        raise NoPage("nobody")
    first, target = sight.offset, sight.target
    # Here: the session, which knows them, belongs to this thread.
    outputs = outputs_of(cells[first : first + sight.limit], files.desk.page)
    try:
        notebook = await run_sync(text_of, cells, outputs, abandon_on_cancel=True)
    except NoNotebook as error:
        raise ToolError(f"{target.shown} cannot be shown by its cells: {error}.") from error
    work = partial(page_of, notebook, target, offset=first, limit=sight.limit)
    page = await run_sync(work, abandon_on_cancel=True)
    note_seen(files.tracker, target.path, notebook.cells[page.first : page.end])
    return Looked(await cells_shown(notebook, page, about=_ABOUT, accepts=sight.accepts))


def as_saved(looked: Looked) -> Looked:
    """Return what the file holds, with a note that there may be more."""
    if looked.output is None:
        return looked
    return replace(looked, output=replace(looked.output, text=f"{looked.output.text}\n{_SAVED}"))
