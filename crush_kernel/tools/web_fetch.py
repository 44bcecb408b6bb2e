"""`web_fetch`: a page as Markdown, long ones as a file; for the sub-agent that reads the web."""

from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Final

from anyio.to_thread import run_sync
from pydantic import Field

from crush_kernel.files.names import printable
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.diskfile import replace_file
from crush_kernel.tools.fetch import DEFAULT_TIMEOUT_S, show_page
from crush_kernel.tools.web.inquiry import Inquiry, Web
from crush_kernel.tools.web.leave import ask_leave
from crush_kernel.tools.web.reading import read_page
from crush_kernel.tools.web.urls import parse_url

MAX_SHOWN_BYTES: Final = 50_000


class WebFetchArguments(Arguments):
    """What to read."""

    url: str = Field(description="The full URL, http:// or https://.")


def web_fetch_tool(web: Web, folder: Path) -> Tool[WebFetchArguments]:
    """Return the tool; pages that are long go to files in `folder`, which its owner removes."""

    async def run(arguments: WebFetchArguments, context: ToolContext) -> ToolOutput:
        page = await web.ask(
            Inquiry(
                url=parse_url(arguments.url),
                leave=ask_leave(context, tool="web_fetch"),
                read=partial(read_page, form="markdown", progress=context.progress),
                timeout_s=DEFAULT_TIMEOUT_S,
            )
        )
        data = page.text.encode("utf-8", "replace")
        if len(data) <= MAX_SHOWN_BYTES:
            return show_page(page, asked=arguments.url)
        path = folder / f"page-{token_hex(4)}.md"
        await run_sync(replace_file, path, data)
        return ToolOutput(
            f"{printable(page.url)} is long: its {len(data):,} bytes of text are in {path}. Look "
            "into it with grep and view.",
            summary=f"{len(data):,} bytes",
            metadata={"url": page.url, "media_type": page.media_type},
        )

    return Tool(
        name="web_fetch",
        description=description_of("web_fetch", {"kilobytes": MAX_SHOWN_BYTES // 1_000}),
        arguments=WebFetchArguments,
        run=run,
        describe=lambda arguments: printable(arguments.url),
        timeout_s=DEFAULT_TIMEOUT_S + QUICK_S,
        is_read_only=True,
    )
