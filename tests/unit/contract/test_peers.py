"""Peers that misbehave: a served driver and a client go on, or end in time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import h2.config
import h2.connection
import h2.errors
import h2.events
import msgspec
import pytest

from paddock.contract import grpc
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind
from paddock.contract.http2 import Http2ClientConnection, Http2Limits, StreamFailed
from paddock.contract.pool import PoolSettings
from tests.coroutines import played_by, run_by
from tests.kit.providers import providertls
from tests.kit.providers.providerdrivers import (
    NAME,
    REMOTE,
    SETTINGS,
    ScriptedDriver,
    calling,
    listening,
    page,
    refused,
    run,
    serving,
    until,
)

VALIDATE = m.ValidateRequest()


@pytest.mark.parametrize(
    "junk", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0" * 500, b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00" * 9]
)
@played_by(run)
async def test_a_server_that_speaks_something_else(junk: bytes) -> None:
    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(junk)
        await reader.read(1)

    settings = msgspec.structs.replace(REMOTE, pool=PoolSettings(connect_seconds=2))
    async with listening(odd) as port, calling(port, None, settings) as client:
        assert (await refused(client.validate(VALIDATE))).kind is ErrorKind.UNAVAILABLE


@pytest.mark.parametrize("junk", [b"x" * 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100, b"GET / HTTP/1.1\r\n\r\n"])
@played_by(run)
async def test_a_client_that_speaks_something_else(junk: bytes) -> None:
    async with serving(ScriptedDriver()) as server, calling(server.port) as client:
        await page(server.port, junk)
        await client.validate(VALIDATE)


class RawClient:
    """HTTP/2 without the rules of gRPC."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.reader = reader
        self.writer = writer
        self.h2.initiate_connection()

    async def flush(self) -> None:
        self.writer.write(self.h2.data_to_send())
        await self.writer.drain()

    async def until_end(self) -> dict[str, str]:
        """The last headers of the first stream that ends; nothing if the connection does."""
        headers: dict[str, str] = {}
        await self.flush()
        while data := await self.reader.read(65536):
            for event in self.h2.receive_data(data):
                if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                    headers |= {str(name): str(value) for name, value in event.headers or ()}
                if isinstance(event, h2.events.StreamEnded):
                    return headers
            await self.flush()
        return {}


@contextlib.asynccontextmanager
async def raw(port: int) -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()


HEADERS = dict(grpc.request_headers("/provider.v1.Provider/Validate", "x", 5, scheme="http"))


@pytest.mark.parametrize(
    ("changes", "body", "status"),
    [
        ({}, grpc.framed(b""), "0"),
        ({":path": "/provider.v1.Provider/Other"}, grpc.framed(b""), "12"),
        ({":method": "GET"}, grpc.framed(b""), "13"),
        ({"content-type": "application/json"}, grpc.framed(b""), "13"),
        ({"grpc-encoding": "gzip"}, grpc.framed(b""), "12"),
        ({"grpc-timeout": "soon"}, grpc.framed(b""), "13"),
        ({"grpc-timeout": "0m"}, grpc.framed(b""), "4"),
        ({}, b"", "13"),
        ({}, b"\1\0\0\0\0", "12"),
        ({}, grpc.framed(b"\x0a"), "3"),
        ({}, b"\0\xff\xff\xff\xff", "13"),
    ],
)
@played_by(run)
async def test_requests_that_are_none(changes: dict[str, str], body: bytes, status: str) -> None:
    async with serving(ScriptedDriver()) as server, raw(server.port) as client:
        client.h2.send_headers(1, list((HEADERS | changes).items()))
        client.h2.send_data(1, body, end_stream=True)
        assert (await client.until_end())["grpc-status"] == status


@played_by(run)
async def test_a_request_that_does_not_end() -> None:
    driver = ScriptedDriver()
    settings = msgspec.structs.replace(SETTINGS, receive_seconds=0.1)
    async with serving(driver, None, settings) as server, raw(server.port) as client:
        client.h2.send_headers(1, list(HEADERS.items()))
        assert (await client.until_end())["grpc-status"] == "4"
        assert driver.requests == []


@pytest.mark.spec("virtrigaud", 162)
@pytest.mark.parametrize("end", [False, True], ids=["open", "ended"])
@played_by(run)
async def test_streams_that_are_opened_and_reset_without_end(end: bool) -> None:
    driver = ScriptedDriver()
    async with serving(driver) as server, raw(server.port) as client:
        for number in range(1, 1000, 2):
            client.h2.send_headers(number, list(HEADERS.items()), end_stream=end)
            client.h2.reset_stream(number)
        assert await client.until_end() == {}, "the server closes the connection"
        assert driver.requests == []


@pytest.mark.parametrize("limit", ["connections", "connections_each"])
@played_by(run)
async def test_an_idle_connection_gives_way_and_a_busy_one_does_not(limit: str) -> None:
    release = asyncio.Event()

    async def slow(_request: m.WireMessage) -> m.WireMessage:
        await release.wait()
        return m.CreateResponse()

    driver = ScriptedDriver(create=slow)
    settings = msgspec.structs.replace(SETTINGS, **{limit: 1})
    async with serving(driver, None, settings) as server, calling(server.port) as first, calling(server.port) as second:
        await first.validate(VALIDATE)
        await second.validate(VALIDATE)
        await until(lambda: (first.connections, second.connections) == (0, 1))
        call = asyncio.create_task(first.create(m.CreateRequest()))
        await until(lambda: len(driver.requests) == 3)
        assert (await refused(second.validate(VALIDATE))).kind is ErrorKind.UNAVAILABLE
        release.set()
        await call
        await second.validate(VALIDATE)


@pytest.mark.spec("virtrigaud", 165)
@played_by(run)
async def test_one_certificate_does_not_take_the_connections_of_others(tmp_path: Path) -> None:
    """All of its connections are busy, so that none gives way."""
    authority = providertls.Authority()
    one, other = authority.issue(NAME), authority.issue(NAME)
    release = asyncio.Event()

    async def slow(_request: m.WireMessage) -> m.WireMessage:
        await release.wait()
        return m.CreateResponse()

    driver = ScriptedDriver(create=slow)
    settings = msgspec.structs.replace(SETTINGS, connections=4, connections_each=2)
    async with serving(driver, providertls.write(tmp_path, one), settings) as server, contextlib.AsyncExitStack() as stack:
        greedy = [await stack.enter_async_context(calling(server.port, one)) for _ in range(5)]
        calls = [asyncio.create_task(each.create(m.CreateRequest())) for each in greedy]
        await until(lambda: len(driver.requests) == 2 and sum(call.done() for call in calls) == 3)
        async with calling(server.port, other) as client:
            await client.validate(VALIDATE)
        release.set()
        await asyncio.gather(*calls, return_exceptions=True)


@played_by(run)
async def test_a_silent_peer_is_given_up() -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        peer.initiate_connection()
        writer.write(peer.data_to_send())
        await reader.read()

    async with listening(deaf) as port:
        connection = Http2ClientConnection(Http2Limits(body=10, ping_after=0.1, ping_timeout=0.1), lambda _connection: None)
        await asyncio.get_running_loop().create_connection(lambda: connection, "127.0.0.1", port)
        await connection.ready
        with pytest.raises(StreamFailed, match="does not answer a ping"):
            await connection.call(list(HEADERS.items()), b"")


@played_by(run)
async def test_a_client_that_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddock.contract.server.Http2Limits", lambda **parts: Http2Limits(**parts, ping_timeout=0.1))
    async with serving(ScriptedDriver()) as server:
        assert await page(server.port, b"") != b"", "the server ends it, after its own settings"


@run_by(asyncio.run)
async def test_an_unused_and_an_old_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    for limits in ({"idle": 0.1}, {"age": 0.1, "grace": 0.1}):
        monkeypatch.setattr(
            "paddock.contract.server.Http2Limits", lambda limits=limits, **parts: Http2Limits(**parts, ping_timeout=0.05, **limits)
        )
        driver = ScriptedDriver()
        async with asyncio.timeout(30), serving(driver) as server, calling(server.port) as client:
            await client.validate(VALIDATE)
            await until(lambda: client.connections == 0)
            await client.validate(VALIDATE)
            assert len(driver.requests) == 2


@played_by(run)
async def test_failed_handshakes_take_no_place(tmp_path: Path) -> None:
    material = providertls.Authority().issue(NAME)
    settings = msgspec.structs.replace(SETTINGS, connections=1)
    async with serving(ScriptedDriver(), providertls.write(tmp_path, material), settings) as server:
        for _ in range(3):
            await page(server.port, b"no handshake")
        async with calling(server.port, material) as client:
            await client.validate(VALIDATE)


class RawServer:
    """Refuses the calls of its first connection in one way, and answers those of later ones."""

    def __init__(self, refusal: str) -> None:
        self.refusal = refusal
        self.calls: list[int] = []
        self._connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        number = self._connections
        peer = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        peer.initiate_connection()
        writer.write(peer.data_to_send())
        while data := await reader.read(65536):
            for event in peer.receive_data(data):
                if isinstance(event, h2.events.StreamEnded):
                    self.calls.append(number)
                    self._answer(peer, number, event.stream_id)
            writer.write(peer.data_to_send())

    def _answer(self, peer: h2.connection.H2Connection, number: int, stream: int) -> None:
        if number > 1:
            peer.send_headers(stream, grpc.response_headers())
            peer.send_data(stream, grpc.framed(b""))
            peer.send_headers(stream, grpc.status_trailers(None), end_stream=True)
        elif self.refusal == "goodbye":
            peer.close_connection(last_stream_id=0)
        else:
            peer.reset_stream(stream, h2.errors.ErrorCodes[self.refusal])


@pytest.mark.parametrize(
    ("refusal", "calls"), [("goodbye", [1, 2]), ("REFUSED_STREAM", [1, 1, 1]), ("INTERNAL_ERROR", [1]), ("CANCEL", [1])]
)
@played_by(run)
async def test_what_the_provider_did_not_see_is_sent_again(refusal: str, calls: list[int]) -> None:
    server = RawServer(refusal)
    async with listening(server.serve) as port, calling(port) as client:
        if calls == [1, 2]:
            await client.create(m.CreateRequest())
        else:
            assert (await refused(client.create(m.CreateRequest()))).kind is ErrorKind.UNAVAILABLE
    assert server.calls == calls
