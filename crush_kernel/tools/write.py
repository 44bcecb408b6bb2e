"""`write`: give a text file a whole new content, or create it."""

from anyio.to_thread import run_sync
from pydantic import Field

from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.filechange import Files, Proposal, require_text
from crush_kernel.tools.snapshot import Snapshot
from crush_kernel.tools.text.newlines import Edit, apply_edits, normalize


class WriteArguments(Arguments):
    """What `write` is asked to do."""

    file_path: str = Field(description="The file to write, relative to the working directory.")
    content: str = Field(description="The whole content of the file.")


def write_tool(files: Files) -> Tool[WriteArguments]:
    """Return the tool, which changes `files`."""

    async def run(arguments: WriteArguments, context: ToolContext) -> ToolOutput:
        require_text("content", arguments.content)
        before = await files.load(arguments.file_path)
        proposal = await run_sync(_propose, before, arguments.content, abandon_on_cancel=True)
        if before.data is not None and proposal.text == before.text:
            return ToolOutput(
                f"{before.target.shown} has exactly this content already; there is nothing to do.",
                summary="unchanged",
            )
        files.require_seen(before)
        return await files.change(before, proposal, context, tool="write")

    return Tool(
        name="write",
        description=description_of("write"),
        arguments=WriteArguments,
        run=run,
        describe=lambda arguments: files.describe(arguments.file_path),
        timeout_s=QUICK_S,
    )


def _propose(before: Snapshot, content: str) -> Proposal:
    """Return `content` as the file's text: in its newlines if it exists, else as it is."""
    if before.data is None:
        return Proposal(content, verb="create", report="created")
    if before.text_format.bom:
        content = content.removeprefix("\ufeff")
    whole = Edit(0, len(normalize(before.text)), content)
    return Proposal(apply_edits(before.text, [whole]), verb="overwrite", report="overwritten")
