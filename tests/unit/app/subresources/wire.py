"""A real server on loopback for the subresources, and guests that are sockets beside it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from paddock.apiserver.edge.server import Server
from paddock.apiserver.security.pki import Authority
from tests.unit.app.subresources.world import World, path

Guest = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served(world: World, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = Server(world.api.api, tls=tls)
    port = await server.listen("127.0.0.1", 0)
    try:
        async with asyncio.timeout(30):
            yield port
    finally:
        await server.close(0.5)


@asynccontextmanager
async def listening(world: World, guest_port: int, guest: Guest) -> AsyncIterator[None]:
    """A guest that listens at a port."""
    server = await asyncio.start_server(guest, "127.0.0.1", 0, limit=1 << 20)
    world.networks.ports[guest_port] = server.sockets[0].getsockname()[1]
    try:
        yield
    finally:
        server.close()


def tls_pair(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """How a server and its client speak TLS."""
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
