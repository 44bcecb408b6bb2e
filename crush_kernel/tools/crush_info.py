"""The `crush_info` tool: how Crush is set up here, for finding out why something does not work.

Whoever knows something gives it as sections; new parts of the program bring their own. What is
said is counted, bounded and free of secrets here, whoever says it.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from crush_kernel.files.names import printable
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
    limit_output,
)
from crush_kernel.wording import clipped

ORDER: Final = (
    *("config_files", "config", "model", "providers"),
    *("lsp", "lsp_configured", "mcp", "mcp_configured", "skills", "agents", "hooks"),
    *("permissions", "tools", "options", "attribution", "jobs"),
)
"""How sections follow each other; others come behind these, by name."""

MAX_LINES = 60
"""Lines of a section; of more only the number is told."""

MAX_LINE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Section:
    """What there is to say of one subject."""

    name: str
    lines: tuple[str, ...]
    """`key = value` each, in the order in which they are to be read; none leaves it out."""


Sections = Callable[[], Awaitable[Iterable[Section]]]
"""Tells how things are now. Several may add to one section."""


class CrushInfoArguments(Arguments):
    """Nothing."""


def crush_info_tool(
    sources: Sequence[Sections], *, redact: Callable[[str], str]
) -> Tool[CrushInfoArguments]:
    """Return the tool, which asks each of `sources`.

    Args:
        sources: those who know.
        redact: returns a text without the secrets in it.
    """

    async def run(_: CrushInfoArguments, __: ToolContext) -> ToolOutput:
        found = [section for source in sources for section in await source()]
        # Every line alone: what is redacted in one must not reach into the next.
        text = "\n".join(redact(line) for line in render(found))
        count = len({section.name for section in found if section.lines})
        return ToolOutput(limit_output(text or "Nothing is known."), summary=f"{count} sections")

    return Tool(
        name="crush_info",
        description=description_of("crush_info"),
        arguments=CrushInfoArguments,
        run=run,
        describe=lambda _: "",
        is_read_only=True,
        timeout_s=QUICK_S,
        is_harmless=True,
    )


def render(sections: Iterable[Section]) -> Iterator[str]:
    """Yield the lines of `sections`, in their fixed order, those without lines left out."""
    ordered = sorted((each for each in sections if each.lines), key=_place)
    for number, (name, group) in enumerate(groupby(ordered, key=lambda each: each.name)):
        if number:
            yield ""
        yield f"[{printable(name)}]"
        lines = [line for section in group for line in section.lines]
        yield from (_shown(line) for line in lines[:MAX_LINES])
        if len(lines) > MAX_LINES:
            yield f"# and {len(lines) - MAX_LINES} more"


def _place(section: Section) -> tuple[int, str]:
    is_known = section.name in ORDER
    return ORDER.index(section.name) if is_known else len(ORDER), section.name


def _shown(line: str) -> str:
    return clipped(printable(line), MAX_LINE_CHARACTERS)
