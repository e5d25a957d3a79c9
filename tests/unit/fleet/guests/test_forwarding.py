"""`paddock forward`: connections and datagrams to a guest over a real server, several at once, and what fails."""

import asyncio
import socket

import pytest

from paddock.fleet.guests import forwarding, sshclient, viewers
from paddock.fleet.guests.forwarding import BadPort
from paddock.fleet.guests.sshclient import NoSshServer
from tests.coroutines import scripted
from tests.unit.app.subresources.wire import listening
from tests.unit.app.subresources.world import World
from tests.unit.fleet.guests.local import reached


async def shouting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A guest that repeats what it hears in capitals, and hangs up at a full stop."""
    while (data := await reader.read(65536)) and data != b".":
        writer.write(data.upper())


async def ssh(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-test\r\n")
    await reader.read(1)


@scripted
async def test_ports_lead_to_the_guest() -> None:
    said: list[str] = []
    forwards = [forwarding.parse(":80"), forwarding.parse(":81")]
    async with World() as world, listening(world, 80, shouting):
        await world.machine()
        await world.running()
        async with reached(world) as guest, forwarding.listening(guest, forwards, said.append) as taken:
            ends = [await asyncio.open_connection("127.0.0.1", taken[0].outside) for _ in range(3)]
            for number, (_, writer) in enumerate(ends):
                writer.write(b"number %d" % number)
            assert [await reader.read(100) for reader, _ in ends] == [b"NUMBER 0", b"NUMBER 1", b"NUMBER 2"]
            large = b"x" * 1_000_000
            ends[1][1].write(large)
            assert await ends[1][0].readexactly(len(large)) == large.upper()
            # The guest hangs up: so does the port.
            ends[0][1].write(b".")
            assert await ends[0][0].read() == b""
            ends.append(await asyncio.open_connection("127.0.0.1", taken[1].outside))
            assert await ends[-1][0].read() == b""
            for _, writer in ends:
                writer.close()
                await writer.wait_closed()
    assert len(said) == 1 and said[0].startswith("port 81 of vm: cannot reach port 81")


@scripted
async def test_datagrams_lead_to_the_guest() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as inside, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        inside.bind(("127.0.0.1", 0))
        for each in (inside, client):
            each.setblocking(False)
        loop = asyncio.get_running_loop()
        async with World() as world:
            world.networks.ports[53] = inside.getsockname()[1]
            await world.machine()
            await world.running()
            async with reached(world) as guest, forwarding.listening(guest, [forwarding.parse(":53/udp")], print) as taken:
                for text in (b"one", b"two"):
                    await loop.sock_sendto(client, text, ("127.0.0.1", taken[0].outside))
                    data, address = await loop.sock_recvfrom(inside, 100)
                    await loop.sock_sendto(inside, data.upper(), address)
                    assert await loop.sock_recv(client, 100) == text.upper()


@scripted
async def test_a_port_that_is_taken() -> None:
    async with World() as world:
        await world.machine()
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            forward = forwarding.parse(f"{other.getsockname()[1]}:80")
            async with reached(world) as guest:
                with pytest.raises(BadPort, match="choose another port"):
                    async with forwarding.listening(guest, [forward], print):
                        pass


@scripted
async def test_an_ssh_server_is_known_by_its_greeting() -> None:
    async with World() as world, listening(world, 22, ssh), listening(world, 80, shouting):
        await world.machine()
        await world.running()
        async with reached(world) as guest:
            await sshclient.wait_for_server(guest, 22, 5, 0)
            for port in (80, 99):
                with pytest.raises(NoSshServer, match=f"no SSH server answers on port {port}.*paddock exec vm -- CMD"):
                    await sshclient.wait_for_server(guest, port, 0.2, 0)


@scripted
async def test_the_display_at_a_port_of_loopback() -> None:
    async with World() as world:
        await world.machine()
        machine = await world.running()
        async with reached(world) as guest, viewers.served(guest, 0, print) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.timeout(30):
                while not machine.displays:
                    await asyncio.sleep(0.01)
            machine.displays[-1].say(b"RFB 003.008\n")
            assert await reader.readexactly(12) == b"RFB 003.008\n"
            writer.close()
            await writer.wait_closed()
