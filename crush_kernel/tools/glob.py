"""`glob`: files by the pattern of their path, the newest first."""

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio.to_thread
from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.tools.access import find_readable
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.paths import PathPolicy, Target
from crush_kernel.tools.search.candidates import Selection
from crush_kernel.tools.search.files import (
    MAX_RESULTS,
    TIMEOUT_S,
    Found,
    faults_of,
    find_files,
    order_of,
    place,
    require_text,
    shown_below,
    understand,
    with_notes,
)
from crush_kernel.tools.search.globs import split_base
from crush_kernel.tools.search.ignore import IgnoreRules
from crush_kernel.tools.search.ripgrep import find_ripgrep
from crush_kernel.wording import counted


class GlobArguments(Arguments):
    """What to look for."""

    pattern: str = Field(description="A glob such as src/**/*.{ts,tsx}.")
    path: str = Field(default=".", description="The folder that the pattern starts in.")


def glob_tool(
    paths: PathPolicy,
    *,
    ripgrep: Callable[[], Path] = find_ripgrep,
    timeout_s: float = TIMEOUT_S,
) -> Tool[GlobArguments]:
    """Return the tool, which searches for `timeout_s` at most."""

    async def run(arguments: GlobArguments, context: ToolContext) -> ToolOutput:
        require_text(arguments.pattern, "pattern")
        start, pattern = _split(arguments)
        wanted = understand(pattern)
        base, status = await find_readable(paths, start, context, tool="glob", action="list")
        if not stat.S_ISDIR(status.st_mode):
            raise ToolError(f"{base.shown} is not a folder. Name one, or read it with view.")
        found = await find_files(
            ripgrep(),
            ("--files",),
            base=base.path,
            rules=await anyio.to_thread.run_sync(_rules, base, paths, abandon_on_cancel=True),
            glob=wanted,
            limit=MAX_RESULTS,
            timeout_s=timeout_s,
            progress=context.progress,
        )
        return _show(arguments, base, found, timeout_s)

    return Tool(
        name="glob",
        description=description_of("glob", {"files": MAX_RESULTS, "seconds": f"{timeout_s:g}"}),
        arguments=GlobArguments,
        run=run,
        describe=_describe,
        timeout_s=QUICK_S,
        is_read_only=True,
    )


def _rules(base: Target, paths: PathPolicy) -> IgnoreRules:
    return IgnoreRules(base.path, root=paths.root)


def _split(arguments: GlobArguments) -> tuple[str, str]:
    """Return the folder to search and the pattern below it; both may begin in the pattern."""
    folder, pattern = split_base(arguments.pattern)
    if folder.startswith(("/", "~/")) or folder == "~":
        return folder, pattern
    return f"{arguments.path or '.'}/{folder}", pattern


def _describe(arguments: GlobArguments) -> str:
    where = "" if arguments.path in (".", "") else f" in {arguments.path}"
    return printable(arguments.pattern + where)


def _show(arguments: GlobArguments, base: Target, found: Found, timeout_s: float) -> ToolOutput:
    selection = found.selection
    notes = [*_more(selection), *faults_of(found.outcome, timeout_s=timeout_s)]
    text = "\n".join(shown_below(base, path) for path in selection.paths)
    if not text:
        text = f"No files match {printable(arguments.pattern)} in {place(base)}."
        notes += _hints(arguments.pattern)
    summary = counted(len(selection.paths), "file", has_more=selection.has_more)
    return ToolOutput(with_notes(text, notes), summary=summary)


def _more(selection: Selection) -> Iterator[str]:
    if selection.has_more:
        total = f"{selection.found:,}" if selection.found else "more"
        yield (
            f"{len(selection.paths)} of {total} files that match, {order_of(selection)}. "
            "Narrow the pattern or the path for the others"
        )


def _hints(pattern: str) -> Iterator[str]:
    """Yield why nothing may have been found."""
    if "**" not in pattern:
        yield f"only this depth was searched; **/{pattern.rpartition('/')[2]} would search below it"
    yield "ignored files and folders are left out unless the path names such a folder"
