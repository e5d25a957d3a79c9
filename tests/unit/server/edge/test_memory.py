"""What the edge keeps of clients: little of those who may send nothing, a budget of all others, and nothing of those who have gone."""

import asyncio
import gc
from collections.abc import Awaitable, Callable

import orjson
import pytest

from paddock.server.edge.bodybudget import MOST_WAITING_OF_ONE, ROOM_SECONDS, BodyBudget, NoRoom
from paddock.server.edge.connection import ServerConnection
from paddock.server.edge.http import Answer, ConnectionPeer, HttpRequest, HttpResponse, StreamResponse, StreamSink
from paddock.server.edge.limits import ConnectionLimits, ConnectionStats
from paddock.server.edge.server import Server
from tests.coroutines import run_by, timeless
from tests.unit.server.edge.fakeclient import FakeClient

LARGE = 100_000
LIMITS = ConnectionLimits(receive_seconds=30)
Handle = Callable[[HttpRequest], Awaitable[Answer]]


def post(size: int, *fields: str) -> bytes:
    return ("\r\n".join(["POST /x HTTP/1.1", "host: a", f"content-length: {size}", *fields]) + "\r\n\r\n").encode()


class Client(FakeClient):
    """A client whose answers are collected as bytes."""

    def __init__(self, handler: Handle, census: ConnectionStats, limits: ConnectionLimits = LIMITS) -> None:
        self.said = b""
        super().__init__(ServerConnection(handler, limits, census, lambda _: ConnectionPeer("a")), greedy=False)

    def write(self, data: bytes) -> None:
        self.said += data

    @property
    def statuses(self) -> list[int]:
        return [int(each.split()[0]) for each in self.said.split(b"HTTP/1.1 ")[1:]]

    @property
    def unread(self) -> int:
        return sum(map(len, self._unread))

    def drip(self, size: int) -> None:
        """Send many bytes, in pieces as they are read."""
        for start in range(0, size, 4096):
            self.send(b"x" * min(4096, size - start))


class Site:
    """A handler that lets some have their bodies received, and answers when it is told to."""

    def __init__(self, limits: ConnectionLimits = LIMITS) -> None:
        self.limits = limits
        self.census = ConnectionStats(limits)
        self.bodies: list[int] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    def client(self) -> Client:
        return Client(self.handle, self.census, self.limits)

    async def handle(self, request: HttpRequest) -> Answer:
        if request.headers.get("authorization") == "nobody":
            return HttpResponse(401, b"no")
        if request.method == "GET" and request.path == "/watch":
            return StreamResponse(200, self._stream)
        await request.receive(request.headers.get("authorization", "user"))
        await self.may_answer.wait()
        self.bodies.append(len(request.body))
        return HttpResponse(200, b"ok")

    async def _stream(self, sink: StreamSink) -> None:
        sink.write(b"event")
        await sink.gone()


@pytest.mark.spec("kube-api", 156)
@timeless
async def test_nothing_large_is_read_of_somebody_who_may_not_send_it() -> None:
    site = Site()
    client = site.client()
    client.send(post(LARGE, "authorization: nobody"))
    # The head is enough for the answer.
    await asyncio.sleep(0.01)
    assert client.statuses == [401] and b"connection: close" in client.said
    client.drip(LARGE - 1)
    assert (site.census.bodies.held, site.bodies) == (0, [])
    await asyncio.sleep(6)
    assert client.is_closing()


@timeless
async def test_a_large_body_is_received_and_the_connection_is_kept() -> None:
    site = Site()
    client = site.client()
    for _ in range(3):
        client.send(post(LARGE))
        await asyncio.sleep(0.01)
        assert site.census.bodies.held == LARGE
        client.drip(LARGE)
        await asyncio.sleep(0.01)
        client.send(post(2) + b"hi")
        await asyncio.sleep(0.01)
    assert (client.statuses, site.bodies) == ([200] * 6, [LARGE, 2] * 3)
    assert site.census.bodies.held == 0 and not client.is_closing()


@timeless
async def test_a_sender_of_a_large_body_is_told_to_go_on_when_there_is_room() -> None:
    site = Site(ConnectionLimits(body_bytes=LARGE, bodies_bytes=LARGE))
    first, second = site.client(), site.client()
    site.may_answer.clear()
    first.send(post(LARGE, "authorization: one", "expect: 100-continue"))
    await asyncio.sleep(0.01)
    assert first.statuses == [100]
    first.drip(LARGE)
    second.send(post(LARGE, "authorization: two", "expect: 100-continue"))
    await asyncio.sleep(5)
    assert second.statuses == []
    site.may_answer.set()
    await asyncio.sleep(0.01)
    assert (first.statuses, second.statuses) == ([100, 200], [100])
    for each in (first, second):
        each.close()


@pytest.mark.spec("kube-api", 156)
@timeless
async def test_a_body_waits_unread_for_room_and_is_refused_after_a_time() -> None:
    site = Site(ConnectionLimits(body_bytes=LARGE, bodies_bytes=2 * LARGE))
    site.may_answer.clear()
    clients = [site.client() for _ in range(3)]
    for number, client in enumerate(clients):
        client.send(post(LARGE, f"authorization: {number}"))
        await asyncio.sleep(0.01)
        client.drip(LARGE)
    await asyncio.sleep(ROOM_SECONDS - 1)
    assert (site.census.bodies.held, clients[2].statuses) == (2 * LARGE, [])
    assert clients[2].unread >= LARGE - 4096
    await asyncio.sleep(2)
    assert clients[2].statuses == [429]
    head, _, body = clients[2].said.partition(b"\r\n\r\n")
    assert b"retry-after: 1" in head and orjson.loads(body)["reason"] == "TooManyRequests"
    # A small request needs no room.
    newcomer = site.client()
    site.may_answer.set()
    newcomer.send(post(1) + b"x")
    await asyncio.sleep(0.01)
    assert newcomer.statuses == [200]
    assert site.census.bodies.held == 0


@pytest.mark.parametrize("length", [f"content-length: {LARGE}", "transfer-encoding: chunked"])
@timeless
async def test_a_body_that_does_not_arrive_in_time_gives_its_room_back(length: str) -> None:
    site = Site()
    client = site.client()
    client.send(f"POST /x HTTP/1.1\r\nhost: a\r\n{length}\r\n\r\n".encode())
    if "chunked" in length:
        client.send(b"8000\r\n" + b"x" * 32768)
    await asyncio.sleep(29)
    assert site.census.bodies.held in (LARGE, LIMITS.body_bytes)
    await asyncio.sleep(2)
    assert client.statuses == [408] and site.census.bodies.held == 0
    await asyncio.sleep(6)
    assert client.is_closing()


@timeless
async def test_a_body_without_a_length_has_the_limit_of_a_body() -> None:
    site = Site(ConnectionLimits(body_bytes=LARGE))
    client = site.client()
    client.send(b"POST /x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
    for _ in range(10):
        client.send(b"8000\r\n" + b"x" * 32768 + b"\r\n")
        await asyncio.sleep(0.01)
    assert client.statuses == [413] and site.census.bodies.held == 0
    client.close()


@timeless
async def test_a_client_that_goes_gives_its_room_back() -> None:
    site = Site(ConnectionLimits(body_bytes=LARGE, bodies_bytes=LARGE))
    clients = [site.client() for _ in range(3)]
    for number, client in enumerate(clients):
        client.send(post(LARGE, f"authorization: {number}"))
        await asyncio.sleep(0.01)
    clients[1].close()
    clients[0].close()
    await asyncio.sleep(0.01)
    clients[2].drip(LARGE)
    await asyncio.sleep(0.01)
    assert clients[2].statuses == [200] and site.census.bodies.held == 0


@pytest.mark.spec("kube-api", 157)
@timeless
async def test_a_request_is_not_read_before_the_one_before_it_is_answered() -> None:
    site = Site()
    site.may_answer.clear()
    client = site.client()
    client.send(post(0))
    client.send(post(LARGE))
    client.drip(LARGE)
    await asyncio.sleep(1)
    assert client.unread >= LARGE and site.census.bodies.held == 0
    site.may_answer.set()
    await asyncio.sleep(0.01)
    assert (client.statuses, site.bodies, client.unread) == ([200, 200], [0, LARGE], 0)


@pytest.mark.spec("kube-api", 157)
@timeless
async def test_a_client_that_sends_much_behind_a_watch_is_disconnected() -> None:
    site = Site()
    client = site.client()
    client.send(b"GET /watch HTTP/1.1\r\nhost: a\r\n\r\n")
    await asyncio.sleep(0.01)
    client.send(post(LARGE))
    await asyncio.sleep(60)
    # A watch goes on beside a request that waits.
    assert client.statuses == [200] and not client.is_closing()
    client.drip(LARGE)
    assert client.is_closing() and client.unread >= LARGE - 5 * 4096


@timeless
async def test_a_request_that_waits_behind_a_watch_has_its_time_afterwards() -> None:
    site = Site()
    over = asyncio.Event()

    async def stream(sink: StreamSink) -> None:
        await over.wait()

    async def handle(request: HttpRequest) -> Answer:
        return StreamResponse(200, stream) if request.path == "/watch" else await site.handle(request)

    client = Client(handle, site.census)
    client.send(b"GET /watch HTTP/1.1\r\nhost: a\r\n\r\n" + post(100))
    await asyncio.sleep(100)
    over.set()
    await asyncio.sleep(29)
    assert client.statuses == [200]
    await asyncio.sleep(2)
    assert client.statuses == [200, 408] and client.is_closing()


@pytest.mark.spec("kube-api", 156)
@timeless
async def test_a_user_with_a_share_does_not_keep_others_waiting() -> None:
    budget = BodyBudget(400, 100)
    await budget.take("greedy", 60)
    waiting = [asyncio.create_task(budget.take("greedy", 60)) for _ in range(10)]
    await asyncio.sleep(1)
    async with asyncio.timeout(0):
        # Larger than a share, and alone.
        await budget.take("other", 300)
    assert budget.held == 360
    budget.give_back("greedy", 60)
    await asyncio.sleep(0.1)
    # No more than fits in all, though the share would allow it.
    assert budget.held == 360 and sum(task.done() for task in waiting) == 1
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    budget.give_back("other", 300)
    budget.give_back("greedy", 60)
    assert budget.held == 0


@timeless
async def test_no_more_than_some_bodies_wait() -> None:
    budget = BodyBudget(100, 100)
    await budget.take("a", 100)
    waiting = [asyncio.create_task(budget.take("a", 100)) for _ in range(MOST_WAITING_OF_ONE)]
    await asyncio.sleep(0)
    with pytest.raises(NoRoom):
        await budget.take("a", 100)
    others = asyncio.create_task(budget.take("b", 100))
    await asyncio.sleep(ROOM_SECONDS + 1)
    assert all(isinstance(task.exception(), NoRoom) for task in (*waiting, others))


@pytest.mark.spec("kube-api", 159)
@pytest.mark.parametrize(
    "sent", [b"", b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n", b"GET /watch HTTP/1.1\r\nhost: a\r\n\r\n", post(LARGE), b"\x00"]
)
@run_by(asyncio.run)
async def test_nothing_is_kept_of_a_connection_that_has_gone(sent: bytes) -> None:
    """Not even for the next collection, which may be far."""

    def kept() -> int:
        return sum(isinstance(each, ServerConnection) for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        site = Site()
        server = Server(site.handle, tls=None)
        port = await server.listen("127.0.0.1", 0)
        for _ in range(5):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            while not server.census.members:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.02)
            if server.census.members:
                server.census.members.copy().pop().abort()
            writer.transport.abort()
            while server.census.members:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        count = kept()
        await server.close(0.0)
        assert count == 0
    finally:
        gc.enable()
