"""The name server of machines: answers what the zone knows, and asks the host's resolvers for the rest.

Guests are hostile: the number of questions that wait for others is bounded, per guest and in all, as is what is kept.
"""

import asyncio
import contextlib
import errno
import os
import socket
import struct
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from typing import cast

from paddock.engine import namespace
from paddock.engine.networks import dns
from paddock.engine.networks.dns import Zone
from paddock.engine.networks.errors import NetworkBusy

_PORT = 53
_ATTEMPTS, _PAUSE_SECONDS = 20, 0.1
_UPSTREAM_SECONDS = 2.0
_TCP_SECONDS = 10.0
_MOST_WAITING, _MOST_OF_ONE = 512, 64
_MOST_KEPT, _LONGEST_KEPT = 2000, 30
_MOST_CONNECTIONS = 64

Nameservers = Callable[[], tuple[str, ...]]


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: "DnsServer") -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Neither asyncio's own nor uvloop's transport says that it is one.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._server.ask(data, addr[0], lambda answer: self._send(answer, addr))

    def _send(self, answer: bytes, addr: tuple[str, int]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(answer, addr)


class DnsServer:
    """A server at the host's addresses."""

    def __init__(self, zone: Callable[[], Zone], nameservers: Nameservers, *, seconds: Callable[[], float]) -> None:
        self._zone = zone
        self._nameservers = nameservers
        self._seconds = seconds
        # question without its id -> (until when, answer without its id)
        self._kept: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()
        self._waiting: dict[asyncio.Task[None], str] = {}
        self._of_one: Counter[str] = Counter()
        self._transports: list[asyncio.BaseTransport] = []
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._own: tuple[str, ...] = ()

    async def listen(self, *addresses: str, port: int = _PORT) -> None:
        """Answer at addresses, UDP and TCP. A Paddock that is just ending may have them for a moment."""
        self._own = addresses
        for left in reversed(range(_ATTEMPTS)):
            try:
                for address in addresses:
                    await self._listen(address, port)
                return
            except OSError as error:
                await self.close()
                if not left or error.errno != errno.EADDRINUSE:
                    raise NetworkBusy(f"cannot answer DNS at {address}", why=error.strerror or str(error)) from error
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _listen(self, address: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        bound = namespace.bound(address, port, socket.SOCK_DGRAM)
        transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), sock=bound)
        self._transports.append(transport)
        port = transport.get_extra_info("sockname")[1]
        self._servers.append(await asyncio.start_server(self._connection, sock=namespace.bound(address, port, socket.SOCK_STREAM)))

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._transports[0].get_extra_info("sockname")[1])

    async def close(self) -> None:
        """Answer no more."""
        for transport in self._transports:
            transport.close()
        for server in self._servers:
            server.close()
        self._transports, self._servers = [], []
        tasks = [*self._waiting, *self._connections]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Sockets are closed in the loop's next turn.
        await asyncio.sleep(0)

    def ask(self, data: bytes, client: str, send: Callable[[bytes], None]) -> None:
        """A query that came by UDP. What is known is answered at once."""
        said = self._own_answer(data, truncate=True)
        if said is not None:
            if said:
                send(said)
            return
        if len(self._waiting) >= _MOST_WAITING or self._of_one[client] >= _MOST_OF_ONE:
            send(dns.error(int.from_bytes(data[:2], "big"), dns.REFUSED))
            return
        task = asyncio.create_task(self._relay(data, send))
        self._waiting[task] = client
        self._of_one[client] += 1
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        client = self._waiting.pop(task)
        self._of_one[client] -= 1
        if not self._of_one[client]:
            del self._of_one[client]

    def _own_answer(self, data: bytes, *, truncate: bool) -> bytes | None:
        """The answer from what is known; empty where there is none to be given; None when others have to be asked."""
        try:
            question = dns.read(data)
        except dns.MalformedQuery as error:
            return dns.error(error.id, error.code) if error.id else b""
        found = self._zone().look(question)
        if found is not None:
            return dns.answer(question, *found, truncate=truncate)
        kept = self._kept.get(data[2:])
        if kept is not None and kept[0] > self._seconds() and (not truncate or len(kept[1]) + 2 <= question.size):
            return data[:2] + kept[1]
        return None

    async def _relay(self, data: bytes, send: Callable[[bytes], None]) -> None:
        answer = await self._upstream(data, _ask_udp)
        send(answer if answer is not None else dns.error(int.from_bytes(data[:2], "big"), dns.FAILURE))

    async def _upstream(self, data: bytes, ask: Callable[[str, bytes], Awaitable[bytes]]) -> bytes | None:
        """The answer of the first resolver that has one."""
        for server in self._nameservers():
            if server in self._own:
                continue
            number = os.urandom(2)
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(_UPSTREAM_SECONDS):
                    answer = await ask(server, number + data[2:])
                if _is_answer(answer, number, data):
                    self._keep(data, answer)
                    return data[:2] + answer[2:]
        return None

    def _keep(self, data: bytes, answer: bytes) -> None:
        seconds = min(dns.lifetime(answer), _LONGEST_KEPT)
        if seconds:
            self._kept[data[2:]] = (self._seconds() + seconds, answer[2:])
            self._kept.move_to_end(data[2:])
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._connections) >= _MOST_CONNECTIONS:
            writer.close()
            return
        self._connections.add(task)
        try:
            async with asyncio.timeout(_TCP_SECONDS):
                await self._converse(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            # asyncio would tell about a task of its own that was cancelled.
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            data = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
            answer = self._own_answer(data, truncate=False)
            if answer is None:
                answer = await self._upstream(data, _ask_tcp)
            if answer is None:
                answer = dns.error(int.from_bytes(data[:2], "big"), dns.FAILURE)
            if not answer:
                return
            writer.write(struct.pack("!H", len(answer)) + answer)
            await writer.drain()


def _is_answer(answer: bytes, number: bytes, asked: bytes) -> bool:
    """Return whether it answers this very question: wrong guesses are ignored."""
    if len(answer) < 12 or answer[:2] != number or not answer[2] & 0x80:
        return False
    question = dns.read(asked).raw
    return answer[12 : 12 + len(question)].lower() == question.lower() or answer[4:6] == b"\0\0"


async def _ask_udp(server: str, data: bytes) -> bytes:
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    # A socket for each question: its port is as hard to guess as its number.
    with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as asking:
        asking.connect((server, _PORT))
        await loop.sock_sendall(asking, data)
        return await loop.sock_recv(asking, 4096)


async def _ask_tcp(server: str, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(server, _PORT)
    try:
        writer.write(struct.pack("!H", len(data)) + data)
        return await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
    finally:
        writer.close()
