"""A served driver from outside: who may call, health, a graceful end, and peers that misbehave."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
import uvloop

from paddock.contract import grpc, tls, wire
from paddock.contract import messages as m
from paddock.contract.client import RemoteSettings
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.grpc import StatusError
from paddock.contract.health import HealthCheckRequest, HealthCheckResponse
from paddock.contract.http2 import Http2ClientConnection, Http2Limits
from paddock.contract.pool import PoolSettings, PoolTarget
from paddock.contract.server import ProviderServer, serve
from tests.coroutines import played_by, run_by
from tests.kit.providers import providertls
from tests.kit.providers.providerdrivers import (
    NAME,
    REMOTE,
    SETTINGS,
    ScriptedDriver,
    calling,
    connected,
    listening,
    page,
    refused,
    run,
    serving,
    until,
)

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


VALIDATE = m.ValidateRequest()


@pytest.mark.spec("virtrigaud", 101)
@played_by(run)
async def test_mutual_tls(folder: Path, material: tls.TlsMaterial) -> None:
    driver = ScriptedDriver()
    async with serving(driver, folder) as server, calling(server.port, material) as client:
        await client.validate(VALIDATE)
        assert driver.requests == [VALIDATE]


@run_by(uvloop.run)
async def test_on_uvloop(folder: Path, material: tls.TlsMaterial) -> None:
    async def echo(request: m.WireMessage) -> m.WireMessage:
        assert isinstance(request, m.ReconfigureRequest)
        return m.TaskResponse(task=m.TaskRef(id=request.desired_json))

    async with serving(ScriptedDriver(reconfigure=echo), folder) as server, calling(server.port, material) as client:
        large = m.ReconfigureRequest(desired_json="x" * 3_000_000)
        assert (await client.reconfigure(large)).task == m.TaskRef(id=large.desired_json)
        await server.close()
        assert (await refused(client.validate(VALIDATE))).kind is ErrorKind.UNAVAILABLE


@pytest.mark.spec("virtrigaud", 101)
@pytest.mark.parametrize("allowed", [{NAME}, {"manager"}, {"spiffe://cluster/manager", "x"}])
@played_by(run)
async def test_an_allowed_name(folder: Path, material: tls.TlsMaterial, allowed: set[str]) -> None:
    settings = msgspec.structs.replace(SETTINGS, allowed=frozenset(allowed))
    async with serving(ScriptedDriver(), folder, settings) as server, calling(server.port, material) as client:
        await client.validate(VALIDATE)


@pytest.mark.spec("virtrigaud", 101)
@played_by(run)
async def test_a_name_that_is_not_allowed(folder: Path, material: tls.TlsMaterial) -> None:
    settings = msgspec.structs.replace(SETTINGS, allowed=frozenset({"other", "manage", "*"}))
    driver = ScriptedDriver()
    async with serving(driver, folder, settings) as server, calling(server.port, material) as client:
        error = await refused(client.validate(VALIDATE))
        assert (error.kind, driver.requests) == (ErrorKind.UNAUTHORIZED, [])


def bare_context(authority: providertls.Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.set_alpn_protocols(["h2"])
    return context


@pytest.mark.spec("virtrigaud", 101)
@pytest.mark.parametrize("flaw", ["no certificate", "another authority", "TLS 1.2", "plain text", "no ALPN"])
@played_by(run)
async def test_who_cannot_connect(authority: providertls.Authority, folder: Path, material: tls.TlsMaterial, flaw: str) -> None:
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
    driver = ScriptedDriver()
    async with serving(driver, folder) as server, calling(server.port, None) as client:
        client.retarget(PoolTarget("127.0.0.1", server.port, context, NAME))
        assert (await refused(client.validate(VALIDATE))).kind is ErrorKind.UNAVAILABLE
        assert driver.requests == []
        client.retarget(PoolTarget("127.0.0.1", server.port, tls.client_context(material), NAME))
        await client.validate(VALIDATE)


@pytest.mark.spec("virtrigaud", 101)
@played_by(run)
async def test_the_pinned_name(folder: Path, material: tls.TlsMaterial) -> None:
    async with serving(ScriptedDriver(), folder) as server, calling(server.port, material, name="other.example") as client:
        error = await refused(client.validate(VALIDATE))
        assert "certificate cannot be verified" in str(error)
        assert error.kind is ErrorKind.UNAVAILABLE


@pytest.mark.spec("virtrigaud", 101)
@played_by(run)
async def test_a_renewed_certificate_without_a_restart(authority: providertls.Authority, folder: Path, material: tls.TlsMaterial) -> None:
    settings = msgspec.structs.replace(SETTINGS, refresh_seconds=0.02)
    async with serving(ScriptedDriver(), folder, settings) as server, calling(server.port, material) as old:
        await old.validate(VALIDATE)
        providertls.write(folder, authority.issue("renewed.example"))
        async with asyncio.timeout(30):
            while True:
                # Another client each time: the breaker of one opens after ten failures.
                async with calling(server.port, material, name="renewed.example") as new:
                    with contextlib.suppress(ProviderError):
                        await new.validate(VALIDATE)
                        break
        await old.validate(VALIDATE)


@pytest.mark.spec("virtrigaud", 101)
@played_by(run)
async def test_serve_demands_files_or_the_variable(tmp_path: Path) -> None:
    stop = asyncio.Event()
    stop.set()
    with pytest.raises(tls.UnusableTls):
        await serve(ScriptedDriver().driver, SETTINGS, {}, stop, tmp_path)
    await serve(ScriptedDriver().driver, SETTINGS, {tls.INSECURE: "true"}, stop, tmp_path)


async def health(server: ProviderServer, service: str) -> int:
    connection = Http2ClientConnection(Http2Limits(body=1000), lambda _connection: None)
    await asyncio.get_running_loop().create_connection(lambda: connection, "127.0.0.1", server.port)
    await connection.ready
    headers = grpc.request_headers("/grpc.health.v1.Health/Check", "x", 5, scheme="http")
    try:
        stream = await connection.call(headers, grpc.framed(wire.encode(HealthCheckRequest(service=service))))
        return wire.decode(grpc.message_of(stream), HealthCheckResponse).status
    finally:
        connection.close()


@played_by(run)
async def test_the_health_service() -> None:
    async with serving(ScriptedDriver()) as server:
        assert [await health(server, name) for name in ("", "provider", "provider.v1.Provider")] == [1, 1, 1]
        with pytest.raises(StatusError, match="no such service"):
            await health(server, "other")


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
@played_by(run)
async def test_health_pages(request_line: bytes, status: bytes) -> None:
    async with serving(ScriptedDriver(), None, msgspec.structs.replace(SETTINGS, health_port=0)) as server:
        found = await page(server.health_port, request_line + b"\r\nHost: x\r\n\r\n")
        assert found.split(b" ")[1] == status
        assert found.endswith(b"\r\n\r\n") is (request_line[:4] == b"HEAD")
        assert await page(server.health_port, b"x" * 20_000) == b"", "an endless head is cut off"


@played_by(run)
async def test_a_graceful_end() -> None:
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


@played_by(run)
async def test_an_end_after_the_grace() -> None:
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


@played_by(run)
async def test_a_restart_is_not_noticed_between_calls() -> None:
    first, second = ScriptedDriver(), ScriptedDriver()
    async with serving(first) as server, calling(server.port) as client:
        await client.validate(VALIDATE)
        await server.close()
        async with serving(second, None, msgspec.structs.replace(SETTINGS, port=server.port)):
            await client.validate(VALIDATE)
            assert (len(first.requests), len(second.requests)) == (1, 1)


@played_by(run)
async def test_connections_are_bounded() -> None:
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


@played_by(run)
async def test_connecting_is_bounded() -> None:
    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    settings = msgspec.structs.replace(REMOTE, pool=PoolSettings(connect_seconds=0.1))
    async with listening(silent) as port, calling(port, None, settings) as client:
        errors = await asyncio.gather(*(refused(client.validate(VALIDATE)) for _ in range(3)))
        assert all("longer than 0.1 seconds" in str(error) and error.kind is ErrorKind.UNAVAILABLE for error in errors)


@played_by(run)
async def test_a_closed_client_refuses() -> None:
    async with serving(ScriptedDriver()) as server:
        async with calling(server.port, None, RemoteSettings(name="x")) as client:
            await client.validate(VALIDATE)
        assert "the client is closed" in str(await refused(client.validate(VALIDATE)))
