"""The pod network with real packets: what guests are told, whom they reach, and whom they do not."""

import asyncio
import json

import pytest

from paddock.engine.machine.config import StreamNetwork
from paddock.engine.networks.errors import GuestUnreachable
from paddock.engine.networks.netlink import MAIN, Netlink
from paddock.engine.networks.nics import AttachedNic, DhcpOptions, NicSpec, Ports
from paddock.engine.networks.resolver import GuestResolver, ResolverConfig
from tests.coroutines import played
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import Child, run
from tests.host.networks.talking import talk, tcp_ask, tcp_echo, tcp_peer, tcp_serve, udp_ask, udp_serve

pytestmark = pytest.mark.needs("netns", "tun", "nft", "busybox")

WEB = NicSpec("web", "default", hostname="web", group="default")
DB = NicSpec("db", "default", hostname="db", group="default")


@played
async def test_a_guest_is_told_everything_by_dhcp(world: World, /) -> None:
    options = DhcpOptions("tftp.example", "boot.img", ("192.0.2.7", "192.0.2.8"), ((224, "hello"),))
    guest = await world.guest(NicSpec("web", "default", hostname="web", group="shop", dhcp=options), dhcp=False)
    told = await guest.dhcp()
    assert (told["ip"], told["mask"], told["router"], told["dns"], told["serverid"]) == (
        "10.0.2.2",
        "24",
        "10.0.2.1",
        "10.0.2.1",
        "10.0.2.1",
    )
    assert (told["mtu"], told["hostname"], told["domain"], told["lease"]) == (
        str(world.mtu),
        "web",
        "shop.vm.cluster.local",
        str(999 * 86400),
    )
    assert told["search"].split()[:2] == ["shop.svc.cluster.local", "svc.cluster.local"]
    assert (told["ntpsrv"], told["tftp"], told["bootfile"]) == ("192.0.2.7 192.0.2.8", "tftp.example", "boot.img")
    assert bytes.fromhex(told["opt224"]) == b"hello"


@pytest.mark.spec("kubevirt", 188)
@pytest.mark.parametrize(
    ("resolver", "servers", "search"),
    [
        (
            GuestResolver(given=ResolverConfig(("9.9.9.9",), ("corp.example",))),
            "10.0.2.1 9.9.9.9",
            ["shop.svc.cluster.local", "corp.example"],
        ),
        (GuestResolver("None", ResolverConfig(("9.9.9.9",), ("corp.example",))), "9.9.9.9", ["corp.example", "corp.example"]),
    ],
)
@played
async def test_a_guest_is_told_the_resolver_of_its_machine(
    world: World, /, resolver: GuestResolver, servers: str, search: list[str]
) -> None:
    guest = await world.guest(NicSpec("web", "default", hostname="web", group="shop", resolver=resolver), dhcp=False)
    told = await guest.dhcp()
    searched = told["search"].split()
    assert (told["dns"], [searched[0], searched[-1]]) == (servers, search)


@played
async def test_cards_that_come_while_the_last_one_goes(world: World, /) -> None:
    """Whatever the moment: a new card waits for its addresses to be written, and the host's side would go meanwhile."""

    async def come(card: NicSpec, milliseconds: int) -> AttachedNic:
        await asyncio.sleep(milliseconds / 1000)
        return await world.networks.plug(card)

    last = WEB
    await world.networks.plug(last)
    for milliseconds in range(60):
        card = NicSpec(f"db{milliseconds}", "default", group="default")
        _, plug = await asyncio.gather(world.networks.unplug(*last.key), come(card, milliseconds))
        assert f"{plug.address}/32" in Netlink().networks(MAIN)
        last = card


@played
async def test_another_network_inside(world: World, /) -> None:
    other = await world.guest(NicSpec("other", "default", network="192.168.77.0/28"))
    web = await world.guest(WEB)
    assert other.plug.guest_address == "192.168.77.2/28" and other.plug.gateway == "192.168.77.1"
    assert "192.168.77.2/28" in other.call("ip", "address")
    assert await other.can_ping("192.168.77.1") and await other.can_ping(web.plug.address) and await web.can_ping(other.plug.address)


@played
async def test_two_guests_with_the_same_inner_address_reach_each_other_by_address_and_by_name(world: World, /) -> None:
    web, db = await world.guest(WEB), await world.guest(DB)
    assert "10.0.2.2/24" in web.call("ip", "address") and "10.0.2.2/24" in db.call("ip", "address")
    assert await web.can_ping(db.plug.address) and await db.can_ping(web.plug.address) and await web.can_ping(web.plug.address)
    server = db.child(tcp_peer(80))
    assert await web.child(tcp_ask(db.plug.address, 80)).done() == web.plug.address
    server.end()
    code, said = await web.calls("busybox", "nslookup", "db.default.vm.cluster.local", web.plug.dns[0])
    assert code == 0 and f"Address: {db.plug.address}" in said
    code, said = await web.calls("busybox", "nslookup", web.plug.address, web.plug.dns[0])
    assert code == 0 and "web.default.vm.cluster.local" in said
    code, said = await web.calls("busybox", "nslookup", "nobody.default.vm.cluster.local", web.plug.dns[0])
    assert code != 0 and "NXDOMAIN" in said


@played
async def test_guests_go_out_behind_the_hosts_address(world: World, /) -> None:
    outside = Child(world.lab.outside, tcp_peer(80))
    web = await world.guest(WEB)
    assert await web.child(tcp_ask("198.51.100.1", 80)).done() == "198.51.100.2"
    outside.end()
    # Nobody outside reaches machines past their Services, and this host is nobody's router.
    run("ip", "-n", world.lab.outside, "route", "add", "10.112.64.0/18", "via", "198.51.100.2")
    server = web.child(tcp_serve(80, b"web"))
    assert await Child(world.lab.outside, tcp_ask(web.plug.address, 80)).done() in ("silent", "refused")
    assert await Child(world.inside, tcp_ask(web.plug.address, 80)).done() == "web"
    server.end()


@played
async def test_a_host_without_a_default_route_serves_guests_too(world: World, /) -> None:
    run("ip", "-n", world.lab.host, "route", "del", "default")
    web, db = await world.guest(WEB), await world.guest(DB)
    assert await web.can_ping("10.0.2.1") and await web.can_ping(db.plug.address)


@played
async def test_ports_that_are_not_listed_are_closed_to_everybody(world: World, /) -> None:
    listed = (Ports("tcp", 80), Ports("tcp", 8000, 8002), Ports("udp", 53))
    web = await world.guest(NicSpec("web", "default", ports=listed))
    db = await world.guest(DB)
    servers = [web.child(tcp_serve(port, b"open")) for port in (80, 81, 8001)]
    servers += [web.child(udp_serve(port, b"open")) for port in (53, 54)]
    address = web.plug.address
    for asker in (db.namespace, world.inside):
        assert [await Child(asker, tcp_ask(address, port, patience=0.5)).done() for port in (80, 8001, 81)] == [
            "open",
            "open",
            "refused",
        ]
        assert [await Child(asker, udp_ask(address, port, tries=2)).done() for port in (53, 54)] == ["open?", "silent"]
    with pytest.raises(GuestUnreachable):
        await world.networks.dial("web", "default", 81)
    servers += [db.child(tcp_serve(81, b"all")), db.child(udp_serve(54, b"all"))]
    assert await web.child(tcp_ask(db.plug.address, 81)).done() == "all", "no list, no restriction"
    assert await web.child(udp_ask(db.plug.address, 54)).done() == "all?"
    for server in servers:
        server.end()


@played
async def test_dial_reaches_a_port_of_the_guest(world: World, /) -> None:
    web = await world.guest(WEB)
    server = web.child(tcp_echo(7))
    while True:
        try:
            reader, writer = await world.networks.dial("web", "default", 7)
            break
        except GuestUnreachable:
            continue
    writer.write(b"hello")
    writer.write_eof()
    assert await reader.read() == b"hello"
    writer.close()
    await server.done()
    answering = web.child(udp_serve(9, b"got "))
    flow = await world.networks.datagrams("web", "default", 9)
    while not udp_ask(web.plug.address, 9, b"")():
        pass
    flow.send(b"it")
    assert await flow.receive() == b"got it"
    flow.close()
    answering.end()


@pytest.mark.spec("kubevirt", 97)
@played
async def test_a_guest_cannot_reach_the_host_or_pretend_to_be_somebody_else(world: World, /) -> None:
    web, db = await world.guest(WEB), await world.guest(DB)
    # The API server, at every address that the host has.
    api = Child(world.lab.host, tcp_serve(7443, b"api"))
    assert await Child(world.lab.outside, tcp_ask("198.51.100.2", 7443)).done() == "api", "it does listen"
    for address in ("10.0.2.1", "198.51.100.2", world.networks._ledger.book.network.replace("64.0/18", "64.1"), "127.0.0.1"):
        assert await web.child(tcp_ask(address, 7443, patience=0)).done() in ("silent", "refused")
    api.end()
    server = db.child(tcp_peer(80))
    assert await web.child(tcp_ask(db.plug.address, 80)).done() == web.plug.address
    # Another address, also that of its neighbour.
    for address in ("10.0.2.77/24", f"{db.plug.address}/18", f"{web.plug.address}/18"):
        web.call("ip", "address", "add", address, "dev", "eth0")
        assert not await web.can_ping("198.51.100.1", "-I", address.partition("/")[0])
        assert not await web.can_ping("10.0.2.1", "-I", address.partition("/")[0])
        web.call("ip", "address", "del", address, "dev", "eth0")
    assert await web.can_ping("198.51.100.1")
    # Another MAC, also that of its neighbour.
    for mac in ("02:00:00:00:00:77", db.plug.mac):
        web.call("ip", "link", "set", "eth0", "address", mac)
        assert not await web.can_ping("10.0.2.1")
        code, _ = await web.calls("busybox", "udhcpc", "-i", "eth0", "-n", "-q", "-f", "-t", "1", "-T", "1", "-s", "/bin/true")
        assert code != 0, "nobody else gets the card's address"
    web.call("ip", "link", "set", "eth0", "address", web.plug.mac)
    assert await web.child(tcp_ask(db.plug.address, 80)).done() == web.plug.address
    server.end()
    counted = json.loads(run("nft", "-j", "list", "ruleset"))
    dropped = [rule["rule"] for rule in counted["nftables"] if rule.get("rule", {}).get("chain") == "guard"]
    assert sum(each["counter"]["packets"] for rule in dropped for each in rule["expr"] if "counter" in each) > 0


@played
async def test_a_bridged_card_of_the_pod_network_has_the_pod_address_itself(world: World, /) -> None:
    web = await world.guest(NicSpec("web", "default", binding="bridge", hostname="web", group="default", mac="52:54:00:12:34:56"))
    db = await world.guest(DB)
    assert web.plug.guest_address == f"{web.plug.address}/18" and web.plug.mac == "52:54:00:12:34:56"
    assert await web.can_ping(db.plug.address) and await db.can_ping(web.plug.address) and await web.can_ping("198.51.100.1")
    code, said = await web.calls("busybox", "nslookup", "db.default.vm.cluster.local", web.plug.dns[0])
    assert code == 0 and db.plug.address in said


@played
async def test_a_restart_keeps_connections_and_addresses_and_removes_leftovers(world: World, /) -> None:
    web, db = await world.guest(WEB), await world.guest(DB)
    left = await world.networks.plug(NicSpec("left", "default"))
    server = db.child(tcp_echo(7))
    talking = web.child(talk(db.plug.address, 7))
    await world.networks.close()
    world.networks = world.fresh()
    await world.networks.open()
    assert await web.can_ping(db.plug.address), "before anything is plugged again"
    assert await world.networks.plug(WEB) == web.plug and await world.networks.plug(DB) == db.plug
    await world.networks.collect({"web", "db"})
    assert await talking.done() == "0123456789"
    await server.done()
    links = run("ip", "-o", "link")
    assert left.backend.device not in links and web.plug.backend.device in links  # type: ignore[union-attr]
    assert (await web.dhcp())["ip"] == "10.0.2.2"


@played
async def test_what_is_unplugged_leaves_nothing(world: World, /) -> None:
    # The first card brings the host's own side with it, which stays.
    await world.networks.plug(DB)
    before = (sorted(Netlink().links()), run("ip", "route"), run("nft", "list", "ruleset"))
    await world.networks.plug(WEB)
    await world.networks.plug(NicSpec("many", "default", queues=4, user=world.user))
    said = run("ip", "-d", "-o", "link", "show", world.networks.device("many", "default"))
    link = Netlink().link(world.networks.device("many", "default"))
    assert f"user {world.user} " in said and link is not None and link.many_queues
    await world.networks.release({"web"})
    await world.networks.release({"many"})
    assert run("ip", "route") == before[1]
    assert sorted(Netlink().links()) == before[0]
    assert run("nft", "list", "ruleset") == before[2]


@pytest.mark.needs("passt")
@played
async def test_a_card_bound_by_passt_has_a_process_beside_the_pod_network(world: World, /) -> None:
    # As root, passt is another user, and passes through.
    world.lab.folder.parent.chmod(0o755)
    await world.networks.plug(WEB)
    card = NicSpec("bound", "default", binding="passt", ports=(Ports("tcp", 8080),))
    plug = await world.networks.plug(card)
    assert isinstance(plug.backend, StreamNetwork) and plug.backend.path.is_socket() and plug.address.startswith("127.64.")
    # Its ports are the host's, whose loopback device has the address.
    assert await Child(world.lab.host, tcp_ask(plug.address, 8080, patience=0.5)).done() != "refused"
    await world.networks.unplug(*card.key)
    assert not plug.backend.path.exists()
