"""The connections to one provider: how many, how long connecting may take, and how long an unused one is kept."""

import asyncio
import contextlib
import ssl

import msgspec

from paddock.base import reasons
from paddock.contract.http2 import Http2ClientConnection, Http2Connection, Http2Limits, StreamFailed


class PoolSettings(msgspec.Struct, frozen=True):
    """The bounds of a pool; the defaults are those of a Provider's `connectionPooling`."""

    connections: int = 10
    idle_connections: int = 5
    connect_seconds: float = 30.0
    idle_seconds: float = 300.0
    # until a provider that misbehaved is connected to again
    shun_seconds: float = 60.0


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
        self._connecting: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._shunned_until = 0.0
        self._misbehaviour = ""

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
        self._shunned_until = 0.0
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
            self._connecting = asyncio.create_task(self._add())
            # Those who wait for it may have given up when it fails.
            self._connecting.add_done_callback(lambda task: task.cancelled() or task.exception())
        connecting = self._connecting
        await asyncio.wait({connecting})
        if connecting.cancelled():
            raise StreamFailed("the client is closed", processed=False)
        connecting.result()

    async def _add(self) -> None:
        try:
            self._open.append(await self._connect())
        finally:
            # The task itself notes its end. Were it a callback, whoever comes between the two would find a task that has ended, and wait
            # for it again and again without ever letting the callback run.
            self._connecting = None
            self._changed.set()

    async def _connect(self) -> Http2ClientConnection:
        target = self._target
        name = (target.server_name or target.host) if target.tls else None
        loop = asyncio.get_running_loop()
        if loop.time() < self._shunned_until:
            why = f"{self._misbehaviour}; Paddock connects again after {self._settings.shun_seconds:g} seconds"
            raise StreamFailed(why, processed=False)
        connection = Http2ClientConnection(self._limits, self._lost)
        try:
            async with asyncio.timeout(self._settings.connect_seconds):
                await loop.create_connection(lambda: connection, target.host, target.port, ssl=target.tls, server_hostname=name)
                await connection.ready
            if connection.draining:
                # Otherwise whoever waits would connect again and again.
                raise StreamFailed("the other side ends the connection as soon as it begins")
        except TimeoutError:
            connection.abort("connecting took too long")
            raise StreamFailed(f"connecting took longer than {self._settings.connect_seconds:g} seconds", processed=False) from None
        except ssl.SSLCertVerificationError as error:
            why = f"its certificate cannot be verified: {error.verify_message}"
            raise StreamFailed(why, processed=False, reason=reasons.PROVIDER_CERTIFICATE) from None
        except (OSError, StreamFailed) as error:
            why = error.why if isinstance(error, StreamFailed) else (error.strerror or type(error).__name__)
            reason = reasons.PROVIDER_CERTIFICATE if isinstance(error, ssl.SSLError) else ""
            raise StreamFailed(f"cannot connect: {why}", processed=False, reason=reason) from None
        except asyncio.CancelledError:
            connection.abort("connecting was given up")
            raise
        return connection

    def _lost(self, connection: Http2Connection) -> None:
        self._open = [each for each in self._open if each is not connection]
        if connection.misbehaviour:
            self._misbehaviour = connection.misbehaviour
            self._shunned_until = asyncio.get_running_loop().time() + self._settings.shun_seconds
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
