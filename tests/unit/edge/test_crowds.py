"""Many clients at once: new ones are let in, and those who do not wait when they are asked to are not read meanwhile."""

import asyncio
import socket
from collections.abc import Callable

import pytest
import uvloop

from paddock.edge.connection import LONGEST_REST, ServerConnection
from paddock.edge.http import Answer, ConnectionPeer, HttpRequest, HttpResponse
from paddock.edge.limits import ConnectionLimits, ConnectionStats
from paddock.edge.server import Server
from tests.scripted import timeless

ASK = b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n"
LIMITS = ConnectionLimits()
# Turns of the loop in which all are let in.
TURNS = 6


async def ok(request: HttpRequest) -> Answer:
    return HttpResponse(200, b"ok")


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_all_who_knock_are_let_in_within_a_few_turns(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def script() -> None:
        server = Server(ok, tls=None, limits=LIMITS)
        port = await server.listen("127.0.0.1", 0)
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert len(server.census.members) == len(clients)
        for client in clients:
            client.close()
        await server.close(0.0)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(script())


class Transport:
    """A client that asks again as soon as it has an answer: what it has sent is read when somebody reads."""

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


def connected(handler: Callable[[HttpRequest], HttpResponse], greedy: bool = True) -> tuple[ServerConnection, Transport]:
    async def handle(request: HttpRequest) -> Answer:
        return handler(request)

    connection = ServerConnection(handle, LIMITS, ConnectionStats(LIMITS), lambda _: ConnectionPeer("a"))
    return connection, Transport(connection, greedy)


def busy(request: HttpRequest) -> HttpResponse:
    return HttpResponse(429, b"", (("retry-after", "1"),))


def fine(request: HttpRequest) -> HttpResponse:
    return HttpResponse(200, b"ok")


@timeless
async def test_a_client_that_does_not_wait_is_not_read_before_its_pause_is_over() -> None:
    _, client = connected(busy)
    client.send(ASK)
    await asyncio.sleep(30)
    # The pause is what the answer said, twice as long each time.
    assert client.answers == [(0, 429, "1"), (1, 429, "2"), (3, 429, "4"), (7, 429, "8"), (15, 429, "8"), (23, 429, "8")]
    assert LONGEST_REST == 8
    client.close()


@timeless
async def test_an_answer_ends_the_row_of_rejections() -> None:
    answers = [busy, busy, fine, busy]
    _, client = connected(lambda request: (answers.pop(0) if len(answers) > 1 else answers[0])(request))
    client.send(ASK)
    await asyncio.sleep(3.5)
    assert client.answers == [(0, 429, "1"), (1, 429, "2"), (3, 200, ""), (3, 429, "1")]
    client.close()


@timeless
async def test_a_client_that_waits_is_answered_at_once() -> None:
    answers = [busy, fine]
    _, client = connected(lambda request: answers.pop(0)(request), greedy=False)
    client.send(ASK)
    await asyncio.sleep(1.5)
    client.send(ASK)
    await asyncio.sleep(0.1)
    assert client.answers == [(0, 429, "1"), (1.5, 200, "")]
    client.close()


@timeless
async def test_requests_that_were_read_with_the_rejected_one_wait_too() -> None:
    seen: list[float] = []

    def handle(request: HttpRequest) -> HttpResponse:
        seen.append(asyncio.get_running_loop().time())
        return busy(request) if len(seen) == 1 else HttpResponse(200, b"ok")

    _, client = connected(handle, greedy=False)
    client.send(ASK * 3)
    await asyncio.sleep(5)
    assert seen == [0, 1, 1]
    client.close()


@timeless
async def test_a_rejection_that_names_no_time_costs_none() -> None:
    answers = [HttpResponse(429, b""), HttpResponse(200, b"ok")]
    _, client = connected(lambda _: answers.pop(0), greedy=False)
    client.send(ASK * 2)
    await asyncio.sleep(0.1)
    assert client.answers == [(0, 429, ""), (0, 200, "")]
    client.close()


@timeless
async def test_a_server_that_ends_does_not_wait_for_those_who_rest() -> None:
    connection, client = connected(busy)
    client.send(ASK)
    await asyncio.sleep(0.5)
    connection.stop()
    await asyncio.sleep(0)
    assert client.is_closing()
    await asyncio.sleep(10)
    assert len(client.answers) == 1
