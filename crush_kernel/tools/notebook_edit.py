"""`notebook_edit`: insert, replace, delete or move one cell of a notebook."""

import secrets

from anyio.to_thread import run_sync

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.textfile import has_undecoded_bytes
from crush_kernel.tools.base import (
    QUICK_S,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.filechange import NOTEBOOK_TOOL, Files, Proposal, require_text
from crush_kernel.tools.notebook.change import NotebookEditArguments, apply, require_fitting
from crush_kernel.tools.notebook.openedit import edit_open_notebook
from crush_kernel.tools.notebook.splice import EMPTY, NewId, Splice
from crush_kernel.tools.notebook.text import NoNotebook, NotebookText, listing, read_notebook
from crush_kernel.tools.snapshot import Snapshot, is_called_notebook


def random_id() -> str:
    """Return an id as Jupyter makes them."""
    return secrets.token_hex(4)


def notebook_edit_tool(files: Files, *, new_id: NewId = random_id) -> Tool[NotebookEditArguments]:
    """Return the tool, which changes `files`; ids of new cells are from `new_id`."""

    async def run(arguments: NotebookEditArguments, context: ToolContext) -> ToolOutput:
        require_text("source", arguments.source)
        require_fitting(arguments)
        target = await run_sync(files.paths.resolve, arguments.file_path, abandon_on_cancel=True)
        if files.is_open_notebook(target):
            return await edit_open_notebook(
                target,
                arguments,
                context,
                desk=files.desk,
                tracker=files.tracker,
                new_id=new_id,
            )
        before = await files.load(arguments.file_path, by_cells=True)
        _require_named_notebook(before)
        files.require_seen(before)
        proposal = await run_sync(_propose, before, arguments, new_id, abandon_on_cancel=True)
        if before.data is not None and proposal.text == before.text:
            return ToolOutput(
                f"{before.target.shown} is like that already; there is nothing to do.",
                summary="unchanged",
            )
        return await files.change(before, proposal, context, tool=NOTEBOOK_TOOL)

    def describe(arguments: NotebookEditArguments) -> str:
        cell = f" {printable(arguments.cell_id)}" if arguments.cell_id else ""
        return f"{files.describe(arguments.file_path)} {arguments.action}{cell}"

    return Tool(
        name=NOTEBOOK_TOOL,
        description=description_of(NOTEBOOK_TOOL),
        arguments=NotebookEditArguments,
        run=run,
        describe=describe,
        timeout_s=QUICK_S,
    )


def _require_named_notebook(before: Snapshot) -> None:
    if not is_called_notebook(before.target):
        raise ToolError(f"{before.target.shown} is no notebook. Change text with edit.")


def _propose(before: Snapshot, arguments: NotebookEditArguments, new_id: NewId) -> Proposal:
    """Return what `arguments` make of the notebook `before`.

    Raises:
        ToolError: it is none that can be changed, or has no such cell.
    """
    if before.data is None and arguments.action != "insert":
        raise ToolError(f"{before.target.shown} does not exist. Check the path.")
    is_empty = not before.text.strip()
    notebook = _read(before, EMPTY if is_empty else before.text)
    splice = Splice(notebook, new_id)
    report = apply(splice, notebook, arguments, before.target.shown)
    text = splice.text() if report else before.text
    former = None if before.data is None else "" if is_empty else listing(notebook)
    return Proposal(
        text,
        verb="create" if before.data is None else arguments.deed,
        report=report,
        compared=(former, listing(read_notebook(text))),
    )


def _read(before: Snapshot, text: str) -> NotebookText:
    name = before.target.shown
    try:
        notebook = read_notebook(text)
    except NoNotebook as error:
        raise ToolError(
            f"{name} cannot be changed by cells: {error}. Mend its text with edit."
        ) from error
    if notebook.version != 4:
        raise ToolError(
            f"{name} is of version 3 of the notebook format, which is read only here. Convert "
            f"it with: jupyter nbconvert --to notebook --nbformat 4 --inplace {name}"
        )
    if has_undecoded_bytes(text):
        raise ToolError(f"{name} has bytes that are no text. Mend them with a command first.")
    return notebook
