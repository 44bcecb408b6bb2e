"""Patterns of servers in rules: `domain:example.org`, `domain:*.example.org`. Pure.

Names are compared in one spelling: lower case, in ASCII (IDNA), without the last dot.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from crush_kernel.permissions.match import BadRule

PREFIX: Final = "domain:"

_NAME: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_PORT: Final = re.compile(r"(?P<host>.*?)(:(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class Server:
    """Who is talked to."""

    host: str
    port: str
    """Empty for the usual one."""

    @property
    def is_plainly_private(self) -> bool:
        """Return whether the name itself says that it is this machine or an address."""
        return (
            self.host == "localhost" or self.host.endswith(".localhost") or _is_address(self.host)
        )


@dataclass(frozen=True, slots=True)
class HostPattern:
    """The servers that a rule means."""

    server: Server
    has_subdomains: bool
    """Whether it is about those below the host, and not about the host itself; without a host
    about all."""

    def covers(self, server: Server, *, is_private: bool, by_name: bool = False) -> bool:
        """Return whether `server` is surely meant.

        One in a private network only if the pattern says so itself, by an address or as
        `localhost`: where another name leads, somebody else decides.
        """
        if self.has_subdomains and (is_private or by_name):
            return False
        if not self.server.host:
            return True
        if server.port != self.server.port:
            return False
        if self.has_subdomains:
            return server.host.endswith(f".{self.server.host}")
        return server.host == self.server.host and (
            not is_private or self.server.is_plainly_private
        )

    def forbids(self, server: Server) -> bool:
        """Return whether `server` is meant by somebody who wants nothing of it, or below it."""
        if not self.server.host:
            return True
        if self.server.port and server.port != self.server.port:
            return False
        is_below = server.host.endswith(f".{self.server.host}")
        return is_below or (server.host == self.server.host and not self.has_subdomains)


def parse_host(text: str) -> HostPattern:
    """Return the pattern that `text`, what follows `domain:`, writes; `*` is every server.

    Raises:
        BadRule: it is no name of a server; the message says what to write instead.
    """
    text = text.strip()
    if text == "*":
        return HostPattern(Server("", ""), has_subdomains=True)
    name = text.removeprefix("*.")
    if not name or "/" in name or "*" in name or name.split() != [name]:
        raise BadRule(
            f"{text!r} is not the name of a server: write it as domain:example.org or "
            "domain:*.example.org"
        )
    server = server_of(name)
    if not (_NAME.fullmatch(server.host) or _is_address(server.host)):
        raise BadRule(f"{text!r} is not the name of a server, such as example.org")
    return HostPattern(server, has_subdomains=name != text)


def server_of(text: str) -> Server:
    """Return the server that `text` names, `host` or `host:port`; of several words, the first."""
    text = text.split(maxsplit=1)[0] if text.split() else ""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        return Server(_one_spelling(host), _port(port.removeprefix(":")))
    if text.count(":") > 1:
        return Server(_one_spelling(text), "")
    found = _PORT.fullmatch(text)
    host, port = (found["host"], found["port"] or "") if found else (text, "")
    return Server(_one_spelling(host), _port(port))


def _port(text: str) -> str:
    return "" if text in ("80", "443") else text


def _one_spelling(host: str) -> str:
    host = host.strip().lower().removesuffix(".")
    if _is_address(host):
        return str(ip_address(host))
    if host.isascii():
        return host
    import idna  # noqa: PLC0415 - 10 ms for names that few have

    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError:
        return host


def _is_address(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return not (isinstance(address, IPv6Address) and address.scope_id)
