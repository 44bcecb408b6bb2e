"""`web_search`: what a search engine finds; for the sub-agent that reads the web."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Final

import anyio
from pydantic import Field

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.permissions.request import PermissionRequest
from crush_kernel.tools.base import (
    QUICK_S,
    Arguments,
    Tool,
    ToolContext,
    ToolOutput,
    description_of,
)
from crush_kernel.tools.inrange import IN_RANGE
from crush_kernel.tools.web.backends import Backend, Result
from crush_kernel.tools.web.content import read_body
from crush_kernel.tools.web.inquiry import Answer, Inquiry, Visit, Web
from crush_kernel.tools.web.reading import read_bytes
from crush_kernel.wording import counted

NAME: Final = "web_search"
DEFAULT_RESULTS: Final = 10
MAX_RESULTS: Final = 20
MAX_QUERY_CHARACTERS: Final = 1_000
TIMEOUT_S: Final = 30
GAP_S: Final = 1.0
"""From one search to the next: engines shut out who asks faster."""


class WebSearchArguments(Arguments):
    """What to search for."""

    query: str = Field(description="What to search for: a few words.")
    max_results: Annotated[int, Field(ge=1, le=MAX_RESULTS), IN_RANGE] = Field(
        default=DEFAULT_RESULTS, description="At most."
    )


def web_search_tool(
    web: Web, backend: Callable[[], Backend], *, gap_s: float = GAP_S
) -> Tool[WebSearchArguments]:
    """Return the tool; `backend` is asked at every call, and raises what is wrong with it."""
    pace = _Pace(gap_s)

    async def run(arguments: WebSearchArguments, context: ToolContext) -> ToolOutput:
        query = " ".join(arguments.query.split())[:MAX_QUERY_CHARACTERS]
        if not query:
            raise ToolError("The query is empty. Write a few words to search for.")
        engine = backend()
        request = engine.request(query, arguments.max_results)
        await context.permit(
            PermissionRequest(
                call_id=context.call_id,
                tool=NAME,
                action="fetch",
                title=f"search the web for {printable(query)}",
                server=request.url.server,
            )
        )
        await pace.wait()
        body = await web.ask(
            Inquiry(
                url=request.url,
                leave=_nobody_is_asked,
                read=partial(_text, progress=context.progress),
                timeout_s=TIMEOUT_S,
                headers=request.headers,
                is_trusted=True,
            )
        )
        found = await anyio.to_thread.run_sync(engine.parse, body, abandon_on_cancel=True)
        return _output(query, engine.name, found[: arguments.max_results])

    return Tool(
        name=NAME,
        description=description_of(NAME, {"results": MAX_RESULTS}),
        arguments=WebSearchArguments,
        run=run,
        describe=lambda arguments: printable(arguments.query),
        timeout_s=TIMEOUT_S + QUICK_S,
        is_read_only=True,
    )


class _Pace:
    """Keeps calls apart; who is cancelled while waiting holds up nobody."""

    def __init__(self, gap_s: float) -> None:
        self._gap_s = gap_s
        self._next = float("-inf")

    async def wait(self) -> None:
        now = anyio.current_time()
        turn = max(now, self._next)
        self._next = turn + self._gap_s
        await anyio.sleep(turn - now)


async def _nobody_is_asked(visit: Visit) -> None:
    """Let the search engine pass, which was asked about already."""


async def _text(answer: Answer, *, progress: Callable[[str], None]) -> str:
    data, is_cut = await read_bytes(answer, progress=progress)
    body = read_body(data, answer.media_type, is_cut=is_cut)
    if body is None:
        raise ToolError(f"{answer.url.server} did not answer with text.")
    return body.text


def _output(query: str, name: str, found: tuple[Result, ...]) -> ToolOutput:
    if not found:
        return ToolOutput(
            f"{name} finds nothing for {printable(query)}. Try other or fewer words.",
            summary="0 results",
        )
    blocks = (
        f"{number}. {printable(each.title)}\n   {printable(each.url)}"
        + (f"\n   {printable(each.snippet)}" if each.snippet else "")
        for number, each in enumerate(found, start=1)
    )
    count = counted(len(found), "result")
    return ToolOutput(f"{count} from {name}:\n\n" + "\n\n".join(blocks), summary=count)
