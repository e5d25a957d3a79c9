"""The transport over sockets: credentials, TLS, proxies and a pool of kept connections.

Complete answers share connections that are kept open; a stream has one for itself. A credential that is refused with 401 is
renewed once, if it can be, and the request is repeated: the server has done nothing yet.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from urllib.parse import SplitResult, urlsplit

import paddock
from paddock.base import certificates, tcp
from paddock.kubernetes.client.access import Access, Credential
from paddock.kubernetes.client.errors import BadAccess, TimedOut, Unreachable
from paddock.kubernetes.client.http import proxy, tls
from paddock.kubernetes.client.http.connection import ClientConnection
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest, TransportResponse

_MOST_CONNECTIONS = 32
_CONNECT_SECONDS = 10.0
_CLOSE_SECONDS = 1.0
# Servers close idle connections after a while. Ours are thrown away sooner, so that a request seldom meets a closing one.
_IDLE_SECONDS = 60.0
# In place of the length of a body that is sent in chunks.
_CHUNKED = -1
_AGENT = f"paddock/{paddock.__version__}"


class Https:
    """Carries requests over HTTP/1.1."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._url = _server(access.server)
        # how errors name the server
        self._title = access.title or self._url.netloc.rpartition("@")[2]
        self._proxy = proxy.chosen(access.proxy, self._host, self._url.scheme, os.environ)
        self._idle: list[ClientConnection] = []
        self._opened: set[ClientConnection] = set()
        self._slots = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._tls: ssl.SSLContext | None = None
        self._shown: Credential | None = None
        self._closed = False

    @property
    def _host(self) -> str:
        return self._url.hostname or ""

    async def send(self, ask: TransportRequest) -> TransportResponse:
        """The answer; raises `Unreachable` or `BadAccess`."""
        async with self._slots:
            connection, _ = await self._begun(ask)
            try:
                async with _Limit(ask, self._title):
                    body = await connection.read_all()
            except BaseException:
                connection.abort()
                raise
            reply = TransportResponse(connection.status, connection.headers, body, connection.reason)
            if connection.finish() and not self._closed:
                self._idle.append(connection)
            return reply

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        """The answer, once its head is there."""
        connection, _ = await self._begun(ask)
        return _Body(connection)

    async def send_stream(self, ask: TransportRequest, body: AsyncIterator[bytes], length: int | None) -> TransportResponse:
        """The answer to a request whose body comes piece by piece, on a connection of its own. Nothing is repeated.

        Without a length, the body is sent in chunks.
        """
        credential = await self._access.credentials.current()
        self._renew(credential)
        connection = await self._connect()
        try:
            head = self._encoded(ask, credential, _CHUNKED if length is None else length)
            await connection.begin_stream(head, _chunked(body) if length is None else body)
            async with _Limit(ask, self._title):
                answer = await connection.read_all()
        finally:
            connection.abort()
        return TransportResponse(connection.status, connection.headers, answer, connection.reason)

    async def close(self) -> None:
        self._closed = True
        self._idle.clear()
        for connection in tuple(self._opened):
            connection.abort()
        # What was aborted is closed in the loop's next rounds.
        loop = asyncio.get_running_loop()
        end = loop.time() + _CLOSE_SECONDS
        while self._opened and loop.time() < end:
            await asyncio.sleep(0.001)

    async def _begun(self, ask: TransportRequest) -> tuple[ClientConnection, Credential]:
        """A connection with the head of the answer; a refused credential is renewed once."""
        connection, credential = await self._begin(ask)
        if connection.status == 401 and self._access.credentials.refused(credential):
            connection.abort()
            connection, credential = await self._begin(ask)
        return connection, credential

    async def _begin(self, ask: TransportRequest) -> tuple[ClientConnection, Credential]:
        if self._closed:
            raise Unreachable("the client is closed", sent=False)
        credential = await self._access.credentials.current()
        self._renew(credential)
        request = self._encoded(ask, credential)
        while True:
            connection = self._kept() or await self._connect()
            fresh = connection.used == 0
            try:
                async with _Limit(ask, self._title):
                    await connection.begin(request)
            except Unreachable as error:
                connection.abort()
                # The server closed a kept connection while it was idle: nobody has seen a request that reads, nor one not sent.
                if fresh or (error.sent and ask.method != "GET") or isinstance(error, TimedOut):
                    raise
            except BaseException:
                connection.abort()
                raise
            else:
                return connection, credential

    def _renew(self, credential: Credential) -> None:
        """Another client certificate is shown on new connections only, so the old ones go."""
        if self._url.scheme == "https" and (self._shown is None or self._shown.certificate != credential.certificate):
            self._tls = tls.context(self._access, credential.certificate)
            for connection in self._idle:
                connection.abort()
            self._idle.clear()
        self._shown = credential

    def _encoded(self, ask: TransportRequest, credential: Credential, length: int | None = None) -> bytes:
        target = self._url.path.rstrip("/") + ask.target
        lines = [f"{ask.method} {target} HTTP/1.1", f"host: {self._url.netloc.rpartition('@')[2]}", f"user-agent: {_AGENT}"]
        lines.append(f"accept: {ask.accept}")
        lines += [f"{name}: {value}" for name, value in credential.headers]
        if ask.body or ask.method != "GET":
            size = len(ask.body) if length is None else length
            lines += [f"content-type: {ask.content_type}", "transfer-encoding: chunked" if size == _CHUNKED else f"content-length: {size}"]
        head = "\r\n".join(lines)
        if head.count("\r") != len(lines) - 1 or head.count("\n") != len(lines) - 1:
            raise BadAccess("a header of the request holds a line break", fix="check the token and the names in the kubeconfig")
        return head.encode("latin-1", "replace") + b"\r\n\r\n" + ask.body

    def _kept(self) -> ClientConnection | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.open and now - connection.idle_since < _IDLE_SECONDS:
                return connection
            connection.abort()
        return None

    async def _connect(self) -> ClientConnection:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await self._connected()
        except TimeoutError as error:
            raise Unreachable(f"cannot connect to {self._title}", why=f"no answer in {_CONNECT_SECONDS:g} s", sent=False) from error
        except ssl.SSLCertVerificationError as error:
            expected = certificates.describe(self._access.authority.decode()) or "no authority, so the authorities of this computer apply"
            fix = f"check {self._access.authority_source}, which names {expected}, and whether a proxy answers in the place of the server"
            raise BadAccess(f"the certificate of {self._title} is not trusted", why=error.verify_message, fix=fix) from error
        except OSError as error:
            raise Unreachable(f"cannot connect to {self._title}", why=str(error), sent=False) from error

    def _new(self) -> ClientConnection:
        return ClientConnection(self._opened, self._title)

    async def _connected(self) -> ClientConnection:
        loop = asyncio.get_running_loop()
        port = self._url.port or (443 if self._url.scheme == "https" else 80)
        name = (self._access.tls_name or self._host) if self._tls is not None else None
        if self._proxy is None:
            transport, made = await loop.create_connection(self._new, self._host, port, ssl=self._tls, server_hostname=name)
        elif self._proxy.scheme == "https":
            return await self._through_tls(self._proxy, port, name)
        else:
            through = await proxy.tunnel(self._proxy, self._host, port)
            transport, made = await loop.create_connection(self._new, sock=through, ssl=self._tls, server_hostname=name)
        tcp.keep_alive(transport)
        return made

    async def _through_tls(self, through: SplitResult, port: int, name: str | None) -> ClientConnection:
        loop = asyncio.get_running_loop()
        writer = await proxy.tunnel_tls(through, self._host, port)
        outer = writer.transport
        made = self._new()
        # A writer that nobody holds closes its transport.
        made.beneath = writer
        if self._tls is None:
            outer.set_protocol(made)
            made.connection_made(outer)
            return made
        inner = await loop.start_tls(outer, made, self._tls, server_hostname=name)
        if inner is None:
            raise ConnectionResetError("the proxy closed the connection")
        made.connection_made(inner)
        return made


async def _chunked(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces of a body, each with its length before it, and the end. A body that fails gets no end, so it never seems whole."""
    async for piece in body:
        if piece:
            yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


class _Body:
    """The body of a stream, on a connection of its own."""

    def __init__(self, connection: ClientConnection) -> None:
        self.status = connection.status
        self.headers = connection.headers
        self._connection = connection

    async def read(self) -> bytes:
        return await self._connection.read()

    def close(self) -> None:
        self._connection.abort()


class _Limit:
    """Turns an answer that takes too long into `TimedOut`."""

    def __init__(self, ask: TransportRequest, server: str) -> None:
        self._ask = ask
        self._server = server
        self._timeout = asyncio.timeout(ask.seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *problem: object) -> None:
        try:
            await self._timeout.__aexit__(*problem)  # type: ignore[arg-type]
        except TimeoutError as error:
            text = f"{self._server} did not answer {self._ask.method} {self._ask.target} within {self._ask.seconds:g} s"
            raise TimedOut(text, sent=True) from error


def _server(text: str) -> SplitResult:
    url = urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise BadAccess(f"{text!r} is no server", fix="write https://HOST:PORT")
    return url
