"""Serves a driver as a provider: gRPC with TLS, the allowed names of its clients, the health service, limits and a graceful end.

The driver's exceptions end at this edge. A `ProviderError` becomes a status with its text, cleaned; anything else becomes an internal
error that repeats nothing of it, because nobody knows what its text holds.
"""

import asyncio
import contextlib
import logging
import socket
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from paddock.contract import errortext, grpc, health, methods, tls, wire
from paddock.contract.client import secrets_of
from paddock.contract.driver import Driver
from paddock.contract.errors import RULES, ErrorKind, ProviderError, StatusCode
from paddock.contract.grpc import StatusError
from paddock.contract.http2 import BodyTooLarge, Http2Connection, Http2Limits, Http2Stream, StreamFailed
from paddock.contract.http2server import Http2ServerConnection
from paddock.contract.messages import WireMessage
from paddock.contract.methods import RpcMethod
from paddock.contract.payloads import InvalidPayload
from paddock.contract.probes import HealthProbes

_LOG = logging.getLogger(__name__)
_HEALTH_NAMES = frozenset({"", "provider", methods.SERVICE, methods.EXTENSION_SERVICE})


class ProviderServerSettings(msgspec.Struct, frozen=True):
    """Where a provider listens, and its limits."""

    host: str = "0.0.0.0"
    port: int = 9443
    # an inherited socket that listens already, in place of host and port
    descriptor: int | None = None
    # None: no health pages
    health_port: int | None = 8080
    # names of which a client's certificate must have one; none means any
    allowed: frozenset[str] = frozenset()
    # calls at one time, of all connections and of one
    calls: int = 200
    calls_each: int = 100
    # connections, of everybody and of one certificate (of one address in plain text)
    connections: int = 64
    connections_each: int = 32
    # bytes
    request: int = 4 << 20
    response: int = 16 << 20
    # seconds: until a request is here, of the longest call, of those that go on at the end, and between two looks at the certificate
    receive_seconds: float = 30.0
    call_seconds: float = 3600.0
    grace_seconds: float = 30.0
    refresh_seconds: float = 60.0


class ProviderServer:
    """One driver, served. Without `security` it is served in plain text."""

    def __init__(self, driver: Driver, settings: ProviderServerSettings, security: tls.ServerTls | None) -> None:
        self._driver = driver
        self._settings = settings
        self._security = security
        self._limits = Http2Limits(body=settings.request + 5, streams=settings.calls_each)
        # with their peers
        self._connections: dict[Http2ServerConnection, object] = {}
        self._calls = 0
        self._ready = False
        self._server: asyncio.Server | None = None
        self._probes = HealthProbes(lambda: self._ready)
        self._refresher: asyncio.Task[None] | None = None
        self.port = 0
        self.health_port = 0

    async def start(self) -> None:
        settings, security = self._settings, self._security
        loop = asyncio.get_running_loop()
        options: dict[str, Any] = {} if security is None else {"ssl": security.context, "ssl_handshake_timeout": 10.0}
        place: dict[str, Any] = {"host": settings.host, "port": settings.port}
        if settings.descriptor is not None:
            place = {"sock": socket.socket(fileno=settings.descriptor)}
        self._server = await loop.create_server(lambda: Http2ServerConnection(self._limits, self), **place, **options)
        self.port = self._server.sockets[0].getsockname()[1]
        if settings.health_port is not None:
            self.health_port = await self._probes.listen(settings.host, settings.health_port)
        if security is None:
            _LOG.warning("provider serves in plain text", extra={"variable": tls.INSECURE})
        else:
            self._refresher = asyncio.create_task(self._refresh(security))
        self._ready = True
        _LOG.info("provider listening", extra={"port": self.port, "health": self.health_port})

    async def close(self) -> None:
        """Take no more calls, let those that go on end in time, and stop."""
        self._ready = False
        if self._refresher is not None:
            self._refresher.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.say_goodbye()
            if not connection.streams:
                connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.grace_seconds):
                while self._calls:
                    await asyncio.sleep(0.05)
        for connection in list(self._connections):
            connection.cancel_calls()
            connection.close()
        await self._probes.close()

    async def _refresh(self, security: tls.ServerTls) -> None:
        while True:
            await asyncio.sleep(self._settings.refresh_seconds)
            try:
                if security.refresh():
                    _LOG.info("provider certificate renewed")
            except tls.UnusableTls as error:
                _LOG.warning("provider certificate unusable", extra={"problem": str(error)})

    def opened(self, connection: Http2ServerConnection) -> bool:
        """Take a connection. If there are too many, the one that has been idle for longest gives way; refuse it if none is idle."""
        # Not before its handshake, for those that fail one are never reported as lost.
        peer = connection.peer
        crowd = [each for each, owner in self._connections.items() if owner == peer]
        if len(crowd) < self._settings.connections_each:
            crowd = list(self._connections)
            if len(crowd) < self._settings.connections:
                crowd = []
        if crowd:
            idle = [each for each in crowd if not each.streams]
            if not idle:
                return False
            longest = min(idle, key=lambda each: each.used)
            # It counts no more, however long its end takes.
            self.closed(longest)
            longest.close()
        self._connections[connection] = peer
        return True

    def closed(self, connection: Http2Connection) -> None:
        self._connections = {each: peer for each, peer in self._connections.items() if each is not connection}

    async def answer(self, connection: Http2ServerConnection, stream: Http2Stream) -> None:
        """Answer one call. Only a broken connection or a cancellation ends it early."""
        failure: StatusError | None = None
        message = b""
        try:
            grpc.check_request(stream)
            self._authorize(connection)
            message = await self._handled(stream)
        except StatusError as error:
            failure = error
        with contextlib.suppress(StreamFailed):
            if failure is not None:
                connection.send_headers(stream.number, [*grpc.response_headers(), *grpc.status_trailers(failure)], end=True)
                return
            connection.send_headers(stream.number, grpc.response_headers())
            await connection.send_body(stream.number, grpc.framed(message), end=False)
            connection.send_headers(stream.number, grpc.status_trailers(None), end=True)

    def _authorize(self, connection: Http2ServerConnection) -> None:
        if self._security is None:
            return
        peer = connection.transport.get_extra_info("peercert") if connection.transport is not None else None
        if not peer:
            raise StatusError(StatusCode.UNAUTHENTICATED, "a client certificate is required")
        if self._settings.allowed and not self._settings.allowed & tls.names_of(peer):
            raise StatusError(StatusCode.PERMISSION_DENIED, "the client certificate has no allowed name")

    async def _handled(self, stream: Http2Stream) -> bytes:
        path = stream.headers.get(":path", "")
        if path == health.CHECK.path:
            return self._health(await self._received(stream))
        method = methods.BY_PATH.get(path)
        # A driver may know nothing of the extension service.
        if method is None or not hasattr(self._driver, method.attribute):
            raise StatusError(StatusCode.UNIMPLEMENTED, "there is no such method")
        if self._calls >= self._settings.calls:
            raise StatusError(StatusCode.RESOURCE_EXHAUSTED, "the provider has too many calls", retry_after=1.0)
        asked = grpc.parse_timeout(stream.headers.get("grpc-timeout"))
        seconds = min(method.deadline if asked is None else asked, self._settings.call_seconds)
        if seconds <= 0:
            raise StatusError(StatusCode.DEADLINE_EXCEEDED, "the deadline had passed already")
        self._calls += 1
        try:
            async with asyncio.timeout(seconds) as deadline:
                return await self._called(method, await self._received(stream))
        except TimeoutError:
            if not deadline.expired():
                raise
            raise StatusError(StatusCode.DEADLINE_EXCEEDED, f"not done within {seconds:g} seconds") from None
        finally:
            self._calls -= 1

    async def _received(self, stream: Http2Stream) -> bytes:
        try:
            async with asyncio.timeout(self._settings.receive_seconds):
                await asyncio.shield(stream.ended)
        except TimeoutError:
            raise StatusError(StatusCode.DEADLINE_EXCEEDED, "the request did not arrive in time") from None
        except BodyTooLarge as error:
            raise StatusError(StatusCode.RESOURCE_EXHAUSTED, error.why) from None
        except StreamFailed as error:
            raise StatusError(StatusCode.CANCELLED, error.why) from None
        return grpc.unframed(stream.body)

    async def _called(self, method: RpcMethod[Any, Any], data: bytes) -> bytes:
        try:
            request = wire.decode(data, method.request, wire.WireLimits(size=self._settings.request))
        except wire.MalformedMessage as error:
            raise StatusError(StatusCode.INVALID_ARGUMENT, str(error)) from None
        try:
            response = await getattr(self._driver, method.attribute)(request)
            answer = wire.encode(response)
        except ProviderError as error:
            raise _status(error, request) from None
        except InvalidPayload as error:
            raise StatusError(StatusCode.INVALID_ARGUMENT, errortext.cleaned(str(error), secrets_of(request))) from None
        except Exception as error:
            # The text may hold anything; where it happened does not.
            place = traceback.extract_tb(error.__traceback__)[-1]
            _LOG.error(
                "driver failed", extra={"method": method.name, "type": type(error).__name__, "at": f"{place.filename}:{place.lineno}"}
            )
            raise StatusError(StatusCode.INTERNAL, f"the driver failed at {method.name}; the provider's log says where") from None
        if len(answer) > self._settings.response:
            raise StatusError(
                StatusCode.RESOURCE_EXHAUSTED, f"the answer has {len(answer)} bytes; at most {self._settings.response} are allowed"
            )
        return answer

    def _health(self, data: bytes) -> bytes:
        try:
            request = wire.decode(data, health.HealthCheckRequest, wire.WireLimits(size=1024))
        except wire.MalformedMessage as error:
            raise StatusError(StatusCode.INVALID_ARGUMENT, str(error)) from None
        if request.service not in _HEALTH_NAMES:
            raise StatusError(StatusCode.NOT_FOUND, "there is no such service")
        return wire.encode(health.HealthCheckResponse(status=health.SERVING if self._ready else health.NOT_SERVING))


def _status(error: ProviderError, request: WireMessage) -> StatusError:
    kind: ErrorKind = error.kind
    text = errortext.cleaned(str(error), secrets_of(request))
    return StatusError(RULES[kind].code, text, kind=kind, retry_after=error.retry_after, reason=error.reason_code)


async def serve(
    driver: Driver, settings: ProviderServerSettings, environment: Mapping[str, str], stop: asyncio.Event, folder: Path = tls.FOLDER
) -> None:
    """Serve a driver until `stop`; raises `tls.UnusableTls` if the TLS files are missing and plain text is not asked for."""
    security = tls.server_tls(folder, environment)
    if not settings.allowed:
        settings = msgspec.structs.replace(settings, allowed=tls.allowed_names(environment))
    server = ProviderServer(driver, settings, security)
    await server.start()
    try:
        await stop.wait()
    finally:
        await server.close()
