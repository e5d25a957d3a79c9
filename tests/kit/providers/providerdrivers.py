"""A driver for tests of the wire: it notes its requests and does what a test put in."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from paddock.contract.client import ProviderClient, RemoteSettings
from paddock.contract.driver import Driver
from paddock.contract.errors import ProviderError
from paddock.contract.messages import WireMessage
from paddock.contract.methods import BY_ATTRIBUTE
from paddock.contract.pool import PoolTarget
from paddock.contract.server import ProviderServer, ProviderServerSettings
from paddock.contract.tls import ServerTls, TlsMaterial, client_context

NAME = "virtrigaud-provider-default-lab.default.svc.cluster.local"
SETTINGS = ProviderServerSettings(host="127.0.0.1", port=0, health_port=None)
REMOTE = RemoteSettings(name="default/lab", qps=None)
Behaviour = Callable[[WireMessage], Awaitable[WireMessage]]


class ScriptedDriver:
    """Answers an RPC with the zero of its response, or with what a behaviour of that name does."""

    def __init__(self, **behaviours: Behaviour) -> None:
        self.requests: list[WireMessage] = []
        self.behaviours = behaviours

    def __getattr__(self, name: str) -> Behaviour:
        if (method := BY_ATTRIBUTE.get(name)) is None:
            raise AttributeError(name)

        async def answer(request: WireMessage) -> WireMessage:
            self.requests.append(request)
            if (behaviour := self.behaviours.get(name)) is not None:
                return await behaviour(request)
            response: WireMessage = method.response()
            return response

        return answer

    @property
    def driver(self) -> Driver:
        """This one, as a type checker knows drivers."""
        return cast(Driver, self)


@contextlib.asynccontextmanager
async def serving(
    driver: ScriptedDriver, folder: Path | None = None, settings: ProviderServerSettings = SETTINGS
) -> AsyncIterator[ProviderServer]:
    """A server of the driver, with the TLS files of the folder if there is one."""
    server = ProviderServer(driver.driver, settings, ServerTls(folder) if folder is not None else None)
    await server.start()
    try:
        yield server
    finally:
        await server.close()


@contextlib.asynccontextmanager
async def calling(
    port: int, material: TlsMaterial | None = None, settings: RemoteSettings = REMOTE, name: str = NAME
) -> AsyncIterator[ProviderClient]:
    """A client of the server at a port."""
    target = PoolTarget("127.0.0.1", port, client_context(material) if material is not None else None, name)
    client = ProviderClient(target, settings)
    try:
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def connected(driver: ScriptedDriver, settings: ProviderServerSettings = SETTINGS, **remote: Any) -> AsyncIterator[ProviderClient]:
    """Both ends, in plain text."""
    async with serving(driver, None, settings) as server, calling(server.port, None, msgspec.structs.replace(REMOTE, **remote)) as client:
        yield client


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another task brings about."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def run(script: Callable[[], Awaitable[None]]) -> None:
    """Run a script that ends in time."""

    async def main() -> None:
        async with asyncio.timeout(30):
            await script()

    asyncio.run(main())


async def refused(call: Awaitable[object]) -> ProviderError:
    """The error of a call."""
    with pytest.raises(ProviderError) as caught:
        await call
    return caught.value


async def page(port: int, request: bytes) -> bytes:
    """What a port answers to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    found = await reader.read()
    writer.close()
    return found


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
