"""Addresses that users write are checked before they are used."""

import pytest

from crush_kernel.errors import ConfigError
from crush_kernel.providers.address import (
    is_loopback,
    ollama_endpoint,
    server_address,
    without_password,
)


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
        ("me:hush@localhost", True),
        ("api.localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("[::1]", True),
        ("[::1", False),
        ("localhost.example.org", False),
        ("10.0.0.1", False),
        ("api.anthropic.com", False),
        ("", False),
    ],
)
def test_this_machine(host: str, *, expected: bool) -> None:
    assert is_loopback(f"http://{host}/v1") is expected
    assert is_loopback(f"https://{host}:1234") is expected


@pytest.mark.parametrize(
    ("host", "endpoint"),
    [
        pytest.param("127.0.0.1", "http://127.0.0.1:11434/v1", id="address"),
        pytest.param("0.0.0.0", "http://127.0.0.1:11434/v1", id="all interfaces"),  # noqa: S104
        pytest.param(":8000", "http://127.0.0.1:8000/v1", id="port"),
        pytest.param("box:8000", "http://box:8000/v1", id="name and port"),
        pytest.param("http://box", "http://box:80/v1", id="scheme"),
        pytest.param("https://box", "https://box:443/v1", id="TLS"),
        pytest.param("https://box:1/ollama/", "https://box:1/ollama/v1", id="path"),
        pytest.param("[::1]:8000", "http://[::1]:8000/v1", id="IPv6"),
        pytest.param("[::]", "http://127.0.0.1:11434/v1", id="all interfaces, IPv6"),
        pytest.param("box:99999", "http://box:11434/v1", id="no such port"),
        pytest.param("[::1", "http://127.0.0.1:11434/v1", id="no address"),
    ],
)
def test_ollamas_variable_means_what_it_means_to_ollama(host: str, endpoint: str) -> None:
    assert ollama_endpoint(host) == endpoint


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host:1/v1", "http://host:1/v1"),
        ("https://me:hush@host/v1", "https://host/v1"),
        ("https://me@host", "https://host"),
        ("https://host/a@b", "https://host/a@b"),
        ("me:hush@host", "host"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown
