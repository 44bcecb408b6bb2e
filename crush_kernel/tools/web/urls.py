"""URLs that a model wrote or a server redirects to, taken apart once. Pure.

A `WebUrl` is put together from checked parts, so that whatever shows it, asks about it and
connects to it means the same server.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal, cast
from urllib.parse import quote, urljoin, urlsplit

from crush_kernel.errors import ToolError
from crush_kernel.files.names import printable
from crush_kernel.tools.web.addresses import IPAddress, literal

MAX_CHARACTERS: Final = 8_192
"""What common servers take in their first line."""

_PORTS: Final = {"http": 80, "https": 443}

_UNFIT: Final = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")

_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.ASCII)
_MAX_NAME_CHARACTERS: Final = 253

_KEPT: Final = "%/:?#[]@!$&'()*+,;=~"
"""What a URL may hold unescaped, besides letters and digits."""


@dataclass(frozen=True, slots=True)
class WebUrl:
    """Where something is on the web."""

    scheme: Literal["http", "https"]
    host: str
    """A name in ASCII and lower case, or an address in its usual spelling."""
    port: int
    target: str
    """Path and query, percent-encoded; begins with a slash."""

    @property
    def address(self) -> IPAddress | None:
        """Return the address that is written in place of a name."""
        return literal(self.host)

    @property
    def authority(self) -> str:
        """Return host and port as the `Host` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def server(self) -> str:
        """Return what one permission can be for: the host, its port if that is unusual."""
        return self.host if self.port in _PORTS.values() else self.authority

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(text: str) -> WebUrl:
    """Return the place that `text` means; what follows a `#` is left out.

    Raises:
        ToolError: it is no URL of a web server; the message says what to write instead.
    """
    text = text.strip()
    shown = printable(text[:200])
    if not text:
        raise ToolError("The URL is empty. Write one such as https://example.com/page.")
    if len(text) > MAX_CHARACTERS:
        raise ToolError(f"The URL has {len(text):,} characters, more than {MAX_CHARACTERS:,}.")
    if _UNFIT.search(text) or "\\" in text:
        raise ToolError(f"'{shown}' has spaces, backslashes or control characters. Escape them.")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ToolError(f"'{shown}' is no URL: {printable(str(error))}.") from error
    if parts.scheme not in _PORTS:
        raise ToolError(
            f"'{shown}' does not begin with http:// or https://. Other URLs are not read."
        )
    if parts.username is not None or parts.password is not None:
        raise ToolError("The URL holds a user name or a password. Leave them out.")
    if not parts.hostname or port == 0:
        raise ToolError(f"'{shown}' names no server.")
    scheme = cast("Literal['http', 'https']", parts.scheme)  # a member, by the check above
    query = f"?{quote(parts.query, safe=_KEPT)}" if parts.query else ""
    return WebUrl(
        scheme=scheme,
        host=_host(parts.hostname),
        port=port or _PORTS[scheme],
        target=(quote(parts.path, safe=_KEPT) or "/") + query,
    )


def redirected(url: WebUrl, location: str) -> WebUrl:
    """Return where a `Location` header of `url` leads.

    Raises:
        ToolError: nowhere on the web.
    """
    try:
        joined = urljoin(str(url), quote(location.strip(), safe=_KEPT))
    except ValueError as error:
        raise ToolError(f"{url} redirects to what is no URL.") from error
    try:
        return parse_url(joined)
    except ToolError as error:
        raise ToolError(f"{url} redirects to a place that is not read: {error}") from error


def is_same_site(one: WebUrl, other: WebUrl) -> bool:
    """Return whether `other` is the same server as `one`, `www.` and a change to TLS aside."""
    is_downgrade = one.scheme == "https" and other.scheme == "http"
    is_same = one.server.removeprefix("www.") == other.server.removeprefix("www.")
    return is_same and not is_downgrade


def _host(text: str) -> str:
    """Return the one spelling of a host that everything else uses."""
    if ":" in text:
        return _checked(text)
    name = unicodedata.normalize("NFKC", text).replace("\u3002", ".").lower()
    name = name.removesuffix(".")
    if not name.isascii():
        name = _in_ascii(name)
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME_CHARACTERS:
        raise ToolError(f"'{printable(text[:200])}' is not the name of a server.")
    return _checked(name)


def _checked(host: str) -> str:
    try:
        address = literal(host)
    except ValueError as error:
        raise ToolError(f"'{printable(host[:200])}' is not the address of a server.") from error
    if address is not None and getattr(address, "scope_id", None) is not None:
        raise ToolError(f"'{printable(host[:200])}' names a network interface. Leave that out.")
    return host if address is None else str(address)


def _in_ascii(name: str) -> str:
    import idna  # noqa: PLC0415 - 10 ms for names that few have

    try:
        return idna.encode(name, uts46=True).decode("ascii")
    except idna.IDNAError as error:
        raise ToolError(f"'{printable(name[:200])}' is not the name of a server.") from error
