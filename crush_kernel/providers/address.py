"""Where a server is: the addresses that users write, checked and made plain. Pure."""

import ipaddress
import re
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

from crush_kernel.errors import ConfigError


def server_address(text: str) -> SplitResult:
    """Return the parts of an address of a server, without a slash at its end.

    Raises:
        ConfigError: it is no such address.
    """
    try:
        parts = urlsplit(text.strip().rstrip("/"))
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise _bad_address(text) from error
    if not is_good or not text.isascii() or not text.strip().isprintable():
        raise _bad_address(text)
    return parts


def is_loopback(url: str) -> bool:
    """Return whether `url` leads to this machine; one that is no address does not."""
    try:
        host = urlsplit(url).hostname or ""
        return host.rpartition(".")[2] == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def without_password(url: str) -> str:
    """Return `url` without the name and password that it may hold."""
    return re.sub(r"^(\w+://)?[^/]*@", r"\1", url)


def ollama_endpoint(host: str) -> str:
    """Return the base URL that `OLLAMA_HOST` means, by Ollama's own rules.

    An address to listen on, such as `0.0.0.0`, is reached through the loopback.
    """
    text = host.strip()
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    port = {"": 11434, "http": 80, "https": 443}.get(scheme if separator else "", 11434)
    parts = urlsplit(f"{scheme}://")
    with suppress(ValueError):  # a port or an address that is none
        parts = urlsplit(f"{scheme}://{rest}")
        port = parts.port or port
    name = parts.hostname or "127.0.0.1"
    if name in ("0.0.0.0", "::"):  # noqa: S104 - nothing is bound here
        name = "127.0.0.1"
    if ":" in name:
        name = f"[{name}]"
    return f"{scheme}://{name}:{port}{parts.path.rstrip('/')}/v1"


def _bad_address(text: str) -> ConfigError:
    return ConfigError(
        f"{text!r} is not the address of a server.", hint="Set it to something like `https://host`."
    )
