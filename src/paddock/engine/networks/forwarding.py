"""Bytes between a client and a guest: TCP with half-closes and back-pressure, UDP with flows that end when they are silent."""

import asyncio
import contextlib
import socket
import struct
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
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
# Others have their turn in between.
_MOST_AT_ONCE = 64
_PAUSE_SECONDS = 1.0
_AT_ONCE = struct.pack("ii", 1, 0)
_LARGEST_DATAGRAM = 1 << 16
# As the kernel has it: of IPv6 with two more numbers.
_Client = tuple[str, int] | tuple[str, int, int, int]


class _Side(asyncio.Protocol):
    """One of two connected transports: what comes here goes there, and waits until there is a there."""

    # From `connection_made` on, which comes before everything else.
    transport: asyncio.Transport

    def __init__(self) -> None:
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
            self.transport.pause_reading()
        else:
            self.other.transport.write(data)

    def join(self, other: "_Side") -> None:
        """From now on everything goes to the other, first what came before."""
        self.other = other
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
        if other.transport.is_closing():
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
    def refuse(self, transport: asyncio.Transport) -> None:
        """End it by a reset, so that nobody takes silence for an answer."""
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        transport.abort()

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
    """Takes clients from one listening socket."""

    def __init__(self, choose: Choose, allowed: Callable[[str], bool]) -> None:
        self.choose = choose
        self.allowed = allowed
        self._loop = asyncio.get_running_loop()
        self._listening: socket.socket | None = None
        self._paused: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients: set[_Arrived] = set()

    def serve(self, listening: socket.socket) -> None:
        """Begin; closes the socket in the end."""
        self._listening = listening
        self._loop.add_reader(listening, self._accept, listening)

    @property
    def is_busy(self) -> bool:
        """Return True while a client is connected."""
        return bool(self._clients or self._tasks)

    def close(self) -> None:
        """Listen no more; connections go on."""
        if self._paused is not None:
            self._paused.cancel()
        if self._listening is not None:
            self._loop.remove_reader(self._listening)
            self._listening.close()
            self._listening = None

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_MOST_AT_ONCE):
            try:
                client, _ = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                # There are too many open files: they wait until some are closed.
                self._loop.remove_reader(listening)
                self._paused = self._loop.call_later(_PAUSE_SECONDS, self.serve, listening)
                return
            client.setblocking(False)
            self._start(self._arrive(client))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _arrive(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(lambda: _Arrived(self), client)

    def end(self) -> None:
        self.close()
        for task in self._tasks:
            task.cancel()
        for client in [*self._clients]:
            client.transport.abort()

    def arrived(self, client: _Arrived) -> None:
        self._clients.add(client)
        self._start(self._connect(client))

    def left(self, client: _Arrived) -> None:
        self._clients.discard(client)

    async def _connect(self, client: _Arrived) -> None:
        transport = client.transport
        peer = transport.get_extra_info("peername")[0]
        guest = await self._reach(peer) if self.allowed(peer) else None
        if guest is None:
            client.refuse(transport)
            return
        if transport.is_closing():
            guest.transport.abort()
            return
        for side, other in ((client, guest), (guest, client)):
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


class UdpForward:
    """Takes datagrams from one socket; each client is a flow of its own."""

    # flows end with their socket
    is_busy = False

    def __init__(self, choose: Choose, allowed: Callable[[str], bool]) -> None:
        self.choose = choose
        self.allowed = allowed
        self._loop = asyncio.get_running_loop()
        self._flows: OrderedDict[_Client, _Flow] = OrderedDict()
        self._socket: socket.socket | None = None

    def serve(self, listening: socket.socket) -> None:
        """Begin; closes the socket in the end."""
        self._socket = listening
        self._loop.add_reader(listening, self._receive, listening)

    def _receive(self, listening: socket.socket) -> None:
        for _ in range(_MOST_AT_ONCE):
            try:
                data, client = listening.recvfrom(_LARGEST_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:
                # A client that is gone: its flow ends by itself.
                continue
            self._received(data, client)

    def _received(self, data: bytes, client: "_Client") -> None:
        flow = self._flows.get(client)
        if flow is None:
            if not self.allowed(client[0]):
                return
            if len(self._flows) >= _MOST_FLOWS:
                self._flows.popitem(last=False)[1].end()
            flow = self._flows[client] = _Flow(self, client)
        self._flows.move_to_end(client)
        flow.send(data)

    def answer(self, data: bytes, client: "_Client") -> None:
        """To a client; what does not fit its buffer is lost, as UDP may."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.sendto(data, client)

    def forget(self, client: "_Client", flow: "_Flow") -> None:
        if self._flows.get(client) is flow:
            del self._flows[client]

    def close(self) -> None:
        """Listen no more: there is nothing left that could go on."""
        self.end()

    def end(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        for flow in [*self._flows.values()]:
            flow.end()


class _Flow:
    """One client of a UDP port."""

    def __init__(self, owner: UdpForward, client: _Client) -> None:
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
