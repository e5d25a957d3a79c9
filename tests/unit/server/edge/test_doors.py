"""Bodies that are read while they arrive: at the reader's pace, told apart from the requests around them, and given up when they stall."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from paddock.server.edge.http import Answer, HttpRequest, HttpResponse, StreamingRoutes
from paddock.server.edge.limits import ConnectionLimits
from paddock.server.edge.requestbody import BodyInterrupted
from paddock.server.edge.server import Server
from tests.coroutines import played_by

Script = Callable[["Site"], Awaitable[None]]
BIG = 24 * 1024 * 1024


class Site:
    """A server with one door, at /up."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.errors: list[str] = []
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.port = 0

    async def door(self, request: HttpRequest) -> Answer:
        assert request.incoming is not None and request.body == b""
        if request.path == "/up/refused":
            return HttpResponse(401, b"no")
        await self.may_read.wait()
        size = 0
        try:
            while piece := await request.incoming.read():
                size += len(piece)
        except BodyInterrupted as error:
            self.errors.append(str(error))
            return HttpResponse(400, b"broken")
        self.sizes.append(size)
        return HttpResponse(200, str(size).encode())

    async def api(self, request: HttpRequest) -> Answer:
        await request.receive("user")
        return HttpResponse(200, b"api " + request.body)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length"))
    return int(head.split()[1]), await reader.readexactly(length)


def play(script: Script, limits: ConnectionLimits = ConnectionLimits(receive_seconds=0.3)) -> None:  # noqa: B008 - frozen
    async def inside() -> None:
        site = Site()
        server = Server(site.api, tls=None, limits=limits, doors=StreamingRoutes((b"/up",), site.door))
        site.port = await server.listen("127.0.0.1", 0)
        try:
            async with asyncio.timeout(30):
                await script(site)
        finally:
            await server.close(0.0)

    asyncio.run(inside())


@played_by(play)
async def test_a_body_larger_than_any_limit_passes_and_its_neighbours_are_told_apart(site: Site, /) -> None:
    reader, writer = await site.connect()
    writer.write(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n")
    writer.write(b"POST /up HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % BIG)
    for _ in range(BIG // (1 << 20)):
        writer.write(b"x" * (1 << 20))
        await writer.drain()
    writer.write(b"POST /b HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi")
    writer.write(b"POST /up HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    assert [await answer(reader) for _ in range(4)] == [(200, b"api "), (200, str(BIG).encode()), (200, b"api hi"), (200, b"5")]
    writer.close()


@played_by(play)
async def test_the_reader_sets_the_pace(site: Site, /) -> None:
    site.may_read.clear()
    _, writer = await site.connect()
    writer.transport.set_write_buffer_limits(high=64 * 1024)
    writer.write(b"POST /up HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % BIG)
    sent = 0
    try:
        # longer than a stalled body may take: it is not the sender who waits
        async with asyncio.timeout(1.0):
            while sent < BIG:
                writer.write(b"x" * 65536)
                sent += 65536
                await writer.drain()
    except TimeoutError:
        pass
    assert sent < BIG // 2
    site.may_read.set()
    while sent < BIG:
        writer.write(b"x" * 65536)
        sent += 65536
        await writer.drain()
    while not site.sizes:
        await asyncio.sleep(0.01)
    assert site.sizes == [BIG] and site.errors == []
    writer.close()


@played_by(play)
async def test_a_sender_that_stalls_is_given_up(site: Site, /) -> None:
    reader, writer = await site.connect()
    writer.write(b"POST /up HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nabc")
    assert await answer(reader) == (400, b"broken")
    assert site.errors == ["nothing came for 0.3 s"]
    writer.close()


@played_by(play)
async def test_a_handler_may_be_patient_with_a_sender(site: Site, /) -> None:
    async def door(request: HttpRequest) -> Answer:
        assert request.incoming is not None
        request.incoming.be_patient(20)
        connected = request.incoming._transport.get_extra_info("socket")
        # A sender without power sends no end.
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        return HttpResponse(200, await request.incoming.read() + await request.incoming.read())

    server = Server(site.api, tls=None, limits=ConnectionLimits(receive_seconds=0.3), doors=StreamingRoutes((b"/up",), door))
    reader, writer = await asyncio.open_connection("127.0.0.1", await server.listen("127.0.0.1", 0))
    writer.write(b"POST /up HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\nabc")
    await asyncio.sleep(0.6)
    writer.write(b"def")
    assert await answer(reader) == (200, b"abcdef")
    writer.close()
    await server.close(0.0)


@played_by(play)
async def test_a_sender_that_goes_away_is_noticed(site: Site, /) -> None:
    cancelled = asyncio.Event()

    async def door(request: HttpRequest) -> Answer:
        assert request.incoming is not None
        try:
            while await request.incoming.read():
                pass
        except (BodyInterrupted, asyncio.CancelledError):
            cancelled.set()
            raise
        return HttpResponse(200)

    server = Server(site.api, tls=None, doors=StreamingRoutes((b"/up",), door))
    port = await server.listen("127.0.0.1", 0)
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /up HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nabc")
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.transport.abort()
    await cancelled.wait()
    await server.close(0.0)


@played_by(play)
async def test_a_refusal_arrives_though_the_body_is_on_its_way(site: Site, /) -> None:
    reader, writer = await site.connect()
    writer.write(b"POST /up/refused HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % BIG)

    async def send() -> None:
        for _ in range(BIG // 65536):
            writer.write(b"x" * 65536)
            await writer.drain()

    sending = asyncio.create_task(send())
    assert await answer(reader) == (401, b"no")
    await sending
    # the connection is not used again
    assert await reader.read() == b""
    writer.close()


@played_by(play)
async def test_who_asks_whether_the_body_is_wanted_is_told(site: Site, /) -> None:
    reader, writer = await site.connect()
    head = b"host: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n"
    writer.write(b"POST /up HTTP/1.1\r\n" + head)
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"abc")
    assert await answer(reader) == (200, b"3")
    writer.write(b"POST /up/refused HTTP/1.1\r\n" + head)
    assert await answer(reader) == (401, b"no")
    writer.close()


@pytest.mark.parametrize("broken", [b"zz\r\n", b"-1\r\n"])
@played_by(play)
async def test_what_is_no_http_ends_the_body(site: Site, /, broken: bytes) -> None:
    reader, writer = await site.connect()
    writer.write(b"POST /up HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n" + broken)
    assert await answer(reader) == (400, b"broken")
    assert site.errors == ["what came is no HTTP"]
    writer.close()


@played_by(play)
async def test_a_short_head_may_come_with_much_of_its_body(site: Site, /) -> None:
    reader, writer = await site.connect()
    body = b"x" * (200 * 1024)
    writer.write(b"POST /b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    assert await answer(reader) == (200, b"api " + body)
    writer.close()
