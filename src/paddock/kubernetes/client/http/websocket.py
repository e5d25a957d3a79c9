"""A WebSocket to a server: raw bytes both ways, as consoles of machines and ports of pods have them."""

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Iterator
from urllib.parse import SplitResult, urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Ping, RejectConnection, RejectData, Request, TextMessage
from wsproto.utilities import ProtocolError

from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.errors import Unreachable, error_of
from paddock.kubernetes.client.http import proxy, tls

PLAIN, _CHANNELS = "plain.kubevirt.io", "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_CHUNK = 65536
_CONNECT_SECONDS = 10.0
_OPEN_SECONDS = 60.0
_GOOD_CLOSES = (1000, 1001)
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


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
        status, body, is_open = 0, b"", False
        while not is_open:
            data = await self._reader.read(_CHUNK)
            for event in self._events(data):
                match event:
                    case AcceptConnection():
                        is_open = True
                    case RejectConnection(status_code=status):
                        pass
                    case RejectData(data=part, body_finished=is_all):
                        body += bytes(part)
                        if is_all:
                            raise error_of(status, body)
                    case _:
                        # What the server says first may come along with its answer.
                        self._take(event)
            if not data and not is_open:
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
            for event in self._events(data):
                self._take(event)
        found, self._received = self._received, b""
        return found

    def _events(self, data: bytes) -> Iterator[Event]:
        """Yield what came; no data is the end of the connection."""
        try:
            self._protocol.receive_data(data or None)
            yield from self._protocol.events()
        except ProtocolError as error:
            raise Unreachable("the server does not speak WebSocket", why=str(error), sent=True) from error

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


class PodPort(WebSocket):
    """A port of a pod, as the kubelet serves it: a message begins with its channel, and each channel with the port's number."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(reader, writer)
        self._channel: int | None = None
        # the bytes of the number that each channel still has to say
        self._numbers = {_DATA: 2, _ERROR: 2}

    async def send(self, data: bytes) -> None:
        """Send bytes, and wait for room."""
        await super().send(bytes([_DATA]) + data)

    def _take(self, event: object) -> None:
        if not isinstance(event, BytesMessage):
            super()._take(event)
            return
        data = bytes(event.data)
        if self._channel is None and data:
            self._channel, data = data[0], data[1:]
        if self._channel is not None:
            number = min(self._numbers.get(self._channel, 0), len(data))
            self._numbers[self._channel] = self._numbers.get(self._channel, 0) - number
            self._said(self._channel, data[number:])
        if event.message_finished:
            self._channel = None

    def _said(self, channel: int, data: bytes) -> None:
        if channel == _DATA:
            self._received += data
        elif data:
            raise Unreachable("the port of the pod cannot be reached", why=data.decode(errors="replace").strip(), sent=True)


@contextlib.asynccontextmanager
async def connected(access: Access, path: str) -> AsyncIterator[WebSocket]:
    """A WebSocket to a path of a server, with the subprotocol of machines' streams."""
    async with _opened(access, path, PLAIN, WebSocket) as opened:
        yield opened


@contextlib.asynccontextmanager
async def pod_port(access: Access, namespace: str, pod: str, port: int) -> AsyncIterator[WebSocket]:
    """A connection to a port of a pod, through the API server."""
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/portforward?ports={port}"
    async with _opened(access, path, _CHANNELS, PodPort) as opened:
        yield opened


async def _connection(access: Access, url: SplitResult, context: ssl.SSLContext | None) -> Connection:
    """A connection to a server, through the proxy of its access. One that is reached over TLS itself is passed by."""
    host, port = url.hostname or "", url.port or (443 if context is not None else 80)
    name = (access.tls_name or host) if context is not None else None
    through = proxy.chosen(access.proxy, host, url.scheme, os.environ)
    if through is None or through.scheme == "https":
        return await asyncio.open_connection(host, port, ssl=context, server_hostname=name)
    return await asyncio.open_connection(sock=await proxy.tunnel(through, host, port), ssl=context, server_hostname=name)


@contextlib.asynccontextmanager
async def _opened(access: Access, path: str, subprotocol: str, kind: type[WebSocket]) -> AsyncIterator[WebSocket]:
    url = urlsplit(access.server)
    credential = await access.credentials.current()
    context: ssl.SSLContext | None = tls.context(access, credential.certificate) if url.scheme == "https" else None
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            reader, writer = await _connection(access, url, context)
    except (OSError, TimeoutError) as error:
        raise Unreachable(f"cannot connect to {access.title or url.netloc}", why=str(error), sent=False) from error
    try:
        socket = kind(reader, writer)
        headers = [(name.encode(), value.encode()) for name, value in credential.headers]
        request = Request(host=url.netloc, target=f"{url.path.rstrip('/')}{path}", subprotocols=[subprotocol], extra_headers=headers)
        async with asyncio.timeout(_OPEN_SECONDS):
            await socket.open(request)
        yield socket
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
