"""Doors of servers that share an event loop: what one says to the other is in memory, and passes through the same messages."""

import asyncio
import contextlib
from typing import Any, cast

from paddock.engine.machine.livelinks import Credentials
from paddock.kubevirt.controllers.migration.liveparts import PeerAccess
from paddock.kubevirt.controllers.migration.peers import NotYet, PeerConnection, Serve, answer
from paddock.kubevirt.controllers.migration.servers import MigrationDoor


class FakeCredentials:
    """What a side of a migration shows to nobody."""

    def __init__(self, side: str) -> None:
        self.authority = side.encode()

    def trusting(self, authority: bytes) -> Credentials:
        return Credentials(b"", b"", self.authority + authority)


class _Writer:
    """The end of a line into which is written."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.closed = False

    def write(self, data: bytes) -> None:
        if self.closed:
            raise ConnectionResetError("the line is closed")
        self._reader.feed_data(data)

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def get_extra_info(self, _: str) -> Any:
        return ("192.0.2.1", 1)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._reader.feed_eof()


class MemoryPort:
    """A port in memory. `cut`: nobody reaches it."""

    def __init__(self, network: "MemoryNetwork", name: str) -> None:
        self._network, self._name = network, name
        self.addresses = [f"{name}:1"]
        self.handler: Serve | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    def serve(self, serve: Serve) -> None:
        self.handler = serve
        self._network.ports[self._name] = self

    async def close(self) -> None:
        self.handler = None
        self.hang_up()

    def hang_up(self) -> None:
        """The lines that are open end."""
        for task in tuple(self.tasks):
            task.cancel()


class MemoryNetwork:
    """Servers that reach each other by name."""

    def __init__(self) -> None:
        self.ports: dict[str, MemoryPort] = {}
        self.cut = False

    def door(self, name: str) -> MigrationDoor:
        return MigrationDoor(MemoryPort(self, name), PeerAccess(self._dial, FakeCredentials))

    async def _dial(self, place: tuple[str, int]) -> PeerConnection:
        port = self.ports.get(place[0])
        if self.cut or port is None or port.handler is None:
            raise NotYet(f"cannot reach the server at {place[0]}", why="the line is cut")
        there, here = asyncio.StreamReader(), asyncio.StreamReader()
        outgoing, incoming = _Writer(there), _Writer(here)
        served = PeerConnection(there, cast(asyncio.StreamWriter, incoming))
        task = asyncio.create_task(_answered(served, port.handler))
        port.tasks.add(task)
        task.add_done_callback(port.tasks.discard)
        return PeerConnection(here, cast(asyncio.StreamWriter, outgoing))


async def _answered(connection: PeerConnection, serve: Serve) -> None:
    try:
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            await answer(connection, serve)
    finally:
        connection.close()
