"""Accepting connections, many in one turn of the event loop.

Why not `loop.create_server`: uvloop accepts one connection in each turn. A turn lasts as long as the work of all connections that have
sent something, so beside a thousand busy clients a new one waited for minutes before its handshake began. Nothing timed that out.
"""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable
from typing import Any

_LOG = logging.getLogger(__name__)
_BACKLOG = 1024
# Enough to empty the backlog within a few turns, and few enough that those who are connected are served in between.
AT_ONCE = 64
# Each client that has not shaken hands holds the buffers of its TLS; beyond that many, the one that has taken longest gives way.
MOST_HANDSHAKES = 2048
# What a process lacks when it cannot take a connection; accepting again at once would fail again.
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_EXHAUSTED_SECONDS = 1.0


class Listener:
    """Listening sockets of one address. `options` are those of `loop.connect_accepted_socket`."""

    def __init__(self, connect: Callable[[], asyncio.BaseProtocol], options: dict[str, Any]) -> None:
        self._connect = connect
        self._options = options
        self._sockets: list[socket.socket] = []
        # in the order of their beginning
        self._handshakes: dict[asyncio.Task[None], socket.socket] = {}

    async def open(self, host: str, port: int) -> int:
        """Listen on all addresses of a host; returns the port, which is chosen when 0 is given. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        try:
            found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICHOST)
        except socket.gaierror:
            # Only a name is worth a thread that asks for it.
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, kind, protocol, _, address in dict.fromkeys(found):
                self._sockets.append(_listening(family, kind, protocol, address))
        except OSError:
            self.close()
            raise
        for one in self._sockets:
            loop.add_reader(one.fileno(), self._accept, one)
        chosen: int = self._sockets[0].getsockname()[1]
        return chosen

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                taken, _address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._rest(listening, error)
                return
            taken.setblocking(False)
            if len(self._handshakes) >= MOST_HANDSHAKES:
                self._give_way()
            task = asyncio.get_running_loop().create_task(self._begin(taken))
            self._handshakes[task] = taken
            task.add_done_callback(lambda task: self._handshakes.pop(task, None))

    def _give_way(self) -> None:
        """End the handshake that has taken longest. Its transport then finds the end of its stream; it outlives a mere cancellation."""
        with contextlib.suppress(OSError):
            self._handshakes.pop(next(iter(self._handshakes))).shutdown(socket.SHUT_RDWR)

    async def _begin(self, taken: socket.socket) -> None:
        """Shake hands. A client that fails to has nobody who wants to know."""
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._connect, taken, **self._options)
        except OSError as error:
            # The transport has closed the socket.
            _LOG.debug("client connection failed", extra={"error": str(error)})

    def _rest(self, listening: socket.socket, error: OSError) -> None:
        _LOG.error("accepting connections failed; raise the limit of open files (ulimit -n)", extra={"error": error.strerror})
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening.fileno())
        loop.call_later(_EXHAUSTED_SECONDS, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening.fileno(), self._accept, listening)

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for one in self._sockets:
            loop.remove_reader(one.fileno())
            one.close()
        self._sockets.clear()
        for task in self._handshakes:
            task.cancel()

    async def closed(self) -> None:
        """Wait until nobody shakes hands any more."""
        await asyncio.gather(*self._handshakes, return_exceptions=True)


def _listening(family: int, kind: int, protocol: int, address: Any) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        text = f"error while attempting to bind on address {address!r}: {(error.strerror or str(error)).lower()}"
        raise OSError(error.errno, text) from None
    return made
