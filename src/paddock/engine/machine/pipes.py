"""Byte streams to a guest: console, display, USB redirection. QEMU's sockets serve one client, so each has one session at a time."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Protocol

_CHUNK = 1 << 16
# What is read at once of a guest that writes without a pause.
_MOST_AT_ONCE = 1 << 20
# Where one text begins in another is searched by so many bytes, at so many places at most: a guest must not keep the server busy.
_BEGINNING, _PLACES = 256, 100
# QEMU has accepted a connection by then, or sent something over it.
_ACCEPT_SECONDS = 0.3


class Pipe(Protocol):
    """A stream of bytes to and from a guest."""

    async def read(self) -> bytes:
        """The next bytes; `b""` is the end, for which a newer session may be the reason."""

    async def write(self, data: bytes) -> None:
        """Returns when there is room for more. What is written after the end is dropped."""

    def close(self) -> None:
        """Ends the session; the guest does not notice."""


class SocketPipe:
    """A session over a socket of QEMU. What is not read waits in QEMU: nothing is buffered here.

    With a log, which has the end of all that the guest wrote, the session can begin with the last screen. QEMU sends nothing that the
    guest writes before it has accepted the connection, but logs it: that comes from the log, too.
    """

    def __init__(
        self,
        connection: socket.socket,
        log: Callable[[], bytes] | None = None,
        ended: Callable[["SocketPipe"], None] = lambda pipe: None,
        *,
        screen: bool = True,
    ) -> None:
        """`ended` is called once. Without `screen` the session begins with what the guest writes from now on."""
        connection.setblocking(False)
        self._socket = connection
        self._log = log
        self._logged = log() if log is not None else b""
        self._first = last_screen(self._logged) if screen else b""
        self._ended = ended
        self._open = True
        self._users = 0

    async def read(self) -> bytes:
        """The next bytes; `b""` is the end."""
        if self._first:
            first, self._first = self._first, b""
            return first
        data = b""
        if self._open:
            with self._use(), contextlib.suppress(OSError):
                data = await self._caught_up() or await self._received()
        if not data:
            self.close()
        return data

    async def _received(self) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self._socket, _CHUNK)

    async def _caught_up(self) -> bytes:
        """The first bytes of a session with a log, with those before them that QEMU did not send; nothing if there are none."""
        if self._log is None:
            return b""
        log, data = self._log, b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ACCEPT_SECONDS):
                data = await self._received()
        self._log, now = None, log()
        # QEMU sends before it logs. So whatever it logged after it accepted the connection has already arrived here.
        data += self._there()
        new = now[_overlap(self._logged, now) :]
        return new[: len(new) - _overlap(new, data)] + data

    def _there(self) -> bytes:
        """Return the bytes that have arrived and are not read yet."""
        found = b""
        with contextlib.suppress(OSError):
            while len(found) < _MOST_AT_ONCE and (more := self._socket.recv(_CHUNK)):
                found += more
        return found

    async def write(self, data: bytes) -> None:
        """Returns when QEMU took it."""
        if not self._open:
            return
        try:
            with self._use():
                await asyncio.get_running_loop().sock_sendall(self._socket, data)
        except OSError:
            self.close()

    def close(self) -> None:
        """Wake readers and writers, who then see the end."""
        if not self._open:
            return
        self._open = False
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if not self._users:
            self._socket.close()
        self._ended(self)

    @contextlib.contextmanager
    def _use(self) -> Iterator[None]:
        # A socket must not be closed while the loop watches it.
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._open and not self._users:
                self._socket.close()


class SessionSlot:
    """A place for one session: a new one ends the old."""

    def __init__(self) -> None:
        self._pipe: SocketPipe | None = None

    @property
    def taken(self) -> bool:
        return self._pipe is not None

    def give(self, connect: Callable[[], socket.socket], log: Callable[[], bytes] | None = None, *, screen: bool = True) -> SocketPipe:
        """A session over a new connection, which is made when the old one is closed. Raises what `connect` raises."""
        self.clear()
        self._pipe = SocketPipe(connect(), log, self._over, screen=screen)
        return self._pipe

    def clear(self) -> None:
        """The session, if any, ends."""
        if self._pipe is not None:
            self._pipe.close()

    def _over(self, pipe: SocketPipe) -> None:
        if self._pipe is pipe:
            self._pipe = None


def _overlap(one: bytes, other: bytes) -> int:
    """The size of the longest end of one text that the other begins with. Of a text that repeats itself, only some places are tried."""
    beginning, place = other[:_BEGINNING], len(one) - len(other)
    for _ in range(_PLACES):
        place = one.find(beginning, max(place, 0))
        if place < 0:
            break
        if other.startswith(one[place:]):
            return len(one) - place
        place += 1
    return next(size for size in range(min(len(one), len(beginning)), -1, -1) if other.startswith(one[len(one) - size :]))


def last_screen(log: bytes, lines: int = 24, size: int = 4096) -> bytes:
    """The end of a console's log: at most so many lines, from the start of one, and not from the middle of a character."""
    tail = log[-size:]
    if len(log) > size:
        tail = tail[tail.find(b"\n") + 1 :] if b"\n" in tail else tail.lstrip(bytes(range(0x80, 0xC0)))
    rows = tail.split(b"\n")
    return b"\n".join(rows[-lines:])
