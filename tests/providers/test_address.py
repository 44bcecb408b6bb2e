"""Addresses that users write are checked before they are used."""

import pytest

from crush_kernel.errors import ConfigError
from crush_kernel.providers.address import is_loopback, server_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://host", "https://host"),
        (" http://host:8080/v1/ ", "http://host:8080/v1"),
        ("http://[::1]:1", "http://[::1]:1"),
    ],
)
def test_addresses_of_servers(text: str, address: str) -> None:
    assert server_address(text).geturl() == address


@pytest.mark.parametrize(
    "text",
    ["", "host", "host:1", "ftp://host", "https://", "http://h:x", "http://h:99999", "http://[",
     "http://ä", "http://h\nost", "http://h:0"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a server"):
        server_address(text)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("api.localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("[::1]", True),
        ("::1", True),
        ("localhost.example.org", False),
        ("10.0.0.1", False),
        ("api.anthropic.com", False),
        ("", False),
    ],
)
def test_this_machine(host: str, *, expected: bool) -> None:
    assert is_loopback(host) is expected
