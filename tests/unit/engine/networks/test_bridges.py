"""Interfaces in bridges: the numbers of a range, and the IPv6 configuration of a guest."""

import asyncio
import hashlib
import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.engine.networks import bridges, dhcp6
from paddock.engine.networks.addresses import Numbers
from paddock.engine.networks.bridgeaddresses import BridgeAddresses
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
        (
            Range("10.1.1.0/24", excluded=("10.1.1.64/27", "10.1.1.96/27", "10.1.1.200/32")),
            Numbers(2, 254, skipped=((64, 127), (200, 200))),
        ),
        (
            Range("10.1.0.0/16", "10.1.1.10", "10.1.1.20", "10.1.1.18", excluded=("10.1.1.16/28", "10.2.0.0/16")),
            Numbers(266, 276, skipped=((272, 276),)),
        ),
        (Range("fd00::/48", "fd00::1:0", excluded=("fd00:0:0:8000::/49",)), Numbers(65536, 65536)),
    ],
)
def test_the_numbers_of_a_range(of: Range, wanted: Numbers) -> None:
    assert bridges.numbers(of) == wanted


def test_a_range_without_numbers() -> None:
    with pytest.raises(NetworkUnusable, match="its range is empty"):
        bridges.numbers(Range("fd00::/64", "fd00::20", "fd00::10"))
    with pytest.raises(NetworkUnusable, match="its range is empty"):
        bridges.numbers(Range("10.1.1.0/24", "10.1.1.10", "10.1.1.20", excluded=("10.1.1.0/27",)))


@pytest.mark.spec("kubevirt", 273)
@pytest.mark.parametrize("excluded", ["10.1.1.0/29", "10.1.1.4/30", "10.1.1.8/29", "10.1.1.6/32"])
def test_nobody_gets_what_is_excluded(excluded: str) -> None:
    of = Range("10.1.1.0/28", excluded=(excluded,))
    kept = {str(each) for each in list(ipaddress.ip_network(of.network).hosts())[1:] if each not in ipaddress.ip_network(excluded)}
    book, given = bridges.book(of), set()
    for owner in range(len(kept)):
        book, entry = book.give((str(owner), "lan"), 0.0, among=bridges.numbers(of))
        given.add(book.address(entry))
    assert given == kept
    with pytest.raises(NetworkUnusable, match=f"all {len(kept)} addresses of {of.network} are in use"):
        book.give(("more", "lan"), 0.0, among=bridges.numbers(of))


async def given(folder: Path, ranges: Sequence[Range]) -> list[str]:
    """Return twenty addresses of a bridge that is defined with each of these ranges."""
    books = BridgeAddresses(folder)
    asked = ((str(number), HostBridge("br1", ranges=(ranges[number % len(ranges)],))) for number in range(20))
    return [four.own for four, _ in await asyncio.gather(*(books.give((owner, "lan"), bridge) for owner, bridge in asked))]


@pytest.mark.spec("kubevirt", 274)
def test_definitions_of_one_bridge_never_give_an_address_twice(tmp_path: Path) -> None:
    wide, narrow = Range("172.20.0.0/16", "172.20.0.10", "172.20.0.29"), Range("172.20.0.0/24", "172.20.0.10", "172.20.0.29")
    ranges = (wide, narrow, replace(narrow, first="172.20.0.20"))
    first = asyncio.run(given(tmp_path, ranges))
    assert sorted(first) == [f"172.20.0.{number}" for number in range(10, 30)]
    assert asyncio.run(given(tmp_path, ranges)) == first, "after a restart, too"
    other = asyncio.run(BridgeAddresses(tmp_path).give(("more", "lan"), HostBridge("br2", ranges=(narrow,))))
    assert other[0].own in first, "another bridge is another link"


def test_the_addresses_of_an_earlier_version_are_kept(tmp_path: Path) -> None:
    of, folder = Range("172.20.0.0/24"), tmp_path / "bridges"
    folder.mkdir()
    text = "br1\0Range(network='172.20.0.0/24', first='', last='', gateway='', routes=())"
    card = {"owner": "web", "name": "lan", "mac": "02:00:00:00:00:01", "index": 77}
    book = {"version": 1, "network": of.network, "network6": "", "site": "", "cards": [card], "resting": {}}
    (folder / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.json").write_text(json.dumps(book))
    four, _ = asyncio.run(BridgeAddresses(tmp_path).give(("web", "lan"), HostBridge("br1", ranges=(of,))))
    assert four.own == "172.20.0.77" and len(list(folder.iterdir())) == 1


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
