"""Ports of the host lead to guests, and connections through them go on, whatever becomes of the server."""

import asyncio
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from paddock.engine.machine.process import start_ticks
from paddock.engine.networks.nics import ForwardTarget, NicPolicy, PublishedPort, PublishedService
from tests.coroutines import played
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import Child
from tests.host.networks.talking import tcp_ask, tcp_serve
from tests.host.networks.test_outlive import ADDRESS, ASKER, WEB, responder


@pytest.mark.needs("netns", "tun", "nft", "busybox")
@pytest.mark.spec("kubevirt", 205)
@pytest.mark.spec("kubevirt", 270)
@pytest.mark.parametrize(("sources", "said"), [((), "web"), (("198.51.100.0/24",), "web"), (("192.0.2.0/24",), "refused")])
@played
async def test_the_hosts_ports_lead_to_guests_without_the_server(world: World, /, sources: tuple[str, ...], said: str) -> None:
    web, asker = [await world.guest(card) for card in (WEB, ASKER)]
    server = web.child(tcp_serve(8080, b"web"))
    port = PublishedPort("tcp", 8088, (ForwardTarget("web", "default", 8080),), 30080)
    service = PublishedService("default/web", (port,), (ADDRESS,), outside=("198.51.100.2",), sources=sources)
    assert await world.networks.publish([service]) == {}
    assert await Child(asker.namespace, tcp_ask(ADDRESS, 8088)).done() == "web"
    await world.networks.close()
    for number in (8088, 30080):
        assert await Child(world.lab.outside, tcp_ask("198.51.100.2", number, patience=0.3)).done() == said
    world.networks = world.fresh()
    server.end()


def echoing(port: int) -> Callable[[], None]:
    """Repeat what each client says, until the end."""

    def work() -> None:
        async def repeat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(1 << 16):
                writer.write(data)
            writer.close()

        async def serve() -> None:
            async with await asyncio.start_server(repeat, "0.0.0.0", port) as server:
                await server.serve_forever()

        asyncio.run(serve())

    return work


def said(client: socket.socket, text: bytes) -> bool:
    """Return whether an echo repeats a text."""
    client.sendall(text)
    return client.recv(len(text), socket.MSG_WAITALL) == text


def echoes(address: str, port: int) -> bool:
    """Return whether an echo answers a new client."""
    try:
        with socket.create_connection((address, port), 0.5) as client:
            return said(client, b"hello")
    except OSError:
        return False


def conversing(address: str, port: int, until: Path) -> Callable[[], tuple[int, int]]:
    """Talk with an echo by one connection, and by a new one each time, until a file is there; returns how often each was answered."""

    def work() -> tuple[int, int]:
        with socket.create_connection((address, port), 5) as kept:
            kept.settimeout(5)
            ours = fresh = 0
            while not until.exists():
                assert said(kept, b"%8d" % ours), f"the connection ended after {ours} answers"
                ours += 1
                with socket.create_connection((address, port), 5) as client:
                    client.settimeout(5)
                    fresh += said(client, b"hello")
                time.sleep(0.05)
            return ours, fresh

    return work


@pytest.mark.needs("netns", "tun", "nft", "busybox")
@pytest.mark.spec("kubevirt", 270)
@pytest.mark.spec("kubevirt", 271)
@played
async def test_clients_of_the_hosts_ports_notice_nothing_of_stops_and_upgrades(world: World, /) -> None:
    web = await world.guest(WEB)
    folder, ended = world.lab.folder / "networks", world.lab.folder / "ended"
    server = web.child(echoing(8080))
    service = PublishedService("default/web", (PublishedPort("tcp", 80, (ForwardTarget("web", "default", 8080),), 30080),))
    assert await world.networks.publish([service]) == {}
    assert await Child(world.lab.host, tcp_ask("127.0.0.1", 30080, seconds=0.2)).done() == "silent", "the echo is there"
    clients = [
        Child(namespace, conversing(address, 30080, ended))
        for namespace, address in ((world.lab.host, "127.0.0.1"), (world.lab.outside, "198.51.100.2"))
    ]
    pids = [responder(folder)]
    for build in ("same", "same", "another", "third"):
        await asyncio.sleep(1)
        await world.networks.close()
        await asyncio.sleep(1)
        if build != "same":
            world.build(build)
        world.networks = world.fresh()
        await world.networks.open()
        pids.append(responder(folder))
        assert await world.networks.publish([service]) == {}
        await world.networks.plug(WEB)
    assert pids[0] == pids[1] == pids[2] and len({*pids}) == 3
    assert start_ticks(pids[0]), "a former one stays as long as it has connections"
    ended.touch()
    for client in clients:
        kept, fresh = await client.done()
        assert kept == fresh > 60
    async with asyncio.timeout(10):
        while any(map(start_ticks, pids[:-1])):
            await asyncio.sleep(0.05)
    # A policy holds for them while no server runs.
    await world.networks.police([NicPolicy("deny", ("web",), ingress=())])
    await world.networks.close()
    assert not await Child(world.lab.outside, partial(echoes, "198.51.100.2", 30080)).done()
    assert await Child(world.lab.host, partial(echoes, "127.0.0.1", 30080)).done(), "but not for the host itself"
    world.networks = world.fresh()
    await world.networks.open()
    server.end()
