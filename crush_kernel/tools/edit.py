"""`edit`: replace an exact piece of a text file by another."""

from typing import assert_never

from anyio.to_thread import run_sync
from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.files.textfile import shown
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.filechange import Files, Proposal, require_text
from crush_kernel.tools.snapshot import Snapshot, changed_since, unread, unseen
from crush_kernel.tools.text.replacement import Rejected, Replaced, replace_text
from crush_kernel.wording import counted

REINDENTED = (
    "old_string matched only after correcting its whitespace, and new_string was indented like "
    "the file"
)

STALE = (
    ". The file had changed on disk since you last viewed it; {touched} touched, view the file "
    "again before you change more"
)
"""Said of a change to a file that the model does not know as it is now."""


class EditArguments(Arguments):
    """What `edit` is asked to do."""

    file_path: str = Field(description="The file to change, relative to the working directory.")
    old_string: str = Field(
        description="The exact text to replace. Empty to create a file that is not there yet."
    )
    new_string: str = Field(description="The text to put in its place. Empty to delete it.")
    replace_all: bool = Field(
        default=False, description="Replace every place instead of the only one."
    )


def edit_tool(files: Files) -> Tool[EditArguments]:
    """Return the tool, which changes `files`."""

    async def run(arguments: EditArguments, context: ToolContext) -> ToolOutput:
        require_text("old_string", arguments.old_string)
        require_text("new_string", arguments.new_string)
        before = await files.load(arguments.file_path)
        proposal = await run_sync(_propose, files, before, arguments, abandon_on_cancel=True)
        return await files.change(before, proposal, context, tool="edit")

    return Tool(
        name="edit",
        description=description_of("edit"),
        arguments=EditArguments,
        run=run,
        describe=lambda arguments: files.describe(arguments.file_path),
        timeout_s=QUICK_S,
    )


def _propose(files: Files, before: Snapshot, arguments: EditArguments) -> Proposal:
    """Return what `arguments` make of `before`.

    Raises:
        ToolError: they do not fit it; nothing of its content is told unless it was seen.
    """
    old, new = arguments.old_string, arguments.new_string
    if before.data is None:
        if old:
            raise ToolError(
                f"{before.target.shown} does not exist. Check the path, or leave old_string empty "
                "to create it."
            )
        return Proposal(new, verb="create", report="created")
    if before.state == "unread":
        raise unread(before)
    outcome = replace_text(before.text, old, new, replace_all=arguments.replace_all)
    if before.state == "stale" and not is_safe_on_stale(outcome, replace_all=arguments.replace_all):
        region = outcome.reason if isinstance(outcome, Rejected) else ""
        raise changed_since(files.tracker, before, region)
    match outcome:
        case Replaced():
            if refusal := unseen(before.known.lines, outcome.changes):
                raise ToolError(f"{before.target.shown}: nothing was written. {refusal}")
            return Proposal(
                outcome.text,
                verb="edit",
                report=_report(outcome, before),
                is_guess=outcome.is_reindented,
                seen=before.known.lines.changed(outcome.changes, adds=True),
            )
        case Rejected():
            raise ToolError(f"{before.target.shown}: {shown(outcome.reason)}")
        case _:
            assert_never(outcome)


def is_safe_on_stale(outcome: Replaced | Rejected, *, replace_all: bool) -> bool:
    """Return whether the place is beyond doubt, although the rest of the file is unknown."""
    is_exact = isinstance(outcome, Replaced) and not outcome.is_reindented
    return is_exact and not replace_all


def places(outcome: Replaced) -> str:
    """Return how many places were replaced, and where, in words."""
    many = counted(outcome.count, "place")
    return f"replaced {many}, {'on' if outcome.count == 1 else 'from'} line {outcome.line}"


def _report(outcome: Replaced, before: Snapshot) -> str:
    report = places(outcome)
    if outcome.is_reindented:
        report += f". {REINDENTED}; check the result below"
    if before.state == "stale":
        report += STALE.format(touched="only this place was")
    return report
