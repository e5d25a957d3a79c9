"""Servers that talk as a test likes, and transports that reach them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import uvloop

from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.transport import TransportRequest
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse
from paddock.server.edge.server import Server
from paddock.server.security.pki import Authority
from paddock.server.security.tls import ServingContext

GET = TransportRequest(method="GET", target="/x?y=1")
POST = TransportRequest(method="POST", target="/x", body=b"body")
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def play(script: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await script()

    # A server's process runs on uvloop where there is one, an operator may not.
    for factory in (asyncio.new_event_loop, uvloop.new_event_loop):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(limited())


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[int]:
    """A server that talks as it likes."""
    talks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await server.wait_closed()


@asynccontextmanager
async def reaching(port: int, **access: Any) -> AsyncIterator[Https]:
    scheme = access.pop("scheme", "http")
    transport = Https(Access(server=f"{scheme}://127.0.0.1:{port}", **{"credentials": StaticCredential(), **access}))
    try:
        yield transport
    finally:
        await transport.close()


@asynccontextmanager
async def edge(handler: Callable[[HttpRequest], Awaitable[Answer]], tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = Server(handler, tls=tls)
    port = await server.listen("127.0.0.1", 0)
    try:
        yield port
    finally:
        await server.close(0.1)


def serving(authority: Authority, names: list[str]) -> ssl.SSLContext:
    """TLS of a server of an authority."""
    return ServingContext(lambda: authority.server(names), authority.certificate_file).context


async def echo(request: HttpRequest) -> Answer:
    """Answer with the parts of the request."""
    said = {
        "method": request.method,
        "target": request.target,
        "body": request.body.decode(),
        "user": request.peer.common_name,
        "token": request.headers.get("authorization", ""),
        "type": request.headers.get("content-type", ""),
    }
    return HttpResponse(200, msgspec.json.encode(said), (("content-type", "application/json"),))
