"""Bytes between a client and a guest: TCP with half-closes and back-pressure, UDP with flows that end when they are silent."""

import asyncio
import contextlib
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import cast

from paddock.base.errors import PaddockError
from paddock.engine import namespace
from paddock.engine.networks.datagrams import Datagrams, open_datagrams

# Where a client's connection goes now; None: nowhere. Asked again after a failure, with what failed.
Choose = Callable[[str], Awaitable[tuple[str, int] | None]]
_CONNECT_SECONDS = 5.0
_ATTEMPTS = 3
_MOST_FLOWS = 1024
_SILENT_SECONDS = 60.0
_MOST_BUFFERED = 256 * 1024


class _Side(asyncio.Protocol):
    """One of two connected transports: what comes here goes there, and waits until there is a there."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _Side | None = None
        self._early = b""
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=_MOST_BUFFERED)

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            # Only here: the asyncio of Python 3.11 reads on after a pause that comes while the connection is made.
            self._early += data
            assert self.transport is not None
            self.transport.pause_reading()
        elif self.other.transport is not None:
            self.other.transport.write(data)

    def join(self, other: "_Side") -> None:
        """From now on everything goes to the other, first what came before."""
        self.other = other
        assert self.transport is not None and other.transport is not None
        other.transport.write(self._early)
        self._early = b""
        if self._ended:
            self.eof_received()
        self.transport.resume_reading()

    def eof_received(self) -> bool:
        self._ended = True
        other = self.other
        if other is None:
            # It may have said all it had to say, and wait for the answer.
            return True
        if other.transport is None or other.transport.is_closing():
            return False
        if other._ended:
            # Both have said everything: what is buffered is still sent.
            other.transport.close()
            return False
        with contextlib.suppress(OSError):
            other.transport.write_eof()
        return True

    def pause_writing(self) -> None:
        self._flow(on=False)

    def resume_writing(self) -> None:
        self._flow(on=True)

    def _flow(self, *, on: bool) -> None:
        other = self.other.transport if self.other is not None else None
        if other is not None and not other.is_closing():
            with contextlib.suppress(RuntimeError):
                other.resume_reading() if on else other.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        other = self.other.transport if self.other is not None else None
        if other is not None and not other.is_closing():
            # A reset is passed on as one.
            other.abort() if exc is not None else other.close()


class _Arrived(_Side):
    """The client's side."""

    def __init__(self, owner: "TcpForward") -> None:
        super().__init__()
        self._owner = owner

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._owner.arrived(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._owner.left(self)


class TcpForward:
    """Listens at one place."""

    def __init__(self, choose: Choose, allowed: Callable[[str], bool]) -> None:
        self.choose = choose
        self.allowed = allowed
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients: set[_Arrived] = set()

    async def listen(self, address: str, port: int) -> None:
        """Begin; raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Arrived(self), address, port, reuse_address=True, backlog=256)

    def close(self) -> None:
        """Listen no more; connections go on."""
        if self._server is not None:
            self._server.close()

    def end(self) -> None:
        """End the connections too."""
        self.close()
        for task in self._tasks:
            task.cancel()
        for client in [*self._clients]:
            if client.transport is not None:
                client.transport.abort()

    def arrived(self, client: _Arrived) -> None:
        """A client is there."""
        self._clients.add(client)
        task = asyncio.create_task(self._connect(client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def left(self, client: _Arrived) -> None:
        """A client is gone."""
        self._clients.discard(client)

    async def _connect(self, client: _Arrived) -> None:
        transport = client.transport
        assert transport is not None
        peer = transport.get_extra_info("peername")[0]
        guest = await self._reach(peer) if self.allowed(peer) else None
        if guest is None:
            transport.abort()
            return
        if transport.is_closing():
            assert guest.transport is not None
            guest.transport.abort()
            return
        for side, other in ((client, guest), (guest, client)):
            assert side.transport is not None
            known = side.transport.get_extra_info("socket")
            known.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            side.join(other)

    async def _reach(self, peer: str) -> _Side | None:
        loop = asyncio.get_running_loop()
        for _ in range(_ATTEMPTS):
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    place = await self.choose(peer)
                    if place is None:
                        return None
                    side = _Side()
                    guest = await namespace.connected(*place, socket.SOCK_STREAM)
                    await loop.create_connection(lambda made=side: made, sock=guest)  # type: ignore[misc]
                    return side
            except (OSError, TimeoutError, PaddockError):
                continue
        return None


class UdpForward(asyncio.DatagramProtocol):
    """Listens at one place; each client is a flow of its own."""

    def __init__(self, choose: Choose, allowed: Callable[[str], bool]) -> None:
        self.choose = choose
        self.allowed = allowed
        self._flows: OrderedDict[tuple[str, int], _Flow] = OrderedDict()
        self._transport: asyncio.DatagramTransport | None = None

    async def listen(self, address: str, port: int) -> None:
        """Begin; raises OSError."""
        loop = asyncio.get_running_loop()
        if ":" not in address:
            await loop.create_datagram_endpoint(lambda: self, local_addr=(address, port))
            return
        listening = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        try:
            # The same port of IPv4 has a listener of its own.
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.bind((address, port))
            await loop.create_datagram_endpoint(lambda: self, sock=listening)
        except BaseException:
            listening.close()
            raise

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there."""
        # Neither asyncio's own nor uvloop's transport says that it is one.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """From a client."""
        flow = self._flows.get(addr)
        if flow is None:
            if not self.allowed(addr[0]):
                return
            if len(self._flows) >= _MOST_FLOWS:
                self._flows.popitem(last=False)[1].end()
            flow = self._flows[addr] = _Flow(self, addr)
        self._flows.move_to_end(addr)
        flow.send(data)

    def error_received(self, exc: Exception) -> None:
        """A client that is gone: its flow ends by itself."""

    def answer(self, data: bytes, addr: tuple[str, int]) -> None:
        """To a client."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(data, addr)

    def forget(self, addr: tuple[str, int], flow: "_Flow") -> None:
        """A flow ended."""
        if self._flows.get(addr) is flow:
            del self._flows[addr]

    def close(self) -> None:
        """Listen no more: there is nothing left that could go on."""
        self.end()

    def end(self) -> None:
        """End all flows."""
        if self._transport is not None:
            self._transport.close()
        for flow in [*self._flows.values()]:
            flow.end()


class _Flow:
    """One client of a UDP port."""

    def __init__(self, owner: UdpForward, client: tuple[str, int]) -> None:
        self._owner = owner
        self._client = client
        self._early: list[bytes] = []
        self._guest: Datagrams | None = None
        self._heard = asyncio.get_running_loop().time()
        self._task = asyncio.create_task(self._run())

    def send(self, data: bytes) -> None:
        self._heard = asyncio.get_running_loop().time()
        if self._guest is not None:
            self._guest.send(data)
        elif len(self._early) < 16:
            self._early.append(data)

    def end(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                place = await self._owner.choose(self._client[0])
                if place is None:
                    return
                self._guest = await open_datagrams(place)
            for data in self._early:
                self._guest.send(data)
            await self._answers(self._guest)
        except (TimeoutError, PaddockError):
            return
        finally:
            if self._guest is not None:
                self._guest.close()
            self._owner.forget(self._client, self)

    async def _answers(self, guest: Datagrams) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                async with asyncio.timeout(_SILENT_SECONDS):
                    data = await guest.receive()
            except TimeoutError:
                if loop.time() - self._heard >= _SILENT_SECONDS:
                    return
                continue
            if data is None:
                return
            self._heard = loop.time()
            self._owner.answer(data, self._client)
