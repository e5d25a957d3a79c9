"""Writing answers: heads, bodies, chunks, and knowing how much the other end has not taken yet."""

import asyncio
from http import HTTPStatus

from paddock.edge.http import HttpResponse, StreamResponse

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_LAST_CHUNK = b"0\r\n\r\n"
_PIECE = 256 * 1024


def head_of(answer: HttpResponse | StreamResponse, length: int | None, *, keep: bool) -> bytes:
    """Status line and headers; without a length the body is chunked."""
    parts = [_STATUS_LINES.get(answer.status) or f"HTTP/1.1 {answer.status} Status\r\n".encode()]
    parts.extend(f"{name}: {value}\r\n".encode("latin-1", "replace") for name, value in answer.headers)
    if length is None:
        parts.append(b"transfer-encoding: chunked\r\n")
    elif answer.status not in (204, 304):
        parts.append(b"content-length: %d\r\n" % length)
    if not keep:
        parts.append(b"connection: close\r\n")
    parts.append(b"\r\n")
    return b"".join(parts)


class ResponseWriter:
    """The outgoing half of a connection."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self._room = asyncio.Event()
        self._room.set()
        self._gone = asyncio.Event()

    # --- what the connection tells ----------------------------------------------------------------------------------------

    def pause(self) -> None:
        """The transport holds enough."""
        self._room.clear()

    def resume(self) -> None:
        """The transport has room again."""
        self._room.set()

    def lose(self) -> None:
        """The connection is gone."""
        self._gone.set()
        self._room.set()

    def stop(self) -> None:
        """Streams end as soon as they can."""
        self._gone.set()

    # --- answers ----------------------------------------------------------------------------------------------------------

    async def respond(self, response: HttpResponse, how: tuple[bool, bool], seconds: float) -> None:
        """Write a complete answer, with the connection kept or not, and with its body or not.

        Raises `TimeoutError` when the other end takes none of a large one for so many seconds.
        """
        keep, with_body = how
        head = head_of(response, len(response.body), keep=keep)
        if not with_body or not response.body:
            self.transport.write(head)
        elif len(response.body) <= _PIECE:
            self.transport.write(head + response.body)
        else:
            await self._write_pieces(head, memoryview(response.body), seconds)

    async def _write_pieces(self, head: bytes, body: memoryview, seconds: float) -> None:
        """A large body goes out piece by piece, as the other end takes it: it is neither copied whole nor kept twice, and other
        requests are answered in between."""
        self.transport.write(head)
        for start in range(0, len(body), _PIECE):
            if self.transport.is_closing():
                return
            self.transport.write(body[start : start + _PIECE])
            await asyncio.sleep(0)
            await self._taken(seconds)

    async def _taken(self, seconds: float) -> None:
        """Wait for room, as long as the other end takes something."""
        while not self._room.is_set():
            before = self.backlog
            try:
                async with asyncio.timeout(seconds):
                    await self._room.wait()
            except TimeoutError:
                if self.backlog >= before:
                    raise

    async def stream(self, answer: StreamResponse, *, keep: bool) -> None:
        """Write the head at once, then whatever the stream writes."""
        self.transport.write(head_of(answer, None, keep=keep))
        run = asyncio.ensure_future(answer.run(Chunks(self)))
        try:
            await run
        finally:
            run.cancel()
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
        return self._gone.is_set() or self.transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        if not self.transport.is_closing():
            self.transport.write(data)

    async def drained(self) -> None:
        """Wait until the transport has room, or is gone."""
        await self._room.wait()

    async def gone(self) -> None:
        """Wait for the end."""
        await self._gone.wait()


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

    async def gone(self) -> None:
        await self._writing.gone()
