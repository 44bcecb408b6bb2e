"""Which addresses are public, however they are written."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.tools.web.addresses import is_public, literal


@pytest.mark.parametrize(
    "text",
    [
        *("127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.0.1"),  # noqa: S104 - nothing is bound
        *("169.254.169.254", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1"),
        *("255.255.255.255", "192.88.99.1", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1"),
        *("fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "::127.0.0.1", "::8.8.8.8"),
        *("::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::808:808", "2002:7f00:1::1"),
        *("2001:0:53aa:64c:0:fbff:f5ff:fffe", "100::1", "4000::1"),
    ],
)
def test_what_strangers_cannot_reach_is_private(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        *("8.8.8.8", "93.184.216.34", "172.32.0.1", "2606:2800:220:1::1", "::ffff:8.8.8.8"),
        *("64:ff9b::808:808",),
    ],
)
def test_what_everybody_can_reach_is_public(text: str) -> None:
    assert is_public(ip_address(text))


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_judged_like_itself(address: IPv4Address) -> None:
    for inside in (0xFFFF_0000_0000, 0x64_FF9B << 96):
        assert is_public(IPv6Address(inside | int(address))) == is_public(address)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=4), st.data())
def test_odd_notations_mean_what_the_system_takes_them_for(
    numbers: list[int], data: st.DataObject
) -> None:
    ways = st.sampled_from((str, hex, lambda number: f"0{number:o}" if number else "0"))
    text = ".".join(data.draw(ways)(number) for number in numbers)
    try:
        expected = IPv4Address(socket.inet_aton(text))
    except OSError:
        with pytest.raises(ValueError, match="no address"):
            literal(text)
    else:
        assert literal(text) == expected


@given(st.text(alphabet="0123456789abcdefx.:", max_size=20))
def test_every_spelling_of_the_system_is_known_here(text: str) -> None:
    try:
        expected = IPv4Address(socket.inet_aton(text))
    except OSError:
        return
    assert literal(text.removesuffix(".")) == expected
