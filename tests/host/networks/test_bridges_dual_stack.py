"""IPv6 in bridges of the host: definitions as users write them, with real packets between namespaces.

The guest's kernel is the judge of router advertisements, as in `test_dual_stack`.
"""

import asyncio
import json
import re
from typing import Any

import pytest

from paddock.engine.networks.nics import HostBridge, NicSpec
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from paddock.kubevirt.plan.network.attachments import bridge_of
from tests.coroutines import played
from tests.host.networks import forgery
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import HOST6, OUTSIDE6, Child, Guest, run
from tests.host.networks.talking import tcp_ask, tcp_peer, tcp_serve
from tests.host.networks.test_dual_stack import dropped

pytestmark = pytest.mark.needs("netns", "tun", "nft", "busybox", "ipv6")
BOTH = [[{"subnet": "172.20.0.0/24", "gateway": "172.20.0.1"}], [{"subnet": "fd00:20::/64", "rangeStart": "fd00:20::10"}]]


def defined(ipam: dict[str, Any], *, name: str = "one/lan", **more: Any) -> HostBridge:
    """The bridge of a definition."""
    config = json.dumps({"cniVersion": "0.3.1", "type": "bridge", "bridge": "br1", "ipam": ipam, **more})
    found = bridge_of(name, NetworkAttachmentDefinition(spec=NetworkAttachmentDefinitionSpec(config=config)))
    assert isinstance(found, HostBridge), found
    return found


def local(*ranges: list[dict[str, str]], **more: Any) -> dict[str, Any]:
    """Addresses of type host-local."""
    return {"type": "host-local", "ranges": [*ranges], **more}


LAN = defined(local(*BOTH), isGateway=True, ipMasq=True)


def card(owner: str, bridge: HostBridge) -> NicSpec:
    """A card in a bridge."""
    return NicSpec(owner, "lan", binding="host-bridge", bridge=bridge, hostname=owner)


async def guest_of(world: World, owner: str, bridge: HostBridge, *, gateway: bool = True) -> Guest:
    """A guest with the addresses that it is given."""
    guest = await world.guest(card(owner, bridge), dhcp=False)
    if guest.plug.address:
        await guest.dhcp()
    guest.call("sysctl", "-qw", "net.ipv6.conf.eth0.accept_ra_rt_info_max_plen=128")
    told = await guest.dhcp6("default" if gateway else "fd00:20::/64")
    assert told.addresses == [guest.plug.address6]
    return guest


def routes_of(guest: Guest) -> str:
    """The routes of a guest, without the seconds that they have left."""
    return re.sub(r"expires \d+sec", "", guest.call("ip", "-6", "route"))


@pytest.mark.spec("kubevirt", 250)
@played
async def test_machines_of_a_bridge_have_both_addresses_and_reach_each_other_and_outside(world: World, /) -> None:
    one, two = await guest_of(world, "one", LAN), await guest_of(world, "two", LAN)
    for guest in (one, two):
        assert guest.plug.addresses == (guest.plug.address, guest.plug.address6)
        assert guest.plug.address6.startswith("fd00:20::") and guest.plug.guest_address6 == f"{guest.plug.address6}/64"
    assert one.plug.address6 != two.plug.address6
    routes = one.call("ip", "-6", "route")
    assert "fd00:20::/64 dev eth0 proto kernel" in routes and routes.count("default via fe80::") == 1, "on the link, and one router"
    for address in (two.plug.address6, "fd00:20::1", OUTSIDE6, two.plug.address, "198.51.100.1"):
        assert await one.can_ping(address), address
    outside = Child(world.lab.outside, tcp_peer(80))
    assert await one.child(tcp_ask(OUTSIDE6, 80)).done() == HOST6
    outside.end()
    assert (await world.networks.plug(card("one", LAN))) == one.plug


@pytest.mark.spec("kubevirt", 250)
@pytest.mark.parametrize(
    "ipam",
    [
        {"type": "static", "addresses": [{"address": "fd00:20::7/64", "gateway": "fd00:20::1"}]},
        {"type": "whereabouts", "range": "fd00:20::/64", "range_start": "fd00:20::7", "range_end": "fd00:20::7"},
        {"type": "host-local", "subnet": "fd00:20::/120", "rangeStart": "fd00:20::7", "rangeEnd": "fd00:20::7"},
    ],
)
@played
async def test_ipv6_alone_with_routes(world: World, /, ipam: dict[str, Any]) -> None:
    routes = [{"dst": "::/0"}, {"dst": "2001:db8:99::/48", "gw": ipam.get("addresses", [{}])[0].get("gateway", "")}]
    bridge = defined({**ipam, "routes": routes}, isGateway=True, mtu=1400)
    one = await guest_of(world, "one", bridge)
    assert one.plug.addresses == ("fd00:20::7",) and one.plug.gateway == "fd00:20::1"
    assert one.call("sysctl", "-n", "net.ipv6.conf.eth0.mtu") == "1400\n"
    assert "2001:db8:99::/48 via fe80::" in one.call("ip", "-6", "route")
    assert await one.can_ping("fd00:20::1")


@pytest.mark.spec("kubevirt", 250)
@played
async def test_without_a_gateway_the_host_is_nobodys_neighbour(world: World, /) -> None:
    bridge = defined(local([{"subnet": "fd00:20::/64"}]))
    one, two = [await guest_of(world, owner, bridge, gateway=False) for owner in ("one", "two")]
    assert await one.can_ping(two.plug.address6) and "default" not in one.call("ip", "-6", "route")
    assert "inet6" not in run("ip", "-6", "address", "show", "dev", "br1")


@pytest.mark.spec("kubevirt", 250)
@played
async def test_a_router_on_the_link_is_the_gateway(world: World, /) -> None:
    router = await world.guest(card("router", HostBridge("br1")), dhcp=False)
    for address in ("fe80::77/64", "2001:db8:5::1/128"):
        router.call("ip", "-6", "address", "add", address, "dev", "eth0", "nodad")
    one = await guest_of(world, "one", defined(local([{"subnet": "fd00:20::/64", "gateway": "fe80::77"}])))
    router.call("ip", "-6", "route", "add", "fd00:20::/64", "dev", "eth0")
    assert "default via fe80::77" in one.call("ip", "-6", "route") and await one.can_ping("2001:db8:5::1")


@pytest.mark.spec("kubevirt", 251)
@played
async def test_a_card_in_a_bridge_sends_with_its_own_ipv6_address_alone(world: World, /) -> None:
    one, two = await guest_of(world, "one", LAN), await guest_of(world, "two", LAN)
    router = one.call("ip", "-6", "route", "show", "default").split()[2]
    near = two.call("ip", "-6", "-o", "address", "show", "scope", "link").split()[3].partition("/")[0]
    assert await one.can_ping(f"{near}%eth0"), "neighbours by their link-local addresses"
    for address in ("fd00:20::99", "2001:db8:99::1", two.plug.address6):
        before = dropped("counter packets", "drop")
        one.call("ip", "-6", "address", "add", f"{address}/128", "dev", "eth0", "nodad")
        assert not await one.can_ping("fd00:20::1", "-I", address), address
        one.call("ip", "-6", "address", "del", f"{address}/128", "dev", "eth0")
        assert dropped("counter packets", "drop") > before, address
    forged = {
        "a router advertisement": ("nd-router-advert", forgery.router_advertisement()),
        "a redirect": ("nd-router-advert", forgery.redirect(two.plug.address6)),
        "an advertisement for the neighbour": ("@neighbours", forgery.neighbour_advertisement(two.plug.address6)),
        "an advertisement for the gateway": ("@neighbours", forgery.neighbour_advertisement("fd00:20::1")),
        "an advertisement for the router": ("nd-neighbor-advert @th,64,128 0xfe80", forgery.neighbour_advertisement(router)),
        "a packet of the router's": (f"ip6 saddr {router}", forgery.echo_request(router)),
        "an answer of a DHCPv6 server": ("udp sport 547", forgery.dhcpv6_answer()),
    }
    seen = routes_of(two)
    for what, (rule, packet) in forged.items():
        before = dropped(rule)
        await one.child(forgery.send("eth0", one.plug.mac, packet)).done()
        for _ in range(100):
            if dropped(rule) > before:
                break
            await asyncio.sleep(0.05)
        assert dropped(rule) == before + 1, what
    assert routes_of(two) == seen and await two.can_ping(OUTSIDE6)


@pytest.mark.spec("kubevirt", 251)
@played
async def test_guests_of_a_bridge_do_not_reach_the_metadata_service_of_a_cloud(world: World, /) -> None:
    addresses = ("fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "64:ff9b::a9fe:a9fe")
    for address in addresses:
        run("ip", "-n", world.lab.outside, "address", "add", f"{address}/128", "dev", "lo")
    secret = Child(world.lab.outside, tcp_serve(80, b"secret"))
    one = await guest_of(world, "one", LAN)
    for address in addresses:
        said = await Child(world.lab.host, tcp_ask(address, 80)).done()
        assert said == "secret", f"the host itself reaches {address}: {said}"
    assert await one.child(tcp_ask(OUTSIDE6, 80)).done() == "secret", "the rest of the world is there"
    for address in addresses:
        assert await one.child(tcp_ask(address, 80, patience=0)).done() in ("refused", "silent"), address
    secret.end()
    # Nobody outside reaches the guests, and this host is nobody's router.
    run("ip", "-n", world.lab.outside, "route", "add", "fd00:20::/64", "via", HOST6)
    server = one.child(tcp_serve(80, b"one"))
    assert await Child(world.lab.outside, tcp_ask(one.plug.address6, 80)).done() in ("silent", "refused")
    assert await Child(world.inside, tcp_ask(one.plug.address6, 80)).done() == "one"
    server.end()


@pytest.mark.spec("kubevirt", 250)
@pytest.mark.spec("kubevirt", 204)
@played
async def test_a_bridge_answers_while_paddock_is_away_and_keeps_its_addresses(world: World, /) -> None:
    one, two = await guest_of(world, "one", LAN), await guest_of(world, "two", LAN)
    await world.networks.close()
    one.call("ip", "-6", "route", "flush", "default")
    one.call("ip", "link", "set", "eth0", "down")
    one.call("ip", "link", "set", "eth0", "up")
    assert (await one.dhcp6()).addresses == [one.plug.address6] and await one.can_ping(two.plug.address6)
    assert await one.can_ping(OUTSIDE6), "its router told it again"
    world.networks = world.fresh()
    await world.networks.open()
    assert await world.networks.plug(card("one", LAN)) == one.plug and await world.networks.plug(card("two", LAN)) == two.plug
    assert await one.can_ping(two.plug.address6) and await two.can_ping(OUTSIDE6)
    third = await guest_of(world, "third", LAN)
    assert third.plug.address6 not in (one.plug.address6, two.plug.address6) and await third.can_ping(one.plug.address6)


@pytest.mark.spec("kubevirt", 252)
@pytest.mark.parametrize("kind", ["bridge", "ptp"])
@played
async def test_definitions_of_one_name_in_two_namespaces_do_not_mix(world: World, /, kind: str) -> None:
    made = {}
    for number, space in enumerate(("red", "blue"), 1):
        ranges = [{"subnet": f"172.2{number}.0.0/24"}], [{"subnet": f"fd00:2{number}::/64"}]
        bridge = f"br-{space}" if kind == "bridge" else "ignored"
        made[space] = defined(local(*ranges), name=f"{space}/lan", type=kind, bridge=bridge, isGateway=True, ipMasq=True)
    red, blue = [await guest_of(world, f"{space}-vm", made[space]) for space in ("red", "blue")]
    assert red.plug.address6.startswith("fd00:21::") and blue.plug.address6.startswith("fd00:22::")
    routers = [guest.call("ip", "-6", "route", "show", "default").split()[2] for guest in (red, blue)]
    assert routers[0] != routers[1]
    for guest in (red, blue):
        assert await guest.can_ping(OUTSIDE6) and await guest.can_ping("198.51.100.1")
    red.call("ip", "-6", "address", "add", "fd00:22::99/64", "dev", "eth0", "nodad")
    assert not await red.can_ping(blue.plug.address6, "-I", "fd00:22::99"), "they are no neighbours"


@pytest.mark.spec("kubevirt", 252)
@played
async def test_definitions_of_one_bridge_keep_their_own_networks(world: World, /) -> None:
    made = [
        defined(local([{"subnet": f"172.2{number}.0.0/24"}], [{"subnet": f"fd00:2{number}::/64"}]), isGateway=True, ipMasq=True)
        for number in (1, 2)
    ]
    one, two = [await guest_of(world, owner, bridge) for owner, bridge in zip(("one", "two"), made, strict=True)]
    for guest in (one, two):
        assert await guest.can_ping(OUTSIDE6) and await guest.can_ping("198.51.100.1"), "both leave behind the host's address"
    await world.networks.close()
    world.networks = world.fresh()
    await world.networks.open()
    await world.networks.plug(card("two", made[1]))
    assert await one.can_ping(OUTSIDE6), "a card that is not plugged yet leaves, too"


@pytest.mark.spec("kubevirt", 250)
@played
async def test_a_host_without_ipv6_is_no_gateway_and_its_guests_still_meet(world: World, /) -> None:
    run("ip", "netns", "exec", world.lab.host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
    world.networks = world.fresh()
    await world.networks.open()
    one, two = [await guest_of(world, owner, LAN, gateway=False) for owner in ("one", "two")]
    assert one.plug.limits == () and await one.can_ping(two.plug.address6) and await one.can_ping("198.51.100.1")
    assert "default" not in one.call("ip", "-6", "route") and "fd00:20::/64 masquerade" not in run("nft", "list", "ruleset")


@pytest.mark.spec("kubevirt", 203)
@pytest.mark.rooted("no version without IPv6 had namespaces")
@played
async def test_a_guest_of_an_earlier_version_stays_as_it_is_until_it_starts_again(world: World, /) -> None:
    one = await world.guest(card("one", LAN))
    await world.networks.close()
    # Earlier versions gave no IPv6 address here.
    table = world.lab.folder / "networks" / "table.json"
    said = json.loads(table.read_text())
    for each in said["bridged"]:
        del each["address6"], each["router6"]
    table.write_text(json.dumps(said))
    world.networks = world.fresh()
    await world.networks.open()
    again = await world.networks.plug(card("one", LAN))
    assert again.address == one.plug.address and again.addresses == (one.plug.address,)
    one.call("ip", "-6", "address", "add", "fd00:20::99/64", "dev", "eth0", "nodad")
    two = await guest_of(world, "two", LAN)
    assert await one.can_ping(two.plug.address6), "with the address that it has made itself"
    one.unplug()
    await world.networks.unplug("one", "lan")
    await asyncio.sleep(0)
    assert (await world.networks.plug(card("one", LAN))).address6


@pytest.mark.spec("kubevirt", 250)
@played
async def test_the_bounds_of_a_range_outlast_a_start(world: World, /) -> None:
    # The gateway lies between the bounds.
    spans = [
        {"subnet": "172.20.0.0/24", "rangeStart": "172.20.0.10", "rangeEnd": "172.20.0.12", "gateway": "172.20.0.11"},
        {"subnet": "fd00:20::/64", "rangeStart": "fd00:20::10", "rangeEnd": "fd00:20::12", "gateway": "fd00:20::11"},
    ]
    bridge = defined(local(*([each] for each in spans)), isGateway=True)
    one = await world.networks.plug(card("one", bridge))
    await world.networks.close()
    world.networks = world.fresh()
    await world.networks.open()
    two = await world.networks.plug(card("two", bridge))
    assert {one.address, two.address} == {"172.20.0.10", "172.20.0.12"}
    assert {one.address6, two.address6} == {"fd00:20::10", "fd00:20::12"}
