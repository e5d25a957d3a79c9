"""A real server on loopback for the subresources, and guests that are sockets beside it."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from paddock.server.edge.connection import ServerConnection
from paddock.server.edge.limits import ConnectionLimits, ConnectionStats
from paddock.server.edge.server import Server, peer_of
from paddock.server.security.pki import Authority
from tests.kit.servers.websockets import Socket, opened
from tests.unit.app.subresources.world import World, path

Guest = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served(world: World, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = Server(world.api.api, tls=tls)
    port = await server.listen("127.0.0.1", 0)
    try:
        # Whole programs start meanwhile, on hosts that do other things.
        async with asyncio.timeout(180):
            yield port
    finally:
        await server.close(0.5)


@asynccontextmanager
async def paired(world: World, target: str) -> AsyncIterator[Socket]:
    """A WebSocket to a server with a user's limits, over a pair of sockets: what one end sends is there at once, also in virtual time."""
    here, there = socket.socketpair()
    limits = ConnectionLimits()
    census = ConnectionStats(limits)
    loop = asyncio.get_running_loop()
    await loop.connect_accepted_socket(lambda: ServerConnection(world.api.api, limits, census, peer_of), there)
    reader, writer = await asyncio.open_connection(sock=here)
    async with opened(reader, writer, target) as found:
        yield found
    while census.members:
        await asyncio.sleep(0.01)


@asynccontextmanager
async def listening(world: World, guest_port: int, guest: Guest) -> AsyncIterator[None]:
    """A guest that listens at a port. Its connections are closed at the end, whatever it was doing."""
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await guest(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    world.networks.ports[guest_port] = server.sockets[0].getsockname()[1]
    try:
        yield
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def tls_pair(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS contexts of a server and its client."""
    authority = Authority(folder / "pki")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*authority.server(("127.0.0.1",)))
    return server, ssl.create_default_context(cadata=authority.certificate.decode())


def forward(guest_port: int, kind: str = "vmi", protocol: str = "") -> str:
    return path(kind, "vm", f"portforward/{guest_port}{protocol}")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.005)
