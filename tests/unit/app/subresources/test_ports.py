"""Forwarded ports over a real server on loopback: every byte, both ways, whoever is slow and whoever leaves first."""

import asyncio
import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from paddock.server.edge import websocket
from tests.coroutines import run_by, scripted
from tests.kit.servers.websockets import Rejected, connected
from tests.unit.app.subresources.wire import forward, listening, served, tls_pair, until
from tests.unit.app.subresources.world import World, path


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@pytest.mark.parametrize("kind", ["vm", "vmi"])
@pytest.mark.parametrize("protocol", ["", "/tcp"])
@scripted
async def test_a_port_is_forwarded(kind: str, protocol: str) -> None:
    async with World() as world, served(world) as port, listening(world, 22, echo):
        await world.running()
        async with connected(port, forward(22, kind, protocol)) as socket:
            await socket.send(b"SSH-2.0-test\r\n")
            assert await socket.read(14) == b"SSH-2.0-test\r\n"
        uid = world.vmi()["metadata"]["uid"]
        assert world.networks.dialled == [(uid, "default", 22)]


@scripted
async def test_addresses_belong_to_the_machine_above_if_there_is_one() -> None:
    async with World() as world, served(world) as port, listening(world, 22, echo):
        owner = (await world.machine())["metadata"]["uid"]
        await world.running()
        reference = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "vm", "uid": owner, "controller": True}

        def owned(old: dict[str, Any]) -> dict[str, Any]:
            return {**old, "metadata": {**old["metadata"], "ownerReferences": [reference]}}

        await world.stored.edit("virtualmachineinstances", ("default", "vm"), owned)
        async with connected(port, forward(22)):
            pass
        assert world.networks.dialled == [(owner, "default", 22)]


@scripted
async def test_much_goes_through_unchanged_in_both_directions_at_once() -> None:
    size, piece = 64 << 20, 1 << 16
    async with World() as world, served(world) as port, listening(world, 9, echo):
        await world.running()
        async with connected(port, forward(9)) as socket:
            data = hashlib.shake_256(b"seed").digest(piece)
            sent, came = hashlib.sha256(), hashlib.sha256()

            async def send() -> None:
                for number in range(size // piece):
                    part = number.to_bytes(8) + data[8:]
                    sent.update(part)
                    await socket.send(part)

            sending = asyncio.create_task(send())
            left = size
            while left:
                message = await socket.receive()
                assert isinstance(message, bytes)
                came.update(message)
                left -= len(message)
            await sending
            assert came.digest() == sent.digest()


@scripted
async def test_one_large_message_is_taken() -> None:
    async with World() as world, served(world) as port, listening(world, 9, echo):
        await world.running()
        async with connected(port, forward(9)) as socket:
            data = bytes(range(256)) * (8 << 12)
            sending = asyncio.create_task(socket.send(data))
            assert await socket.read(len(data)) == data
            await sending


@scripted
async def test_what_the_guest_said_last_arrives_before_the_end() -> None:
    async def says(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 3_000_000)
        await writer.drain()
        writer.close()

    async with World() as world, served(world) as port, listening(world, 80, says):
        await world.running()
        async with connected(port, forward(80)) as socket:
            assert await socket.rest() == b"x" * 3_000_000
            assert socket.code == 1000


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("polite", [True, False])
@run_by(asyncio.run)
async def test_what_the_client_sent_last_arrives_and_then_the_end(tmp_path: Path, polite: bool, secure: bool) -> None:
    received = asyncio.Queue[bytes]()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = []
        while data := await reader.read(65536):
            found.append(data)
            await asyncio.sleep(0.002)
        await received.put(b"".join(found))
        writer.close()

    server, client = tls_pair(tmp_path) if secure else (None, None)
    async with World() as world, served(world, server) as port, listening(world, 9, slow):
        await world.running()
        async with connected(port, forward(9), tls=client) as socket:
            for _ in range(64):
                await socket.send(b"y" * 65536)
            if polite:
                await socket.close()
            else:
                socket.vanish()
            assert len(await received.get()) == 64 * 65536


@scripted
async def test_a_client_that_still_sends_when_the_guest_hangs_up_hears_of_it() -> None:
    async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.write(b"bye")
        await writer.drain()
        await asyncio.sleep(0.1)
        # Bytes that it did not read make this a reset.
        writer.transport.abort()

    async with World() as world, served(world) as port, listening(world, 9, hangs_up):
        await world.running()
        async with connected(port, forward(9)) as socket:

            async def send() -> None:
                with suppress(OSError):
                    for _ in range(100):
                        await socket.send(bytes(65536))

            sending = asyncio.create_task(send())
            assert await socket.read(3) == b"bye"
            assert await socket.closed() == 1000
            sending.cancel()


@scripted
async def test_a_guest_that_does_not_read_stops_the_sender_and_nothing_piles_up() -> None:
    resumed = asyncio.Event()
    received = 0

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        await resumed.wait()
        while data := await reader.read(1 << 20):
            received += len(data)
        writer.close()

    async with World() as world, served(world) as port, listening(world, 9, deaf):
        await world.running()
        async with connected(port, forward(9)) as socket:
            count = 0

            async def send() -> None:
                nonlocal count
                for _ in range(2048):
                    await socket.send(bytes(65536))
                    count += 1
                await socket.close()

            sending = asyncio.create_task(send())
            before = -1
            while count != before:
                before = count
                await asyncio.sleep(0.2)
            assert count < 1024
            resumed.set()
            await sending
            await until(lambda: received == 2048 * 65536)


@scripted
async def test_a_client_that_does_not_read_stops_the_guest() -> None:
    written = 0

    async def talkative(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        try:
            for _ in range(4096):
                writer.write(bytes(65536))
                await writer.drain()
                written += 65536
        except OSError:
            pass
        finally:
            writer.close()

    async with World() as world, served(world) as port, listening(world, 9, talkative):
        await world.running()
        async with connected(port, forward(9)):
            before = -1
            while written != before or not written:
                before = written
                await asyncio.sleep(0.2)
            assert written < 64 << 20


@scripted
async def test_many_at_once() -> None:
    async with World() as world, served(world) as port, listening(world, 9, echo):
        await world.running()

        async def one(number: int) -> None:
            async with connected(port, forward(9)) as socket:
                text = f"connection {number}".encode()
                await socket.send(text)
                assert await socket.read(len(text)) == text

        await asyncio.gather(*(one(number) for number in range(50)))


@scripted
async def test_datagrams_keep_their_bounds() -> None:
    class Echo(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, addr: object) -> None:
            self.transport.sendto(data[::-1], addr)  # type: ignore[attr-defined]

    async with World() as world, served(world) as port:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Echo, local_addr=("127.0.0.1", 0))
        world.networks.ports[53] = transport.get_extra_info("sockname")[1]
        await world.running()
        async with connected(port, forward(53, protocol="/udp")) as socket:
            for data in (b"one", b"two", bytes(range(256)) * 200):
                await socket.send(data)
                assert await socket.receive() == data[::-1]
        transport.close()


@pytest.mark.parametrize(
    ("rest", "code", "words"),
    [
        ("0", 400, "invalid port"),
        ("65536", 400, "invalid port"),
        ("ssh", 400, "invalid port"),
        ("9" * 5000, 400, "invalid port"),
        ("22/sctp", 400, "invalid protocol"),
        ("22/tcp/more", 400, "invalid protocol"),
        ("4444", 500, "connection refused"),
    ],
)
@scripted
async def test_ports_that_cannot_be_reached(rest: str, code: int, words: str) -> None:
    async with World() as world, served(world) as port:
        await world.running()
        with pytest.raises(Rejected) as refused:
            async with connected(port, path("vm", "vm", f"portforward/{rest}")):
                pass
        assert (refused.value.status, words.encode() in refused.value.body) == (code, True), refused.value.body


@scripted
async def test_guests_that_cannot_be_reached() -> None:
    async with World() as world, served(world) as port:

        async def refused(name: str = "vm") -> tuple[int, bytes]:
            with pytest.raises(Rejected) as said:
                async with connected(port, path("vmi", name, "portforward/22")):
                    pass
            return said.value.status, said.value.body

        assert (await refused())[0] == 404
        machine = await world.running()
        await machine.pause()
        status, body = await refused()
        assert (status, b"VMI is paused" in body) == (409, True)
        machine.crash()
        status, body = await refused()
        assert (status, b"VMI is not running" in body) == (409, True)
        spec = {"domain": {"memory": {"guest": "64Mi"}, "devices": {"autoattachPodInterface": False}}}
        await world.running("bare", spec=spec)
        status, body = await refused("bare")
        assert (status, b"no network interfaces are present" in body) == (500, True)


@scripted
async def test_a_slow_guest_gets_all_of_a_client_that_has_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its connection is gone while much of what it sent is still to be read: nothing that is written meanwhile may break that off."""
    monkeypatch.setattr(websocket, "PING_SECONDS", 0.01)
    got, size = 0, 8_000_000

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal got
        while data := await reader.read(65536):
            got += len(data)
            await asyncio.sleep(0.005)
        writer.close()

    server, client = tls_pair(tmp_path)
    async with World() as world, served(world, server) as port, listening(world, 80, slow):
        await world.running()
        async with connected(port, forward(80), tls=client) as socket:
            for _ in range(0, size, 8000):
                await socket.send(bytes(8000))
            await socket.close()
        await until(lambda: got == size)
