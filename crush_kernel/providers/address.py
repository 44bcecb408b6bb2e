"""Where a server is: checks of the addresses that users write. Pure."""

import ipaddress
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


def is_loopback(host: str) -> bool:
    """Return whether `host` is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _bad_address(text: str) -> ConfigError:
    return ConfigError(
        f"{text!r} is not the address of a server.", hint="Set it to something like `https://host`."
    )
