"""Clients of a server in a test: in process with a harness, and over TLS with a whole server on loopback."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from paddock.app.localtransport import door
from paddock.app.options.settings import ServerSettings
from paddock.app.server.server import ServerHandle
from paddock.base.clock import SystemClock
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.localtransport import LocalTransport
from tests.kit.servers.apiharness import Harness


@asynccontextmanager
async def in_process() -> AsyncIterator[Client]:
    """A client of a fresh harness."""
    async with Harness() as api, inside(api) as client:
        yield client


@asynccontextmanager
async def inside(api: Harness) -> AsyncIterator[Client]:
    """A client of a harness."""
    async with Client(LocalTransport(door(api.api, "controller", ("system:masters",)))) as client:
        yield client


@asynccontextmanager
async def served(root: Path) -> AsyncIterator[ServerHandle]:
    """A whole server, as `paddock up` runs it."""
    server = ServerHandle(ServerSettings(root=root, port=0, drain_seconds=0.1))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def over_tls(root: Path) -> AsyncIterator[Client]:
    """A client of a whole server, by the kubeconfig that it writes."""
    async with served(root):
        access = kubeconfig.find({}, SystemClock(), explicit=root / "kubeconfig")
        async with Client(Https(access)) as client:
            yield client
