"""A server of the program in this process, and the plainest client that can talk to it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import orjson

from paddock.app.options.settings import ServerSettings
from paddock.app.server.server import ServerHandle


class Answered(msgspec.Struct, frozen=True):
    """A complete answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The JSON body."""
        return orjson.loads(self.body)


@asynccontextmanager
async def running(settings: ServerSettings) -> AsyncIterator[ServerHandle]:
    """A server that is up for the length of the block."""
    server = ServerHandle(settings)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def trusting(authority: Path, certificate: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    """TLS of a client that trusts one authority, and may have a certificate of its own."""
    context = ssl.create_default_context(cafile=authority)
    if certificate is not None:
        context.load_cert_chain(*certificate)
    return context


async def ask(port: int, tls: ssl.SSLContext, path: str, method: str = "GET", body: bytes = b"", **headers: Any) -> Answered:
    """One request on a connection of its own; header names may be written with underscores."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname="localhost")
    try:
        said = {"host": "localhost", "connection": "close", "content-length": str(len(body)), **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in said.items())]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
        raw = await reader.read()
        if not raw:
            # TLS 1.3 tells a client late that its certificate is not wanted.
            raise ConnectionResetError("the server has closed the connection")
        return parsed(raw)
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def parsed(raw: bytes) -> Answered:
    """An answer that came whole."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    found = dict(line.lower().split(": ", 1) for line in rest)
    return Answered(int(first.split(" ")[1]), found, body)
