"""Patterns of servers: whom they mean, in whatever spelling."""

import pytest

from crush_kernel.permissions.hostpattern import parse_host, server_of
from crush_kernel.permissions.match import BadRule


@pytest.mark.parametrize(
    ("written", "server", "is_allowed", "is_denied"),
    [
        pytest.param("example.org", "example.org", True, True, id="that host"),
        pytest.param("Example.ORG.", "example.org", True, True, id="in another spelling"),
        pytest.param("example.org", "www.example.org", False, True, id="a host below it"),
        pytest.param("*.example.org", "www.example.org", True, True, id="below a star"),
        pytest.param("*.example.org", "a.b.example.org", True, True, id="far below a star"),
        pytest.param("*.example.org", "example.org", False, False, id="a star is not the host"),
        pytest.param("example.org", "evilexample.org", False, False, id="no border of a label"),
        pytest.param("example.org", "example.org.evil.net", False, False, id="a longer name"),
        pytest.param("bücher.example", "xn--bcher-kva.example", True, True, id="another script"),
        pytest.param("example.org", "example.org:8080", False, True, id="an unusual port"),
        pytest.param("example.org:8080", "example.org:8080", True, True, id="that port"),
        pytest.param("example.org:8080", "example.org", False, False, id="the usual port"),
        pytest.param("example.org:443", "example.org", True, True, id="the usual port, named"),
        pytest.param("*", "anything.example", True, True, id="all"),
        pytest.param("127.0.0.1", "127.0.0.1", True, True, id="an address"),
        pytest.param("[::1]:8080", "[0:0::1]:8080", True, True, id="an address in brackets"),
        pytest.param("::1", "[::1]", True, True, id="an address without brackets"),
    ],
)
def test_a_pattern_means_servers(
    written: str, server: str, *, is_allowed: bool, is_denied: bool
) -> None:
    pattern = parse_host(written)
    assert pattern.covers(server_of(server), is_private=False) is is_allowed
    assert pattern.forbids(server_of(server)) is is_denied


@pytest.mark.parametrize(
    ("written", "server", "is_allowed"),
    [
        pytest.param("example.org", "example.org 10.0.0.1", False, id="where a name leads now"),
        pytest.param("*.example.org", "a.example.org 10.0.0.1", False, id="below a star"),
        pytest.param("*", "10.0.0.1", False, id="all"),
        pytest.param("10.0.0.1", "10.0.0.1", True, id="an address"),
        pytest.param("localhost:8888", "localhost:8888 127.0.0.1 ::1", True, id="this machine"),
        pytest.param("app.localhost", "app.localhost 127.0.0.1", True, id="below this machine"),
    ],
)
def test_a_private_server_is_meant_only_where_the_pattern_says_so(
    written: str, server: str, *, is_allowed: bool
) -> None:
    assert parse_host(written).covers(server_of(server), is_private=True) is is_allowed


@pytest.mark.parametrize("written", ["*.example.org", "*"])
def test_a_star_names_no_server(written: str) -> None:
    server = server_of("a.example.org")
    assert not parse_host(written).covers(server, is_private=False, by_name=True)


@pytest.mark.parametrize(
    "written",
    ["", "https://example.org", "example.org/x", "a.*.org", "*example.org", "a b", "-x", "\u2028"],
)
def test_what_is_no_server_is_explained(written: str) -> None:
    with pytest.raises(BadRule, match="is not the name of a server"):
        parse_host(written)
