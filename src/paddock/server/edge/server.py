"""Listening: sockets, TLS, and the end of it."""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

from paddock.server.edge.connection import ServerConnection
from paddock.server.edge.http import NO_DOORS, ConnectionPeer, Handler, StreamingRoutes
from paddock.server.edge.limits import ConnectionLimits, ConnectionStats
from paddock.server.edge.listener import Listener

_SHUTDOWN_SECONDS = 5.0


class Server:
    """Serves a handler on any number of addresses."""

    def __init__(
        self,
        handler: Handler,
        *,
        tls: ssl.SSLContext | None,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - frozen
        doors: StreamingRoutes = NO_DOORS,
    ) -> None:
        self._handler = handler
        # may be set until somebody connects
        self.doors = doors
        self._tls = tls
        self._limits = limits
        self.census = ConnectionStats(limits)
        self._listeners: list[Listener] = []

    async def listen(self, host: str, port: int) -> int:
        """Serve on an address too; returns the port, which is chosen when 0 is given."""
        listener = Listener(self._connect, self._of_tls())
        self._listeners.append(listener)
        return await listener.open(host, port)

    def _of_tls(self) -> dict[str, Any]:
        if self._tls is None:
            return {}
        return {"ssl": self._tls, "ssl_handshake_timeout": self._limits.receive_seconds, "ssl_shutdown_timeout": _SHUTDOWN_SECONDS}

    async def close(self, seconds: float) -> None:
        """Take no more connections, finish what is being answered within a time, then cut off the rest."""
        for listener in self._listeners:
            listener.close()
        for connection in tuple(self.census.members):
            connection.stop()
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self.census.members and loop.time() < end:
            await asyncio.sleep(0.02)
        for connection in tuple(self.census.members):
            connection.abort()
        for listener in self._listeners:
            await listener.closed()

    def _connect(self) -> ServerConnection:
        return ServerConnection(self._handler, self._limits, self.census, peer_of, self.doors)


def peer_of(transport: asyncio.BaseTransport) -> ConnectionPeer:
    """Return the other end of a connection; the certificate only where the chain was verified."""
    address = transport.get_extra_info("peername")
    text = address[0] if isinstance(address, tuple) else str(address or "local")
    certificate = transport.get_extra_info("peercert")
    if not certificate:
        return ConnectionPeer(text)
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    encoded = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return ConnectionPeer(
        text, _first(subject, "commonName"), tuple(value for key, value in subject if key == "organizationName"), encoded or b""
    )


def _first(subject: Iterable[tuple[str, str]], key: str) -> str:
    return next((value for name, value in subject if name == key), "")
