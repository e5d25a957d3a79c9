"""Consoles and screens through the console: bytes both ways, and the reason where there are none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import BytesMessage, CloseConnection, Event, Request, TextMessage

from paddock.kubernetes.client.access import Access, StaticCredential, bearer
from paddock.server.edge import frames
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse, Socket, Upgrade
from paddock.server.edge.server import Server
from paddock.web.assets import PageAssets
from paddock.web.server import ConsoleServer, ConsoleSettings
from tests.coroutines import scripted
from tests.scenario.web.browsers import FILES, Browser

SUBRESOURCES = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/web"


PHASES = {"web": "Running", "early": "Scheduling", "over": "Succeeded"}


class Hypervisor:
    """An API server with instances. The console of the one that runs repeats what it gets."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        # whether consoles were to begin with their last screen
        self.wishes: list[bool] = []
        self.ended = asyncio.Event()

    async def answer(self, request: HttpRequest) -> Answer:
        self.tokens.append(request.headers.get("authorization", ""))
        if frames.asked(request) and request.path == f"{SUBRESOURCES}/console":
            self.wishes.append(request.flag("screen"))
            return Upgrade(self._repeat, "plain.kubevirt.io")
        if request.path == f"{SUBRESOURCES}/vnc":
            return _status(400, "No graphics devices are present.")
        name = request.path.removeprefix("/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances/")
        if name in PHASES:
            metadata = {"name": name, "namespace": "default", "uid": "1"}
            found = {
                "apiVersion": "kubevirt.io/v1",
                "kind": "VirtualMachineInstance",
                "metadata": metadata,
                "status": {"phase": PHASES[name]},
            }
            return HttpResponse(200, orjson.dumps(found), (("content-type", "application/json"),))
        if request.path.startswith("/apis/") and request.path.endswith(("s", "/none", *(f"/{each}" for each in PHASES))):
            return _status(404, "not found")
        return HttpResponse(200, b'{"metadata": {}, "items": []}')

    async def _repeat(self, socket: Socket) -> None:
        try:
            while (message := await socket.receive()) is not None:
                if message == b"bye":
                    return
                socket.send(b"guest: " + (message if isinstance(message, bytes) else message.encode()))
        finally:
            self.ended.set()


def _status(code: int, message: str) -> HttpResponse:
    return HttpResponse(code, orjson.dumps({"kind": "Status", "status": "Failure", "message": message, "code": code}))


class Page:
    """The page's end of a WebSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._events: list[Event] = []

    async def open(self, browser: Browser, path: str) -> None:
        extra = [(b"origin", f"http://{browser.host}".encode()), (b"cookie", browser.cookie.encode())]
        self.writer.write(self._protocol.send(Request(host=browser.host, target=path, extra_headers=extra)))
        await self._next()

    async def _next(self) -> Event:
        while not self._events:
            data = await self._reader.read(65536)
            self._protocol.receive_data(data or None)
            self._events += list(self._protocol.events())
        return self._events.pop(0)

    def send(self, message: bytes | str) -> None:
        self.writer.write(self._protocol.send(TextMessage(message) if isinstance(message, str) else BytesMessage(message)))

    async def receive(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            event = await self._next()
            assert isinstance(event, BytesMessage), event
            found += bytes(event.data)
        return found

    async def closed(self) -> tuple[int, str]:
        event = await self._next()
        assert isinstance(event, CloseConnection), event
        return event.code, event.reason or ""


@asynccontextmanager
async def opened(place: str) -> AsyncIterator[tuple[Page, Hypervisor]]:
    hypervisor = Hypervisor()
    server = Server(hypervisor.answer, tls=None)
    port = await server.listen("127.0.0.1", 0)
    access = Access(server=f"http://127.0.0.1:{port}", credentials=StaticCredential(bearer("of-the-kubeconfig")))
    console = ConsoleServer(ConsoleSettings(), access, PageAssets(FILES))
    await console.start()
    browser = Browser(console)
    await browser.follow(console.link())
    page = Page(*await asyncio.open_connection("127.0.0.1", console.port))
    try:
        await page.open(browser, f"/console/v1/sockets/{place}")
        yield page, hypervisor
    finally:
        page.writer.close()
        await console.close()
        await server.close(0.1)


@scripted
async def test_bytes_go_both_ways_with_the_rights_of_the_session() -> None:
    async with opened("vmi/default/web/console") as (page, hypervisor):
        page.send(b"ls\n")
        assert await page.receive(10) == b"guest: ls\n"
        page.send("é")
        assert await page.receive(9) == b"guest: " + "é".encode()
        large = bytes(range(256)) * 4096
        page.send(large)
        assert await page.receive(len(large) + 7) == b"guest: " + large
        assert set(hypervisor.tokens) == {"Bearer of-the-kubeconfig"}
        assert hypervisor.wishes == [True]
        page.send(b"bye")
        assert await page.closed() == (1000, "")


@scripted
async def test_a_page_that_goes_ends_the_session_of_the_guest() -> None:
    async with opened("vmi/default/web/console") as (page, hypervisor):
        page.send(b"x")
        await page.receive(8)
        page.writer.close()
        await hypervisor.ended.wait()


@pytest.mark.parametrize(
    ("place", "code", "reason"),
    [
        ("vmi/default/web/vnc", 4400, "No graphics devices are present."),
        ("vmi/default/early/console", 4409, "cannot open the console of early. it is starting"),
        ("vmi/default/over/vnc", 4409, "cannot open the screen of over. it is not running"),
        ("vmi/default/none/console", 4404, 'there is no machine "vmi/none" in namespace "default"'),
    ],
)
@scripted
async def test_the_page_learns_why_there_is_no_stream(place: str, code: int, reason: str) -> None:
    async with opened(place) as (page, _):
        assert await page.closed() == (code, reason)
