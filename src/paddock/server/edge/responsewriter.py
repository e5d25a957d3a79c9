"""Writing answers: heads, bodies, chunks, and knowing how much the other end has not taken yet."""

import asyncio
from collections.abc import Iterable
from http import HTTPStatus

from paddock.server.edge.http import HttpResponse, StreamResponse

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
_LAST_CHUNK = b"0\r\n\r\n"
_PIECE = 128 * 1024


def head_of(answer: HttpResponse | StreamResponse, length: int | None, *, keep: bool) -> bytes:
    """Status line and headers; without a length the body is chunked."""
    text = _STATUS_LINES.get(answer.status) or f"HTTP/1.1 {answer.status} Status\r\n"
    for name, value in answer.headers:
        text += f"{name}: {value}\r\n"
    if length is None:
        text += "transfer-encoding: chunked\r\n"
    elif answer.status not in (204, 304):
        text += f"content-length: {length}\r\n"
    if not keep:
        text += "connection: close\r\n"
    return f"{text}\r\n".encode("latin-1", "replace")


class ResponseWriter:
    """The outgoing half of a connection."""

    __slots__ = ("_full", "_is_gone", "_leaving", "transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        # set when the transport has room again; None while it has room
        self._full: asyncio.Event | None = None
        self._is_gone = False
        # what waits for the end: a future for each watcher, because an event and a task that waits for it take more memory
        self._leaving: tuple[asyncio.Future[None], ...] = ()

    # --- what the connection tells ----------------------------------------------------------------------------------------

    def pause(self) -> None:
        """The transport's buffer is full."""
        self._full = self._full or asyncio.Event()

    def resume(self) -> None:
        """The transport has room again."""
        if self._full is not None:
            self._full.set()
            self._full = None

    def lose(self) -> None:
        self.stop()
        self.resume()

    def stop(self) -> None:
        """Streams end as soon as they can."""
        self._is_gone = True
        for each in self._leaving:
            if not each.done():
                each.set_result(None)

    # --- answers ----------------------------------------------------------------------------------------------------------

    async def respond(self, response: HttpResponse, how: tuple[bool, bool], seconds: float) -> None:
        """Write a complete answer, with the connection kept or not, and with its body or not.

        Raises `TimeoutError` when the other end takes nothing for so many seconds.
        """
        keep, with_body = how
        length = response.length
        head = head_of(response, length, keep=keep)
        if not with_body or not length:
            self.transport.write(head)
        elif length <= _PIECE:
            self.transport.write(head + response.body)
        else:
            await self._write_pieces(head, response.pieces(_PIECE), seconds)
        if self._full is not None:
            # The next request waits until the other end takes its answers.
            await self.taken(seconds)

    async def _write_pieces(self, head: bytes, pieces: Iterable[bytes | memoryview], seconds: float) -> None:
        """A large body goes out piece by piece, as the other end takes it: it is neither copied whole nor kept twice, and other
        requests are answered in between."""
        self.transport.write(head)
        for piece in pieces:
            if self.transport.is_closing():
                return
            self.transport.write(piece)
            await asyncio.sleep(0)
            await self.taken(seconds)

    async def stream(self, answer: StreamResponse, *, keep: bool) -> None:
        """Write the head at once, then whatever the stream writes."""
        self.transport.write(head_of(answer, None, keep=keep))
        await answer.run(Chunks(self))
        if not self.transport.is_closing():
            self.transport.write(_LAST_CHUNK)

    # --- for streams and sockets ------------------------------------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """Bytes that are written and not yet taken."""
        return self.transport.get_write_buffer_size()

    @property
    def closed(self) -> bool:
        """True when nothing more can be written."""
        return self._is_gone or self.transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        if not self.transport.is_closing():
            self.transport.write(data)

    @property
    def full(self) -> bool:
        """True while the other end does not take what is written."""
        return self._full is not None

    async def taken(self, seconds: float) -> None:
        """Wait for room, as long as the other end takes something; raises `TimeoutError` when it takes nothing for so many seconds."""
        while self._full is not None:
            before = self.backlog
            try:
                async with asyncio.timeout(seconds):
                    await self.drained()
            except TimeoutError:
                if self.backlog >= before:
                    raise

    async def drained(self) -> None:
        """Wait until the transport has room, or is gone."""
        if self._full is not None:
            await self._full.wait()

    def gone(self) -> "asyncio.Future[None]":
        """Return a future that is done when the connection is lost or stops."""
        future = asyncio.get_running_loop().create_future()
        self._leaving = (*(each for each in self._leaving if not each.done()), future)
        if self._is_gone:
            future.set_result(None)
        return future


# The last chunk that was framed: one event goes to a thousand watchers, one after the other.
_last: tuple[bytes, bytes] = (b"", b"")


def _framed(data: bytes) -> bytes:
    """A chunk as it goes out."""
    global _last
    if _last[0] is not data:
        _last = (data, b"%x\r\n%b\r\n" % (len(data), data))
    return _last[1]


class Chunks:
    """A `Sink` that frames what is written as chunks."""

    __slots__ = ("_transport", "_writing")

    def __init__(self, writing: ResponseWriter) -> None:
        self._writing = writing
        # One event asks a thousand sinks, so they ask their transports themselves.
        self._transport = writing.transport

    @property
    def backlog(self) -> int:
        return self._transport.get_write_buffer_size()

    @property
    def closed(self) -> bool:
        return self._writing.closed

    def write(self, data: bytes) -> None:
        if data and not self._transport.is_closing():
            self._transport.write(_framed(data))

    async def drained(self) -> None:
        await self._writing.drained()

    def gone(self) -> "asyncio.Future[None]":
        return self._writing.gone()
