"""`sourcegraph`: search in the public code of the world, by the service of that name."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Final

from pydantic import BaseModel, Field, ValidationError

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
    limit_output,
)
from crush_kernel.tools.inrange import IN_RANGE
from crush_kernel.tools.web.inquiry import Answer, Inquiry, Visit, Web
from crush_kernel.tools.web.reading import read_bytes
from crush_kernel.tools.web.urls import parse_url
from crush_kernel.wording import clipped

NAME: Final = "sourcegraph"
ADDRESS: Final = "https://sourcegraph.com/.api/graphql"

DEFAULT_COUNT: Final = 10
MAX_COUNT: Final = 20
DEFAULT_CONTEXT: Final = 10
MAX_CONTEXT: Final = 50
DEFAULT_TIMEOUT_S: Final = 30
MAX_TIMEOUT_S: Final = 120
MAX_LINE_CHARACTERS: Final = 500
MAX_HITS_PER_FILE: Final = 20
MAX_SHOWN_CHARACTERS: Final = 200
"""Of the query, where permission is asked."""

_SEARCH: Final = """
query Search($query: String!) {
  search(query: $query, version: V2, patternType: keyword) {
    results {
      matchCount
      resultCount
      limitHit
      results {
        __typename
        ... on FileMatch {
          repository { name }
          file { path url content }
          lineMatches { preview lineNumber }
        }
      }
    }
  }
}
"""


class SourcegraphArguments(Arguments):
    """What to search for."""

    query: str = Field(description="In Sourcegraph's syntax, such as `lang:go repo:kubernetes x`.")
    count: Annotated[int, Field(ge=1, le=MAX_COUNT), IN_RANGE] = Field(
        default=DEFAULT_COUNT, description="Files at most."
    )
    context_window: Annotated[int, Field(ge=0, le=MAX_CONTEXT), IN_RANGE] = Field(
        default=DEFAULT_CONTEXT, description="Lines around each match."
    )
    timeout: Annotated[int, Field(ge=1, le=MAX_TIMEOUT_S), IN_RANGE] = Field(
        default=DEFAULT_TIMEOUT_S, description="When to give up, seconds."
    )


class _Line(BaseModel):
    preview: str = ""
    lineNumber: int = 0  # noqa: N815 - the service's name
    """The first line is 0."""


class _File(BaseModel):
    path: str = ""
    url: str = ""
    content: str | None = None


class _Repository(BaseModel):
    name: str = ""


class _Match(BaseModel):
    repository: _Repository = _Repository()
    file: _File | None = None
    lineMatches: list[_Line] | None = None  # noqa: N815


class _Results(BaseModel):
    matchCount: int = 0  # noqa: N815
    resultCount: int = 0  # noqa: N815
    limitHit: bool = False  # noqa: N815
    results: list[_Match] = []


class _Search(BaseModel):
    results: _Results


class _Data(BaseModel):
    search: _Search | None = None


class _Fault(BaseModel):
    message: str = ""


class _Reply(BaseModel):
    data: _Data | None = None
    errors: list[_Fault] | None = None


def sourcegraph_tool(web: Web, *, address: str = ADDRESS) -> Tool[SourcegraphArguments]:
    """Return the tool that searches at `address`."""

    async def run(arguments: SourcegraphArguments, context: ToolContext) -> ToolOutput:
        if not arguments.query.strip():
            raise ToolError("The query is empty. Write what to search for.")
        url = parse_url(address)
        query = clipped(printable(arguments.query), MAX_SHOWN_CHARACTERS)
        await context.permit(
            PermissionRequest(
                call_id=context.call_id,
                tool=NAME,
                action="fetch",
                title=f"search public code for {query}",
                server=url.server,
            )
        )
        asked = {"query": _SEARCH, "variables": {"query": arguments.query}}
        body = await web.ask(
            Inquiry(
                url=url,
                leave=_nobody_is_asked,
                read=partial(_body, progress=context.progress),
                timeout_s=arguments.timeout,
                headers={"Content-Type": "application/json", "Accept": "application/json"},
                content=json.dumps(asked).encode(),
                is_trusted=True,
            )
        )
        return _output(_parse(body), arguments)

    return Tool(
        name=NAME,
        description=description_of(NAME, {"count": MAX_COUNT}),
        arguments=SourcegraphArguments,
        run=run,
        describe=lambda arguments: printable(arguments.query),
        timeout_s=MAX_TIMEOUT_S + QUICK_S,
        is_read_only=True,
    )


async def _nobody_is_asked(visit: Visit) -> None:
    """Let the service pass, which was asked about already."""


async def _body(answer: Answer, *, progress: Callable[[str], None]) -> bytes:
    data, is_cut = await read_bytes(answer, progress=progress)
    if is_cut:
        raise ToolError("Sourcegraph found too much to read. Narrow the query, or lower count.")
    return data


def _parse(body: bytes) -> _Results:
    try:
        reply = _Reply.model_validate_json(body)
    except ValidationError as error:
        raise ToolError("Sourcegraph answered with something that is no search result.") from error
    if reply.errors:
        said = "\n".join(f"- {printable(fault.message[:500])}" for fault in reply.errors[:5])
        raise ToolError(f"Sourcegraph does not take the query:\n{said}")
    if reply.data is None or reply.data.search is None:
        raise ToolError("Sourcegraph answered without a search result.")
    return reply.data.search.results


def _output(results: _Results, arguments: SourcegraphArguments) -> ToolOutput:
    matches = [match for match in results.results if match.file is not None]
    if not matches:
        return ToolOutput(
            f"Sourcegraph finds nothing for {printable(arguments.query)}.", summary="0 files"
        )
    shown = matches[: arguments.count]
    more = "; there are more than it counts" if results.limitHit else ""
    head = f"{results.matchCount:,} matches, {len(shown)} of {len(matches)} files shown{more}."
    blocks = [_block(match, arguments.context_window) for match in shown]
    return ToolOutput(
        limit_output("\n\n".join((head, *blocks))), summary=f"{results.matchCount:,} matches"
    )


def _block(match: _Match, context: int) -> str:
    file = match.file or _File()
    name = printable(f"{match.repository.name}/{file.path}")
    url = printable(file.url if "://" in file.url else f"https://sourcegraph.com{file.url}")
    return "\n".join((name, url, *_lines(match, file, context)))


def _lines(match: _Match, file: _File, context: int) -> Iterator[str]:
    """Yield the matches as `number|line`, those around them as `number-line`, each once."""
    hits = {line.lineNumber: line.preview for line in (match.lineMatches or [])[:MAX_HITS_PER_FILE]}
    content = file.content.splitlines() if file.content else []
    wanted = {
        number
        for hit in hits
        for number in range(hit - context, hit + context + 1)
        if 0 <= number < len(content)
    }
    last = None
    for number in sorted(wanted | set(hits)):
        if last is not None and number > last + 1:
            yield "…"
        text = content[number] if 0 <= number < len(content) else hits.get(number, "")
        bar = "|" if number in hits else "-"
        yield f"{number + 1:6d}{bar}{printable(text[:MAX_LINE_CHARACTERS])}"
        last = number
