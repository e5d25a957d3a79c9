"""The flag that asks a thread to end."""

import contextlib
import socket
import threading

from paddock.base.images.errors import ImageUnavailable


class StopFlag:
    """Asks a thread to end: it looks at `check`, its waits end, and its socket is shut down."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()

    def set(self) -> None:
        self._event.set()
        with self._lock:
            for sock in self._sockets:
                _shut(sock)

    @property
    def asked(self) -> bool:
        """True when the end was requested."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise when the end was asked for."""
        if self._event.is_set():
            raise ImageUnavailable("Cancelled", "the import was cancelled")

    def wait(self, seconds: float) -> None:
        """Sleep, but not longer than until the end is asked for."""
        self._event.wait(seconds)
        self.check()

    def watch(self, sock: socket.socket) -> None:
        """This socket is what the thread waits for."""
        with self._lock:
            self._sockets.add(sock)
        if self._event.is_set():
            _shut(sock)

    def leave(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(sock)


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # The descriptor itself: shutting a TLS socket object down would drop its TLS state under the reader.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
