"""A body that is read while it arrives, for the few paths where it may be larger than memory.

Whoever reads sets the pace: when nobody does, the connection is not read either, and the sender has to wait. A sender who sends
nothing while somebody waits for it is given up after a time.
"""

import asyncio
from collections.abc import AsyncIterator

from paddock.base import tcp

_HIGH_BYTES = 512 * 1024
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class BodyInterrupted(Exception):
    """The body ended before its end: the sender has gone, was too slow, or sent no HTTP."""


class RequestBody:
    """One body. `read` is for the handler; the others are for the connection."""

    def __init__(self, transport: asyncio.Transport, seconds: float, *, expects: bool = False) -> None:
        self._transport = transport
        self._seconds = seconds
        # the sender waits for 100 Continue
        self._expects = expects
        self._pieces: list[bytes] = []
        self._size = 0
        # more than that waits for somebody to read it before the connection is read on
        self._high = _HIGH_BYTES
        self._paused = False
        self._discards = False
        self._arrived = asyncio.Event()
        self.ended = False
        self.broken = ""

    def be_patient(self, seconds: float) -> None:
        """Wait at least this long for a silent sender. If its host disappears, TCP keepalive ends the wait sooner."""
        self._seconds = max(self._seconds, seconds)
        tcp.keep_alive(self._transport)

    async def read(self) -> bytes:
        """Return the next piece; empty at the end. Raises `BodyInterrupted`."""
        self._welcome()
        while not self._pieces:
            if self.broken:
                raise BodyInterrupted(self.broken)
            if self.ended:
                return b""
            self._arrived.clear()
            try:
                async with asyncio.timeout(self._seconds):
                    await self._arrived.wait()
            except TimeoutError:
                self.fail(f"nothing came for {self._seconds:g} s")
        data = b"".join(self._pieces) if len(self._pieces) > 1 else self._pieces[0]
        self._pieces.clear()
        self._size = 0
        self._resume()
        return data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self.read():
            yield piece

    async def discard(self, seconds: float) -> None:
        """Let the rest go by for a time, so that the sender comes to read the answer."""
        self._discards = True
        self._pieces.clear()
        self._resume()
        try:
            async with asyncio.timeout(seconds):
                while not self.ended and not self.broken:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            return

    def feed(self, data: bytes) -> None:
        if self._discards or self.broken:
            return
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self._high:
            self._pause()
        self._arrived.set()

    def finish(self) -> None:
        self.ended = True
        self._arrived.set()

    def fail(self, why: str) -> None:
        """No more bytes come, and these were not all."""
        if not self.ended and not self.broken:
            self.broken = why
            self._arrived.set()

    def release(self) -> None:
        """The request has its answer."""

    def _welcome(self) -> None:
        """Tell a sender who waits for it that the body is wanted."""
        if self._expects and not self.ended:
            self._expects = False
            self._transport.write(CONTINUE)

    def _pause(self) -> None:
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()
