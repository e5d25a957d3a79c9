"""Byte streams to a guest: console, display, USB redirection. QEMU's sockets serve one client, so each has one session at a time."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Protocol

_CHUNK = 1 << 16


class Pipe(Protocol):
    """A stream of bytes to and from a guest."""

    async def read(self) -> bytes:
        """The next bytes; `b""` is the end, for which a newer session may be the reason."""

    async def write(self, data: bytes) -> None:
        """Returns when there is room for more. What is written after the end is dropped."""

    def close(self) -> None:
        """Ends the session; the guest does not notice."""


class SocketPipe:
    """A session over a socket of QEMU. What is not read waits in QEMU: nothing is buffered here."""

    def __init__(self, connection: socket.socket, first: bytes = b"", ended: Callable[["SocketPipe"], None] = lambda pipe: None) -> None:
        """`first` is read before anything else; `ended` is called once."""
        connection.setblocking(False)
        self._socket = connection
        self._first = first
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
                data = await asyncio.get_running_loop().sock_recv(self._socket, _CHUNK)
        if not data:
            self.close()
        return data

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
        """There is a session."""
        return self._pipe is not None

    def give(self, connect: Callable[[], socket.socket], first: bytes = b"") -> SocketPipe:
        """A session over a new connection, which is made when the old one is closed. Raises what `connect` raises."""
        self.clear()
        self._pipe = SocketPipe(connect(), first, self._over)
        return self._pipe

    def clear(self) -> None:
        """The session, if any, ends."""
        if self._pipe is not None:
            self._pipe.close()

    def _over(self, pipe: SocketPipe) -> None:
        if self._pipe is pipe:
            self._pipe = None


def last_screen(log: bytes, lines: int = 24, size: int = 4096) -> bytes:
    """The end of a console's log: at most so many lines, from the start of one, and not from the middle of a character."""
    tail = log[-size:]
    if len(log) > size:
        tail = tail[tail.find(b"\n") + 1 :] if b"\n" in tail else tail.lstrip(bytes(range(0x80, 0xC0)))
    rows = tail.split(b"\n")
    return b"\n".join(rows[-lines:])
