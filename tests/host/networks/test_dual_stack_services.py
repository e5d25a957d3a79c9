"""Services and policies over IPv6, with real packets."""

import asyncio

import pytest

from paddock.engine.networks.nics import ForwardTarget, NicPeer, NicPolicy, NicSpec, PolicyAllowance, Ports, PublishedPort, PublishedService
from tests.coroutines import played
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import HOST6, Child, Guest
from tests.host.networks.talking import tcp_peer, tcp_serve, udp_ask, udp_serve
from tests.host.networks.test_services import ask

pytestmark = pytest.mark.needs("netns", "tun", "nft", "busybox", "ipv6")
ADDRESSES = ("10.97.3.4", "fd00:10:96::34")


async def guests(world: World, *names: str) -> list[Guest]:
    """Machines with both families."""
    found = [await world.guest(NicSpec(name, "default", hostname=name, group="default")) for name in names]
    for guest in found:
        await guest.dhcp6()
    return found


def service(*owners: str, protocol: str = "tcp", sticky: int = 0, families: tuple[int, ...] = (4, 6)) -> PublishedService:
    """Port 80 of an address of each family, and node port 30080."""
    targets = tuple(ForwardTarget(owner, "default", 8080) for owner in owners)
    port = PublishedPort("udp" if protocol == "udp" else "tcp", 80, targets, 30080)
    own = tuple(ADDRESSES[family == 6] for family in families)
    return PublishedService(f"default/{protocol}", (port,), own, affinity_seconds=sticky, families=families)


@pytest.mark.spec("kube-api", 172)
@played
async def test_an_address_of_each_family_leads_to_machines_in_turns(world: World, /) -> None:
    web, api, client = await guests(world, "web", "api", "client")
    servers = [web.child(tcp_serve(8080, b"web")), api.child(tcp_serve(8080, b"api"))]
    assert await world.networks.publish([service("web", "api")]) == {}
    for address in ADDRESSES:
        for asker in (client.namespace, world.inside):
            assert sorted(await ask(asker, address, 80, 4)) == ["api", "api", "web", "web"], address
        assert sorted(await ask(web.namespace, address, 80, 2)) == ["api", "web"], "also by way of itself"
    await world.networks.publish([service("web", "api", sticky=60)])
    assert len(set(await ask(client.namespace, ADDRESSES[1], 80, 4))) == 1
    await world.networks.publish([service()])
    assert await ask(client.namespace, ADDRESSES[1], 80, patience=0.3) == ["refused"]
    for server in servers:
        server.end()


@pytest.mark.spec("kube-api", 172)
@played
async def test_a_node_port_answers_on_the_families_of_its_service(world: World, /) -> None:
    web, client = await guests(world, "web", "client")
    server = web.child(tcp_serve(8080, b"web"))
    await world.networks.publish([service("web")])
    places = [(world.lab.outside, "198.51.100.2"), (world.lab.outside, HOST6), (world.lab.host, "::1"), (world.lab.host, "127.0.0.1")]
    places += [(client.namespace, "fd10:0:2::1"), (client.namespace, HOST6)]
    for namespace, address in places:
        assert await ask(namespace, address, 30080) == ["web"], address
    for families, answering in (((4,), "198.51.100.2"), ((6,), HOST6)):
        await world.networks.publish([service("web", families=families)])
        for address in ("198.51.100.2", HOST6):
            said = await ask(world.lab.outside, address, 30080, patience=0.3)
            assert (said == ["web"]) is (address == answering), (families, address, said)
    server.end()


@pytest.mark.rooted("a listener takes the connection, and makes another one to the guest")
@played
async def test_the_address_of_a_client_of_a_node_port_arrives(world: World, /) -> None:
    (web,) = await guests(world, "web")
    seeing = web.child(tcp_peer(8080))
    await world.networks.publish([service("web")])
    assert await ask(world.lab.outside, HOST6, 30080) == ["2001:db8:51::1"]
    seeing.end()


@pytest.mark.spec("kube-api", 172)
@played
async def test_datagrams(world: World, /) -> None:
    web, client = await guests(world, "web", "client")
    server = web.child(udp_serve(8080, b"web "))
    assert await world.networks.publish([service("web", protocol="udp")]) == {}
    askers = ((client.namespace, ADDRESSES[1], 80), (world.lab.outside, HOST6, 30080), (world.lab.host, "::1", 30080))
    for namespace, address, port in askers:
        assert await Child(namespace, udp_ask(address, port)).done() == "web ?", address
    server.end()


@pytest.mark.spec("kube-api", 173)
@played
async def test_policies_hold_for_both_families(world: World, /) -> None:
    web, db, client = await guests(world, "web", "db", "client")
    servers = [db.child(tcp_serve(port, b"db")) for port in (80, 81)]

    async def reached(guest: Guest) -> list[list[str]]:
        return [[(await ask(guest.namespace, address, port, patience=0.2))[0] for port in (80, 81)] for address in db.plug.addresses]

    assert await reached(web) == [["db", "db"]] * 2
    peers = (NicPeer(owners=("web",)),)
    await world.networks.police([NicPolicy("p", ("db",), (PolicyAllowance(peers, (Ports("tcp", 80),)),))])
    assert await reached(web) == [["db", "silent"]] * 2
    assert await reached(client) == [["silent", "silent"]] * 2
    # A block of one family says nothing of the other.
    block = NicPeer(f"{client.plug.address6}/128")
    await world.networks.police([NicPolicy("p", ("db",), (PolicyAllowance((block,)),))])
    assert await reached(client) == [["silent", "silent"], ["db", "db"]]
    network = world.networks._ledger.book.network6
    rest = NicPeer(network, (f"{client.plug.address6}/128",))
    await world.networks.police([NicPolicy("p", ("db",), (PolicyAllowance((rest,)),))])
    assert await reached(client) == [["silent", "silent"]] * 2 and (await reached(web))[1] == ["db", "db"]
    await world.networks.police([NicPolicy("p", ("client",), egress=(PolicyAllowance((NicPeer("::/0"),)),))])
    assert await reached(client) == [["silent", "silent"], ["db", "db"]]
    for server in servers:
        server.end()


@played
async def test_a_policy_does_not_keep_a_guest_from_its_router(world: World, /) -> None:
    """Neighbour discovery is no traffic of machines."""
    web, db = await guests(world, "web", "db")
    await world.networks.police([NicPolicy("p", ("web",), (), ())])
    web.call("ip", "-6", "neighbour", "flush", "dev", "eth0")
    await asyncio.sleep(0.1)
    assert await web.can_ping("fd10:0:2::1") and not await web.can_ping(db.plug.address6)
