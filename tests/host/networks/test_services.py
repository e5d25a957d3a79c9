"""Services with real packets: inside, at the host's ports, from machines, from outside; and what policies let through."""

import asyncio
from functools import partial
from typing import Any

import pytest

from paddock.engine.networks.nics import (
    ForwardTarget,
    NicPeer,
    NicPolicy,
    NicSpec,
    PolicyAllowance,
    Ports,
    PublishedPort,
    PublishedService,
)
from tests.coroutines import played
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import Child, Guest, run
from tests.host.networks.talking import tcp_ask, tcp_echo, tcp_peer, tcp_serve, transfer, udp_ask, udp_serve

pytestmark = pytest.mark.needs("netns", "tun", "nft", "busybox")
ADDRESS = "10.97.3.4"
SIZE = 64 << 20


async def guests(world: World, *names: str) -> list[Guest]:
    """Machines, all alike."""
    return [await world.guest(NicSpec(name, "default", hostname=name, group="default")) for name in names]


def service(*targets: tuple[str, int], protocol: str = "tcp", sticky: int = 0, number: int = 80, **more: Any) -> PublishedService:
    """Port 80 of an address, or another, and node port 30080."""
    leads = tuple(ForwardTarget(owner, "default", port) for owner, port in targets)
    port = PublishedPort("udp" if protocol == "udp" else "tcp", number, leads, 30080)
    return PublishedService(f"default/{protocol}", (port,), (ADDRESS,), affinity_seconds=sticky, **more)


async def ask(namespace: str, address: str, port: int, times: int = 1, patience: float = 2.0) -> list[str]:
    """Return the answers at a port, several times."""
    return [await Child(namespace, tcp_ask(address, port, patience=patience)).done() for _ in range(times)]


@played
async def test_an_address_inside_leads_to_machines_in_turns_and_follows_them(world: World, /) -> None:
    web, api, client = await guests(world, "web", "api", "client")
    servers = [web.child(tcp_serve(8080, b"web")), api.child(tcp_serve(8080, b"api")), client.child(tcp_peer(8080))]
    assert await world.networks.publish([service(("web", 8080), ("api", 8080))]) == {}
    for asker in (client.namespace, world.inside):
        assert sorted(await ask(asker, ADDRESS, 80, 4)) == ["api", "api", "web", "web"]
    assert sorted(await ask(web.namespace, ADDRESS, 80, 2)) == ["api", "web"], "also by way of itself"
    for address in ("10.0.2.1", "198.51.100.2"):
        assert sorted(await ask(client.namespace, address, 30080, 2)) == ["api", "web"]
    await world.networks.publish([service(("api", 8080))])
    assert await ask(client.namespace, ADDRESS, 80, 3) == ["api"] * 3
    await world.networks.publish([service(("client", 8080))])
    assert await ask(web.namespace, ADDRESS, 80) == [web.plug.address], "the client's own address arrives"
    await world.networks.publish([service()])
    assert await ask(client.namespace, ADDRESS, 80, patience=0.3) == ["refused"]
    for server in servers:
        server.end()


@played
async def test_a_node_port_is_reached_from_outside_and_from_the_host_itself(world: World, /) -> None:
    (web,) = await guests(world, "web")
    server = web.child(tcp_serve(8080, b"web"))
    await world.networks.publish([service(("web", 8080))])
    for namespace, address in ((world.lab.outside, "198.51.100.2"), (world.lab.host, "127.0.0.1"), (world.lab.host, "198.51.100.2")):
        assert await ask(namespace, address, 30080) == ["web"], address
    assert await ask(world.lab.outside, "198.51.100.2", 80, patience=0.2) == ["refused"]
    # As a load balancer, for some alone; ports below 1024 are root's.
    balancer = partial(service, ("web", 8080), number=8088, outside=("198.51.100.2",))
    assert await world.networks.publish([balancer(sources=("198.51.100.1/32",))]) == {}
    assert await ask(world.lab.outside, "198.51.100.2", 8088) == ["web"]
    await world.networks.publish([balancer(sources=("203.0.113.0/24",))])
    for port in (8088, 30080):
        assert (await ask(world.lab.outside, "198.51.100.2", port, patience=0.2)) != ["web"]
    await world.networks.publish([])
    assert await ask(world.lab.outside, "198.51.100.2", 30080, patience=0.2) == ["refused"]
    server.end()


@played
async def test_a_port_that_somebody_has_is_said_and_had_later(world: World, /) -> None:
    (web,) = await guests(world, "web")
    server = web.child(tcp_serve(8080, b"web"))
    other = Child(world.lab.host, tcp_serve(30080, b"other"))
    assert await ask(world.lab.outside, "198.51.100.2", 30080) == ["other"]
    problems = await world.networks.publish([service(("web", 8080))])
    assert problems == {"default/tcp": ("tcp 0.0.0.0:30080: another program has it",)}
    assert await ask(world.lab.outside, "198.51.100.2", 30080) == ["other"], "it is not taken from them"
    other.end()
    assert await world.networks.publish([service(("web", 8080))]) == {}
    assert await ask(world.lab.outside, "198.51.100.2", 30080) == ["web"]
    server.end()


@pytest.mark.parametrize("way", ["inside", "kernel", "listener"])
@played
async def test_64_mebibytes_there_and_back_are_the_same(world: World, /, way: str) -> None:
    web, client = await guests(world, "web", "client")
    server = web.child(tcp_echo(8080))
    await world.networks.publish([service(("web", 8080))])
    namespace, address, port = {
        "inside": (client.namespace, ADDRESS, 80),
        "kernel": (world.lab.outside, "198.51.100.2", 30080),
        "listener": (world.lab.host, "127.0.0.1", 30080),
    }[way]
    sent, got = await Child(namespace, transfer(address, port, SIZE)).done()
    assert sent == got
    await server.done()


@played
async def test_udp_and_clients_that_stay_with_a_machine(world: World, /) -> None:
    web, api, client = await guests(world, "web", "api", "client")
    servers = [each.child(udp_serve(53, said)) for each, said in ((web, b"web"), (api, b"api"))]
    servers += [each.child(tcp_serve(8080, said)) for each, said in ((web, b"web"), (api, b"api"))]
    tcp = PublishedService(
        "default/tcp",
        (PublishedPort("tcp", 80, (ForwardTarget("web", "default", 8080), ForwardTarget("api", "default", 8080)), 30081),),
        ("10.97.3.5",),
        affinity_seconds=60,
    )
    assert await world.networks.publish([service(("web", 53), protocol="udp"), tcp]) == {}
    for namespace, address, port in (
        (client.namespace, ADDRESS, 80),
        (world.inside, ADDRESS, 80),
        (world.lab.host, "127.0.0.1", 30080),
        (world.lab.outside, "198.51.100.2", 30080),
    ):
        assert await Child(namespace, udp_ask(address, port)).done() == "web?", address
    for namespace, address, port in ((client.namespace, "10.97.3.5", 80), (world.lab.host, "127.0.0.1", 30081)):
        assert len(set(await ask(namespace, address, port, 5))) == 1
    for server in servers:
        server.end()


@pytest.mark.spec("virtrigaud", 121)
@played
async def test_policies_isolate_machines_in_both_directions(world: World, /) -> None:
    web, db, api = await guests(world, "web", "db", "api")
    servers = [each.child(tcp_serve(port, b"yes")) for each in (web, db, api) for port in (80, 81)]

    async def reaches(source: Guest, target: Guest, port: int = 80) -> bool:
        return await ask(source.namespace, target.plug.address, port, patience=0.2) == ["yes"]

    assert await reaches(web, db) and await reaches(api, db), "everything is allowed by default"
    await world.networks.police([NicPolicy("deny", ("db",), ingress=())])
    assert not await reaches(web, db) and not await reaches(api, db) and await reaches(db, web)
    assert await ask(world.inside, db.plug.address, 80) == ["yes"], "the host, for its probes"
    only_web = PolicyAllowance((NicPeer(owners=("web",)),), (Ports("tcp", 80),))
    await world.networks.police([NicPolicy("deny", ("db",), ingress=()), NicPolicy("web", ("db",), ingress=(only_web,))])
    assert await reaches(web, db) and not await reaches(web, db, 81) and not await reaches(api, db)
    # By way of a Service it is the same.
    await world.networks.publish([service(("db", 80))])
    assert await ask(web.namespace, ADDRESS, 80) == ["yes"] and await ask(api.namespace, ADDRESS, 80, patience=0.2) == ["silent"]
    assert await ask(api.namespace, "10.0.2.1", 30080, patience=0.2) == ["silent"]
    assert await ask(world.lab.outside, "198.51.100.2", 30080, patience=0.2) != ["yes"], "from outside, too"
    # What leaves.
    block = PolicyAllowance((NicPeer(block="10.0.0.0/8", without=(f"{db.plug.address}/32",)),), (Ports("tcp", 80, 81),))
    await world.networks.police([NicPolicy("out", ("web",), egress=(block,))])
    assert await reaches(web, api, 81) and not await reaches(web, db) and await reaches(db, web)
    assert not await web.can_ping("198.51.100.1") and await db.can_ping("198.51.100.1")
    assert await web.can_ping("10.0.2.1"), "its own host"
    await world.networks.police([])
    assert await reaches(web, db) and await web.can_ping("198.51.100.1")
    for server in servers:
        server.end()


@played
async def test_a_restart_keeps_policies_and_services(world: World, /) -> None:
    web, db = await guests(world, "web", "db")
    servers = [web.child(tcp_serve(8080, b"web")), db.child(tcp_serve(80, b"db"))]
    await world.networks.publish([service(("web", 8080))])
    await world.networks.police([NicPolicy("deny", ("db",), ingress=())])
    await world.networks.close()
    world.networks = world.fresh()
    await world.networks.open()
    assert await ask(db.namespace, ADDRESS, 80) == ["web"]
    assert await ask(web.namespace, db.plug.address, 80, patience=0.2) == ["silent"]
    for server in servers:
        server.end()


@played
async def test_a_network_made_anew_serves_many_cards_at_once(world: World, /) -> None:
    cards = [NicSpec(f"vm{number}", "default", group="default") for number in range(40)]
    plugs = await asyncio.gather(*(world.networks.plug(card) for card in cards))
    assert len({plug.address for plug in plugs}) == len({plug.mac for plug in plugs}) == 40
    said = run("nft", "list", "map", "inet", f"paddock_{world.networks.instance}", "inner_of")
    assert said.count("10.0.2.2") == 40
