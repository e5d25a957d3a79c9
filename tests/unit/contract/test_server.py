"""A served driver from outside: who may call, health, a graceful end, and peers that misbehave."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import msgspec
import pytest

from paddock.contract import grpc, tls, wire
from paddock.contract import messages as m
from paddock.contract.client import RemoteSettings
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.grpc import StatusError
from paddock.contract.http2 import ClientConnection, Http2Limits, StreamFailed
from paddock.contract.pool import PoolSettings, PoolTarget
from paddock.contract.server import HealthCheckRequest, HealthCheckResponse, ProviderServer, serve
from tests import providertls
from tests.providerdrivers import NAME, REMOTE, SETTINGS, ScriptedDriver, calling, connected, serving, until

Script = Callable[[], Awaitable[None]]


@pytest.fixture(scope="module")
def authority() -> providertls.Authority:
    return providertls.Authority()


@pytest.fixture(scope="module")
def material(authority: providertls.Authority) -> tls.TlsMaterial:
    return authority.issue(NAME, common="manager", uris=("spiffe://cluster/manager",))


@pytest.fixture
def folder(material: tls.TlsMaterial, tmp_path: Path) -> Path:
    return providertls.write(tmp_path / "tls", material)


def run(script: Script) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await script()

    asyncio.run(main())


async def refused(call: Awaitable[object]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call
    return caught.value


VALIDATE = m.ValidateRequest()
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[int]:
    """A port where something else than a provider answers."""
    handled: list[asyncio.Task[None]] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handled.append(asyncio.current_task())  # type: ignore[arg-type]
        try:
            await handler(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await asyncio.gather(*handled, return_exceptions=True)


@pytest.mark.spec("virtrigaud", 101)
def test_mutual_tls(folder: Path, material: tls.TlsMaterial) -> None:
    async def script() -> None:
        driver = ScriptedDriver()
        async with serving(driver, folder) as server, calling(server.port, material) as client:
            await client.validate(VALIDATE)
            assert driver.requests == [VALIDATE]

    run(script)


@pytest.mark.spec("virtrigaud", 101)
@pytest.mark.parametrize("allowed", [{NAME}, {"manager"}, {"spiffe://cluster/manager", "x"}])
def test_an_allowed_name(folder: Path, material: tls.TlsMaterial, allowed: set[str]) -> None:
    async def script() -> None:
        settings = msgspec.structs.replace(SETTINGS, allowed=frozenset(allowed))
        async with serving(ScriptedDriver(), folder, settings) as server, calling(server.port, material) as client:
            await client.validate(VALIDATE)

    run(script)


@pytest.mark.spec("virtrigaud", 101)
def test_a_name_that_is_not_allowed(folder: Path, material: tls.TlsMaterial) -> None:
    async def script() -> None:
        settings = msgspec.structs.replace(SETTINGS, allowed=frozenset({"other", "manage", "*"}))
        driver = ScriptedDriver()
        async with serving(driver, folder, settings) as server, calling(server.port, material) as client:
            error = await refused(client.validate(VALIDATE))
            assert (error.kind, driver.requests) == (ErrorKind.UNAUTHORIZED, [])

    run(script)


def bare_context(authority: providertls.Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.set_alpn_protocols(["h2"])
    return context


@pytest.mark.spec("virtrigaud", 101)
@pytest.mark.parametrize("flaw", ["no certificate", "another authority", "TLS 1.2", "plain text", "no ALPN"])
def test_who_cannot_connect(authority: providertls.Authority, folder: Path, material: tls.TlsMaterial, flaw: str) -> None:
    context: ssl.SSLContext | None = tls.client_context(material)
    assert context is not None
    match flaw:
        case "no certificate":
            context = bare_context(authority)
        case "another authority":
            context = tls.client_context(msgspec.structs.replace(providertls.Authority().issue(NAME), authority=authority.pem))
        case "TLS 1.2":
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        case "plain text":
            context = None
        case _:
            context = ssl.create_default_context(cadata=authority.pem.decode())

    async def script() -> None:
        driver = ScriptedDriver()
        async with serving(driver, folder) as server, calling(server.port, None) as client:
            client.retarget(PoolTarget("127.0.0.1", server.port, context, NAME))
            assert (await refused(client.validate(VALIDATE))).kind is ErrorKind.UNAVAILABLE
            assert driver.requests == []
            client.retarget(PoolTarget("127.0.0.1", server.port, tls.client_context(material), NAME))
            await client.validate(VALIDATE)

    run(script)


@pytest.mark.spec("virtrigaud", 101)
def test_the_pinned_name(folder: Path, material: tls.TlsMaterial) -> None:
    async def script() -> None:
        async with serving(ScriptedDriver(), folder) as server, calling(server.port, material, name="other.example") as client:
            error = await refused(client.validate(VALIDATE))
            assert "certificate cannot be verified" in str(error)
            assert error.kind is ErrorKind.UNAVAILABLE

    run(script)


@pytest.mark.spec("virtrigaud", 101)
def test_a_renewed_certificate_without_a_restart(authority: providertls.Authority, folder: Path, material: tls.TlsMaterial) -> None:
    async def script() -> None:
        settings = msgspec.structs.replace(SETTINGS, refresh_seconds=0.02)
        async with serving(ScriptedDriver(), folder, settings) as server, calling(server.port, material) as old:
            await old.validate(VALIDATE)
            providertls.write(folder, authority.issue("renewed.example"))
            async with calling(server.port, material, name="renewed.example") as new:
                async with asyncio.timeout(10):
                    while True:
                        with contextlib.suppress(ProviderError):
                            await new.validate(VALIDATE)
                            break
                await old.validate(VALIDATE)

    run(script)


@pytest.mark.spec("virtrigaud", 101)
def test_serve_demands_files_or_the_variable(tmp_path: Path) -> None:
    async def script() -> None:
        stop = asyncio.Event()
        stop.set()
        with pytest.raises(tls.UnusableTls):
            await serve(ScriptedDriver().driver, SETTINGS, {}, stop, tmp_path)
        await serve(ScriptedDriver().driver, SETTINGS, {tls.INSECURE: "true"}, stop, tmp_path)

    run(script)


async def health(server: ProviderServer, service: str) -> int:
    connection = ClientConnection(Http2Limits(body=1000), lambda _connection: None)
    await asyncio.get_running_loop().create_connection(lambda: connection, "127.0.0.1", server.port)
    await connection.ready
    headers = grpc.request_headers("/grpc.health.v1.Health/Check", "x", 5, scheme="http")
    try:
        stream = await connection.call(headers, grpc.framed(wire.encode(HealthCheckRequest(service=service))))
        return wire.decode(grpc.message_of(stream), HealthCheckResponse).status
    finally:
        connection.close()


def test_the_health_service() -> None:
    async def script() -> None:
        async with serving(ScriptedDriver()) as server:
            assert [await health(server, name) for name in ("", "provider", "provider.v1.Provider")] == [1, 1, 1]
            with pytest.raises(StatusError, match="no such service"):
                await health(server, "other")

    run(script)


async def page(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    found = await reader.read()
    writer.close()
    return found


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /healthz HTTP/1.1", b"200"),
        (b"GET /readyz?verbose HTTP/1.1", b"200"),
        (b"HEAD /health HTTP/1.1", b"200"),
        (b"POST /healthz HTTP/1.1", b"405"),
        (b"GET /metrics HTTP/1.1", b"404"),
        (b"\xff\x00", b"404"),
    ],
)
def test_health_pages(request_line: bytes, status: bytes) -> None:
    async def script() -> None:
        async with serving(ScriptedDriver(), None, msgspec.structs.replace(SETTINGS, health_port=0)) as server:
            found = await page(server.health_port, request_line + b"\r\nHost: x\r\n\r\n")
            assert found.split(b" ")[1] == status
            assert found.endswith(b"\r\n\r\n") is (request_line[:4] == b"HEAD")
            assert await page(server.health_port, b"x" * 20_000) == b"", "an endless head is cut off"

    run(script)


def test_a_graceful_end() -> None:
    async def script() -> None:
        release = asyncio.Event()

        async def slow(_request: m.WireMessage) -> m.WireMessage:
            await release.wait()
            return m.CreateResponse(id="vm-1")

        driver = ScriptedDriver(create=slow)
        async with serving(driver, None, msgspec.structs.replace(SETTINGS, health_port=0)) as server, calling(server.port) as client:
            call = asyncio.create_task(client.create(m.CreateRequest()))
            await until(lambda: len(driver.requests) == 1)
            ending = asyncio.create_task(server.close())
            await asyncio.sleep(0.05)
            assert b" 503 " in await page(server.health_port, b"GET /readyz HTTP/1.1\r\n\r\n")
            assert b" 200 " in await page(server.health_port, b"GET /healthz HTTP/1.1\r\n\r\n")
            assert (await refused(client.validate(VALIDATE))).kind is ErrorKind.UNAVAILABLE
            release.set()
            assert (await call).id == "vm-1"
            await ending
            assert client.connections == 0

    run(script)


def test_an_end_after_the_grace() -> None:
    async def script() -> None:
        cancelled = []

        async def stuck(_request: m.WireMessage) -> m.WireMessage:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(True)
            raise AssertionError

        driver = ScriptedDriver(create=stuck)
        async with serving(driver, None, msgspec.structs.replace(SETTINGS, grace_seconds=0.1)) as server, calling(server.port) as client:
            call = asyncio.create_task(client.create(m.CreateRequest()))
            await until(lambda: len(driver.requests) == 1)
            await server.close()
            assert (await refused(call)).kind is ErrorKind.UNAVAILABLE
            assert cancelled == [True]

    run(script)


def test_a_restart_is_not_noticed_between_calls() -> None:
    async def script() -> None:
        first, second = ScriptedDriver(), ScriptedDriver()
        async with serving(first) as server, calling(server.port) as client:
            await client.validate(VALIDATE)
            await server.close()
            async with serving(second, None, msgspec.structs.replace(SETTINGS, port=server.port)):
                await client.validate(VALIDATE)
                assert (len(first.requests), len(second.requests)) == (1, 1)

    run(script)


@pytest.mark.spec("virtrigaud", 122)
def test_connections_are_bounded() -> None:
    async def script() -> None:
        release = asyncio.Event()

        async def slow(_request: m.WireMessage) -> m.WireMessage:
            await release.wait()
            return m.CreateResponse()

        driver = ScriptedDriver(create=slow)
        settings = msgspec.structs.replace(SETTINGS, calls_each=2)
        async with connected(driver, settings, pool=PoolSettings(connections=3, idle_connections=1, idle_seconds=0.2)) as client:
            calls = [asyncio.create_task(client.create(m.CreateRequest())) for _ in range(10)]
            await until(lambda: len(driver.requests) == 6)
            await asyncio.sleep(0.05)
            assert (client.connections, len(driver.requests)) == (3, 6)
            release.set()
            await asyncio.gather(*calls)
            await until(lambda: client.connections == 1)
            await until(lambda: client.connections == 0)
            await client.validate(VALIDATE)

    run(script)


@pytest.mark.spec("virtrigaud", 122)
def test_connecting_is_bounded() -> None:
    async def script() -> None:
        async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            await reader.read()

        settings = msgspec.structs.replace(REMOTE, pool=PoolSettings(connect_seconds=0.1))
        async with listening(silent) as port, calling(port, None, settings) as client:
            errors = await asyncio.gather(*(refused(client.validate(VALIDATE)) for _ in range(3)))
            assert all("longer than 0.1 seconds" in str(error) and error.kind is ErrorKind.UNAVAILABLE for error in errors)

    run(script)


@pytest.mark.parametrize(
    "junk", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0" * 500, b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00" * 9]
)
def test_a_server_that_speaks_something_else(junk: bytes) -> None:
    async def script() -> None:
        async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(junk)
            await reader.read(1)

        settings = msgspec.structs.replace(REMOTE, pool=PoolSettings(connect_seconds=2))
        async with listening(odd) as port, calling(port, None, settings) as client:
            assert (await refused(client.validate(VALIDATE))).kind is ErrorKind.UNAVAILABLE

    run(script)


@pytest.mark.parametrize("junk", [b"x" * 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100, b"GET / HTTP/1.1\r\n\r\n"])
def test_a_client_that_speaks_something_else(junk: bytes) -> None:
    async def script() -> None:
        async with serving(ScriptedDriver()) as server, calling(server.port) as client:
            await page(server.port, junk)
            await client.validate(VALIDATE)

    run(script)


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
def test_requests_that_are_none(changes: dict[str, str], body: bytes, status: str) -> None:
    async def script() -> None:
        async with serving(ScriptedDriver()) as server, raw(server.port) as client:
            client.h2.send_headers(1, list((HEADERS | changes).items()))
            client.h2.send_data(1, body, end_stream=True)
            assert (await client.until_end())["grpc-status"] == status

    run(script)


def test_a_request_that_does_not_end() -> None:
    async def script() -> None:
        driver = ScriptedDriver()
        settings = msgspec.structs.replace(SETTINGS, receive_seconds=0.1)
        async with serving(driver, None, settings) as server, raw(server.port) as client:
            client.h2.send_headers(1, list(HEADERS.items()))
            assert (await client.until_end())["grpc-status"] == "4"
            assert driver.requests == []

    run(script)


def test_streams_that_are_opened_and_reset_without_end() -> None:
    async def script() -> None:
        async with serving(ScriptedDriver()) as server, raw(server.port) as client:
            for number in range(1, 1000, 2):
                client.h2.send_headers(number, list(HEADERS.items()))
                client.h2.reset_stream(number)
            assert await client.until_end() == {}, "the server closes the connection"

    run(script)


def test_too_many_connections() -> None:
    async def script() -> None:
        settings = msgspec.structs.replace(SETTINGS, connections=1)
        async with serving(ScriptedDriver(), None, settings) as server, calling(server.port) as client:
            await client.validate(VALIDATE)
            assert await page(server.port, b"") == b""
            await client.validate(VALIDATE)

    run(script)


def test_a_silent_peer_is_given_up() -> None:
    async def script() -> None:
        async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peer = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
            peer.initiate_connection()
            writer.write(peer.data_to_send())
            await reader.read()

        async with listening(deaf) as port:
            connection = ClientConnection(Http2Limits(body=10, ping_after=0.1, ping_timeout=0.1), lambda _connection: None)
            await asyncio.get_running_loop().create_connection(lambda: connection, "127.0.0.1", port)
            await connection.ready
            with pytest.raises(StreamFailed, match="does not answer a ping"):
                await connection.call(list(HEADERS.items()), b"")

    run(script)


def test_a_closed_client_refuses() -> None:
    async def script() -> None:
        async with serving(ScriptedDriver()) as server:
            async with calling(server.port, None, RemoteSettings(name="x")) as client:
                await client.validate(VALIDATE)
            assert "the client is closed" in str(await refused(client.validate(VALIDATE)))

    run(script)


def test_a_client_that_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddock.contract.server.Http2Limits", lambda **parts: Http2Limits(**parts, ping_timeout=0.1))

    async def script() -> None:
        async with serving(ScriptedDriver()) as server:
            assert await page(server.port, b"") != b"", "the server ends it, after its own settings"

    run(script)
