"""Watches as they travel: over chunked HTTP and over WebSockets, on a socket of loopback. And how warnings are written."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, RejectConnection, Request, TextMessage

from paddock.server.edge.server import Server
from tests.coroutines import played, played_by
from tests.kit.servers.apiharness import GuardedHarness, Harness

MAPS = "/api/v1/namespaces/default/configmaps"
ROOT = {"authorization": "Bearer root"}
Wire = Callable[[GuardedHarness, int], Awaitable[None]]


def run(folder: Path, script: Wire) -> None:
    async def inside() -> None:
        async with GuardedHarness(folder) as api:
            server = Server(api.api, tls=None)
            port = await server.listen("127.0.0.1", 0)
            try:
                async with asyncio.timeout(20):
                    await script(api, port)
            finally:
                await server.close(0.0)

    asyncio.run(inside())


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def make(api: GuardedHarness, name: str, text: str = "") -> None:
    made = await api.post(MAPS, {"metadata": {"name": name}, "data": {"text": text}}, **ROOT)
    assert made.status == 201, made.data


async def chunk(reader: asyncio.StreamReader) -> bytes:
    size = int(await reader.readuntil(b"\r\n"), 16)
    data = await reader.readexactly(size)
    assert await reader.readexactly(2) == b"\r\n"
    return data


@pytest.mark.spec("kube-api", 53)
@played_by(run, "tmp_path")
async def test_a_watch_begins_before_its_first_event_and_has_an_object_on_each_line(api: GuardedHarness, port: int, /) -> None:
    revision = (await api.get(MAPS, **ROOT)).data["metadata"]["resourceVersion"]
    async with connected(port) as (reader, writer):
        target = f"{MAPS}?watch=true&resourceVersion={revision}"
        writer.write(f"GET {target} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer root\r\n\r\n".encode())
        # Nothing has happened, and nothing will before this has come.
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert head.startswith("http/1.1 200 ")
        assert "transfer-encoding: chunked" in head
        assert "content-type: application/json" in head
        # Two lines of text in one value are still one line of the stream.
        await make(api, "a", "two\nlines")
        await make(api, "b")
        read = b""
        while read.count(b"\n") < 2:
            read += await chunk(reader)
        lines = read.split(b"\n")
        assert lines.pop() == b""
        events = [orjson.loads(line) for line in lines]
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("ADDED", "a"), ("ADDED", "b")]
        assert events[0]["object"]["data"]["text"] == "two\nlines"


class Socket:
    """A browser's end of a WebSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._events: list[Event] = []

    def open(self, target: str, *subprotocols: str) -> None:
        self._writer.write(self._protocol.send(Request(host="a", target=target, subprotocols=list(subprotocols))))

    async def next(self) -> Event:
        while not self._events:
            data = await self._reader.read(65536)
            self._protocol.receive_data(data or None)
            self._events.extend(self._protocol.events())
        return self._events.pop(0)

    def close(self) -> None:
        self._writer.write(self._protocol.send(CloseConnection(code=1000)))


def bearer(token: str) -> str:
    return "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


@pytest.mark.spec("kube-api", 68)
@played_by(run, "tmp_path")
async def test_a_watch_over_a_websocket_with_the_token_among_its_subprotocols(api: GuardedHarness, port: int, /) -> None:
    await make(api, "a")
    async with connected(port) as pair:
        socket = Socket(*pair)
        socket.open(f"{MAPS}?watch=true&resourceVersion=0", bearer("root"), "base64.binary.k8s.io")
        accepted = await socket.next()
        assert isinstance(accepted, AcceptConnection)
        # The token is a secret: it is not what is spoken, and does not come back.
        assert accepted.subprotocol == "base64.binary.k8s.io"
        assert (await text(socket))[:2] == ("ADDED", "a")
        await make(api, "b")
        assert (await text(socket))[:2] == ("ADDED", "b")
        socket.close()
        assert isinstance(await socket.next(), CloseConnection)
        assert await pair[0].read() == b""


async def text(socket: Socket) -> tuple[str, str]:
    """The next event; each is a message of text of its own, in as many frames as it takes."""
    read = ""
    while True:
        event = await socket.next()
        assert not isinstance(event, BytesMessage)
        if isinstance(event, TextMessage):
            read += event.data
            if event.message_finished:
                found: dict[str, Any] = orjson.loads(read)
                return found["type"], found["object"]["metadata"]["name"]


@pytest.mark.parametrize(("subprotocols", "status"), [((bearer("0"), "base64.binary.k8s.io"), 401), ((), 403), ((bearer("ada"),), 403)])
@played_by(run, "tmp_path")
async def test_a_websocket_needs_a_good_token(api: GuardedHarness, port: int, /, subprotocols: tuple[str, ...], status: int) -> None:
    async with connected(port) as pair:
        socket = Socket(*pair)
        socket.open(f"{MAPS}?watch=true", *subprotocols)
        refused = await socket.next()
        assert isinstance(refused, RejectConnection)
        assert refused.status_code == status


@pytest.mark.spec("kube-api", 52)
@played
async def test_warnings_are_headers_said_once_and_quoted(api: Harness, /) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
    body = b'{"metadata":{"name":"a"},"data":{"x":"1","x":"2","x":"3"},"b\\"c\\\\":1,"d\\ne":1,"f":1}'
    warned = await api.post(MAPS, body)
    assert warned.status == 201
    assert sorted(warned.warnings) == [
        '299 - "duplicate field \\"data.x\\""',
        '299 - "unknown field \\"b\\"c\\\\\\""',
        '299 - "unknown field \\"d e\\""',
        '299 - "unknown field \\"f\\""',
    ]
    twice = await api.post(MAPS, {"metadata": {"name": "b", "ownerReferences": [owner, owner, owner]}})
    assert len([warning for warning in twice.warnings if "ownerReferences" in warning]) == 1
    assert all(warning.startswith('299 - "') and warning.endswith('"') for warning in twice.warnings)
    assert (await api.post(MAPS, {"metadata": {"name": "c"}})).warnings == []
