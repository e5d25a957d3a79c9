"""Ports of the host: what should be listened at against what is; who gets which target; bytes both ways."""

import asyncio
import hashlib
import socket

import pytest

from paddock.engine.networks import listeners
from paddock.engine.networks.datagrams import open_datagrams
from paddock.engine.networks.errors import GuestUnreachable
from paddock.engine.networks.listeners import ForwardTo, ListenEndpoint, Listeners
from paddock.engine.networks.nics import ForwardTarget, Protocol, PublishedPort, PublishedService
from tests.coroutines import run_by

ONE, TWO = ForwardTarget("one", "default", 80), ForwardTarget("two", "default", 80)


def test_a_place_belongs_to_the_first_who_has_it() -> None:
    ports = (PublishedPort("tcp", 80, (ONE,), 30080), PublishedPort("udp", 80, (ONE,)))
    services = [PublishedService("ns/b", ports, outside=("192.0.2.1",)), PublishedService("ns/a", ports[:1], outside=("192.0.2.1",))]
    wanted, problems = listeners.plan(services, {4: "0.0.0.0", 6: "::"})
    assert {str(place): lead.service for place, lead in wanted.items()} == {
        "tcp 0.0.0.0:30080": "ns/a",
        "tcp 192.0.2.1:80": "ns/a",
        "udp 192.0.2.1:80": "ns/b",
    }
    assert problems == {"ns/b": ("tcp 0.0.0.0:30080 belongs to ns/a", "tcp 192.0.2.1:80 belongs to ns/a")}


class World:
    """Guests as servers on loopback."""

    def __init__(self) -> None:
        self.places: dict[str, tuple[str, int]] = {}
        # seconds until a guest is reached
        self.far = 0.0
        self.listeners = Listeners(self.reach)
        self._servers: list[asyncio.Server] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def end(self) -> None:
        """Everything is closed when this returns."""
        await self.listeners.close()
        for server in self._servers:
            server.close()
        for writer in self._writers:
            writer.transport.abort()
        for _ in range(10):
            await asyncio.sleep(0)

    async def reach(self, target: ForwardTarget, protocol: Protocol) -> tuple[str, int]:
        if target.owner not in self.places:
            raise GuestUnreachable("cannot reach it")
        await asyncio.sleep(self.far)
        return self.places[target.owner]

    async def guest(self, name: str) -> None:
        """Says its name, then repeats what it hears until the half-close."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._writers.append(writer)
            writer.write(name.encode() + b"\n")
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._servers.append(server)
        self.places[name] = server.sockets[0].getsockname()[:2]

    def keep(self, server: asyncio.Server, writer: asyncio.StreamWriter) -> None:
        """Close these, too."""
        self._servers.append(server)
        self._writers.append(writer)


async def ask(port: int) -> str:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        line = await reader.readline()
        writer.close()
        await writer.wait_closed()
    except ConnectionError:
        return "reset"
    return line.decode().strip() or "closed"


def free(kind: int = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@run_by(asyncio.run)
async def test_targets_take_turns_change_and_may_be_gone() -> None:
    world = World()
    for name in ("one", "two"):
        await world.guest(name)
    place = ListenEndpoint("tcp", "127.0.0.1", free())
    assert world.listeners.bring({place: ForwardTo("s", (ONE, TWO))}) == {}
    assert sorted([await ask(place.port) for _ in range(4)]) == ["one", "one", "two", "two"]
    world.listeners.bring({place: ForwardTo("s", (ONE, ForwardTarget("gone", "default", 1)))})
    assert {await ask(place.port) for _ in range(3)} == {"one"}, "one that cannot be reached is passed over"
    world.listeners.bring({place: ForwardTo("s", ())})
    assert await ask(place.port) in ("reset", "closed")
    world.listeners.bring({place: ForwardTo("s", (ONE,), sources=("192.0.2.0/24",))})
    assert await ask(place.port) in ("reset", "closed")
    world.listeners.bring({place: ForwardTo("s", (ONE, TWO), affinity_seconds=60)})
    assert len({await ask(place.port) for _ in range(4)}) == 1
    world.listeners.bring({})
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", place.port)
    await world.end()


@run_by(asyncio.run)
async def test_a_place_that_is_taken_is_said_and_had_later() -> None:
    world = World()
    await world.guest("one")
    other = socket.create_server(("127.0.0.1", 0))
    place = ListenEndpoint("tcp", "127.0.0.1", other.getsockname()[1])
    nowhere = ListenEndpoint("udp", "192.0.2.77", 9)
    said = world.listeners.bring({place: ForwardTo("s", (ONE,)), nowhere: ForwardTo("s", (ONE,))})
    assert said == {place: "another program has it", nowhere: "the host does not have this address"}
    other.close()
    assert world.listeners.bring({place: ForwardTo("s", (ONE,))}) == {}
    assert await ask(place.port) == "one"
    await world.end()


@run_by(asyncio.run)
async def test_many_bytes_go_both_ways_past_a_half_close() -> None:
    world = World()
    await world.guest("one")
    place = ListenEndpoint("tcp", "127.0.0.1", free())
    world.listeners.bring({place: ForwardTo("s", (ONE,))})
    reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
    block = hashlib.sha256(b"x").digest() * 4096

    async def send() -> None:
        for _ in range(64):
            writer.write(block)
            await writer.drain()
        writer.write_eof()

    sending = asyncio.create_task(send())
    assert await reader.readline() == b"one\n"
    got = hashlib.sha256()
    while data := await reader.read(1 << 16):
        got.update(data)
    await sending
    writer.close()
    await writer.wait_closed()
    assert got.hexdigest() == hashlib.sha256(block * 64).hexdigest()
    await world.end()


@run_by(asyncio.run)
async def test_a_reader_that_does_not_read_stops_the_sender() -> None:
    world = World()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stuck.append(writer)
        await asyncio.sleep(3600)

    stuck: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1024)
    world.places["one"] = server.sockets[0].getsockname()[:2]
    place = ListenEndpoint("tcp", "127.0.0.1", free())
    world.listeners.bring({place: ForwardTo("s", (ONE,))})
    _, writer = await asyncio.open_connection("127.0.0.1", place.port)
    block, sent = bytes(1 << 20), 0
    # Each drain that returns within the time passed a mebibyte on.
    while sent < 512:
        writer.write(block)
        try:
            await asyncio.wait_for(writer.drain(), 0.3)
        except TimeoutError:
            break
        sent += 1
    assert sent < 64, "buffers are bounded"
    writer.transport.abort()
    for each in stuck:
        world.keep(server, each)
    await world.end()


@run_by(asyncio.run)
async def test_udp_clients_are_flows_of_their_own() -> None:
    class Guest(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            self.transport.sendto(data + b"@" + str(addr[1]).encode(), addr)  # type: ignore[attr-defined]

    world = World()
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Guest, local_addr=("127.0.0.1", 0))
    world.places["one"] = transport.get_extra_info("sockname")
    place = ListenEndpoint("udp", "127.0.0.1", free(socket.SOCK_DGRAM))
    world.listeners.bring({place: ForwardTo("s", (ONE,))})
    flows = [await open_datagrams(("127.0.0.1", place.port)) for _ in range(3)]
    said = []
    for flow in flows:
        flow.send(b"a")
        flow.send(b"b")
        said.append([await flow.receive(), await flow.receive()])
    ports = {each.partition(b"@")[2] for pair in said for each in pair if each}
    assert len(ports) == 3 and all(pair[0] and pair[0][:1] == b"a" for pair in said)
    for flow in flows:
        flow.close()
    transport.close()
    await world.end()


@run_by(asyncio.run)
async def test_what_a_client_says_and_ends_before_its_guest_is_reached_arrives() -> None:
    world = World()
    world.far = 0.3
    await world.guest("one")
    place = ListenEndpoint("tcp", "127.0.0.1", free())
    world.listeners.bring({place: ForwardTo("s", (ONE,))})
    for said in (b"early", b"x" * 1_000_000, b""):
        reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
        writer.write(said)
        writer.write_eof()
        assert await reader.read() == b"one\n" + said
        writer.close()
        await writer.wait_closed()
    await world.end()
