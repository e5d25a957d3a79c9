"""A client in this process, without a socket: its connection runs in virtual time."""

import asyncio
from collections.abc import Callable

from paddock.server.edge.connection import ServerConnection
from paddock.server.edge.http import Answer, ConnectionPeer, HttpRequest, HttpResponse
from paddock.server.edge.limits import ConnectionLimits, ConnectionStats

ASK = b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n"
LIMITS = ConnectionLimits()


class FakeClient:
    """The transport of a connection, and who is behind it: what it sends is read when somebody reads.

    A greedy client asks again as soon as it has an answer.
    """

    def __init__(self, connection: ServerConnection, greedy: bool = True) -> None:
        self._connection = connection
        self._greedy = greedy
        self._unread: list[bytes] = []
        self._paused = self._closed = False
        # (seconds, status, Retry-After) of each answer
        self.answers: list[tuple[float, int, str]] = []
        connection.connection_made(self)  # type: ignore[arg-type]

    def send(self, data: bytes) -> None:
        self._unread.append(data)
        self._read()

    def _read(self) -> None:
        while self._unread and not self._paused and not self._closed:
            self._connection.data_received(self._unread.pop(0))

    def write(self, data: bytes) -> None:
        head = data.split(b"\r\n\r\n")[0].decode()
        after = next((line.split(": ")[1] for line in head.split("\r\n") if line.startswith("retry-after")), "")
        self.answers.append((asyncio.get_running_loop().time(), int(head.split()[1]), after))
        if self._greedy:
            asyncio.get_running_loop().call_soon(self.send, ASK)

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._read()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self._closed

    def set_write_buffer_limits(self, high: int) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> None: ...


def connected(
    handler: Callable[[HttpRequest], HttpResponse], greedy: bool = True, limits: ConnectionLimits = LIMITS
) -> tuple[ServerConnection, FakeClient]:
    async def handle(request: HttpRequest) -> Answer:
        return handler(request)

    connection = ServerConnection(handle, limits, ConnectionStats(limits), lambda _: ConnectionPeer("a"))
    return connection, FakeClient(connection, greedy)
