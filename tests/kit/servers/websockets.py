"""A WebSocket client for tests: small, strict, and as slow as a test wants.

async with connected(port, "/path", headers) as socket:
    await socket.send(b"data")
    assert await socket.receive() == b"data"
    assert await socket.closed() == 1000

A handshake that is refused raises `Rejected`, with the answer.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Ping, RejectConnection, RejectData, Request, TextMessage
from wsproto.utilities import ProtocolError, RemoteProtocolError

PLAIN = "plain.kubevirt.io"
ABNORMAL = 1006


class Rejected(Exception):
    """The server answered something else."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status} {body!r}")
        self.status = status
        self.body = body


class Socket:
    """The client's end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._messages: deque[bytes | str] = deque()
        self._part: list[bytes] = []
        self.subprotocol: str | None = None
        self.pings: list[bytes] = []
        self.code: int | None = None
        # a close is answered by `agree` only
        self.is_slow = False
        self._agreement = b""

    async def open(self, target: str, headers: Mapping[str, str], subprotocols: tuple[str, ...]) -> None:
        extra = [(name.encode(), value.encode()) for name, value in headers.items()]
        opening = Request(host="localhost", target=target, subprotocols=list(subprotocols), extra_headers=extra)
        self._writer.write(self._protocol.send(opening))
        status, body, is_open = 0, b"", False
        while not is_open:
            data = await self._reader.read(65536)
            try:
                self._protocol.receive_data(data or None)
            except RemoteProtocolError as error:
                if data:
                    raise
                raise ConnectionResetError("the server ended in the middle of its answer") from error
            for event in self._protocol.events():
                if is_open:
                    # What came along with the answer.
                    self._event(event)
                if isinstance(event, AcceptConnection):
                    self.subprotocol, is_open = event.subprotocol, True
                if isinstance(event, RejectConnection):
                    status = event.status_code
                if isinstance(event, RejectData):
                    body += bytes(event.data)
                    if event.body_finished:
                        raise Rejected(status, body)
            if not data and not is_open:
                raise Rejected(status, body)

    async def send(self, data: bytes | str) -> None:
        """Send a message, and wait for room."""
        self._writer.write(self._protocol.send(TextMessage(data=data) if isinstance(data, str) else BytesMessage(data=data)))
        await self._writer.drain()

    async def receive(self) -> bytes | str | None:
        """The next message; None at the end."""
        while not self._messages and self.code is None:
            await self._take()
        return self._messages.popleft() if self._messages else None

    async def read(self, count: int) -> bytes:
        """So many bytes, however they are split."""
        found = b""
        while len(found) < count:
            message = await self.receive()
            if message is None:
                raise AssertionError(f"the stream ended with {self.code} after {len(found)} of {count} bytes: {found[-80:]!r}")
            found += message if isinstance(message, bytes) else message.encode()
        return found

    async def rest(self) -> bytes:
        """Everything until the end."""
        found = []
        while (message := await self.receive()) is not None:
            found.append(message if isinstance(message, bytes) else message.encode())
        return b"".join(found)

    async def closed(self) -> int:
        """The code with which the server closed."""
        while self.code is None:
            await self._take()
        return self.code

    async def close(self, code: int = 1000) -> None:
        """Close as a polite client does."""
        if self.code is None:
            self._writer.write(self._protocol.send(CloseConnection(code=code)))
            await self._writer.drain()

    def agree(self) -> None:
        """Answer the server's close."""
        self._writer.write(self._agreement)

    async def ended(self) -> None:
        """Wait until the connection itself has ended."""
        while await self._reader.read(65536):
            pass

    def vanish(self) -> None:
        """Close the connection without a word."""
        self._writer.close()

    async def _take(self) -> None:
        data = await self._reader.read(65536)
        if not data:
            self.code = self.code or ABNORMAL
            return
        try:
            self._protocol.receive_data(data)
            for event in self._protocol.events():
                self._event(event)
        except ProtocolError:
            self.code = 1002

    def _event(self, event: object) -> None:
        if isinstance(event, BytesMessage):
            self._part.append(bytes(event.data))
            if event.message_finished:
                self._messages.append(b"".join(self._part))
                self._part.clear()
        elif isinstance(event, TextMessage):
            self._messages.append(event.data)
        elif isinstance(event, Ping):
            self.pings.append(bytes(event.payload))
            self._writer.write(self._protocol.send(event.response()))
        elif isinstance(event, CloseConnection):
            self.code = int(event.code)
            self._agreement = self._protocol.send(event.response())
            if not self.is_slow:
                self._writer.write(self._agreement)


@asynccontextmanager
async def connected(
    port: int,
    target: str,
    headers: Mapping[str, str] | None = None,
    subprotocols: tuple[str, ...] = (PLAIN,),
    tls: ssl.SSLContext | None = None,
    name: str = "127.0.0.1",
) -> AsyncIterator[Socket]:
    """An open WebSocket to a port of loopback, whose certificate has this name."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20, ssl=tls, server_hostname=name if tls else None)
    async with opened(reader, writer, target, headers, subprotocols) as socket:
        yield socket


@asynccontextmanager
async def opened(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    target: str,
    headers: Mapping[str, str] | None = None,
    subprotocols: tuple[str, ...] = (PLAIN,),
) -> AsyncIterator[Socket]:
    """An open WebSocket over a connection, which it closes."""
    socket = Socket(reader, writer)
    try:
        await socket.open(target, headers or {}, subprotocols)
        yield socket
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
