"""The limits of one client at the edge: sizes, time, connections. Over sockets of loopback, without TLS."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import orjson
import pytest

from paddock.server.edge.http import Answer, HttpRequest, HttpResponse, StreamResponse, StreamSink
from paddock.server.edge.limits import ConnectionLimits
from paddock.server.edge.server import Server
from tests.coroutines import played_by, run_by, timeless
from tests.unit.server.edge.fakeclient import ASK, connected

LONG = 3600.0
# Short, and never reached in a test that does not want it.
SHORT = 0.05


class Edge:
    """A server whose answers are what the test wants, and a client of it."""

    def __init__(self, limits: ConnectionLimits, answer: Callable[[HttpRequest], Answer]) -> None:
        self.seen: list[HttpRequest] = []
        self.told: list[tuple[str, str, int]] = []
        self._answer = answer
        self.server = Server(self._handle, tls=None, limits=limits)
        self.server.census.tell = lambda request, said: self.told.append((request.method, request.path, said.status))

    async def _handle(self, request: HttpRequest) -> Answer:
        self.seen.append(request)
        await request.receive("user")
        return self._answer(request)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, raw: bytes) -> bytes:
        """Send bytes, and read until the server closes or has answered."""
        reader, writer = await self.connect()
        writer.write(raw)
        try:
            async with asyncio.timeout(5):
                return await reader.read()
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def __aenter__(self) -> "Edge":
        self.port = await self.server.listen("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.close(0.0)


def play(
    limits: ConnectionLimits,
    script: Callable[[Edge], Awaitable[None]],
    answer: Callable[[HttpRequest], Answer] = lambda _: HttpResponse(200, b"ok"),
) -> None:
    async def inside() -> None:
        async with Edge(limits, answer) as edge:
            await script(edge)

    asyncio.run(inside())


def status(raw: bytes) -> int:
    return int(raw.split(b" ", 2)[1])


def post(body: bytes, *headers: str) -> bytes:
    lines = ["POST /x HTTP/1.1", "host: a", f"content-length: {len(body)}", "connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


LIMITS = ConnectionLimits(head_bytes=2000, headers=20, body_bytes=100, receive_seconds=LONG, idle_seconds=LONG)
REFUSED: list[tuple[bytes, int]] = [
    (post(b"x" * 100), 200),
    (post(b"x" * 101), 413),
    (b"POST /x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n65\r\n" + b"x" * 101 + b"\r\n", 413),
    (post(b"", "long: " + "x" * 2000), 431),
    (post(b"", *(f"h{number}: x" for number in range(20))), 431),
    (b"GET /" + b"x" * 3000, 431),
    (post(b"", "content-length: 5"), 400),
    (post(b"", "transfer-encoding: chunked"), 400),
    (post(b"", "authorization: Bearer a", "authorization: Bearer b"), 400),
    (b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: +5\r\n\r\nhello", 400),
    (b"\x16\x03\x01\x02\x00", 400),
    (b"GET http://other/ HTTP/1.1\r\nhost: a\r\n\r\n", 400),
]


@pytest.mark.parametrize(("raw", "expected"), REFUSED)
@played_by(play, LIMITS)
async def test_what_is_too_large_or_no_request_is_refused(edge: Edge, /, raw: bytes, expected: int) -> None:
    assert status(await edge.ask(raw)) == expected
    assert len(edge.seen) == (expected == 200)


@played_by(play, LIMITS)
async def test_a_body_that_is_too_large_is_told_of_in_the_words_of_kubernetes(edge: Edge, /) -> None:
    raw = await edge.ask(post(b"x" * 101))
    said = orjson.loads(raw.partition(b"\r\n\r\n")[2])
    assert (said["code"], said["reason"]) == (413, "RequestEntityTooLarge")
    assert said["message"].endswith("limit is 100")
    assert edge.told == [("POST", "/x", 413)]


@pytest.mark.parametrize(
    "sent", [b"G", b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-le", b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhal"]
)
@played_by(play, ConnectionLimits(receive_seconds=SHORT, idle_seconds=LONG))
async def test_who_sends_too_slowly_is_cut_off(edge: Edge, /, sent: bytes) -> None:
    assert status(await edge.ask(sent)) == 408
    assert not edge.server.census.members


@played_by(play, ConnectionLimits(receive_seconds=SHORT, idle_seconds=LONG))
async def test_who_sends_nothing_is_cut_off(edge: Edge, /) -> None:
    assert await edge.ask(b"") == b""


@played_by(play, ConnectionLimits(receive_seconds=LONG, idle_seconds=SHORT))
async def test_an_idle_connection_is_not_kept(edge: Edge, /) -> None:
    raw = await edge.ask(b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n")
    assert status(raw) == 200
    assert raw.count(b"HTTP/1.1") == 1


@timeless
async def test_a_connection_that_is_used_is_kept() -> None:
    _, client = connected(lambda _: HttpResponse(200, b"ok"), greedy=False, limits=ConnectionLimits(idle_seconds=100))
    for _ in range(6):
        client.send(ASK)
        await asyncio.sleep(60)
    # Now it idles, and it has no more time than at first.
    await asyncio.sleep(39)
    assert not client.is_closing()
    await asyncio.sleep(2)
    assert client.is_closing() and len(client.answers) == 6


@timeless
async def test_a_request_that_begins_before_the_last_answer_has_no_more_time_than_others() -> None:
    _, client = connected(lambda _: HttpResponse(200, b"ok"), greedy=False, limits=ConnectionLimits(receive_seconds=10, idle_seconds=100))
    client.send(ASK + ASK[:9])
    await asyncio.sleep(9)
    assert not client.is_closing()
    await asyncio.sleep(2)
    assert client.is_closing() and [status for _, status, _ in client.answers] == [200, 408]


@pytest.mark.parametrize("endless", [b"a" * 1000, b"a: 1\r\n" * 200, b"\r\na: " + b"b" * 995])
@timeless
async def test_a_trailer_has_the_limit_of_a_head(endless: bytes) -> None:
    _, client = connected(lambda _: HttpResponse(200, b"ok"), greedy=False, limits=ConnectionLimits(head_bytes=5000))
    client.send(b"POST /x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\na: ")
    for _ in range(6):
        client.send(endless)
    assert client.is_closing() and [status for _, status, _ in client.answers] == [431]


@timeless
async def test_a_body_of_small_pieces_has_the_limit_of_a_body() -> None:
    seen: list[int] = []

    def remember(request: HttpRequest) -> HttpResponse:
        seen.append(len(request.body))
        return HttpResponse(200)

    _, client = connected(remember, greedy=False, limits=ConnectionLimits(head_bytes=99))
    client.send(b"POST /x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
    for _ in range(1000):
        client.send(b"2\r\n")
        client.send(b"hi\r\n")
    client.send(b"0\r\n\r\n")
    await asyncio.sleep(0.1)
    assert seen == [2000]


@played_by(play, ConnectionLimits(receive_seconds=SHORT, idle_seconds=LONG))
async def test_who_sends_a_later_request_too_slowly_is_cut_off(edge: Edge, /) -> None:
    reader, writer = await edge.connect()
    async with asyncio.timeout(5):
        writer.write(b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n")
        await reader.readuntil(b"ok")
        writer.write(b"GET /y HT")
        assert status(await reader.read()) == 408
    writer.close()


@played_by(play, LIMITS)
async def test_fields_behind_a_body_are_no_headers(edge: Edge, /) -> None:
    head = b"POST /x HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    assert status(await edge.ask(head + b"2\r\nhi\r\n0\r\nimpersonate-user: root\r\n\r\n")) == 200
    (seen,) = edge.seen
    assert (seen.body, sorted(seen.headers)) == (b"hi", ["connection", "host", "transfer-encoding"])


CROWDED = [ConnectionLimits(connections=2), ConnectionLimits(connections_per_address=2)]


@pytest.mark.parametrize("limits", CROWDED)
@run_by(asyncio.run)
async def test_who_comes_when_all_are_at_work_is_told_to_come_again(limits: ConnectionLimits) -> None:
    over = asyncio.Event()

    async def stream(sink: StreamSink) -> None:
        sink.write(b"ok")
        await over.wait()

    async with Edge(limits, lambda _: StreamResponse(200, stream)) as edge:
        asked = b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n"
        kept = [await edge.connect() for _ in range(2)]
        for reader, writer in kept:
            writer.write(asked)
            await reader.readuntil(b"ok")
        raw = await edge.ask(asked)
        head, _, body = raw.partition(b"\r\n\r\n")
        assert status(raw) == 429
        assert b"retry-after: 1" in head
        assert orjson.loads(body)["reason"] == "TooManyRequests"
        assert (len(edge.seen), edge.server.census.refused) == (2, 1)
        over.set()
        for _, writer in kept:
            writer.close()
        while edge.server.census.members:
            await asyncio.sleep(0.01)
        reader, writer = await edge.connect()
        writer.write(asked)
        assert b"200 OK" in await reader.readuntil(b"ok")
        writer.close()


@pytest.mark.spec("kube-api", 158)
@pytest.mark.parametrize("limits", CROWDED)
@played_by(play, "limits")
async def test_the_one_that_idles_for_longest_gives_way_and_strangers_first(edge: Edge, /) -> None:
    async def used(*fields: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await edge.connect()
        writer.write(("\r\n".join(["GET /x HTTP/1.1", "host: a", *fields]) + "\r\n\r\n").encode())
        await reader.readuntil(b"ok")
        return reader, writer

    async def is_open(reader: asyncio.StreamReader) -> bool:
        await asyncio.sleep(0.05)
        return not reader.at_eof()

    member = await used("authorization: Bearer x")
    stranger = await used()
    others = [await used()]
    assert await is_open(member[0]) and not await is_open(stranger[0]) and await is_open(others[0][0])
    others.append(await used("authorization: Bearer x"))
    assert await is_open(member[0]) and not await is_open(others[0][0])
    # Now all are known: the oldest goes.
    others.append(await used("authorization: Bearer x"))
    assert not await is_open(member[0]) and await is_open(others[1][0]) and await is_open(others[2][0])
    assert edge.server.census.refused == 0
    for _, writer in (member, stranger, *others):
        writer.close()


@played_by(play, ConnectionLimits(connections_per_address=2))
async def test_a_slow_sender_gives_way_too(edge: Edge, /) -> None:
    slow = [await edge.connect() for _ in range(2)]
    for _, writer in slow:
        writer.write(b"GET /x HT")
    assert status(await edge.ask(post(b""))) == 200
    for _, writer in slow:
        writer.close()


@played_by(play, ConnectionLimits(send_seconds=SHORT), answer=lambda _: HttpResponse(200, b"x" * 64 * 1024 * 1024))
async def test_who_does_not_take_its_answer_is_cut_off(edge: Edge, /) -> None:
    reader, writer = await edge.connect()
    # The window is kept small, so that what is not read stays with the server.
    writer.write(b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n")
    while not edge.seen:
        await asyncio.sleep(0)
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    async with asyncio.timeout(5):
        while edge.server.census.members:
            await asyncio.sleep(0.01)
    writer.transport.abort()


@played_by(play, ConnectionLimits(send_seconds=SHORT, pipelined=1000), answer=lambda _: HttpResponse(200, b"x" * 100_000))
async def test_who_asks_and_takes_no_answer_is_cut_off(edge: Edge, /) -> None:
    """Also where each answer is small: they would fill the memory of the server."""
    reader, writer = await edge.connect()
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    async with asyncio.timeout(5):
        while not edge.server.census.members:
            await asyncio.sleep(0)
        while edge.server.census.members:
            if not writer.transport.is_closing():
                writer.write(ASK * 8)
            await asyncio.sleep(0.001)
    writer.transport.abort()
    assert len(edge.seen) * 100_000 < 16 * 1024 * 1024


@timeless
async def test_a_handler_with_a_defect_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: HttpRequest) -> HttpResponse:
        raise ValueError("a defect")

    _, client = connected(broken, greedy=False)
    client.send(ASK)
    await asyncio.sleep(0.1)
    assert client.is_closing() and "a request was not answered" in caplog.text


@run_by(asyncio.run)
async def test_a_stream_is_not_cut_off_for_being_quiet() -> None:
    done = asyncio.Event()

    async def quiet(sink: StreamSink) -> None:
        await asyncio.sleep(4 * SHORT)
        sink.write(b"still here")
        done.set()

    async with Edge(
        ConnectionLimits(receive_seconds=SHORT, idle_seconds=SHORT, send_seconds=SHORT), lambda _: StreamResponse(200, quiet)
    ) as edge:
        raw = await edge.ask(b"GET /x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        assert b"still here" in raw
        assert done.is_set()


@played_by(play, ConnectionLimits(pipelined=16))
async def test_more_requests_in_a_pipeline_than_are_taken(edge: Edge, /) -> None:
    one: Any = b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n"
    raw = await edge.ask(one * 40)
    assert raw.count(b"HTTP/1.1 200") <= 17
    assert raw.count(b"HTTP/1.1 429") == 1
