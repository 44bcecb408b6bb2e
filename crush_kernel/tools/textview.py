"""A numbered section of a text file, as the model reads it."""

from collections.abc import Iterator

from crush_kernel.errors import ToolError
from crush_kernel.files.textfile import has_undecoded_bytes, shown
from crush_kernel.tools.base import ToolOutput
from crush_kernel.tools.filecontent import MAX_TEXT_BYTES, TextContent
from crush_kernel.tools.paths import Target
from crush_kernel.tools.text.encoded import without_base64
from crush_kernel.tools.text.lineset import END, LineSet
from crush_kernel.tools.text.sections import Line, Section
from crush_kernel.wording import counted

MAX_LINE_CHARACTERS = 2_000


def show_text(target: Target, content: TextContent, *, offset: int, damage: str) -> ToolOutput:
    """Return the lines of `content`, numbered, and what there is to know beyond them.

    Args:
        target: whose content it is.
        content: the section that begins behind line `offset`.
        offset: how many lines were skipped.
        damage: why it is not the notebook that its name says; empty if it is none by its name.

    Raises:
        ToolError: the file ends before the section.
    """
    section = content.section
    if section.total_lines == 0:
        return ToolOutput(f"[{target.shown} is empty]", summary="empty")
    if not section.lines:
        raise ToolError(
            f"{target.shown} has only {counted(section.total_lines or 0, 'line')}; "
            f"offset {offset} is past its end."
        )
    lines = [_text(line, content.line_encoding) for line in section.lines]
    numbered = "\n".join(f"{offset + n:6d}|{line}" for n, line in enumerate(lines, start=1))
    has_loss = has_undecoded_bytes(numbered)
    notes = "".join(f"\n[{note}]" for note in _notes(content, offset, has_loss=has_loss))
    if damage:
        notes += f"\n[this is no notebook that can be shown by its cells: {damage}]"
    return ToolOutput(f"{shown(numbered)}\n{notes}", summary=_summary(section, offset))


def lines_shown(content: TextContent, *, offset: int) -> LineSet:
    """Return which lines `show_text` shows of `content`."""
    last = offset + len(content.section.lines)
    return LineSet.of([(offset, END if last == content.section.total_lines else last)])


def has_cut_lines(content: TextContent) -> bool:
    """Return whether there are lines among them of which something is left out."""
    encoding = content.line_encoding
    if any(
        line.size > MAX_LINE_CHARACTERS and _is_cut(_decoded(line, encoding), line)
        for line in content.section.lines
    ):
        return True
    text = "\n".join(_decoded(line, encoding) for line in content.section.lines)
    return without_base64(text) != text


def _text(line: Line, encoding: str) -> str:
    """Return `line` as text, cut if it is long."""
    text = _decoded(line, encoding)
    if not _is_cut(text, line):
        return text
    return f"{text[:MAX_LINE_CHARACTERS]}… [cut; the line has {line.size:,} bytes]"


def _decoded(line: Line, encoding: str) -> str:
    """Return `line` as text, undecodable bytes as lone surrogates."""
    return line.data.decode(encoding, "surrogateescape").removesuffix("\r")


def _is_cut(text: str, line: Line) -> bool:
    return len(text) > MAX_LINE_CHARACTERS or line.size != len(line.data)


def _notes(content: TextContent, offset: int, *, has_loss: bool) -> Iterator[str]:
    """Yield what the model should know beyond the lines: their place, then oddities."""
    section, total = content.section, content.section.total_lines
    last = offset + len(section.lines)
    size = f"{content.size:,} bytes"
    if offset == 0 and last == total:
        yield f"whole file: {counted(last, 'line')}, {size}"
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
        return counted(last, "line")
    of = f" of {section.total_lines:,}" if section.total_lines is not None else ""
    return f"lines {offset + 1}–{last}{of}"
