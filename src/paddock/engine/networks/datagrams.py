"""UDP to a guest: datagrams in a queue of bounded length, as asyncio has no streams for them."""

import asyncio
import socket
from typing import cast

from paddock.engine import namespace
from paddock.engine.networks.errors import GuestUnreachable

_MOST_WAITING = 512


class Datagrams(asyncio.DatagramProtocol):
    """One flow: what is sent goes to one port of a guest, what is received came from it."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_WAITING)
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Neither asyncio's own nor uvloop's transport says that it is one.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: object) -> None:
        """From the guest; too many are dropped, as UDP may."""
        if not self._waiting.full():
            self._waiting.put_nowait(data)

    def error_received(self, exc: Exception) -> None:
        """Nobody listens at the moment; the next datagram may find somebody."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The end, for whoever receives."""
        if self._waiting.full():
            self._waiting.get_nowait()
        self._waiting.put_nowait(None)

    def send(self, data: bytes) -> None:
        """To the guest; never waits."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(data)

    async def receive(self) -> bytes | None:
        """The next datagram; None at the end."""
        return await self._waiting.get()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def open_datagrams(place: tuple[str, int]) -> Datagrams:
    """A flow to a place."""
    try:
        sending = await namespace.connected(*place, socket.SOCK_DGRAM)
        _, flow = await asyncio.get_running_loop().create_datagram_endpoint(Datagrams, sock=sending)
    except OSError as error:
        raise GuestUnreachable(f"cannot send to {place[0]}:{place[1]}", why=error.strerror or str(error)) from error
    return flow
