"""`web_search`, `web_fetch` and `sourcegraph` against servers that answer as the real ones do."""

import json
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.errors import ToolError
from crush_kernel.tools.sourcegraph import SourcegraphArguments, sourcegraph_tool
from crush_kernel.tools.web.backends import Backend, Brave, DuckDuckGo, SearXNG, backend_for
from crush_kernel.tools.web.inquiry import Web
from crush_kernel.tools.web_fetch import WebFetchArguments, web_fetch_tool
from crush_kernel.tools.web_search import WebSearchArguments, web_search_tool
from tests.fakes.tool_context import tool_context
from tests.fakes.website import PRIVATE, counts_as_public, reply, serving, website

DUCK = """<div class="result result--ad"><a class="result__a" href="/y.js?ad=1">Ad</a></div>
<div class="result"><h2><a rel=n class="result__a"
 href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.org%2F%3Fx%3D1&amp;rut=9"
>A &lt;b&gt; <b>one</b></a></h2>
<a class="result__snippet" href="#">first <b>line</b><br>more</a></div>
<table><tr><td><a class='result-link' href="https://b.org/">B</a></td></tr>
<tr><td class='result-snippet'>second</td></tr></table>
<a class="result__a" href="javascript:x">bad</a>"""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "answer", "shown"),
    [
        pytest.param(
            "duckduckgo",
            DUCK,
            "2 results from DuckDuckGo:\n\n1. A <b> one\n   https://a.org/?x=1\n"
            "   first linemore\n\n2. B\n   https://b.org/\n   second",
            id="duckduckgo",
        ),
        pytest.param("duckduckgo", "<p>none", "finds nothing", id="nothing found"),
        pytest.param(
            "searxng",
            json.dumps({"results": [{"title": "T", "url": "https://c.org", "content": 3}, 7]}),
            "1 result from SearXNG:\n\n1. T\n   https://c.org",
            id="searxng",
        ),
        pytest.param(
            "brave",
            json.dumps({"web": {"results": [{"url": "https://d.org", "description": "<b>d</b>"}]}}),
            "1 result from Brave:\n\n1. https://d.org\n   https://d.org\n   d",
            id="brave",
        ),
    ],
)
async def test_engines_are_asked_in_their_way_and_nobody_else(
    kind: str, answer: str, shown: str
) -> None:
    page = reply(answer, content_type="text/html" if kind == "duckduckgo" else "application/json")
    context = tool_context()
    async with website(serving(index=page, search=page), PRIVATE) as site:

        def backend() -> Backend:
            return backend_for(kind, url=site.url(), brave_key="k")

        tool = web_search_tool(Web({}), backend, gap_s=0)
        with anyio.fail_after(10):
            output = await tool.run(WebSearchArguments(query="a  b&c"), context.context)
    assert shown in output.text
    assert "q=a+b%26c" in site.paths[0]
    assert site.asked[0].headers.get("x-subscription-token") == ("k" if kind == "brave" else None)
    (request,) = context.requests
    assert (request.action, request.title) == ("fetch", "search the web for a b&c")


@pytest.mark.parametrize(
    ("name", "url", "key", "kind"),
    [
        pytest.param("", "", "", DuckDuckGo, id="default"),
        pytest.param("", "https://s", "", SearXNG, id="an address means searxng"),
        pytest.param("", "", "k", Brave, id="a key means brave"),
        pytest.param("DuckDuckGo", "", "k", DuckDuckGo, id="what is named"),
    ],
)
def test_settings_choose_the_engine(name: str, url: str, key: str, kind: type) -> None:
    assert isinstance(backend_for(name, url=url, brave_key=key), kind)


@pytest.mark.parametrize("name", ["searxng", "brave", "altavista"])
def test_settings_that_lack_something_say_what(name: str) -> None:
    with pytest.raises(ToolError, match=r"CRUSH_SEARCH|BRAVE_API_KEY"):
        backend_for(name, url="", brave_key="")


def test_a_check_for_robots_is_told_as_such() -> None:
    with pytest.raises(ToolError, match="robot"):
        DuckDuckGo().parse('<form id="challenge-form">')


@given(st.text())
def test_engines_never_stumble_over_an_answer(body: str) -> None:
    for engine in (DuckDuckGo(), SearXNG("https://s"), Brave("k")):
        try:
            found = engine.parse(body)
        except ToolError:
            continue
        assert all(each.url.startswith("http") for each in found)


@pytest.mark.anyio
async def test_long_pages_go_to_a_file(tmp_path: Path) -> None:
    async with website(serving(index=reply("line\n" * 20_000))) as site:
        tool = web_fetch_tool(Web({}, is_public=counts_as_public), tmp_path)
        output = await tool.run(WebFetchArguments(url=site.url()), tool_context().context)
    (path,) = tuple(tmp_path.iterdir())  # noqa: ASYNC240 - a folder of this test
    assert str(path) in output.text
    assert path.read_text(encoding="utf-8").count("line") == 20_000


MATCH = {
    "repository": {"name": "github.com/a/b"},
    "file": {"path": "m.py", "url": "/a/b/m.py", "content": "one\ntwo\nthree\nfour\n"},
    "lineMatches": [{"preview": "two", "lineNumber": 1}],
}


def found(*matches: object) -> dict[str, object]:
    return {"data": {"search": {"results": {"matchCount": 1, "results": [*matches]}}}}


@pytest.mark.anyio
async def test_code_is_shown_with_the_numbers_of_its_lines() -> None:
    page = reply(json.dumps(found({}, MATCH)), content_type="application/json")
    async with website(serving(index=page), PRIVATE) as site:
        tool = sourcegraph_tool(Web({}), address=site.url())
        arguments = SourcegraphArguments(query="two", context_window=1)
        output = await tool.run(arguments, tool_context().context)
    assert output.text.endswith(
        "github.com/a/b/m.py\nhttps://sourcegraph.com/a/b/m.py\n     1-one\n"
        "     2|two\n     3-three"
    )
    assert json.loads(site.asked[0].body)["variables"] == {"query": "two"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    "answer",
    ["no json", "[]", "{}", '{"errors":[{"message":"bad query"}]}', '{"data":{"search":1}}'],
)
async def test_what_is_no_result_is_an_error(answer: str) -> None:
    async with website(serving(index=reply(answer)), PRIVATE) as site:
        tool = sourcegraph_tool(Web({}), address=site.url())
        with pytest.raises(ToolError, match="Sourcegraph"):
            await tool.run(SourcegraphArguments(query="x"), tool_context().context)
