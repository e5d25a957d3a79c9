"""A WebSocket to a server: raw bytes both ways, as consoles of machines have them."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Ping, RejectConnection, RejectData, Request, TextMessage
from wsproto.utilities import ProtocolError

from paddock.client.access import Access
from paddock.client.errors import Unreachable, error_of
from paddock.client.http import tls

PLAIN = "plain.kubevirt.io"
_CHUNK = 65536
_CONNECT_SECONDS = 10.0
_OPEN_SECONDS = 60.0
_GOOD_CLOSES = (1000, 1001)


class WebSocket:
    """An open one. One task receives, another may send."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._received = b""
        self._ended = False

    async def open(self, request: Request) -> None:
        """Shake hands; raises the error that the server answered with."""
        self._writer.write(self._protocol.send(request))
        status, body = 0, b""
        while True:
            data = await self._reader.read(_CHUNK)
            self._protocol.receive_data(data or None)
            for event in self._protocol.events():
                match event:
                    case AcceptConnection():
                        return
                    case RejectConnection(status_code=status):
                        pass
                    case RejectData(data=part, body_finished=is_all):
                        body += bytes(part)
                        if is_all:
                            raise error_of(status, body)
            if not data:
                raise error_of(status, body) if status else Unreachable("the server hung up", sent=True)

    async def send(self, data: bytes) -> None:
        """Send bytes, and wait for room."""
        self._writer.write(self._protocol.send(BytesMessage(data=data)))
        await self._writer.drain()

    async def receive(self) -> bytes:
        """Return the next data; empty at the regular end. Raises `Unreachable` when it was cut off."""
        while not self._received and not self._ended:
            data = await self._reader.read(_CHUNK)
            if not data:
                raise Unreachable("the connection was cut off", sent=True)
            try:
                self._protocol.receive_data(data)
                for event in self._protocol.events():
                    self._take(event)
            except ProtocolError as error:
                raise Unreachable("the server does not speak WebSocket", why=str(error), sent=True) from error
        found, self._received = self._received, b""
        return found

    def _take(self, event: object) -> None:
        match event:
            case BytesMessage():
                self._received += bytes(event.data)
            case TextMessage():
                self._received += event.data.encode()
            case Ping():
                self._writer.write(self._protocol.send(event.response()))
            case CloseConnection():
                self._writer.write(self._protocol.send(event.response()))
                self._ended = True
                if event.code not in _GOOD_CLOSES:
                    raise Unreachable("the server ended the connection", why=event.reason or f"code {event.code}", sent=True)


@contextlib.asynccontextmanager
async def connected(access: Access, path: str) -> AsyncIterator[WebSocket]:
    """A WebSocket to a path of a server, with the subprotocol of machines' streams."""
    url = urlsplit(access.server)
    credential = await access.credentials.current()
    context: ssl.SSLContext | None = tls.context(access, credential.certificate) if url.scheme == "https" else None
    port = url.port or (443 if context is not None else 80)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            name = (access.tls_name or url.hostname) if context is not None else None
            reader, writer = await asyncio.open_connection(url.hostname, port, ssl=context, server_hostname=name)
    except (OSError, TimeoutError) as error:
        raise Unreachable(f"cannot connect to {url.netloc}", why=str(error), sent=False) from error
    try:
        socket = WebSocket(reader, writer)
        headers = [(name.encode(), value.encode()) for name, value in credential.headers]
        request = Request(host=url.netloc, target=f"{url.path.rstrip('/')}{path}", subprotocols=[PLAIN], extra_headers=headers)
        async with asyncio.timeout(_OPEN_SECONDS):
            await socket.open(request)
        yield socket
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
