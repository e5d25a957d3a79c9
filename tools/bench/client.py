"""A client that costs little, so that what is measured is the server: raw HTTP/1.1 over TLS, one request at a time per connection.

The answers are not decoded. Connections take the next request from one iterator, so that all are busy until the last one.
"""

import asyncio
import multiprocessing
import socket
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPResponse
from typing import cast

_LAST_CHUNK = b"0\r\n\r\n"
_RECEIVE = 1024 * 1024


@dataclass(frozen=True)
class Target:
    """A server and its credentials."""

    host: str
    port: int
    token: str

    def tls(self) -> ssl.SSLContext:
        """Certificates are not checked: each server has made its own."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context

    def request(self, method: str, path: str, body: bytes = b"", *, media: str = "application/json", accept: str = "") -> bytes:
        """The bytes of a request."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAuthorization: Bearer {self.token}\r\n"
            f"User-Agent: bench/1\r\nAccept: {accept or 'application/json'}\r\n"
        )
        if body or method != "GET":
            head += f"Content-Type: {media}\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + body


@dataclass
class Outcome:
    """The result of a load."""

    count: int = 0
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[bytes] = field(default_factory=Counter)

    def quantile(self, part: float) -> float:
        """Seconds that this part of the requests did not exceed."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))]

    def check(self, wanted: bytes) -> "Outcome":
        """A load whose requests failed measures nothing."""
        if set(self.statuses) != {wanted}:
            raise LoadFailed(f"answers were {dict(self.statuses)}, all should be {wanted.decode()}")
        return self


class LoadFailed(Exception):
    """A load did not do what it is meant to do."""


class _Caller(asyncio.Protocol):
    """Sends a request whenever the answer to the last one is complete."""

    def __init__(self, requests: Iterator[bytes], outcome: Outcome, done: "asyncio.Future[None]") -> None:
        self._requests = requests
        self._outcome = outcome
        self._done = done
        self._answer = bytearray()
        self._needed = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def begin(self) -> None:
        """Send the first request."""
        self._next()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)
            return
        self._answer.clear()
        self._needed = -1
        self._began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if self._needed < 0:
            self._needed = _length(self._answer)
        if not (len(self._answer) >= self._needed > 0 or (self._needed == 0 and self._answer.endswith(_LAST_CHUNK))):
            return
        self._outcome.latencies.append(time.perf_counter() - self._began)
        self._outcome.statuses[bytes(self._answer[9:12])] += 1
        self._outcome.count += 1
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(LoadFailed(f"the server closed a connection: {exc}"))


def _length(answer: bytearray) -> int:
    """Return the length of the whole answer: -1 not known yet, 0 as long as its chunks."""
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return -1
    head = bytes(answer[:end]).lower()
    at = head.find(b"content-length:")
    if at < 0:
        return 0
    return end + 4 + int(head[at + 15 :].split(b"\r\n", 1)[0])


async def drive(target: Target, connections: int, requests: Iterator[bytes]) -> Outcome:
    """Send all requests on a number of connections; the time does not hold the handshakes."""
    loop, outcome = asyncio.get_running_loop(), Outcome()
    context = target.tls()
    callers: list[_Caller] = []
    ends: list[asyncio.Future[None]] = []
    for _ in range(connections):
        ends.append(loop.create_future())
        make = partial(_Caller, requests, outcome, ends[-1])
        _, caller = await loop.create_connection(make, target.host, target.port, ssl=context)
        callers.append(caller)
    began = time.perf_counter()
    for caller in callers:
        caller.begin()
    await asyncio.gather(*ends)
    outcome.seconds = time.perf_counter() - began
    return outcome


class Watchers:
    """Many open watches that count what they are sent."""

    def __init__(self) -> None:
        self.events = 0
        self._wanted = 0
        self._reached: asyncio.Future[None] | None = None

    def count(self, events: int) -> None:
        """More events have come."""
        self.events += events
        if self._reached is not None and self.events >= self._wanted and not self._reached.done():
            self._reached.set_result(None)

    async def reach(self, events: int, seconds: float = 300.0) -> None:
        """Wait until so many have come."""
        self._wanted, self._reached = events, asyncio.get_running_loop().create_future()
        self.count(0)
        async with asyncio.timeout(seconds):
            await self._reached


class _Watcher(asyncio.Protocol):
    """Counts the lines of a watch."""

    def __init__(self, request: bytes, watchers: Watchers, opened: "asyncio.Future[None]") -> None:
        self._request = request
        self._watchers = watchers
        self._opened = opened
        self._brace = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self._opened.done():
            self._opened.set_result(None)
        # An event ends in a brace and a newline; the two may come apart.
        events = data.count(b"}\n") + (self._brace and data.startswith(b"\n"))
        self._brace = data.endswith(b"}")
        if events:
            self._watchers.count(events)


@asynccontextmanager
async def watching(target: Target, path: str, number: int) -> AsyncIterator[Watchers]:
    """A number of open watches."""
    loop, context, watchers = asyncio.get_running_loop(), target.tls(), Watchers()
    request = target.request("GET", path)
    transports = []
    try:
        for _ in range(number):
            opened: asyncio.Future[None] = loop.create_future()
            make = partial(_Watcher, request, watchers, opened)
            transport, _ = await loop.create_connection(make, target.host, target.port, ssl=context)
            transports.append(transport)
            await asyncio.wait_for(opened, 30)
        yield watchers
    finally:
        for transport in transports:
            transport.abort()
        await asyncio.sleep(0.1)


def connect(target: Target) -> ssl.SSLSocket:
    """A connection for requests that are sent one by one."""
    return target.tls().wrap_socket(socket.create_connection((target.host, target.port), timeout=120), server_hostname=target.host)


def fetch(connection: ssl.SSLSocket, request: bytes) -> tuple[float, int]:
    """Read one large answer as fast as sockets allow: seconds and bytes."""
    began = time.perf_counter()
    connection.sendall(request)
    buffer, head, size, needed, tail = bytearray(_RECEIVE), bytearray(), 0, -1, b""
    while True:
        count = connection.recv_into(buffer)
        if not count:
            raise LoadFailed(f"an answer broke off after {size} bytes")
        size += count
        tail = (tail + bytes(buffer[max(0, count - 5) : count]))[-5:]
        if needed < 0:
            head += buffer[:count]
            needed = _length(head)
            if needed >= 0 and head[9:12] != b"200":
                raise LoadFailed(f"an answer began with {bytes(head[:300])!r}")
        if size >= needed > 0 or (needed == 0 and tail == _LAST_CHUNK):
            return time.perf_counter() - began, size


def call(target: Target, method: str, path: str, body: bytes = b"", *, media: str = "application/json") -> tuple[int, bytes]:
    """One request on a connection of its own: the status and the body."""
    with connect(target) as one, HTTPResponse(one, method=method) as answer:
        one.sendall(target.request(method, path, body, media=media))
        answer.begin()
        return answer.status, answer.read()


class Writer:
    """Writes one request after the other from a process of its own, where nothing else delays the clock."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def __enter__(self) -> "Writer":
        context = multiprocessing.get_context("spawn")
        self._process = ProcessPoolExecutor(1, mp_context=context, initializer=_open, initargs=(self._target,))
        return self

    def __exit__(self, *_: object) -> None:
        self._process.shutdown()

    async def write(self, request: bytes) -> float:
        """Seconds until the answer was there."""
        return await asyncio.get_running_loop().run_in_executor(self._process, _write, request)


_connection: ssl.SSLSocket


def _open(target: Target) -> None:
    global _connection
    _connection = connect(target)


def _write(request: bytes) -> float:
    began = time.perf_counter()
    _connection.sendall(request)
    answer = read(_connection)
    taken = time.perf_counter() - began
    if bytes(answer[9:12]) not in (b"200", b"201"):
        raise LoadFailed(f"a write was answered with {bytes(answer[:300])!r}")
    return taken


def read(connection: ssl.SSLSocket) -> bytearray:
    """One whole answer."""
    answer = bytearray()
    while True:
        piece = connection.recv(_RECEIVE)
        if not piece:
            raise LoadFailed(f"the answer broke off: {bytes(answer[:300])!r}")
        answer += piece
        needed = _length(answer)
        if len(answer) >= needed > 0 or (needed == 0 and answer.endswith(_LAST_CHUNK)):
            return answer
