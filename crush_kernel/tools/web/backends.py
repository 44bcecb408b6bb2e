"""Search engines: how each is asked, and what its answer says. Pure.

An engine is a request and a parser. Answers are strangers' texts in shapes that change, so
a parser takes what it finds and leaves out what makes no sense.
"""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final, Literal, Protocol, cast
from urllib.parse import parse_qs, quote_plus, urljoin, urlsplit

from crush_kernel.errors import ToolError
from crush_kernel.tools.web.urls import WebUrl, parse_url
from crush_kernel.wording import clipped

BackendName = Literal["duckduckgo", "searxng", "brave"]

MAX_TITLE_CHARACTERS: Final = 300
MAX_SNIPPET_CHARACTERS: Final = 1_000
MAX_URL_CHARACTERS: Final = 2_000

_TAG: Final = re.compile(r"<[^<>]{0,500}>")

_BOT_CHECKS: Final = ("anomaly-modal", "challenge-form", "bots use DuckDuckGo too")
"""What stands in a page that asks for a proof of being human."""


@dataclass(frozen=True, slots=True)
class Result:
    """One thing that was found."""

    title: str
    url: str
    snippet: str


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to send to an engine."""

    url: WebUrl
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """May hold a key."""


class Backend(Protocol):
    """A search engine."""

    @property
    def name(self) -> str:
        """How to call it in a result."""
        ...

    def request(self, query: str, count: int) -> SearchRequest:
        """Return how to ask for `count` results."""
        ...

    def parse(self, body: str) -> tuple[Result, ...]:
        """Return the results, the best first.

        Raises:
            ToolError: the engine gave something else; the message says what.
        """
        ...


@dataclass(frozen=True, slots=True)
class DuckDuckGo:
    """The page for browsers without scripts; needs no key, and now and then no robots."""

    base: str = "https://html.duckduckgo.com/html/"
    name: str = "DuckDuckGo"

    def request(self, query: str, count: int) -> SearchRequest:
        """Return the request; the page has about thirty results, whatever is wanted."""
        del count
        return SearchRequest(parse_url(f"{self.base}?q={quote_plus(query)}"))

    def parse(self, body: str) -> tuple[Result, ...]:
        """Return what the page lists, advertisements left out."""
        page = _ResultPage(self.base)
        page.feed(body)
        page.close()
        found = tuple(page.results())
        if not found and any(sign in body for sign in _BOT_CHECKS):
            raise ToolError(
                "DuckDuckGo takes this for a robot and wants a proof. Do not search again now; "
                "the user can set CRUSH_SEARCH_BACKEND to searxng or brave."
            )
        return found


@dataclass(frozen=True, slots=True)
class SearXNG:
    """An instance of the free metasearch engine, usually one's own."""

    base: str
    name: str = "SearXNG"

    def request(self, query: str, count: int) -> SearchRequest:
        """Return the request; an instance decides itself how many results it gives."""
        del count
        return SearchRequest(
            parse_url(f"{self.base.rstrip('/')}/search?format=json&q={quote_plus(query)}")
        )

    def parse(self, body: str) -> tuple[Result, ...]:
        """Return the results of the JSON answer."""
        reply = _object(body, "SearXNG", "Its settings must allow the format json.")
        return tuple(_items(reply.get("results"), snippet="content"))


@dataclass(frozen=True, slots=True)
class Brave:
    """The search of Brave, by its API; needs a key."""

    key: str = field(repr=False)
    base: str = "https://api.search.brave.com/res/v1/web/search"
    name: str = "Brave"

    def request(self, query: str, count: int) -> SearchRequest:
        """Return the request, with the key in its header."""
        if not (self.key.isascii() and self.key.isprintable()):
            raise ToolError("BRAVE_API_KEY holds characters that no key has.")
        return SearchRequest(
            parse_url(f"{self.base}?count={count}&q={quote_plus(query)}"),
            {"X-Subscription-Token": self.key, "Accept": "application/json"},
        )

    def parse(self, body: str) -> tuple[Result, ...]:
        """Return the web results of the JSON answer."""
        web = _object(body, "Brave", "").get("web")
        results = cast("dict[str, object]", web).get("results") if isinstance(web, dict) else None
        return tuple(_items(results, snippet="description"))


def backend_for(name: str, *, url: str, brave_key: str) -> Backend:
    """Return the engine that the settings mean.

    Args:
        name: one of `BackendName`, or nothing for the one that the others suggest.
        url: where the engine is, in place of its usual address.
        brave_key: the key for Brave, if there is one.

    Raises:
        ToolError: something is missing; the message is for the user, too.
    """
    match name.strip().lower() or ("searxng" if url else "brave" if brave_key else "duckduckgo"):
        case "duckduckgo":
            return DuckDuckGo(url) if url else DuckDuckGo()
        case "searxng" if url:
            return SearXNG(url)
        case "searxng":
            raise ToolError("Searching with SearXNG needs CRUSH_SEARCH_URL, its address.")
        case "brave" if brave_key:
            return Brave(brave_key, url) if url else Brave(brave_key)
        case "brave":
            raise ToolError("Searching with Brave needs BRAVE_API_KEY.")
        case other:
            raise ToolError(
                f"CRUSH_SEARCH_BACKEND is {other[:40]!r}, none of duckduckgo, searxng and brave."
            )


def _object(body: str, name: str, hint: str) -> dict[str, object]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ToolError(f"{name} did not answer with JSON. {hint}".strip())
    return cast("dict[str, object]", value)


def _items(results: object, *, snippet: str) -> Iterator[Result]:
    for item in cast("list[object]", results) if isinstance(results, list) else ():
        if isinstance(item, dict):
            fields = cast("dict[str, object]", item)
            result = _result(fields.get("title"), fields.get("url"), fields.get(snippet))
            if result is not None:
                yield result


def _result(title: object, url: object, snippet: object) -> Result | None:
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return None
    if len(url) > MAX_URL_CHARACTERS or re.search(r"\s", url):
        return None
    return Result(
        title=_plain(title, MAX_TITLE_CHARACTERS) or url,
        url=url,
        snippet=_plain(snippet, MAX_SNIPPET_CHARACTERS),
    )


def _plain(value: object, limit: int) -> str:
    """Return a text on one line, without tags; they mark the words that were searched."""
    if not isinstance(value, str):
        return ""
    text = " ".join(html.unescape(_TAG.sub("", value)).split())
    text = text.encode("utf-8", "replace").decode()
    return clipped(text, limit)


class _ResultPage(HTMLParser):
    """Collects what the links and snippets of DuckDuckGo's pages say, of both its layouts."""

    _TITLES: Final = frozenset(("result__a", "result-link"))
    _SNIPPETS: Final = frozenset(("result__snippet", "result-snippet"))
    _VOID: Final = frozenset(("br", "img", "input", "hr", "meta", "link", "wbr"))

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._found: list[tuple[str, list[str], list[str]]] = []
        self._into: list[str] | None = None
        self._depth = 0

    def results(self) -> Iterator[Result]:
        """Yield what was collected, each address once."""
        seen: set[str] = set()
        for link, title, snippet in self._found:
            url = _target(urljoin(self._base, link))
            result = _result("".join(title), url, "".join(snippet))
            if result is not None and url not in seen:
                seen.add(url)
                yield result

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._into is not None:
            self._depth += tag not in self._VOID
            return
        known = dict(attrs)
        classes = frozenset((known.get("class") or "").split())
        if tag == "a" and classes & self._TITLES:
            self._found.append((known.get("href") or "", [], []))
            self._into, self._depth = self._found[-1][1], 1
        elif classes & self._SNIPPETS and self._found:
            self._into, self._depth = self._found[-1][2], 1

    def handle_endtag(self, tag: str) -> None:
        if self._into is not None and tag not in self._VOID:
            self._depth -= 1
            if self._depth <= 0:
                self._into = None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into.append(html.escape(data))


def _target(url: str) -> str:
    """Return where a link of DuckDuckGo leads in the end; nothing for an advertisement."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if (parts.hostname or "").endswith("duckduckgo.com") and parts.path.startswith("/l"):
        return next(iter(parse_qs(parts.query).get("uddg", ())), "")
    return "" if parts.path.endswith("/y.js") else url
