"""Which proxy the environment names for a URL. Pure.

Source: curl, "Environment variables"; no proxy leads to this machine, whatever they say.
"""

from collections.abc import Mapping
from ipaddress import ip_network

from crush_kernel.tools.web.addresses import is_own_name
from crush_kernel.tools.web.urls import WebUrl


def proxy_for(url: WebUrl, environ: Mapping[str, str]) -> str:
    """Return the URL of the proxy to use for `url`; empty where there is none."""
    address = url.address
    if is_own_name(url.host) or (address is not None and address.is_loopback):
        return ""
    if any(_covers(entry.strip(), url) for entry in _variable(environ, "no_proxy").split(",")):
        return ""
    proxy = _variable(environ, f"{url.scheme}_proxy") or _variable(environ, "all_proxy")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def _covers(entry: str, url: WebUrl) -> bool:
    """Return whether an entry of `no_proxy` means `url`: a domain, an address, a network."""
    if url.address is not None and entry:
        try:
            return url.address in ip_network(entry, strict=False)
        except ValueError:
            pass  # a name, or an address with a port
    name = entry.lower().removeprefix("*").removeprefix(".")
    if not name:
        return entry == "*"
    return any(
        place == name or place.endswith(f".{name}")
        for place in (url.host, f"{url.host}:{url.port}")
    )


def _variable(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.upper()) or "").strip()
