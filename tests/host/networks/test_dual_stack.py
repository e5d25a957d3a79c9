"""IPv6 beside IPv4: addresses, routers, names and guards, with real packets between namespaces.

The guest's kernel is the judge of router advertisements and of neighbour discovery. Its DHCPv6 client is `dhcp6client`, because neither the
kernel nor Debian's BusyBox has one.
"""

import asyncio
import ipaddress
import json

import pytest
from msgspec.structs import replace

from paddock.engine.networks.networks import NetworkSettings
from paddock.engine.networks.nics import ForwardTarget, NicPolicy, NicSpec, Ports, PublishedPort, PublishedService
from tests.coroutines import played
from tests.host.networks import dhcp6client, forgery
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import HOST6, OUTSIDE6, Child, Guest, run
from tests.host.networks.talking import tcp_ask, tcp_peer, tcp_serve

pytestmark = pytest.mark.needs("netns", "tun", "nft", "busybox", "ipv6")
WEB, DB = NicSpec("web", "default", hostname="web", group="default"), NicSpec("db", "default", hostname="db", group="default")


async def guest_of(world: World, card: NicSpec) -> Guest:
    """A guest with both families."""
    guest = await world.guest(card)
    await guest.dhcp6()
    return guest


@pytest.mark.spec("kubevirt", 93)
@played
async def test_a_masqueraded_guest_gets_kubevirts_address_and_a_router(world: World, /) -> None:
    web = await world.guest(WEB)
    told = await web.dhcp6()
    assert told.addresses == ["fd10:0:2::2"] and told.lifetime == 999 * 86400 and told.dns == ["fd10:0:2::1"]
    assert told.search.startswith(b"\x07default\x03svc\x07cluster\x05local\0")
    route = web.call("ip", "-6", "route", "show", "default")
    assert "via fe80::1 dev eth0" in route and web.call("sysctl", "-n", "net.ipv6.conf.eth0.mtu") == f"{world.mtu}\n"
    assert (web.plug.guest_address, web.plug.guest_address6) == ("10.0.2.2/24", "fd10:0:2::2/120")
    network = ipaddress.IPv6Network(world.networks._ledger.book.network6)
    assert network.prefixlen == 64 and network.subnet_of(ipaddress.IPv6Network("fd00::/8"))
    assert ipaddress.IPv6Address(web.plug.address6) in network
    assert web.plug.addresses == (web.plug.address, web.plug.address6)


@pytest.mark.spec("kubevirt", 93)
@played
async def test_two_guests_with_the_same_inner_address_reach_each_other_by_ipv6_and_by_name(world: World, /) -> None:
    web, db = await guest_of(world, WEB), await guest_of(world, DB)
    for guest in (web, db):
        assert "fd10:0:2::2/128" in guest.call("ip", "address")
    assert await web.can_ping(db.plug.address6) and await db.can_ping(web.plug.address6)
    assert await web.can_ping("fd10:0:2::1") and await web.can_ping("fe80::1%eth0")
    assert await web.can_ping(web.plug.address6), "itself by the address that others use"
    server = db.child(tcp_peer(80))
    assert await web.child(tcp_ask(db.plug.address6, 80)).done() == web.plug.address6
    assert await Child(world.inside, tcp_ask(db.plug.address6, 80)).done() == "fd10:0:2::1"
    server.end()
    for resolver in web.plug.dns:
        code, said = await web.calls("busybox", "nslookup", "-type=aaaa", "db.default.vm.cluster.local", resolver)
        assert code == 0 and db.plug.address6 in said, said
        code, said = await web.calls("busybox", "nslookup", web.plug.address6, resolver)
        assert code == 0 and "web.default.vm.cluster.local" in said, said
    nobody = f"{web.plug.address6.rpartition(':')[0]}:ffff"
    code, said = await web.calls("busybox", "nslookup", nobody, "fd10:0:2::1")
    assert code != 0 and "NXDOMAIN" in said


@played
async def test_guests_go_out_behind_the_hosts_address(world: World, /) -> None:
    outside = Child(world.lab.outside, tcp_peer(80))
    web = await guest_of(world, WEB)
    assert await web.child(tcp_ask(OUTSIDE6, 80)).done() == HOST6
    outside.end()
    # Nobody outside reaches machines past their Services, and this host is nobody's router.
    network = world.networks._ledger.book.network6
    run("ip", "-n", world.lab.outside, "route", "add", network, "via", HOST6)
    server = web.child(tcp_serve(80, b"web"))
    assert await Child(world.lab.outside, tcp_ask(web.plug.address6, 80)).done() in ("silent", "refused")
    assert await Child(world.inside, tcp_ask(web.plug.address6, 80)).done() == "web"
    server.end()


@pytest.mark.rooted("no device of the host is in the namespace")
@pytest.mark.parametrize("is_router", [False, True])
@played
async def test_the_host_routes_for_others_only_if_it_did_before(world: World, /, is_router: bool) -> None:
    behind = world.lab.namespace("behind")
    run("ip", "link", "add", "other", "type", "veth", "peer", "name", "eth0", "netns", behind)
    for place, device, address in ((world.lab.host, "other", "2001:db8:77::1"), (behind, "eth0", "2001:db8:77::2")):
        run("ip", "-n", place, "address", "add", f"{address}/64", "dev", device, "nodad")
        run("ip", "-n", place, "link", "set", device, "up")
    run("ip", "-n", behind, "route", "add", "default", "via", "2001:db8:77::1")
    run("ip", "-n", world.lab.outside, "route", "add", "2001:db8:77::/64", "via", HOST6)
    run("sysctl", "-qw", f"net.ipv6.conf.all.forwarding={int(is_router)}")

    def is_led() -> bool:
        pinged = run("ip", "netns", "exec", world.lab.outside, "busybox", "ping", "-c", "4", "-W", "1", "2001:db8:77::2", check=False)
        return "bytes from" in pinged

    assert is_led() is is_router
    web = await guest_of(world, WEB)
    assert await web.can_ping("2001:db8:77::2") and await web.can_ping(OUTSIDE6)
    assert is_led() is is_router, "as before"


def dropped(*words: str) -> int:
    """Return how many packets the rules dropped that have these words."""
    lines = [line for line in run("nft", "list", "ruleset").splitlines() if all(word in line for word in words)]
    assert lines, words
    return sum(int(line.partition("counter packets ")[2].split()[0]) for line in lines)


@pytest.mark.spec("kubevirt", 97)
@pytest.mark.spec("kubevirt", 201)
@played
async def test_a_guest_neither_pretends_to_be_somebody_else_nor_a_router(world: World, /) -> None:
    web, db = await guest_of(world, WEB), await guest_of(world, DB)
    api = Child(world.lab.host, tcp_serve(7443, b"api"))
    assert await Child(world.lab.outside, tcp_ask(HOST6, 7443)).done() == "api", "it does listen"
    host = next(each for each in run("ip", "-6", "-o", "address").split() if each.startswith("fd") and each.endswith("::1/64"))
    for address in ("fd10:0:2::1", HOST6, host.removesuffix("/64"), "fe80::1%eth0"):
        assert await web.child(tcp_ask(address, 7443, patience=0)).done() in ("silent", "refused"), address
    api.end()
    # Another address, also that of its neighbour and its own outside.
    for address in ("fd10:0:2::77", "2001:db8:99::1", db.plug.address6, web.plug.address6):
        before = dropped("counter packets", "drop")
        web.call("ip", "-6", "address", "add", f"{address}/128", "dev", "eth0", "nodad")
        assert not await web.can_ping(OUTSIDE6, "-I", address) and not await web.can_ping("fd10:0:2::1", "-I", address)
        web.call("ip", "-6", "address", "del", f"{address}/128", "dev", "eth0")
        assert dropped("counter packets", "drop") >= before + 2, address
    # Frames that no honest guest sends.
    forged = {
        "a router advertisement": ("nd-router-advert", forgery.router_advertisement()),
        "a redirect": ("nd-router-advert", forgery.redirect(db.plug.address6)),
        "an advertisement for the neighbour": ("@neighbours", forgery.neighbour_advertisement(db.plug.address6)),
        "an advertisement for the router": ("0xfe800000000000000000000000000001", forgery.neighbour_advertisement("fe80::1")),
        "an answer of a DHCPv6 server": ("udp sport 547", forgery.dhcpv6_answer()),
    }
    routes, neighbours = run("ip", "-6", "route"), run("ip", "-6", "neighbour", "show", db.plug.address6)
    for what, (rule, packet) in forged.items():
        before = dropped(rule)
        await web.child(forgery.send("eth0", web.plug.mac, packet)).done()
        assert dropped(rule) == before + 1, what
    assert run("ip", "-6", "route") == routes and run("ip", "-6", "neighbour", "show", db.plug.address6) == neighbours
    # Another MAC, also that of its neighbour.
    web.call("ip", "link", "set", "eth0", "address", db.plug.mac)
    assert not await web.can_ping("fd10:0:2::1")
    web.call("ip", "link", "set", "eth0", "address", web.plug.mac)
    assert await db.can_ping(OUTSIDE6)


@pytest.mark.spec("kubevirt", 119)
@pytest.mark.spec("kubevirt", 201)
@played
async def test_guests_do_not_reach_the_metadata_service_of_a_cloud(world: World, /) -> None:
    addresses = ("fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "64:ff9b::a9fe:a9fe")
    for address in addresses:
        run("ip", "-n", world.lab.outside, "address", "add", f"{address}/128", "dev", "lo")
    run("ip", "-n", world.lab.outside, "address", "add", "fe80::a9fe:1/64", "dev", "eth0", "nodad")
    secret = Child(world.lab.outside, tcp_serve(80, b"secret"))
    for address in (*addresses, "fe80::a9fe:1%eth0"):
        assert await Child(world.lab.host, tcp_ask(address, 80)).done() == "secret", "the host itself reaches it"
    web, own = await guest_of(world, WEB), await guest_of(world, NicSpec("own", "default", binding="bridge", hostname="own"))
    for guest in (web, own):
        assert await guest.child(tcp_ask(OUTSIDE6, 80)).done() == "secret", "the rest of the world is there"
        for address in (*addresses, "fe80::a9fe:1%eth0"):
            assert await guest.child(tcp_ask(address, 80, patience=0)).done() in ("refused", "silent"), address
    secret.end()


@played
async def test_a_bridged_card_of_the_pod_network_has_the_pod_address_itself(world: World, /) -> None:
    own = await world.guest(NicSpec("own", "default", binding="bridge", hostname="own", group="default"))
    told = await own.dhcp6()
    db = await guest_of(world, DB)
    assert told.addresses == [own.plug.address6] and own.plug.guest_address6 == f"{own.plug.address6}/128"
    assert await own.can_ping(db.plug.address6) and await db.can_ping(own.plug.address6) and await own.can_ping(OUTSIDE6)
    assert await own.can_ping(told.dns[0])


@played
async def test_a_guest_with_a_static_configuration_of_kubevirts(world: World, /) -> None:
    """As KubeVirt's examples have it in their network data: no router and no DHCPv6 is asked."""
    web, db = await world.guest(WEB), await guest_of(world, DB)
    web.call("ip", "-6", "address", "add", "fd10:0:2::2/120", "dev", "eth0", "nodad")
    web.call("ip", "-6", "route", "flush", "default")
    web.call("ip", "-6", "route", "replace", "default", "via", "fd10:0:2::1", "dev", "eth0")
    assert await web.can_ping("fd10:0:2::1") and await web.can_ping(db.plug.address6) and await web.can_ping(OUTSIDE6)


@played
async def test_another_network_inside(world: World, /) -> None:
    other = await world.guest(replace(DB, network6="fd20:1::/112"))
    assert (await other.dhcp6()).addresses == ["fd20:1::2"]
    web = await guest_of(world, WEB)
    assert await other.can_ping("fd20:1::1") and await other.can_ping(web.plug.address6) and await web.can_ping(other.plug.address6)


@played
async def test_ports_that_are_not_listed_are_closed_to_everybody(world: World, /) -> None:
    web, db = await guest_of(world, replace(WEB, ports=(Ports("tcp", 80),))), await guest_of(world, DB)
    servers = [web.child(tcp_serve(port, b"open")) for port in (80, 81)]
    for asker in (db.namespace, world.inside):
        asked = [await Child(asker, tcp_ask(web.plug.address6, port, patience=0.5)).done() for port in (80, 81)]
        assert asked == ["open", "refused"]
    for server in servers:
        server.end()


@played
async def test_other_messages_of_dhcpv6(world: World, /) -> None:
    web = await world.guest(WEB)
    await web.dhcp6()

    async def told(*kinds: int, wanted: str = "") -> dhcp6client.Told:
        said: dhcp6client.Told = await web.child(dhcp6client.ask("eth0", web.plug.mac, kinds, wanted)).done()
        return said

    assert (await told(1, 5)).addresses == ["fd10:0:2::2"], "renew"
    assert (await told(6)).addresses == ["fd10:0:2::2"], "rebind"
    assert (await told(4, wanted="fd10:0:2::2")).status == 0 and (await told(4, wanted="fd10:0:2::9")).status == 4, "confirm"
    assert (await told(1, 8)).status == 0, "release"
    information = await told(11)
    assert information.dns == ["fd10:0:2::1"] and not information.addresses


@pytest.mark.parametrize("network", ["fd00:10:112::/64", "10.112.64.0/18"])
@played
async def test_one_family_alone(world: World, /, network: str) -> None:
    world.settings = NetworkSettings(mode="routed", pod_network=network)
    world.networks = world.fresh()
    await world.networks.open()
    is_ipv6 = ":" in network
    web, db = await world.guest(WEB, dhcp=not is_ipv6), await world.guest(DB, dhcp=not is_ipv6)
    if is_ipv6:
        await web.dhcp6()
        await db.dhcp6()
    assert [bool(web.plug.address), bool(web.plug.address6)] == [not is_ipv6, is_ipv6]
    assert await web.can_ping(db.plug.addresses[0])
    server = db.child(tcp_serve(80, b"db"))
    assert await web.child(tcp_ask(db.plug.addresses[0], 80)).done() == "db"
    reader, writer = await world.networks.dial("db", "default", 80)
    assert await reader.read() == b"db"
    writer.close()
    server.end()
    code, said = await web.calls(
        "busybox", "nslookup", f"-type={'aaaa' if is_ipv6 else 'a'}", "db.default.vm.cluster.local", web.plug.dns[0]
    )
    assert code == 0 and db.plug.addresses[0] in said
    if not is_ipv6:
        assert "default" not in web.call("ip", "-6", "route")
    # Out, a Service, a policy.
    assert await web.can_ping(OUTSIDE6 if is_ipv6 else "198.51.100.1")
    again, inside = db.child(tcp_serve(80, b"db")), "fd00:10:96::34" if is_ipv6 else "10.97.3.4"
    port = PublishedPort("tcp", 80, (ForwardTarget("db", "default", 80),), 30080)
    assert await world.networks.publish([PublishedService("default/db", (port,), (inside,), families=(6 if is_ipv6 else 4,))]) == {}
    assert await web.child(tcp_ask(inside, 80)).done() == "db"
    assert await Child(world.lab.outside, tcp_ask(HOST6 if is_ipv6 else "198.51.100.2", 30080)).done() == "db"
    await world.networks.police([NicPolicy("deny", ("db",), ingress=())])
    assert await web.child(tcp_ask(inside, 80, patience=0.3)).done() == "silent"
    again.end()


@pytest.mark.spec("kubevirt", 203)
@played
async def test_a_host_without_ipv6(world: World, /) -> None:
    run("ip", "netns", "exec", world.lab.host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
    world.networks = world.fresh()
    await world.networks.open()
    web = await world.guest(WEB)
    assert web.plug.address6 == web.plug.guest_address6 == "" and web.plug.limits == () and web.plug.dns == ("10.0.2.1",)
    assert "ip6 saddr" not in run("nft", "list", "ruleset") and await web.can_ping("198.51.100.1")


@pytest.mark.spec("kubevirt", 203)
@pytest.mark.rooted("no version without IPv6 had namespaces")
@played
async def test_a_guest_of_an_earlier_version_stays_as_it_is_until_it_starts_again(world: World, /) -> None:
    dual, world.settings = world.settings, NetworkSettings(mode="routed", pod_network="10.112.64.0/18")
    world.networks = world.fresh()
    await world.networks.open()
    web = await world.guest(WEB)
    await world.networks.close()
    # Earlier versions write no word of IPv6.
    book = world.lab.folder / "networks" / "addresses.json"
    book.write_text(json.dumps({key: value for key, value in json.loads(book.read_text()).items() if key != "network6"}))
    table = world.lab.folder / "networks" / "table.json"
    said = json.loads(table.read_text())
    for part in (said, *said["cards"]):
        for key in [key for key in part if key.endswith("6") or key == "advertised"]:
            del part[key]
    table.write_text(json.dumps(said))
    world.settings = dual
    world.networks = world.fresh()
    await world.networks.open()
    assert await world.networks.plug(WEB) == web.plug, "nothing of it changed"
    assert await web.can_ping("198.51.100.1") and "default" not in web.call("ip", "-6", "route")
    db = await guest_of(world, DB)
    assert db.plug.address6 and await db.can_ping(web.plug.address)
    web.unplug()
    await world.networks.unplug(*WEB.key)
    again = Guest(world.lab, "again", await world.networks.plug(WEB))
    await again.dhcp6()
    assert again.plug.address == web.plug.address and again.plug.address6
    assert await db.can_ping(again.plug.address6)


@played
async def test_a_restart_keeps_both_addresses(world: World, /) -> None:
    web, db = await guest_of(world, WEB), await guest_of(world, DB)
    await world.networks.close()
    assert await web.can_ping(db.plug.address6) and await web.can_ping("fd10:0:2::1"), "without Paddock"
    world.networks = world.fresh()
    await world.networks.open()
    assert await world.networks.plug(WEB) == web.plug and await world.networks.plug(DB) == db.plug
    assert await web.can_ping(db.plug.address6)
    assert (await web.dhcp6()).addresses == ["fd10:0:2::2"]


@pytest.mark.rooted("no device of the host is in the namespace")
@played
async def test_what_is_removed_leaves_nothing_of_ipv6(world: World, /) -> None:
    def seen() -> list[str]:
        settings = [run("sysctl", "-n", f"net.ipv6.conf.{each}") for each in ("all.forwarding", "eth0.accept_ra", "eth0.forwarding")]
        return [run("ip", "-6", "route"), run("ip", "-6", "rule"), run("ip", "-6", "address"), run("nft", "list", "ruleset"), *settings]

    # The kernel says of a new address, for a while, that it may be somebody else's.
    while "tentative" in run("ip", "-6", "address"):
        await asyncio.sleep(0.1)
    before = seen()
    await world.networks.plug(WEB)
    assert run("sysctl", "-n", "net.ipv6.conf.eth0.accept_ra") == "2\n", "the host still learns its routes"
    assert "unreachable" in run("ip", "-6", "route")
    await world.networks.unplug(*WEB.key)
    assert seen() == before
