"""One careful HTTP client for all network tools: every hop is checked before it is made.

A name is looked up once, its addresses are judged, and the connection is made to one of
those very addresses, so that no second answer of a name server can lead elsewhere. Nobody
is looked up before the server was allowed, since a lookup itself can carry a secret out.
Redirects are followed here, one by one, through the same checks.
"""

import ssl
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, Generic, TypeVar

import anyio
import httpx2

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.providers.tls import tls_context
from crush_kernel.tools.web.addresses import IPAddress, is_local_name, is_own_name
from crush_kernel.tools.web.content import MediaType, media_type, read_body
from crush_kernel.tools.web.inquiry import AskLeave, Inquiry, Resolve, Visit
from crush_kernel.tools.web.proxies import proxy_for
from crush_kernel.tools.web.urls import WebUrl, is_same_site, redirected

MAX_REDIRECTS: Final = 10
CONNECT_TIMEOUT_S: Final = 10.0
"""For one address; the next one is tried then."""
MAX_ADDRESSES: Final = 4
"""Of one name that are tried."""
MAX_ERROR_BYTES: Final = 16_384
"""Of the body of an error that are read, for its reason."""

USER_AGENT: Final = "crush-kernel (+https://pypi.org/project/crush-kernel/)"

_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))

T = TypeVar("T")


@dataclass(slots=True)
class HttpClient:
    """Carries out inquiries; a connection lives as long as its answer is read."""

    environ: Mapping[str, str] = field(repr=False)
    resolve: Resolve
    is_public: Callable[[IPAddress], bool]
    _tls: ssl.SSLContext | None = None

    async def ask(self, inquiry: Inquiry[T]) -> T:
        """Do what `Web.ask` promises."""
        clock = _Clock(inquiry.timeout_s)
        came_from: WebUrl | None = None
        settled: list[Visit] = []
        for _ in range(MAX_REDIRECTS + 1):
            url = inquiry.url
            leave = (
                _no_leave_needed if inquiry.is_trusted else partial(_once, inquiry.leave, settled)
            )
            places = await self._enter(url, leave, clock, came_from)
            with clock.running(url):
                outcome = await self._hop(inquiry, places)
            if not isinstance(outcome, _Redirect):
                return outcome.value
            came_from = url
            inquiry = _following(inquiry, outcome)
        raise ToolError(f"{printable(str(inquiry.url))} is the end of {MAX_REDIRECTS} redirects.")

    async def _enter(
        self, url: WebUrl, leave: AskLeave, clock: "_Clock", came_from: WebUrl | None
    ) -> tuple[str, ...]:
        """Return where to connect to, once it is allowed; nothing where a proxy looks it up."""
        is_proxied = bool(proxy_for(url, self.environ))
        is_local = is_local_name(url.host)
        is_foreign_name = url.address is None and not is_local
        if is_foreign_name:
            await leave(Visit(url, is_private=False, came_from=came_from))
        with clock.running(url):
            addresses = await self._addresses(url, is_proxied=is_proxied)
        is_private = not all(self.is_public(ip_address(each)) for each in addresses)
        if not addresses and is_local:
            is_private = True
        if is_private or not is_foreign_name:
            await leave(Visit(url, is_private, addresses, came_from))
        return () if is_proxied else addresses[:MAX_ADDRESSES]

    async def _addresses(self, url: WebUrl, *, is_proxied: bool) -> tuple[str, ...]:
        if url.address is not None:
            return (str(url.address),)
        if is_own_name(url.host):
            return ("127.0.0.1", "::1")
        try:
            found = await self.resolve(url.host, url.port)
        except (OSError, UnicodeError) as error:
            if is_proxied:
                return ()  # behind a proxy, names of the outside are often its business only
            raise ToolError(f"There is no server {url.host}: its name is not known.") from error
        if not found and not is_proxied:
            raise ToolError(f"There is no server {url.host}: its name has no address.")
        return found

    async def _hop(self, inquiry: Inquiry[T], places: tuple[str, ...]) -> "_Redirect | _Done[T]":
        url = inquiry.url
        async with (
            self._client(url) as client,
            self._reply(client, inquiry, places) as response,
        ):
            if response.status_code in _REDIRECTS and "location" in response.headers:
                return _Redirect(response.status_code, response.headers["location"])
            answer = _Answer(url, response)
            with _translated(url):
                if not response.is_success or response.status_code == HTTPStatus.ACCEPTED:
                    raise await _refusal(answer)
                return _Done(await inquiry.read(answer))

    @asynccontextmanager
    async def _client(self, url: WebUrl) -> AsyncGenerator[httpx2.AsyncClient]:
        proxy = proxy_for(url, self.environ)
        is_encrypted = url.scheme == "https" or proxy.startswith("https:")
        if is_encrypted and self._tls is None:
            self._tls = await anyio.to_thread.run_sync(partial(tls_context, self.environ))
        try:
            client = httpx2.AsyncClient(
                timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
                verify=self._tls if is_encrypted and self._tls is not None else False,
                proxy=proxy or None,
                trust_env=False,  # it was read above, with our own rules
            )
        except (ValueError, httpx2.HTTPError, httpx2.InvalidURL, ImportError) as error:
            raise ToolError(
                "The proxy that the environment names cannot be used.",
                hint="The user can correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY.",
            ) from error
        async with client:
            yield client

    @asynccontextmanager
    async def _reply(
        self, client: httpx2.AsyncClient, inquiry: Inquiry[T], places: tuple[str, ...]
    ) -> AsyncGenerator[httpx2.Response]:
        """Yield the head of the reply of the first of `places` that can be reached."""
        with _translated(inquiry.url):
            response = await _first_reply(client, inquiry, places)
        try:
            yield response
        finally:
            await response.aclose()


async def _first_reply(
    client: httpx2.AsyncClient, inquiry: Inquiry[T], places: tuple[str, ...]
) -> httpx2.Response:
    *others, last = places or (inquiry.url.host,)
    for place in others:
        try:
            return await client.send(_request(client, inquiry, place), stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            continue
    return await client.send(_request(client, inquiry, last), stream=True)


def _request(client: httpx2.AsyncClient, inquiry: Inquiry[T], place: str) -> httpx2.Request:
    url = inquiry.url
    return client.build_request(
        "GET" if inquiry.content is None else "POST",
        httpx2.URL(scheme=url.scheme, host=place, port=url.port, raw_path=url.target.encode()),
        headers={
            "User-Agent": USER_AGENT,
            "Accept-Encoding": "gzip, deflate",
            **inquiry.headers,
            "Host": url.authority,
        },
        content=inquiry.content,
        # The certificate is checked against the name, not against the address.
        extensions={"sni_hostname": url.host},
    )


@dataclass(frozen=True, slots=True)
class _Redirect:
    status: int
    location: str


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    value: T


def _following(inquiry: Inquiry[T], redirect: _Redirect) -> Inquiry[T]:
    url = redirected(inquiry.url, redirect.location)
    if inquiry.is_trusted or inquiry.content is not None:
        raise ToolError(
            f"{printable(str(inquiry.url))} redirects to {printable(str(url))} rather than "
            "answering. The user can set the right address."
        )
    return replace(inquiry, url=url)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A reply of httpx2 as an `Answer`."""

    url: WebUrl
    response: httpx2.Response

    @property
    def media_type(self) -> MediaType:
        return media_type(self.response.headers.get("content-type", ""))

    @property
    def size(self) -> int | None:
        length = self.response.headers.get("content-length", "")
        return int(length) if length.isascii() and length.isdigit() else None

    async def body(self) -> AsyncGenerator[bytes]:
        async for chunk in self.response.aiter_bytes():
            yield chunk


class _Clock:
    """A time limit that stands still while people think."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._left_s = limit_s

    @contextmanager
    def running(self, url: WebUrl) -> Generator[None]:
        """Raise a `ToolError` if the block takes longer than what is left."""
        started = anyio.current_time()
        try:
            with anyio.fail_after(max(0, self._left_s)):
                yield
        except TimeoutError as error:
            raise ToolError(
                f"{printable(str(url))} did not answer in full within {self._limit_s:g} s."
            ) from error
        finally:
            self._left_s -= anyio.current_time() - started


async def _once(ask: AskLeave, settled: list[Visit], visit: Visit) -> None:
    """Ask for `visit`, unless it goes to where this inquiry has been allowed already."""
    for one in settled:
        is_same_place = one.is_private == visit.is_private and (
            sorted(one.addresses) == sorted(visit.addresses)
        )
        if is_same_place and is_same_site(one.url, visit.url):
            return
    await ask(visit)
    settled.append(visit)


async def _no_leave_needed(_: Visit) -> None:
    pass


async def _refusal(answer: _Answer) -> ToolError:
    """Return the error for an answer that is none, with the server's own reason if it is text."""
    status = answer.response.status_code
    with_name = f"{status} {HTTPStatus(status).phrase}" if status in _KNOWN else str(status)
    data = bytearray()
    async for chunk in answer.body():
        data += chunk
        if len(data) >= MAX_ERROR_BYTES:
            break
    body = read_body(bytes(data[:MAX_ERROR_BYTES]), answer.media_type, is_cut=True)
    said = body.text.strip()[:1_000] if body and body.kind != "html" else ""
    wait = answer.response.headers.get("retry-after", "")
    later = f" It asks to wait: Retry-After {printable(wait[:40])}." if wait else ""
    return ToolError(f"{printable(str(answer.url))} answered {with_name}.{later}\n{said}".strip())


_KNOWN: Final = frozenset(status.value for status in HTTPStatus)


@contextmanager
def _translated(url: WebUrl) -> Generator[None]:
    """Turn what the HTTP library raises into errors for the model."""
    try:
        yield
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
        raise ToolError(f"{printable(str(url))} {_trouble(error)}") from error


def _trouble(error: Exception) -> str:
    """Return what went wrong, to go after the URL."""
    match error:
        case httpx2.ProxyError():
            return "cannot be reached: the proxy refuses."
        case httpx2.ConnectTimeout():
            return "cannot be reached: the server does not answer."
        case httpx2.ConnectError() if _is_about_tls(error):
            return (
                "cannot be reached: its certificate is not trusted. If a proxy of the user's "
                "network signs it, SSL_CERT_FILE can name the proxy's certificate."
            )
        case httpx2.ConnectError():
            return "cannot be reached: nothing accepts the connection."
        case httpx2.DecodingError():
            return "sent a body that cannot be decompressed."
        case httpx2.RemoteProtocolError():
            return "broke off its answer, or does not speak HTTP."
        case _:
            return f"cannot be read: {type(error).__name__}."


def _is_about_tls(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
