"""`view`: a numbered section of a text file, an image, a document, or the cells of a notebook."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Protocol

import anyio.to_thread
from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.textfile import decode, shown
from crush_kernel.tools.access import MAX_SIBLINGS, find_readable
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.filechange import Files
from crush_kernel.tools.filecontent import (
    MAX_TEXT_BYTES,
    BinaryContent,
    MediaContent,
    TextContent,
    read_content,
    require_regular,
)
from crush_kernel.tools.inrange import IN_RANGE
from crush_kernel.tools.media.admission import MAX_FILE_BYTES
from crush_kernel.tools.media.view import Sight, show_media
from crush_kernel.tools.notebook.openpage import NoPage
from crush_kernel.tools.notebook.openview import as_saved, look_into_open_notebook
from crush_kernel.tools.notebook.savedview import Looked, look_into_notebook
from crush_kernel.tools.paths import Target
from crush_kernel.tools.snapshot import is_called_notebook
from crush_kernel.tools.textview import (
    MAX_LINE_CHARACTERS,
    has_cut_lines,
    lines_shown,
    show_text,
)

DEFAULT_LINES = 200

MAX_NAMES = 10
"""Of what is in a directory, which is not shown here."""

SKILL_KEY = "skill"
"""What says in a result's metadata that it is a skill, by name."""


class ViewArguments(Arguments):
    """What to look at."""

    file_path: str = Field(description="The file, relative to the working directory or absolute.")
    offset: int = Field(
        default=0,
        ge=0,
        description="Lines to skip, of a notebook cells, of a PDF pages; 0 starts at the first.",
    )
    limit: Annotated[int, Field(ge=1), IN_RANGE] = Field(
        default=DEFAULT_LINES, description="Lines, cells or pages to read at most."
    )

    @property
    def is_plain(self) -> bool:
        """Return whether no part of the file was asked for."""
        return self.offset == 0 and self.limit == DEFAULT_LINES


class Skills(Protocol):
    """What is known of skills, whose folders are open to the model."""

    def built_in(self, location: str) -> str | None:
        """Return the text of the skill file that is at `location` and on no disk."""
        ...

    def name_of(self, path: Path) -> str:
        """Return the name of the skill that has `path`, a real one, as its file; else nothing."""
        ...

    def covers(self, path: Path) -> bool:
        """Return whether `path`, a real one, lies in the folder of a skill."""
        ...


def view_tool(
    files: Files, *, accepts: Callable[[str], bool], skills: Skills | None = None
) -> Tool[ViewArguments]:
    """Return the tool.

    Args:
        files: where it may read, and what notes what the model has seen.
        accepts: whether the model in use can look at files of a MIME type.
        skills: whose files are read without permission, and whole.
    """
    return Tool(
        name="view",
        description=description_of(
            "view",
            {
                "lines": DEFAULT_LINES,
                "characters": f"{MAX_LINE_CHARACTERS:,}",
                "kilobytes": MAX_TEXT_BYTES // 1024,
                "megabytes": MAX_FILE_BYTES // 1_000_000,
            },
        ),
        arguments=ViewArguments,
        run=_View(files, accepts, skills).run,
        describe=_describe,
        timeout_s=QUICK_S,
        is_read_only=True,
    )


@dataclass(frozen=True, slots=True)
class _View:
    """The tool's services, and what it does with them: a method for each kind of content."""

    files: Files
    accepts: Callable[[str], bool]
    skills: Skills | None

    async def run(self, arguments: ViewArguments, context: ToolContext) -> ToolOutput:
        location = arguments.file_path.strip()
        if self.skills is not None and (skill := self.skills.built_in(location)) is not None:
            return _show_skill(skill, location, location.split("/")[-2])
        sight = await self._find(arguments, context)
        looked = Looked(None)
        if is_called_notebook(sight.target):
            looked = await self._look_into_notebook(sight)
        if looked.output is not None:
            return looked.output
        read = partial(read_content, sight.target, offset=sight.offset, limit=sight.limit)
        content = await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
        match content:
            case TextContent():
                return await self._show_text(sight, content, looked.damage)
            case MediaContent():
                return await show_media(sight, content)
            case BinaryContent():
                raise ToolError(
                    f"[binary file, {content.size:,} bytes, {content.media_type}] "
                    f"{sight.target.shown} is not text. Look into it with a command made for its "
                    "type."
                )

    async def _find(self, arguments: ViewArguments, context: ToolContext) -> Sight:
        target, status = await find_readable(
            self.files.paths,
            arguments.file_path,
            context,
            tool="view",
            action="read",
            is_open=None if self.skills is None else self.skills.covers,
        )
        if stat.S_ISDIR(status.st_mode):
            raise ToolError(
                await anyio.to_thread.run_sync(_names_in, target, abandon_on_cancel=True)
            )
        require_regular(target, status)
        return Sight(
            target=target,
            offset=arguments.offset,
            limit=arguments.limit,
            is_plain=arguments.is_plain,
            accepts=self.accepts,
            progress=context.progress,
        )

    async def _look_into_notebook(self, sight: Sight) -> Looked:
        if not self.files.is_open_notebook(sight.target):
            return await self._look_into_file(sight)
        try:
            return await look_into_open_notebook(sight, self.files)
        except NoPage:
            return as_saved(await self._look_into_file(sight))

    async def _look_into_file(self, sight: Sight) -> Looked:
        looked = await look_into_notebook(
            sight.target, offset=sight.offset, limit=sight.limit, accepts=sight.accepts
        )
        if looked.output is not None:
            # Its cells are changed one by one, by ids that only a view of them gives.
            self.files.tracker.record(sight.target.path, looked.data)
        return looked

    async def _show_text(self, sight: Sight, content: TextContent, damage: str) -> ToolOutput:
        path = sight.target.path
        name = self.skills.name_of(path) if self.skills is not None else ""
        if name and content.whole is not None:
            self.files.tracker.record(path, content.whole, stamp=content.stamp)
            text = shown(decode(content.whole, content.format))
            return _show_skill(text, sight.target.shown, name)
        output = show_text(sight.target, content, offset=sight.offset, damage=damage)
        # A larger file is not changed here, so that it does not matter what is known of it.
        if content.whole is not None:
            self.files.tracker.record(
                path,
                content.whole,
                lines_shown(content, offset=sight.offset),
                has_cut=has_cut_lines(content),
                stamp=content.stamp,
            )
        said = await self.files.after_read(path)
        return replace(output, text=f"{output.text}\n{said}") if said else output


def _show_skill(text: str, where: str, name: str) -> ToolOutput:
    """Show a skill's file, whatever section was asked for: half a recipe is worse than none."""
    return ToolOutput(
        f"{text.rstrip()}\n\n[whole file {where}, the skill {name}]",
        summary=f"skill {name}",
        metadata={SKILL_KEY: name},
    )


def _describe(arguments: ViewArguments) -> str:
    first, last = arguments.offset + 1, arguments.offset + arguments.limit
    return printable(arguments.file_path) + ("" if arguments.is_plain else f" lines {first}–{last}")


def _names_in(target: Target) -> str:
    """Return that `target` is a directory, with some of the names in it."""
    said = f"{target.shown} is a directory. List it with ls."
    try:
        with os.scandir(target.path) as entries:
            names = [
                printable(entry.name) + "/" * entry.is_dir(follow_symlinks=False)
                for entry in islice(entries, MAX_SIBLINGS)
            ]
    except OSError:
        return said
    if not names:
        return f"{said} It is empty."
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return f"{said} In it: {', '.join(sorted(names)[:MAX_NAMES])}{more}."
