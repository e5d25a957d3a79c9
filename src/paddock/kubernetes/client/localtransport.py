"""The transport without sockets: requests go into the embedded server's road in the same process.

What a request is done as is decided by whoever makes the door (`paddock.app`); the rest of the road is the one of every request.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from paddock.kubernetes.client.errors import TimedOut, Unreachable
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest, TransportResponse

# What a stream may hold before its writer has to wait.
_LOW_BYTES = 64 * 1024


class LocalSink(Protocol):
    """The sink of a stream from the server."""

    @property
    def backlog(self) -> int: ...

    @property
    def closed(self) -> bool: ...

    def write(self, data: bytes) -> None: ...

    async def drained(self) -> None: ...

    async def gone(self) -> None: ...


class LocalResponse(msgspec.Struct, frozen=True):
    """An answer that writes itself into a sink."""

    status: int
    headers: dict[str, str]
    run: Callable[[LocalSink], Awaitable[None]]


Door = Callable[[TransportRequest], Awaitable[TransportResponse | LocalResponse]]


class _Pipe:
    """A stream between two tasks: a `LocalSink` for the server, a `ResponseStream` for the client."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        self.status = status
        self.headers = headers
        self._chunks: list[bytes] = []
        self._size = 0
        self._ended = False
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._left = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    # the server's side

    @property
    def backlog(self) -> int:
        return self._size

    @property
    def closed(self) -> bool:
        return self._left.is_set()

    def write(self, data: bytes) -> None:
        if not self.closed and data:
            self._chunks.append(data)
            self._size += len(data)
            self._arrived.set()

    async def drained(self) -> None:
        while self._size > _LOW_BYTES and not self.closed:
            self._taken.clear()
            await self._taken.wait()

    async def gone(self) -> None:
        await self._left.wait()

    def end(self) -> None:
        self._ended = True
        self._arrived.set()

    # the client's side

    async def read(self) -> bytes:
        while not self._chunks:
            if self._ended or self.closed:
                return b""
            self._arrived.clear()
            await self._arrived.wait()
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        self._taken.set()
        return data

    def close(self) -> None:
        self._left.set()
        self._taken.set()
        self._arrived.set()
        if self.task is not None:
            self.task.cancel()


class LocalTransport:
    """Carries requests through a door."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._pipes: set[_Pipe] = set()
        self._closed = False

    async def send(self, ask: TransportRequest) -> TransportResponse:
        """The answer; raises `Unreachable` when there is none in time, or the server has stopped."""
        answer = await self._answer(ask)
        if isinstance(answer, LocalResponse):
            raise Unreachable("the server answers with a stream where none was asked for", sent=True)
        return answer

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        """The answer as it is written."""
        answer = await self._answer(ask)
        if isinstance(answer, TransportResponse):
            pipe = _Pipe(answer.status, answer.headers)
            pipe.write(answer.body)
            pipe.end()
            return pipe
        pipe = _Pipe(answer.status, answer.headers)
        pipe.task = asyncio.create_task(self._run(answer, pipe))
        self._pipes.add(pipe)
        return pipe

    async def close(self) -> None:
        """End all streams; nothing can be asked any more."""
        self._closed = True
        pipes = tuple(self._pipes)
        for pipe in pipes:
            pipe.close()
        await asyncio.gather(*(pipe.task for pipe in pipes if pipe.task is not None), return_exceptions=True)

    async def _answer(self, ask: TransportRequest) -> TransportResponse | LocalResponse:
        if self._closed:
            raise Unreachable("the server in this process has stopped", sent=False)
        try:
            async with asyncio.timeout(ask.seconds):
                return await self._door(ask)
        except TimeoutError as error:
            raise TimedOut(f"no answer to {ask.method} {ask.target} within {ask.seconds:g} s", sent=True) from error

    async def _run(self, answer: LocalResponse, pipe: _Pipe) -> None:
        try:
            await answer.run(pipe)
        finally:
            pipe.end()
            self._pipes.discard(pipe)
