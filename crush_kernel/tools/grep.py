"""`grep`: lines by a regular expression, those in the newest files first.

First ripgrep says which files match, which costs it no more than the first match of each;
then the newest of them are read for their lines, no more than can be shown.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.opening import is_real
from crush_kernel.tools.access import find_readable
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.inrange import IN_RANGE
from crush_kernel.tools.paths import PathPolicy, Target, kind_of
from crush_kernel.tools.search.candidates import Selection
from crush_kernel.tools.search.files import (
    ALL_FILES,
    MAX_RESULTS,
    TIMEOUT_S,
    Found,
    faults_of,
    find_files,
    order_of,
    require_text,
    shown_below,
    understand,
    with_notes,
)
from crush_kernel.tools.search.globs import anywhere
from crush_kernel.tools.search.ignore import IgnoreRules
from crush_kernel.tools.search.matches import MAX_COLUMNS, Hit, MatchParser, excerpt, is_cut
from crush_kernel.tools.search.ripgrep import Outcome, find_ripgrep, run_ripgrep
from crush_kernel.tools.text.lineset import LineSet
from crush_kernel.tools.tracker import ReadTracker, Stamp
from crush_kernel.wording import counted

MAX_CONTEXT = 20

_TICK_NS = 20_000_000
"""How coarse the times of files may be: two changes within a tick can have the same time."""

_PRINTING = (
    *("--null", "--no-heading", "--with-filename", "--line-number", "--column", "--byte-offset"),
    *(f"--max-columns={MAX_COLUMNS}", "--max-columns-preview", "--no-context-separator"),
    # One thread reads the files in the order in which they are named.
    *(f"--max-count={MAX_RESULTS + 1}", "--threads=1"),
)


class GrepArguments(Arguments):
    """What to search for."""

    pattern: str = Field(description="A regular expression (Rust or PCRE2), for one line.")
    path: str = Field(default=".", description="The folder or file to search.")
    include: str = Field(default="", description="Only files like this glob, such as *.{ts,tsx}.")
    literal_text: bool = Field(default=False, description="Take the pattern as plain text.")
    case_insensitive: bool = Field(default=False, description="Ignore upper and lower case.")
    context: Annotated[int, Field(ge=0, le=MAX_CONTEXT), IN_RANGE] = Field(
        default=0, description="Lines to show around each match."
    )
    files_only: bool = Field(default=False, description="Show names of files, not lines.")


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines that were found, the files in order."""

    hits: tuple[Hit, ...]
    texts: tuple[str, ...]
    """What is shown of each."""
    has_more: bool
    binary_files: tuple[str, ...]
    """Files that match but have no lines."""
    outcome: Outcome


def grep_tool(
    paths: PathPolicy,
    *,
    tracker: ReadTracker | None = None,
    ripgrep: Callable[[], Path] = find_ripgrep,
    timeout_s: float = TIMEOUT_S,
) -> Tool[GrepArguments]:
    """Return the tool, each of whose two steps takes `timeout_s` at most.

    Args:
        paths: where it may search.
        tracker: notes the lines that are shown, which may be edited then.
        ripgrep: finds the program.
        timeout_s: how long a step may take.
    """
    return Tool(
        name="grep",
        description=description_of("grep", {"matches": MAX_RESULTS, "seconds": f"{timeout_s:g}"}),
        arguments=GrepArguments,
        run=_Grep(paths, tracker, ripgrep=ripgrep, timeout_s=timeout_s).run,
        describe=_describe,
        timeout_s=QUICK_S,
        is_read_only=True,
    )


@dataclass(frozen=True, slots=True)
class _Grep:
    """The tool's services, and what it does with them."""

    paths: PathPolicy
    tracker: ReadTracker | None
    ripgrep: Callable[[], Path]
    timeout_s: float

    async def run(self, arguments: GrepArguments, context: ToolContext) -> ToolOutput:
        _check(arguments)
        base, status = await find_readable(
            self.paths, arguments.path or ".", context, tool="grep", action="read"
        )
        folder, found = await self._find(arguments, base, status, context)
        if arguments.files_only:
            return self._show_files(arguments, folder, found)
        lines = await self._read_lines(arguments, folder, found.selection.paths)
        return self._show_lines(arguments, folder, found, lines)

    async def _find(
        self,
        arguments: GrepArguments,
        base: Target,
        status: os.stat_result,
        context: ToolContext,
    ) -> tuple[Target, Found]:
        """Return the files that match, and the folder that their paths start in."""
        if stat.S_ISREG(status.st_mode):
            only = Selection((base.path.name,), has_more=False, is_by_time=True, found=1)
            return self.paths.target(base.path.parent), Found(only, Outcome("done", ()))
        if not stat.S_ISDIR(status.st_mode):
            raise ToolError(f"{base.shown} is a {kind_of(status)}. Name a folder or a file.")
        rules = partial(IgnoreRules, base.path, root=self.paths.root)
        found = await find_files(
            self.ripgrep(),
            ("--files-with-matches", *_matching(arguments)),
            base=base.path,
            rules=await anyio.to_thread.run_sync(rules, abandon_on_cancel=True),
            glob=understand(anywhere(arguments.include)) if arguments.include else ALL_FILES,
            limit=MAX_RESULTS + 1,
            timeout_s=self.timeout_s,
            progress=context.progress,
        )
        return base, found

    async def _read_lines(
        self, arguments: GrepArguments, folder: Target, files: tuple[str, ...]
    ) -> _Lines:
        if not files:
            return _Lines((), (), has_more=False, binary_files=(), outcome=Outcome("done", ()))
        parser = MatchParser(files, limit=MAX_RESULTS)
        options = (*_PRINTING, f"--context={arguments.context}", *_matching(arguments))
        began_ns = time.time_ns()
        outcome = await run_ripgrep(
            self.ripgrep(),
            (*options, "--", *(f"./{file}" for file in files)),
            cwd=folder.path,
            take=parser.feed,
            timeout_s=self.timeout_s,
        )
        parser.end()
        inside = partial(_without_links, parser.hits, folder.path)
        hits, has_more = _first(await anyio.to_thread.run_sync(inside, abandon_on_cancel=True))
        if self.tracker is not None:
            note = partial(_note, self.tracker, hits, folder.path, before_ns=began_ns)
            await anyio.to_thread.run_sync(note, abandon_on_cancel=True)
        read = partial(_excerpts, hits, folder.path)
        return _Lines(
            hits,
            await anyio.to_thread.run_sync(read, abandon_on_cancel=True),
            has_more=has_more,
            binary_files=tuple(parser.binary_files),
            outcome=outcome,
        )

    def _show_files(self, arguments: GrepArguments, folder: Target, found: Found) -> ToolOutput:
        files = found.selection.paths[:MAX_RESULTS]
        has_more = len(found.selection.paths) > MAX_RESULTS
        notes = [*_more_files(found.selection), *faults_of(found.outcome, timeout_s=self.timeout_s)]
        text = "\n".join(shown_below(folder, file) for file in files) or _nothing(arguments)
        summary = counted(len(files), "file", has_more=has_more)
        return ToolOutput(with_notes(text, notes), summary=summary)

    def _show_lines(
        self, arguments: GrepArguments, folder: Target, found: Found, lines: _Lines
    ) -> ToolOutput:
        matches = sum(hit.is_match for hit in lines.hits)
        has_more = lines.has_more or found.selection.has_more
        notes = [
            *(_more_lines(found.selection) if has_more else ()),
            *(f"binary file matches: {shown_below(folder, f)}" for f in lines.binary_files),
            *faults_of(found.outcome, lines.outcome, timeout_s=self.timeout_s),
        ]
        text = _listing(folder, lines) if matches else _nothing(arguments)
        summary = counted(matches, "match", "matches", has_more=has_more)
        return ToolOutput(with_notes(text, notes), summary=summary)


def _check(arguments: GrepArguments) -> None:
    require_text(arguments.pattern, "pattern")
    if "\n" in arguments.pattern:
        raise ToolError("A pattern is matched line by line, so it cannot hold a newline.")
    if arguments.include:
        require_text(arguments.include, "include")


def _matching(arguments: GrepArguments) -> Iterator[str]:
    """Yield the options that say what matches, the same for finding and for reading."""
    yield "--crlf"
    yield "--fixed-strings" if arguments.literal_text else "--engine=auto"
    if arguments.case_insensitive:
        yield "--ignore-case"
    yield f"--regexp={arguments.pattern}"


def _without_links(hits: list[Hit], folder: Path) -> list[Hit]:
    """Return the hits of files that are where they were found.

    A link that was put in the place of one meanwhile, ripgrep would have followed.
    """
    real = {path for path in {hit.path for hit in hits} if is_real(folder / path)}
    return [hit for hit in hits if hit.path in real]


def _first(hits: list[Hit]) -> tuple[tuple[Hit, ...], bool]:
    """Return the hits up to the last match that is shown, and whether there are others."""
    matches = 0
    for index, hit in enumerate(hits):
        matches += hit.is_match
        if matches > MAX_RESULTS:
            return tuple(hits[:index]), True
    return tuple(hits), False


def _excerpts(hits: tuple[Hit, ...], folder: Path) -> tuple[str, ...]:
    return tuple(excerpt(hit, folder) for hit in hits)


def _note(tracker: ReadTracker, hits: tuple[Hit, ...], folder: Path, *, before_ns: int) -> None:
    """Have `tracker` know the lines of `hits`, of files that did not change since `before_ns`."""
    for path, group in groupby(hits, key=lambda hit: hit.path):
        shown = tuple(group)
        try:
            status = (folder / path).lstat()
        except OSError:
            continue
        if status.st_mtime_ns < before_ns - _TICK_NS:
            tracker.record_lines(
                folder / path,
                Stamp.of(status),
                LineSet.of((hit.line - 1, hit.line) for hit in shown),
                has_cut=any(is_cut(hit) for hit in shown),
            )


def _listing(folder: Target, lines: _Lines) -> str:
    """Return the lines, numbered as `view` does it, under the files that they are in."""
    shown = zip(lines.hits, lines.texts, strict=True)
    blocks: list[str] = []
    for path, group in groupby(shown, key=lambda each: each[0].path):
        rows = [f"{hit.line:6d}{'|' if hit.is_match else '-'}{text}" for hit, text in group]
        blocks.append("\n".join((shown_below(folder, path), *rows)))
    return "\n\n".join(blocks)


def _nothing(arguments: GrepArguments) -> str:
    where = "the working directory" if arguments.path in (".", "") else printable(arguments.path)
    include = f" in files like {printable(arguments.include)}" if arguments.include else ""
    return (
        f"No matches for {printable(arguments.pattern)}{include} in {where}.\n\n"
        "[ignored and binary files are left out, unless the path names such a folder or file]"
    )


def _more_files(selection: Selection) -> Iterator[str]:
    if len(selection.paths) > MAX_RESULTS:
        yield (
            f"{MAX_RESULTS} of {_total(selection)} files that match, {order_of(selection)}. "
            "Narrow the pattern or the path for the others"
        )


def _more_lines(selection: Selection) -> Iterator[str]:
    yield (
        f"the first {MAX_RESULTS} matches, of {_total(selection)} files that match, "
        f"{order_of(selection)}. Narrow the pattern or the path for the others"
    )


def _total(selection: Selection) -> str:
    return f"{selection.found:,}" if selection.found else "more"


def _describe(arguments: GrepArguments) -> str:
    where = "" if arguments.path in (".", "") else f" in {arguments.path}"
    include = f" ({arguments.include})" if arguments.include else ""
    return printable(f'"{arguments.pattern}"{where}{include}')
