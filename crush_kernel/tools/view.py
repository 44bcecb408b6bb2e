"""`view`: a numbered section of a text file, an image, a document, or the cells of a notebook."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio.to_thread
from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.files.textfile import decode, has_undecoded_bytes, shown
from crush_kernel.tools.access import find_readable
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.filechange import is_called_notebook
from crush_kernel.tools.filecontent import (
    MAX_TEXT_BYTES,
    BinaryContent,
    MediaContent,
    TextContent,
    read_content,
    require_regular,
)
from crush_kernel.tools.media import MAX_FILE_BYTES, admit
from crush_kernel.tools.mediatype import DOCUMENT_TYPE
from crush_kernel.tools.notebookfile import Looked, look_into_notebook
from crush_kernel.tools.pagesview import show_pages
from crush_kernel.tools.paths import PathPolicy, Target
from crush_kernel.tools.sections import Line, Section
from crush_kernel.tools.tracker import ReadTracker

DEFAULT_LINES = 200
MAX_LINE_CHARACTERS = 2_000

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
    limit: int = Field(
        default=DEFAULT_LINES, ge=1, description="Lines, cells or pages to read at most."
    )


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
    paths: PathPolicy,
    tracker: ReadTracker,
    *,
    accepts: Callable[[str], bool],
    skills: Skills | None = None,
) -> Tool[ViewArguments]:
    """Return the tool.

    Args:
        paths: where it may read.
        tracker: notes what it reads whole.
        accepts: whether the model in use can look at files of a MIME type.
        skills: whose files are read without permission, and whole.
    """

    async def run(arguments: ViewArguments, context: ToolContext) -> ToolOutput:
        location = arguments.file_path.strip()
        if skills is not None and (built_in := skills.built_in(location)) is not None:
            return _show_skill(built_in, location, location.split("/")[-2])
        target, status = await find_readable(
            paths,
            arguments.file_path,
            context,
            tool="view",
            action="read",
            is_open=None if skills is None else skills.covers,
        )
        require_regular(target, status)
        offset, limit = arguments.offset, arguments.limit
        looked = Looked(None)
        if is_called_notebook(target):
            looked = await look_into_notebook(target, offset=offset, limit=limit, accepts=accepts)
        if looked.output is not None:
            tracker.record(target.path, looked.data)
            return looked.output
        read = partial(read_content, target, offset=offset, limit=limit)
        content = await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
        match content:
            case TextContent():
                if content.whole is not None:
                    tracker.record(target.path, content.whole)
                    if skills is not None and (name := skills.name_of(target.path)):
                        text = shown(decode(content.whole, content.format))
                        return _show_skill(text, target.shown, name)
                return _show_text(target, arguments, content, looked.damage)
            case MediaContent(media_type=media_type):
                show = _show_document if media_type == DOCUMENT_TYPE else _show_media
                is_accepted = accepts(media_type)
                return await show(target, content, arguments, context, is_accepted=is_accepted)
            case BinaryContent():
                raise ToolError(
                    f"[binary file, {content.size:,} bytes, {content.media_type}] {target.shown} "
                    "is not text. Look into it with a command made for its type."
                )

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
        run=run,
        describe=_describe,
        timeout_s=QUICK_S,
        is_read_only=True,
    )


def _show_skill(text: str, where: str, name: str) -> ToolOutput:
    """Show a skill's file, whatever section was asked for: half a recipe is worse than none."""
    return ToolOutput(
        f"{text.rstrip()}\n\n[whole file {where}, the skill {name}]",
        summary=f"skill {name}",
        metadata={SKILL_KEY: name},
    )


def _describe(arguments: ViewArguments) -> str:
    first, last = arguments.offset + 1, arguments.offset + arguments.limit
    is_plain = arguments.offset == 0 and arguments.limit == DEFAULT_LINES
    return printable(arguments.file_path) + ("" if is_plain else f" lines {first}–{last}")


def _show_text(
    target: Target, arguments: ViewArguments, content: TextContent, damage: str
) -> ToolOutput:
    section, offset = content.section, arguments.offset
    if section.total_lines == 0:
        return ToolOutput(f"[{target.shown} is empty]", summary="empty")
    if not section.lines:
        raise ToolError(
            f"{target.shown} has only {_count(section.total_lines or 0, 'line')}; "
            f"offset {offset} is past its end."
        )
    lines = [_text(line, content.line_encoding) for line in section.lines]
    numbered = "\n".join(f"{offset + n:6d}|{line}" for n, line in enumerate(lines, start=1))
    has_loss = has_undecoded_bytes(numbered)
    notes = "".join(f"\n[{note}]" for note in _notes(content, offset, has_loss=has_loss))
    if damage:
        notes += f"\n[this is no notebook that can be shown by its cells: {damage}]"
    return ToolOutput(f"{shown(numbered)}\n{notes}", summary=_summary(section, offset))


def _text(line: Line, encoding: str) -> str:
    """Return `line` as text, undecodable bytes as lone surrogates, cut if it is long."""
    text = line.data.decode(encoding, "surrogateescape").removesuffix("\r")
    if len(text) <= MAX_LINE_CHARACTERS and line.size == len(line.data):
        return text
    return f"{text[:MAX_LINE_CHARACTERS]}… [cut; the line has {line.size:,} bytes]"


def _notes(content: TextContent, offset: int, *, has_loss: bool) -> Iterator[str]:
    """Yield what the model should know beyond the lines: their place, then oddities."""
    section, total = content.section, content.section.total_lines
    last = offset + len(section.lines)
    size = f"{content.size:,} bytes"
    if offset == 0 and last == total:
        yield f"whole file: {_count(last, 'line')}, {size}"
    else:
        of = f"of {total:,}" if total is not None else "of a file too large to count them"
        more = f"; go on with offset={last}" if last != total else "; the end"
        cut = f", as many as fit in {MAX_TEXT_BYTES // 1024} KiB" if section.is_cut else ""
        yield f"lines {offset + 1}-{last} {of}{cut}; {size}{more}"
    if content.format.label != "utf-8":
        guess = "" if content.format.is_certain else ", which is a guess"
        yield f"encoding: {content.format.label}{guess}"
    if has_loss:
        yield "U+FFFD stands for bytes that the encoding does not explain"
    if last == total and not section.ends_with_newline:
        yield "no newline at the end of the file"


def _summary(section: Section, offset: int) -> str:
    last = offset + len(section.lines)
    if offset == 0 and last == section.total_lines:
        return _count(last, "line")
    of = f" of {section.total_lines:,}" if section.total_lines is not None else ""
    return f"lines {offset + 1}–{last}{of}"


async def _show_document(
    target: Target,
    content: MediaContent,
    arguments: ViewArguments,
    context: ToolContext,
    *,
    is_accepted: bool,
) -> ToolOutput:
    """Show a document as it is if the model takes it and wants all of it, else its text."""
    offset, limit = arguments.offset, arguments.limit
    as_text = partial(
        show_pages, content.data, target, offset=offset, limit=limit, progress=context.progress
    )
    if not is_accepted or offset or limit != DEFAULT_LINES:
        return await as_text()
    try:
        return await _show_media(target, content, arguments, context, is_accepted=True)
    except ToolError as refusal:
        # Too long to be sent, it may still be read.
        try:
            return await as_text()
        except ToolError:
            raise refusal from None


async def _show_media(
    target: Target,
    content: MediaContent,
    _arguments: ViewArguments,
    _context: ToolContext,
    *,
    is_accepted: bool,
) -> ToolOutput:
    is_document = content.media_type == DOCUMENT_TYPE
    kind = "document" if is_document else "image"
    name = f"[{kind} {target.shown}: {content.media_type}, {content.size:,} bytes]"
    if not is_accepted:
        raise ToolError(f"{name} The current model cannot look at {kind}s.")
    try:
        admitted = await admit(content.data, name=target.shown)
    except ToolError as error:
        raise ToolError(f"{name} It cannot be shown: {error}.") from error
    text = f"[{kind} {target.shown}: {admitted.facts}]"
    return ToolOutput(text, media=(admitted.media,), summary=admitted.media.media_type)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
