"""Which addresses are the public internet, and in what ways an address can be written. Pure.

Everything that is not plainly a public unicast address counts as private: this machine, its
networks, the link, the cloud's metadata service, and every IPv6 address that carries such an
IPv4 address inside it.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

IPAddress = IPv4Address | IPv6Address

_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
"""All that IANA has given out for the internet at large."""

_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
"""NAT64: what a network without IPv4 makes of a public IPv4 address (RFC 6052)."""

_TUNNELS: Final = (IPv6Network("2001::/32"), IPv6Network("2002::/16"))
"""Teredo and 6to4 carry IPv4 addresses of any kind; no site is reached only through them."""

_RELAYS: Final = IPv4Network("192.88.99.0/24")

_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+", re.ASCII | re.IGNORECASE)

_LOCAL_ENDINGS: Final = frozenset(
    ("localhost", "local", "internal", "lan", "intranet", "corp", "home", "private", "arpa")
)
"""Last labels that no registry sells, so that asking for such a name tells nobody a secret."""


def is_public(address: IPAddress) -> bool:
    """Return whether `address` is one of the public internet."""
    match address:
        case IPv4Address():
            is_special = address.is_multicast or address.is_reserved or address in _RELAYS
            return address.is_global and not is_special
        case IPv6Address(ipv4_mapped=IPv4Address() as inner):
            return is_public(inner)
        case _ if address.scope_id is not None:
            return False
        case _ if address in _TRANSLATED:
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
        case _:
            is_tunnel = any(address in network for network in _TUNNELS)
            return address in _GLOBAL_UNICAST and address.is_global and not is_tunnel


def literal(host: str) -> IPAddress | None:
    """Return the address that `host` spells, `None` if it is a name.

    Besides the usual spellings it knows those that systems still take for IPv4: fewer
    parts, octal and hexadecimal numbers, as in `0x7f.1`, `017700000001` and `2130706433`.

    Raises:
        ValueError: it is neither a name nor an address, such as `256.1.1.1` and `1.2.3.4.5`.

    Source: WHATWG URL, "IPv4 parser".
    """
    if ":" in host:
        return ip_address(host)
    parts = host.split(".")
    if not _NUMBER.fullmatch(parts[-1]):
        return None
    numbers = [_number(part) for part in parts]
    *leading, last = numbers
    if len(numbers) > 4 or any(number > 255 for number in leading):
        raise ValueError(f"{host!r} is no address")
    if last >= 256 ** (5 - len(numbers)):
        raise ValueError(f"{host!r} is no address")
    high = sum(number << 8 * (3 - index) for index, number in enumerate(leading))
    return IPv4Address(high + last)


def is_local_name(host: str) -> bool:
    """Return whether the name `host` can only mean something on this machine or network."""
    labels = host.split(".")
    return len(labels) == 1 or labels[-1] in _LOCAL_ENDINGS


def is_own_name(host: str) -> bool:
    """Return whether the name `host` means this machine, whatever a server says (RFC 6761)."""
    return host == "localhost" or host.endswith(".localhost")


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    if text[:2].lower() == "0x":
        return int(text[2:] or "0", 16)
    return int(text, 8) if len(text) > 1 and text.startswith("0") else int(text)
