"""The connections to one provider: how many, how long connecting may take, and how long an unused one is kept."""

import asyncio
import contextlib
import ssl

import msgspec

from paddock.contract.http2 import Http2ClientConnection, Http2Connection, Http2Limits, StreamFailed


class PoolSettings(msgspec.Struct, frozen=True):
    """The bounds of a pool; the defaults are those of a Provider's `connectionPooling`."""

    connections: int = 10
    idle_connections: int = 5
    connect_seconds: float = 30.0
    idle_seconds: float = 300.0


class PoolTarget(msgspec.Struct, frozen=True):
    """Where a provider listens, and whom its certificate must name. Without a context the connection is in plain text."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str = ""


class ConnectionPool:
    """Opens a connection when the open ones are full, and closes those that nobody needs."""

    def __init__(self, target: PoolTarget, settings: PoolSettings, limits: Http2Limits) -> None:
        self._target = target
        self._settings = settings
        self._limits = limits
        self._open: list[Http2ClientConnection] = []
        self._connecting: asyncio.Task[Http2ClientConnection] | None = None
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def size(self) -> int:
        """The number of connections that are open."""
        return len(self._open)

    async def acquire(self) -> Http2ClientConnection:
        """Return a connection that takes a call now; raises `StreamFailed`. The caller begins its call before it waits for anything."""
        while True:
            if self._closed:
                raise StreamFailed("the client is closed", processed=False)
            ready = [each for each in self._open if each.room > 0]
            if ready:
                # The fullest one, so that the others can become idle.
                return min(ready, key=lambda each: each.room)
            if self._connecting is not None or len(self._open) < self._settings.connections:
                await self._connect_once()
                continue
            self._changed.clear()
            await self._changed.wait()

    def release(self) -> None:
        """Note that a call has ended."""
        self._changed.set()
        idle = sorted((each for each in self._open if not each.streams), key=lambda each: each.idle_since)
        for each in idle[: max(0, len(idle) - self._settings.idle_connections)]:
            each.close()
        if idle and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._settings.idle_seconds, self._sweep)

    def retarget(self, target: PoolTarget) -> None:
        """Open later connections to another place or with another certificate; those that are open end with their calls."""
        self._target = target
        for each in list(self._open):
            self._retire(each)

    async def close(self) -> None:
        """Close all connections. Calls that go on end with an error."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if (connecting := self._connecting) is not None:
            connecting.cancel()
            with contextlib.suppress(asyncio.CancelledError, StreamFailed):
                await connecting
        for each in list(self._open):
            each.close()
            # Close alone waits for what the other side has not read.
            each.abort("the client is closed")
        self._changed.set()

    async def _connect_once(self) -> None:
        """Wait for one new connection, which all that wait share, with its failure."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._connected)
        await asyncio.shield(self._connecting)

    def _connected(self, task: "asyncio.Task[Http2ClientConnection]") -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None and task.result().transport is not None:
            self._open.append(task.result())
        self._changed.set()

    async def _connect(self) -> Http2ClientConnection:
        target = self._target
        name = (target.server_name or target.host) if target.tls else None
        loop = asyncio.get_running_loop()
        connection = Http2ClientConnection(self._limits, self._lost)
        try:
            async with asyncio.timeout(self._settings.connect_seconds):
                await loop.create_connection(lambda: connection, target.host, target.port, ssl=target.tls, server_hostname=name)
                await connection.ready
        except TimeoutError:
            connection.abort("connecting took too long")
            raise StreamFailed(f"connecting took longer than {self._settings.connect_seconds:g} seconds", processed=False) from None
        except ssl.SSLCertVerificationError as error:
            raise StreamFailed(f"its certificate cannot be verified: {error.verify_message}", processed=False) from None
        except (OSError, StreamFailed) as error:
            why = error.why if isinstance(error, StreamFailed) else (error.strerror or type(error).__name__)
            raise StreamFailed(f"cannot connect: {why}", processed=False) from None
        except asyncio.CancelledError:
            connection.abort("connecting was given up")
            raise
        return connection

    def _lost(self, connection: Http2Connection) -> None:
        self._open = [each for each in self._open if each is not connection]
        self._changed.set()

    def _retire(self, connection: Http2ClientConnection) -> None:
        if connection.streams:
            connection.say_goodbye()
        else:
            connection.close()

    def _sweep(self) -> None:
        """Close what has been idle for too long, and look again when the next one will have been."""
        self._timer = None
        loop = asyncio.get_running_loop()
        idle = [each for each in self._open if not each.streams]
        ages = {each: loop.time() - each.idle_since for each in idle}
        for each, age in ages.items():
            if age >= self._settings.idle_seconds:
                each.close()
        younger = [age for age in ages.values() if age < self._settings.idle_seconds]
        if younger:
            self._timer = loop.call_later(self._settings.idle_seconds - max(younger), self._sweep)
