"""One connection to a server: an `asyncio.Protocol` around httptools. One exchange at a time, then the next."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import httptools

from paddock.kubernetes.client.errors import BadAnswer, Unreachable

# A stream that is not read holds this much before the socket is left alone.
_HIGH_BYTES = 1024 * 1024
_HEAD_BYTES = 64 * 1024
_NO_BODY_END = ("content-length", "transfer-encoding")


class ClientConnection(asyncio.Protocol):
    """Writes a request and takes its answer apart."""

    def __init__(self, opened: "set[ClientConnection] | None" = None, server: str = "the server") -> None:
        # as errors name it
        self._server = server
        # where it stands while it is open
        self._opened = set() if opened is None else opened
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._busy = False
        self._lost = False
        self._why: BaseException | None = None
        self._reset()
        self.idle_since = self._loop.time()
        self.used = 0
        # what the connection rests on, when that has to be kept alive
        self.beneath: object = None

    def _reset(self) -> None:
        self._parser: Any = httptools.HttpResponseParser(self)
        self.status = 0
        self.reason = ""
        self.headers: dict[str, str] = {}
        self._chunks: list[bytes] = []
        self._size = 0
        self._head_size = 0
        self._head_done = False
        self._done = False
        self._keep = False
        self._paused = False
        self._full = False

    # --- what asyncio calls -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do what asyncio's promise, and are of no class of its.
        self._transport = cast(asyncio.Transport, transport)
        self._opened.add(self)

    def data_received(self, data: bytes) -> None:
        if not self._busy:
            # An answer that nobody asked for: whatever comes next would be taken for another's.
            self._transport.abort()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._spoil(str(error))
        # The parser reports a header only when it ends.
        if not self._head_done:
            self._head_size += len(data)
        if self._head_size > _HEAD_BYTES:
            self._spoil("its head is too long")
        self._wake()

    def _spoil(self, why: str) -> None:
        self._why = self._why or BadAnswer(f"{self._server} sent something other than HTTP", why=why)
        self._transport.abort()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._opened.discard(self)
        self._lost = True
        self._why = self._why or exc
        if exc is None and self._head_done and not any(name in self.headers for name in _NO_BODY_END):
            # Such a body ends with its connection.
            self._done = True
        self._wake()

    # --- what httptools calls ---------------------------------------------------------------------------------------------

    def on_status(self, reason: bytes) -> None:
        # It may come in pieces; a new message begins with an empty one.
        self.reason += reason.decode("utf-8", "replace")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value)
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            # 100 Continue and its kin announce the answer; they are none.
            self.headers, self.reason = {}, ""
            return
        self.status = status
        self._head_done = True

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)
        self._size += len(body)
        if self._size > _HIGH_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._head_done:
            self._keep = self._parser.should_keep_alive()
            self._done = True

    # --- what the pool calls ----------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """True if the connection can take another request."""
        return not self._lost and not self._busy and not self._transport.is_closing()

    async def begin(self, request: bytes) -> None:
        """Send a request and wait for the head of its answer."""
        if self._lost or self._transport.is_closing():
            raise Unreachable(f"the connection to {self._server} was closed", sent=False)
        self._reset()
        self._busy = True
        self.used += 1
        self._transport.write(request)
        while not self._head_done:
            self._check()
            await self._wait()
        if isinstance(self._why, BadAnswer):
            raise self._why

    async def begin_stream(self, head: bytes, body: AsyncIterator[bytes]) -> None:
        """Send a request whose body comes piece by piece, and wait for the head of the answer, which may come early."""
        if self._lost or self._transport.is_closing():
            raise Unreachable(f"the connection to {self._server} was closed", sent=False)
        self._reset()
        self._busy = True
        self.used += 1
        self._transport.write(head)
        async for piece in body:
            if self._head_done or self._lost:
                break
            self._transport.write(piece)
            while self._stalled():
                await self._wait()
        while not self._head_done:
            self._check()
            await self._wait()
        if isinstance(self._why, BadAnswer):
            raise self._why

    def _stalled(self) -> bool:
        return self._full and not self._lost and not self._head_done

    async def read(self) -> bytes:
        """Return the next part of the body; empty at its end."""
        while not self._chunks:
            if self._done:
                return b""
            self._check()
            await self._wait()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks = []
        self._size = 0
        if self._paused and not self._lost:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def read_all(self) -> bytes:
        parts = []
        while part := await self.read():
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def finish(self) -> bool:
        """End an exchange; whether the connection can be kept for another."""
        self._busy = False
        self.idle_since = self._loop.time()
        if self._done and self._keep and not self._lost and not self._transport.is_closing():
            return True
        self.abort()
        return False

    def abort(self) -> None:
        self._busy = False
        self._transport.abort()

    def close(self) -> None:
        self._transport.close()

    def _check(self) -> None:
        if isinstance(self._why, BadAnswer):
            raise self._why
        if self._lost:
            raise Unreachable(f"{self._server} closed the connection", why=str(self._why or ""), sent=True)

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
