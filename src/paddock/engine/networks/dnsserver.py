"""The name server of machines: answers what the zone knows, and asks the host's resolvers for the rest.

Guests are hostile: the number of questions that wait for others is bounded, per guest and in all, as is what is kept.
"""

import asyncio
import contextlib
import os
import socket
import struct
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial

from paddock.engine.networks import dns
from paddock.engine.networks.dns import Zone

_PORT = 53
# A client that asks more often is heard the next time.
_AT_ONCE = 64
_UPSTREAM_SECONDS = 2.0
_TCP_SECONDS = 10.0
_MOST_WAITING, _MOST_OF_ONE = 512, 64
_MOST_KEPT, _LONGEST_KEPT = 2000, 30
_MOST_CONNECTIONS = 64

Nameservers = Callable[[], tuple[str, ...]]


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
        self._connections: set[asyncio.Task[None]] = set()
        self._sockets: list[socket.socket] = []

    async def listen(self, *addresses: str, port: int = _PORT) -> None:
        """Answer at addresses, UDP and TCP; raises OSError."""
        for address in addresses:
            # TCP picks the port if it is 0: connections that end keep theirs for a minute, and a port that UDP picks may be one of them.
            self.serve(bound(address, socket.SOCK_STREAM, port))
            self.serve(bound(address, socket.SOCK_DGRAM, self.port))

    def serve(self, listening: socket.socket) -> None:
        self._sockets.append(listening)
        arrived = self._datagrams if listening.type == socket.SOCK_DGRAM else self._accept
        asyncio.get_running_loop().add_reader(listening, arrived, listening)

    def leave(self, listening: socket.socket) -> None:
        """Take nothing from a socket any more. Answers that are on their way still leave through it."""
        asyncio.get_running_loop().remove_reader(listening)
        self._sockets.remove(listening)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._sockets[0].getsockname()[1])

    @property
    def is_busy(self) -> bool:
        """Return whether clients wait for answers."""
        return bool(self._waiting or self._connections)

    async def close(self) -> None:
        for listening in [*self._sockets]:
            self.leave(listening)
            listening.close()
        tasks = [*self._waiting, *self._connections]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Sockets are closed in the loop's next turn.
        await asyncio.sleep(0)

    def _datagrams(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                data, client = listening.recvfrom(4096)
            except OSError:
                return
            self.ask(data, client[0], partial(_send, listening, client))

    def _accept(self, listening: socket.socket) -> None:
        try:
            client, _ = listening.accept()
        except OSError:
            return
        if len(self._connections) >= _MOST_CONNECTIONS:
            client.close()
            return
        client.setblocking(False)
        task = asyncio.create_task(self._connection(client))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

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
        found = self._zone().answer(question)
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
            if any(server == listening.getsockname()[0] for listening in self._sockets):
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

    async def _connection(self, client: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=client)
        try:
            async with asyncio.timeout(_TCP_SECONDS):
                await self._converse(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        finally:
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


def bound(address: str, kind: socket.SocketKind, port: int = _PORT) -> socket.socket:
    """Return a socket at an address, which listens if it is TCP's; raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, kind | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        if kind == socket.SOCK_STREAM:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
        if kind == socket.SOCK_STREAM:
            made.listen(_MOST_CONNECTIONS)
    except BaseException:
        made.close()
        raise
    return made


def _send(listening: socket.socket, client: tuple[str, int], answer: bytes) -> None:
    # A full queue is as good as a lost packet.
    with contextlib.suppress(OSError):
        listening.sendto(answer, client)


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
