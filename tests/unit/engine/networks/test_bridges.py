"""Interfaces in bridges: the numbers of a range, and the IPv6 configuration of a guest."""

import pytest
from msgspec.structs import replace

from paddock.engine.networks import bridges, dhcp6
from paddock.engine.networks.addresses import Numbers
from paddock.engine.networks.bridges import BridgeOptions, BridgeRouter
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.families import IP4, IP6
from paddock.engine.networks.nics import HostBridge, NicSpec, Range

ROUTER = BridgeRouter("02:00:00:00:00:07")
MAC = "02:00:00:00:00:03"


@pytest.mark.parametrize(
    ("of", "wanted"),
    [
        (Range("10.1.1.0/24"), Numbers(2, 254)),
        (Range("10.1.1.0/24", "10.1.1.10", "10.1.1.20", "10.1.1.15"), Numbers(10, 20, frozenset({15}))),
        (Range("10.1.1.0/24", "10.1.1.10", "10.1.1.20", "10.1.1.20"), Numbers(10, 19)),
        (Range("fd00::/64"), Numbers(2, 0xFFFF)),
        (Range("fd00::/126"), Numbers(2, 3)),
        (Range("fd00::/64", "fd00::1:0:0"), Numbers(1 << 32, 1 << 32)),
        (Range("fd00::/64", "fd00::10", "fd00::ffff:ffff:ffff:ffff", "fd00::12"), Numbers(16, (1 << 64) - 1, frozenset({18}))),
        (Range("fd00::/64", gateway="fe80::1"), Numbers(1, 0xFFFF)),
    ],
)
def test_the_numbers_of_a_range(of: Range, wanted: Numbers) -> None:
    assert bridges.numbers(of) == wanted


def test_a_range_without_numbers() -> None:
    with pytest.raises(NetworkUnusable, match="its range is empty"):
        bridges.numbers(Range("fd00::/64", "fd00::20", "fd00::10"))


@pytest.mark.parametrize(
    "of", [Range("10.1.1.0/28", "10.1.1.5", "10.1.1.7", "10.1.1.6"), Range("fd00::/64", "fd00::5", "fd00::7", "fd00::6")]
)
def test_a_range_is_given_and_not_more(of: Range) -> None:
    book = bridges.book(of)
    given = set()
    for owner in ("one", "two"):
        book, entry = book.give((owner, "lan"), 0.0, among=bridges.numbers(of))
        given.add(book.address(entry) or book.address6(entry))
    assert given == {of.first, of.last}
    with pytest.raises(NetworkUnusable, match=f"all 2 addresses of {of.network} are in use"):
        book.give(("three", "lan"), 0.0, among=bridges.numbers(of))


@pytest.mark.spec("kubevirt", 250)
def test_a_guest_is_told_its_link_its_gateway_and_its_routes() -> None:
    ranges = (Range("10.1.1.0/24"), Range("fd00:20::/64"))
    lan = HostBridge(
        "lan", is_gateway=True, ranges=ranges, routes=(("10.2.0.0/16", ""), ("::/0", ""), ("2001:db8::/48", "")), dns=("fd00::53",)
    )
    card = NicSpec("web", "lan", binding="host-bridge", bridge=lan)
    given = bridges.from_range(lan, ranges[1], "fd00:20::7")
    assert given == BridgeOptions("fd00:20::7/64", "fd00:20::1", (("::/0", ""), ("2001:db8::/48", "")))
    lease = bridges.lease6(card, given, MAC, 1400, ROUTER)
    assert (lease.address, lease.router, lease.on_link, lease.routes) == (
        "fd00:20::7",
        "fe80::ff:fe00:7",
        "fd00:20::/64",
        ("2001:db8::/48",),
    )
    assert lease.is_gateway and lease.dns == ("fd00::53",) and lease.mtu == 1400
    frame = dhcp6.advertisement(lease)
    prefix = bytes.fromhex("0304 40 80 ffffffff ffffffff 00000000 fd000020000000000000000000000000".replace(" ", ""))
    assert prefix in frame and bytes.fromhex("18033000ffffffff20010db8" + 24 * "0") in frame
    assert bytes.fromhex("0101020000000007") not in frame, "the bridge's MAC may be another"
    assert bytes.fromhex("0101020000000007") in dhcp6.advertisement(replace(lease, tells_mac=True))
    assert bridges.own_addresses(lan) == [("10.1.1.1", 24), ("fd00:20::1", 64)]
    assert bridges.fixed(replace(lan, static=(("fd00:20::8/64", "fe80::1"),)), IP4) is None


def test_somebody_elses_router_has_a_link_local_address() -> None:
    lan = HostBridge("lan", static=(("fd00:20::8/128", "fe80::1"),))
    given = bridges.fixed(lan, IP6)
    assert given == BridgeOptions("fd00:20::8/128", "fe80::1")
    lease = bridges.lease6(NicSpec("web", "lan", bridge=lan), given, MAC, 1500, ROUTER)
    assert lease.router == "fe80::1" and lease.on_link == "" and lease.is_gateway
    alone = bridges.lease6(NicSpec("web", "lan", bridge=lan), replace(given, gateway=""), MAC, 1500, ROUTER)
    assert alone.router == ROUTER.address and not alone.is_gateway


def test_a_router_is_the_same_each_time_and_another_for_each_bridge() -> None:
    one = BridgeRouter.of("/srv/paddock", "lan")
    assert one == BridgeRouter.of("/srv/paddock", "lan") and one.address.startswith("fe80::")
    assert one not in (BridgeRouter.of("/srv/paddock", "lab"), BridgeRouter.of("/srv/other", "lan"))
